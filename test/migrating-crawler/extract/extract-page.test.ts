import { createHash } from "node:crypto";
import { describe, expect, it } from "vitest";
import { extractPage } from "#crawler/extract/extract-page";
import { maxTextCharacters, simhashDistance } from "#protocol/result";
import { bodyOf, extracted as extract } from "../support/extracted.ts";

it("letters with combining marks are composed in every text of a page, and addresses stay as written", async () => {
  const html = (
    text: string,
  ) => `<html lang="de"><title>${text}</title><meta name="description" content="${text} kurz">
    <script type="application/ld+json">{"@type": "Article", "name": "${text}", "description": "${text}"}</script>
    <main><h1>${text}</h1><p>${`Das ${text} liegt am See, und alle gehen gern dorthin. `.repeat(4)}</p>
    <img alt="${text} am Abend"><p><a href="/Zürich">${text} lesen</a> <map><area href="/b" alt="${text}"></map></p></main>`;
  const text = "Zürcher Gemäuer";
  const read = async (page: string, contentType = "text/html; charset=utf-8") => ({
    ...(await extract(page, { contentType })),
    digest: "",
  });
  const marked = text.normalize("NFD");
  const referred = marked.replaceAll("\u0308", "&#776;");

  const composed = await read(html(text));
  expect(JSON.stringify(composed)).toContain("Zürcher Gemäuer lesen");
  expect(composed).toMatchObject({ text: expect.stringContaining(text), unquoted: `${text} am Abend` });
  expect(await read(html(marked))).toEqual(composed);
  const { structured: _, ...shown } = composed;
  expect(await read(html(referred))).toMatchObject(shown);
  expect((await read(`<p>${marked.replaceAll("\u0308", "<b>\u0308</b>")}`)).text).toBe(text);
  expect(await read(marked, "text/plain; charset=utf-8")).toEqual(
    await read(text, "text/plain; charset=utf-8"),
  );
  const [link] = (await read(html(text).normalize("NFD"))).links;
  expect(link).toMatchObject({ url: "https://site.example/Zu%CC%88rich", anchor: "Zürcher Gemäuer lesen" });
});

describe("the language of a page with combining marks", () => {
  const vietnamese =
    "Tất cả mọi người sinh ra đều được tự do và bình đẳng về nhân phẩm và quyền lợi. Mọi con người đều được " +
    "tạo hoá ban cho lý trí và lương tâm và cần phải đối xử với nhau trong tình bằng hữu.";
  const korean =
    "모든 인간은 태어날 때부터 자유로우며 그 존엄과 권리에 있어 동등하다. 인간은 천부적으로 이성과 양심을 부여받았으며 서로 형제애의 정신으로 행동하여야 한다.";
  const undeclared = { contentLanguage: null };

  /** The charset has vowels with circumflex or horn, followed by tone marks. */
  function windows1258(text: string): Buffer {
    const decoder = new TextDecoder("windows-1258");
    const codes = new Map(
      Array.from({ length: 256 }, (_, code) => [decoder.decode(Uint8Array.of(code)), code]),
    );
    const spelled = [...text.normalize("NFC")].flatMap((letter) => {
      if (codes.has(letter)) return [letter];
      const parts = [...letter.normalize("NFD")];
      const tones = parts.filter((part) => "\u0300\u0301\u0303\u0309\u0323".includes(part));
      return [
        ...parts
          .filter((part) => !tones.includes(part))
          .join("")
          .normalize("NFC"),
        ...tones,
      ];
    });
    return Buffer.from(spelled.map((letter) => codes.get(letter)!));
  }

  it("is Vietnamese in windows-1258 and in UTF-8, with the same words", async () => {
    const page = `<title>Tự do</title><p>${vietnamese}`;
    const composed = await extract(page, undeclared);
    const old = await extract(windows1258(page), {
      ...undeclared,
      contentType: "text/html; charset=windows-1258",
    });

    expect(old).toMatchObject({
      language: "vi",
      detectedLanguage: "vi",
      charset: "windows-1258",
      title: "Tự do",
    });
    for (const other of [old, await extract(page.normalize("NFD"), undeclared)])
      expect({ ...other, digest: "", charset: "" }).toEqual({ ...composed, digest: "", charset: "" });
  });

  it("is Korean in Jamo, with the same words", async () => {
    const page = `<title>인간</title><p>${korean}`;
    const composed = await extract(page, undeclared);

    expect(composed.language).toBe("ko");
    expect({ ...(await extract(page.normalize("NFD"), undeclared)), digest: "" }).toEqual({
      ...composed,
      digest: "",
    });
  });
});

it.each([20, 1500])(
  "boilerplate is recognised by its class among %i classes, also when they recur",
  async (classes) => {
    const parts = Array.from(
      { length: classes },
      (_, index) =>
        `<div class="menu c${index}"><p>Fremdes steht hier als Beiwerk auf allen Seiten</p></div>
         <div class="text c${index}"><p>Eigenes steht hier als Text der einen Seite, um die es geht</p></div>`,
    );
    const html = `<html lang="de"><body>${parts.join("")}`;

    const first = await extract(html);

    expect(first.text).toContain("Eigenes");
    expect(first.text).not.toContain("Beiwerk");
    expect(await extract(html)).toEqual(first);
  },
);

it("no text of a page contains soft hyphens, as characters or as references", async () => {
  const page = await extract(
    `<html lang=de><title>Häuser&shy;zeile</title><meta name=description content="Häuser&#xAD;zeilen am Fluss">
    <h1>Straßen\u00adbahn</h1><p>Donau&#173;dampf\u00ad<b>schiff</b> <a href=/fahr&shy;plan>Fahr&shy;plan</a>
    <img alt="Dampf&shy;schiff">`,
  );

  expect(page).toMatchObject({
    title: "Häuserzeile",
    description: "Häuserzeilen am Fluss",
    headings: [{ level: 1, text: "Straßenbahn" }],
    links: [{ url: "https://site.example/fahr%C2%ADplan", anchor: "Fahrplan" }],
    text: "Straßenbahn\nDonaudampfschiff Fahrplan",
    unquoted: "Dampfschiff",
  });
  const plain = await extract("Donau\u00addampfschiff", { contentType: "text/plain; charset=utf-8" });
  expect(plain.text).toBe("Donaudampfschiff");
});

describe("links", () => {
  it("count once towards the cap, however often they occur and with any fragment", async () => {
    const menu =
      "<a href=/menu> </a><a href='/menu#a' rel=nofollow>Menu</a><a href=//site.example/menu>more</a>";

    const page = await extract(
      `${menu.repeat(2000)}${"<a href=#note>1</a>".repeat(3000)}<a href=/late>late</a>`,
    );

    expect(page.links.map(({ url }) => new URL(url).pathname)).toEqual(["/menu", "/folder/page", "/late"]);
    expect(page.links[0]).toMatchObject({ anchor: "Menu", nofollow: false });
    expect(page.leftOutLinks).toBeUndefined();
  });

  it("are 2,000 URLs at most; the others are counted, also beyond the 20,000 that are kept", async () => {
    const page = await extract(Array.from({ length: 21_000 }, (_, index) => `<a href=/${index}>`).join(""));

    expect(page.links).toHaveLength(2000);
    expect(page.leftOutLinks).toBe(19_000);
  });
});

it("plain text keeps its lines, and no blank ones", async () => {
  const plain = await extract(" One\tline\r\n\r\n  another \0 one\n", { contentType: "text/plain" });

  expect(plain).toMatchObject({ text: "One line\nanother   one", words: 4 });
  expect(plain).not.toHaveProperty("unquoted");
  expect(plain).not.toHaveProperty("snippetCharacters");
});

describe("a longer text than is kept", () => {
  const kept = async (word: string) => {
    const page = await extract(
      `<p>${`${word} `.repeat(Math.ceil(maxTextCharacters / word.length))}<img alt="${"p".repeat(20)}">`,
    );
    expect(page.unquoted).toBeUndefined();
    return page.text;
  };

  it("ends between words", async () => {
    const text = await kept("lighthouses");

    expect(text.length).toBeGreaterThan(maxTextCharacters - 20);
    expect(text).toMatch(/^(?:lighthouses )+lighthouses$/);
  });

  it("ends between characters if the words are longer", async () => {
    const text = await kept(`a${"𠀀".repeat(2000)}`);

    expect(text.length).toBeGreaterThanOrEqual(maxTextCharacters - 1);
    expect(text).toMatch(/^[a 𠀀]+$/u);
  });
});

it("the charset is the header's, or else detected from the bytes", async () => {
  const cyrillic = Buffer.from("<p>\xef\xf0\xe8\xe2\xe5\xf2", "latin1");
  const stated = await extract(cyrillic, { contentType: "text/html; charset=windows-1251" });
  const unstated = await extract(Buffer.from("\x93hi\x94", "latin1"), { contentType: "text/html" });

  expect(stated).toMatchObject({ charset: "windows-1251", text: "привет" });
  expect(unstated).toMatchObject({ charset: "windows-1252", text: "“hi”" });
});

describe("a hostile page", () => {
  const nested = (tag: string) => extractPage(bodyOf(`<p>top${`<${tag}>`.repeat(300_000)}deep`));

  it("that nests without end is read quickly up to the bound of real pages", async () => {
    const { page, cut } = await nested("div");

    expect(cut).toBe(true);
    expect(page.text).toBe("top");
  });

  it("that never closes its inline elements is read to its end at no cost", async () => {
    const { page, cut } = await nested("b");

    expect(cut).toBe(false);
    expect(page.text).toBe("topdeep");
  });
});

describe("fingerprints", () => {
  it("are the body's SHA-256 and a simhash that is close for similar texts", async () => {
    const words = Array.from({ length: 300 }, (_, index) => `word${index * 7919}`);
    const one = await extract(`<p>${words.join(" ")}`);
    const near = await extract(`<p>${words.with(5, "changed").join(" ")}`);
    const other = await extract(`<p>${words.map((word) => `${word}x`).join(" ")}`);

    expect(one.digest).toBe(
      createHash("sha256")
        .update(`<p>${words.join(" ")}`)
        .digest("hex"),
    );
    expect(simhashDistance(one.simhash, near.simhash)).toBeLessThanOrEqual(4);
    expect(simhashDistance(one.simhash, other.simhash)).toBeGreaterThan(15);
  });
});

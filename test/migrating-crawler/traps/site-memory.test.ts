/** What the crawler remembers of a host's pages and concludes about the next ones. */
import { createHash } from "node:crypto";
import { beforeEach, describe, expect, it } from "vitest";
import { type MissingAnswer, mentionsNotFound, SiteMemory, saysNotFound } from "#crawler/traps/site-memory";
import { type PageExtract, pageExtract } from "#protocol/result";

const site = "https://site.example";
const day = 24 * 3600 * 1000;

/** `simhash` defaults to a hash of the whole text, so that texts are far apart. */
function pageOf(text: string, changes: Partial<PageExtract> = {}): PageExtract {
  const digest = createHash("sha256").update(text).digest("hex");
  return pageExtract.parse({
    contentType: "text/html",
    charset: "utf-8",
    canonicalUrl: null,
    title: "",
    description: "",
    headings: [],
    language: null,
    textSearchConfig: "simple",
    text,
    words: text.split(/\s+/).length,
    links: [],
    robots: { noindex: false, nofollow: false },
    digest,
    simhash: digest.slice(0, 16),
    ...changes,
  });
}

/** Two hundred words, one of them different for each number: at most two bits of the simhash differ. */
const nearly = (number: number) =>
  pageOf(`${words(0, 200)} special${number}`, {
    simhash: `0123456789abcde${(1 << (number % 4)).toString(16)}`,
  });
const linkTo = (path: string) => ({ url: site + path, anchor: "", nofollow: false });
const words = (from: number, count: number) =>
  Array.from({ length: count }, (_, index) => `word${(from + index) * 7919}`).join(" ");
let memory: SiteMemory;
let asked: string[];
let missing: MissingAnswer;
beforeEach(() => {
  memory = new SiteMemory();
  asked = [];
  missing = { type: "no-page" };
});

function judge(page: PageExtract, path: string, nowMs = 0): Promise<PageExtract> {
  const ask = async (askedPath: string) => {
    asked.push(askedPath);
    return missing;
  };
  return memory.judge(page, { url: site + path, nowMs, ask });
}

describe("a near-duplicate", () => {
  it("names the first page, whatever came in between", async () => {
    await judge(nearly(1), "/first");
    await judge(pageOf(words(500, 200)), "/other");
    await judge(nearly(2), "/second");

    expect((await judge(nearly(3), "/third")).nearDuplicateOf).toBe(`${site}/first`);
    expect((await judge(pageOf(words(900, 200)), "/own")).nearDuplicateOf).toBeUndefined();
  });

  it("is any equal body under another URL", async () => {
    await judge(pageOf("tiny"), "/a");

    expect((await judge(pageOf("tiny"), "/b")).nearDuplicateOf).toBe(`${site}/a`);
  });

  it("is neither the same URL nor a page of another host", async () => {
    await judge(nearly(1), "/a");

    expect((await judge(nearly(2), "/a")).nearDuplicateOf).toBeUndefined();
    const elsewhere = { url: "https://other.example/a", nowMs: 0, ask: async () => missing };
    expect((await memory.judge(nearly(1), elsewhere)).nearDuplicateOf).toBeUndefined();
  });

  it("of a page that has changed is none", async () => {
    await judge(nearly(1), "/a");
    await judge(pageOf(words(500, 200)), "/a");

    expect((await judge(nearly(1), "/b")).nearDuplicateOf).toBeUndefined();
  });
});

describe("a pattern of URLs", () => {
  it("whose pages differ only in numbers is a trap", async () => {
    for (let month = 0; month < 6; month++) await judge(pageOf(`Month ${month}`), `/plan?m=${month}`);

    const next = pageOf("Month 6", {
      links: [linkTo("/plan?m=7"), linkTo("/about"), linkTo("/plan?other=1")],
    });

    expect(await judge(next, "/plan?m=6")).toMatchObject({
      links: [linkTo("/about"), linkTo("/plan?other=1")],
      trappedLinks: 1,
    });
  });

  it("whose pages are near-duplicates is a trap, with tokens or numbers", async () => {
    for (let number = 0; number < 6; number++) {
      await judge(nearly(number), `/view/k3j9x0q${number}z1/${number}`);
    }

    const { links } = await judge(pageOf("x", { links: [linkTo("/view/q8w7e6r5t4/99")] }), "/");

    expect(links).toEqual([]);
  });

  it("of names in one folder becomes a trap later, when nearly all pages are the same", async () => {
    const names = "oak ash elm fir yew box fig gum bay may sal tea".split(" ");
    for (const name of names) await judge(nearly(1), `/trees/${name}`);

    const { links } = await judge(pageOf("x", { links: [linkTo("/trees/nut"), linkTo("/birds/owl")] }), "/");

    expect(links).toEqual([linkTo("/birds/owl")]);
  });

  it("whose pages have become different is followed again", async () => {
    for (let number = 0; number < 300; number++) await judge(nearly(number), `/item/${number}`);
    for (let number = 300; number < 330; number++) {
      await judge(pageOf(words(1000 * number, 200)), `/item/${number}`);
    }

    const { links } = await judge(pageOf("x", { links: [linkTo("/item/999")] }), "/");

    expect(links).toEqual([linkTo("/item/999")]);
  });

  it("with different pages is followed although some are alike", async () => {
    for (let number = 0; number < 20; number++) {
      const page = number % 2 === 0 ? nearly(1) : pageOf(words(1000 * number, 200));
      await judge(page, `/item/${number}`);
    }

    const { links } = await judge(pageOf("x", { links: [linkTo("/item/99")] }), "/");

    expect(links).toEqual([linkTo("/item/99")]);
  });

  it("of filter combinations is followed up to a limit", async () => {
    const links = Array.from({ length: 2000 }, (_, index) => {
      const filters = "abcdefghijk".split("").filter((_name, bit) => (index >> bit) & 1);
      return linkTo(`/shop?${filters.map((name) => `${name}=1`).join("&")}`);
    });

    const shipped = await judge(pageOf("x", { links }), "/");

    expect(shipped.links.length).toBeLessThan(500);
    expect((shipped.trappedLinks ?? 0) + shipped.links.length).toBe(2000);
  });

  it("of one script with parameters is ordinary", async () => {
    const names = "view id page task lang layout format day sort print cat item user tab".split(" ");
    const links = Array.from({ length: 1000 }, (_, index) => {
      const [first, second] = [names[index % 14], names[(index * 3 + 1) % 14]];
      return linkTo(`/index.php?option=${index % 5}&${first}=${index}&${second}x=1`);
    });

    expect((await judge(pageOf("x", { links }), "/")).links).toHaveLength(1000);
  });

  it("of three parameters with any values is ordinary", async () => {
    const links = Array.from({ length: 1000 }, (_, index) => linkTo(`/topic?f=1&t=${index}&p=2`));

    expect((await judge(pageOf("x", { links }), "/")).links).toHaveLength(1000);
  });
});

describe("a page that says not found with status 200", () => {
  const links = [linkTo("/random")];

  it("with clear wording is recognised without a request", async () => {
    const page = pageOf("Sorry. Go home.", { title: "Page not found | Shop", links, unquoted: "sorry" });

    const judged = await judge(page, "/gone");

    expect(judged).toMatchObject({ softNotFound: true, links: [], text: "" });
    expect(judged).not.toHaveProperty("unquoted");
    expect(asked).toEqual([]);
  });

  it("in doubt is compared with the answer for a page that cannot exist", async () => {
    missing = { type: "page", page: pageOf("Try our catalogue instead 55", { title: "404" }) };

    const page = await judge(pageOf("Try our catalogue instead 77", { title: "404" }), "/gone");

    expect(page.softNotFound).toBe(true);
    expect(asked).toHaveLength(1);
    expect(asked[0]).toMatch(/^\/no-such-page-\d{10}$/);
  });

  it("in doubt is accepted when that answer is a proper error", async () => {
    expect(
      (await judge(pageOf("A fine old car", { title: "404" }), "/peugeot")).softNotFound,
    ).toBeUndefined();
  });

  it("causes one request a day, whatever the host answers", async () => {
    for (const [index, nowMs] of [0, 1, day - 1, day, 2 * day - 1].entries()) {
      await judge(pageOf(`Car ${"x".repeat(index + 1)}`, { title: "404" }), `/${index}`, nowMs);
    }

    expect(asked).toHaveLength(2);
  });

  it("is asked about again after there was no turn", async () => {
    missing = { type: "not-asked" };
    await judge(pageOf("one", { title: "404" }), "/1");
    await judge(pageOf("two", { title: "404" }), "/2");

    expect(asked).toHaveLength(2);
  });

  it("is neither the front page nor a long page", async () => {
    expect((await judge(pageOf("x", { title: "Page not found" }), "/?x=1")).softNotFound).toBeUndefined();
    expect(
      (await judge(pageOf(words(0, 500), { title: "Page not found" }), "/wiki/404")).softNotFound,
    ).toBeUndefined();
  });
});

it("a sitemap's links are checked, but the sitemap is not judged", async () => {
  for (let month = 0; month < 6; month++) await judge(pageOf(`Month ${month}`), `/plan?m=${month}`);

  const list = pageOf("", { kind: "sitemap", links: [linkTo("/plan?m=9"), linkTo("/a")] });

  expect((await judge(list, "/sitemap.xml")).links).toEqual([linkTo("/a")]);
  expect((await judge(list, "/sitemap-2.xml")).nearDuplicateOf).toBeUndefined();
});

it("many hosts with many pages take limited memory", async () => {
  const page = pageOf(words(0, 100));
  const ask = async () => missing;
  for (let host = 0; host < 20; host++) {
    for (let number = 0; number < 256; number++) {
      const digest = (host * 300 + number).toString(16).padStart(8, "0").repeat(8);
      const url = `https://h${host}.example/${"x".repeat(1900)}/${number}`;
      await memory.judge(
        { ...page, digest, words: 1, robots: { noindex: true, nofollow: false } },
        { url, nowMs: 0, ask },
      );
    }
  }

  expect(memory.bytes).toBeGreaterThan(6e6);
  expect(memory.bytes).toBeLessThan(8e6);
});

describe("a page says that it is not found", () => {
  it.each([
    "Page not found",
    "404 Not Found",
    "Oops! That page can’t be found.",
    "Page Not Found | Some Shop",
    "Some Shop - Error 404: Page not found",
    "HTTP 404 – File not found",
    "Fehler 404: Die Seite wurde nicht gefunden",
    "Page introuvable - Le Site",
    "Página no encontrada – Sitio",
    "Страница не найдена — Сайт",
    "Сторінку не знайдено",
    "ページが見つかりませんでした｜会社",
    "페이지를 찾을 수 없습니다",
    "页面不存在 - 网站",
    "الصفحة غير موجودة",
    "Sayfa Bulunamadı",
    "Stránka nenalezena",
  ])("%s", (text) => {
    expect(saysNotFound(text)).toBe("said");
  });
});

describe("a page may mean that it is not found", () => {
  it.each([
    "404",
    "Error 404 | Some Shop",
    "HTTP 404 - an encyclopedia",
    "We looked everywhere, but the page you are looking for does not exist any more",
  ])("%s", (text) => {
    expect(saysNotFound(text)).toBe("hinted");
  });
});

describe("a page is about something else", () => {
  it.each([
    "Peugeot 404 cabriolet",
    "The treasure that was not found in 404 days",
    "Lost and found",
    "Room 404",
    "Nicht gefundene Schätze",
    "",
  ])("%s", (text) => {
    expect(saysNotFound(text)).toBeNull();
  });
});

it("a text may mention it in its first sentences", () => {
  expect(
    mentionsNotFound("Dear visitor! Sorry, the page you requested could not be found. Try the search."),
  ).toBe(true);
  expect(mentionsNotFound("Not found.")).toBe(true);
  expect(mentionsNotFound("Nanu!\nNicht gefunden\nZur Startseite")).toBe(true);
  expect(mentionsNotFound("大変申し訳ございません。お探しのページは見つかりませんでした。")).toBe(true);
  expect(mentionsNotFound("The keys were not found in the page of the book.")).toBe(false);
});

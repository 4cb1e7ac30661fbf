/** The encoding in which a page is read (WHATWG HTML, section 13.2.3). */
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { seededRandom } from "#core/random";
import { decodeSource, decodeText, statedEncoding } from "#crawler/extract/charset";
import { sourceOf, utf8Source } from "#crawler/extract/source-text";
import { maxTextCharacters } from "#protocol/result";
import { hostileBytes, hostileText, pick } from "../../fuzz/mutate.ts";
import { sharedData } from "../../support/shared-data.ts";
import { extracted, readOf } from "../support/extracted.ts";

const page = (text: string) =>
  `<!doctype html><title>x</title><style>p{margin:0}</style><body class="home page"><p>${text}</p>`;

/** Russian in windows-1251: every letter is two code points away from Latin-1. */
const russian = "Все люди рождаются свободными и равными в своем достоинстве и правах. Они наделены разумом";
const windows1251 = Buffer.from(
  [...page(russian)].map((character) => {
    const code = character.codePointAt(0)!;
    return code >= 0x410 && code <= 0x44f ? code - 0x350 : code;
  }),
);

describe("the charset", () => {
  it.each([
    ["text/html;charset=utf-8", "UTF-8"],
    ['text/html; Charset="ISO-8859-4"', "ISO-8859-4"],
    ['text/html; foo="bar; charset=koi8-r"; charset=sjis', "Shift_JIS"],
    ["text/html; charset=utf-8, text/plain; charset=utf-16", "UTF-8"],
  ])("of the header %s is %s", (contentType, encoding) => {
    expect(statedEncoding(Buffer.from("<p>"), contentType)).toBe(encoding);
  });

  it.each([
    "text/html; charset = utf-8",
    "text/html; charset='utf-8'",
    'text/html; charset="utf-8',
    'text/html; charset="utf-8"x',
    'text/html; foo="bar; charset=utf-8"',
    "text/html; charset=klingon-8",
  ])("of the header %s is not stated", (contentType) => {
    expect(statedEncoding(Buffer.from("<p>"), contentType)).toBeNull();
  });

  it("may be declared late, but not in a comment or a script", () => {
    const late = (markup: string) => Buffer.from(`<!-- ${"x".repeat(2000)} -->${markup}`);

    expect(statedEncoding(late("<meta charset=iso-8859-2>"), "text/html")).toBe("ISO-8859-2");
    expect(
      statedEncoding(late("<meta content='text/html;charset=koi8-r' http-equiv=Content-Type>"), "text/html"),
    ).toBe("KOI8-R");
    expect(
      statedEncoding(late("<!--<meta charset=x>--><script>'<meta charset=koi8-r>'</script>"), "text/html"),
    ).toBeNull();
  });

  it("may be declared in an XML declaration", () => {
    expect(
      statedEncoding(Buffer.from(`<?xml version="1.0" encoding='windows-1250'?><html>`), "text/html"),
    ).toBe("windows-1250");
  });

  it("is detected from the bytes when it is not declared", () => {
    expect(decodeText(windows1251, "text/html")).toEqual({ text: page(russian), charset: "windows-1251" });
  });

  it("is UTF-8 even if the body ends within a character", () => {
    const whole = Buffer.from(page("grüße aus köln é"));

    expect(decodeText(whole.subarray(0, whole.indexOf("é") + 1), "text/html").charset).toBe("utf-8");
  });

  it("is windows-1252 when too few bytes decide", () => {
    expect(decodeText(Buffer.from(page("caf\xe9"), "latin1"), "text/html")).toEqual({
      text: page("café"),
      charset: "windows-1252",
    });
  });
});

interface SniffingCase {
  readonly name: string;
  readonly b64: string;
  readonly encoding: string;
  readonly transport: string | null;
  readonly default: string;
}

const sniffing = sharedData("suites/html/encoding-sniffing.json");

describe.skipIf(sniffing === null)("the encoding sniffing suite", () => {
  it("gives the browsers' encoding in every case", () => {
    const cases = JSON.parse(readFileSync(sniffing!, "utf8")) as SniffingCase[];
    const wrong = cases.filter((one) => {
      const contentType = one.transport === null ? "text/html" : `text/html; charset=${one.transport}`;
      const stated = statedEncoding(Buffer.from(one.b64, "base64"), contentType);
      return (stated ?? one.default).toLowerCase() !== one.encoding.toLowerCase();
    });

    expect(wrong.map(({ name }) => name)).toEqual([]);
  });
});

const declared = sharedData("suites/html/w3lib-encoding-meta.json");

describe.skipIf(declared === null)("w3lib's cases of declared encodings", () => {
  it("agree for the header", () => {
    const all = JSON.parse(readFileSync(declared!, "utf8")) as {
      fn: string;
      args: readonly string[];
      expected: string | null;
    }[];
    const headers = all.filter(({ fn }) => fn === "http_content_type_encoding");
    const simple = (name: string | null) => name?.toLowerCase().replace(/^iso-/, "iso") ?? null;

    for (const { args, expected } of headers)
      expect(simple(statedEncoding(Buffer.from("<p>"), args[0]!)), args[0]).toBe(simple(expected));
    expect(headers.length).toBeGreaterThan(10);
  });
});

/** Scanning a page as UTF-8 bytes gives the same as decoding it whole. */
describe("source text", () => {
  const page =
    '<!doctype html><html lang="fr"><head><meta charset="utf-8"><title>Été à Łódź 😀</title><base href="/é/">' +
    '<meta name="description" content="Ça coûte 3 €"></head><body><nav class="menü nav"><a href="/ü?q=ß">Menü</a></nav><h1>Ö</h1>' +
    `<p>${"Où est-ce que l'été commence? 中文也可以。 ".repeat(40)}</p><p>soft\u00adhyphen, e\u0301, &eacute;</p>` +
    '<script type="application/ld+json">{"@type":"Article","name":"Ünïcode"}</script><img alt="café" src=x></body></html>';

  const tokens = [
    ..."<>&;\"'=/!-é中😀\u0301\u00ad",
    "<p>",
    "</p>",
    "<a href='ü",
    "<!--",
    "-->",
    "<title>",
    "<svg>",
    "<![CDATA[",
    "]]>",
  ];

  async function valuesOf(source: Parameters<typeof readOf>[0], isXml: boolean): Promise<unknown> {
    const { containers, notes, ...read } = await readOf(source, isXml);
    return structuredClone({
      ...read,
      parents: containers.parents,
      notes: { ...notes, metas: [...notes.metas], items: [...notes.items] },
    });
  }

  describe("a page in UTF-8", () => {
    it("is read equally from bytes and from text, whatever it contains", async () => {
      const seed = 22;
      const random = seededRandom(seed);
      let differing = 0;
      for (let round = 0; round < 200; round++) {
        const bytes = hostileBytes(random, hostileText(random, { seeds: [page], tokens }));
        const isXml = random() < 0.1;
        const text = bytes.toString("utf8");
        if (text.length !== bytes.length) differing++;

        expect(await valuesOf(utf8Source(bytes), isXml), `seed ${seed}, round ${round}`).toEqual(
          await valuesOf(sourceOf(text), isXml),
        );
      }
      expect(differing).toBeGreaterThan(100);
    });

    it("is decoded equally in parts and as a whole, at cut sequences and block ends too", () => {
      const random = seededRandom(7);
      const parts = [
        "a",
        "<",
        "x".repeat(300),
        "é",
        "中",
        "😀",
        "\ufffd",
        "\xff",
        "\xe4\xb8",
        "\xf0\x9f\x98",
        "\xc3",
        "\xed\xa0\x80",
      ];
      for (let round = 0; round < 300; round++) {
        const chosen = Array.from({ length: 30 }, () => pick(random, parts));
        const bytes = Buffer.concat(
          chosen.map((part) => Buffer.from(part, part.length < 5 && part < "\u0100" ? "latin1" : "utf8")),
        );
        const source = utf8Source(bytes);
        const cuts = [0, ...[...source.units.matchAll(/</g)].map(({ index }) => index), bytes.length];

        const whole = cuts.slice(1).map((to, index) => source.slice(cuts[index]!, to));

        expect(whole.join("")).toBe(bytes.toString("utf8"));
      }
    });

    it("limits a title by characters, not by bytes", async () => {
      const title = "😀é中".repeat(1000);
      const html = `<title>${title}</title><p>x`;

      const read = await readOf(utf8Source(Buffer.from(html)));

      expect(read.title).toBe(title.slice(0, 2000));
    });
  });

  const manifest = sharedData("suites/pages/manifest.json");

  /** Reads every fourth page; the benchmark's check reads the others. */
  const every = 4;

  describe.skipIf(manifest === null)("real pages", () => {
    it("are read equally from bytes and from text", async () => {
      const pages = JSON.parse(readFileSync(manifest!, "utf8")) as {
        file: string;
        url: string;
        contentType: string;
      }[];
      let byBytes = 0;
      for (const { file, contentType } of pages.filter((_, index) => index % every === 0)) {
        const bytes = readFileSync(sharedData(`suites/pages/${file}`)!);
        const { source, charset } = decodeSource(bytes, contentType);
        if (charset !== "utf-8") continue;
        byBytes++;

        expect(await valuesOf(source, false), file).toEqual(
          await valuesOf(sourceOf(bytes.toString("utf8").replace(/^\ufeff/, "")), false),
        );
      }
      expect(byBytes).toBeGreaterThan(50);
    });
  });

  it("a page of 50 MB with 2 million words, a word of 10 MB and 100,000 links stays within the bounds of any page", async () => {
    const line = Buffer.from(
      `<p class="été">${"Une ligne de texte. ".repeat(50)}<a href="/é">lien</a></p>\n`.repeat(63),
    );
    const long = await extracted(Buffer.concat(Array.from({ length: 800 }, () => line)));
    const word = await extracted(`<p>${"é".repeat(5_000_000)} end`);
    const numbers = Array.from({ length: 2_000_000 }, (_, index) => `w${index}`).join(" ");
    const many = await extracted(`<p>é ${numbers}`);
    const linked = await extracted(
      Array.from({ length: 100_000 }, (_, index) => `<a href="/é${index}">x</a>`).join(""),
    );

    for (const { text } of [long, many]) {
      expect(text.length).toBeGreaterThan(maxTextCharacters - 30);
      expect(text).toMatch(/(?:texte\.|lien|w\d+|ligne|de|Une)$/);
    }
    expect(many.words).toBeGreaterThan(10_000);
    expect(word.words).toBeLessThan(3);
    expect(linked.links).toHaveLength(2000);
    expect(linked.leftOutLinks).toBe(98_000);
  });
});

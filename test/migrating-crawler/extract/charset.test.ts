/** The encoding in which a page is read (WHATWG HTML, section 13.2.3). */
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { decodeText, statedEncoding } from "#crawler/extract/charset";
import { sharedData } from "../../support/shared-data.ts";

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

  it("may be stated late, and not in a comment or a script", () => {
    const late = (markup: string) => Buffer.from(`<!-- ${"x".repeat(2000)} -->${markup}`);

    expect(statedEncoding(late("<meta charset=iso-8859-2>"), "text/html")).toBe("ISO-8859-2");
    expect(
      statedEncoding(late("<meta content='text/html;charset=koi8-r' http-equiv=Content-Type>"), "text/html"),
    ).toBe("KOI8-R");
    expect(
      statedEncoding(late("<!--<meta charset=x>--><script>'<meta charset=koi8-r>'</script>"), "text/html"),
    ).toBeNull();
  });

  it("may be stated by an XML declaration", () => {
    expect(
      statedEncoding(Buffer.from(`<?xml version="1.0" encoding='windows-1250'?><html>`), "text/html"),
    ).toBe("windows-1250");
  });

  it("is told by the text's bytes where nobody states it", () => {
    expect(decodeText(windows1251, "text/html")).toEqual({ text: page(russian), charset: "windows-1251" });
  });

  it("is UTF-8 also where the body was cut inside a character", () => {
    const whole = Buffer.from(page("grüße aus köln é"));

    expect(decodeText(whole.subarray(0, whole.indexOf("é") + 1), "text/html").charset).toBe("utf-8");
  });

  it("is windows-1252 where hardly a byte could tell", () => {
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
  it("gives the encoding that browsers choose in every case", () => {
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
  it("of the header agree", () => {
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

/** The fast resolver equals WHATWG URL for any reference and base. */
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { canonicalEscapes } from "#core/ip/url-host";
import { seededRandom } from "#core/random";
import { linkResolver, resolveUrl } from "#crawler/extract/resolve-url";
import { sharedData } from "../../support/shared-data.ts";

const bases = [
  "https://site.example/folder/page?x=1",
  "http://site.example:8080",
  "http://127.0.0.1:4000/p/17",
  "http://[::1]/a/",
  "https://user:password@site.example/a",
  `https://site.example/${"long/".repeat(300)}`,
  "https://xn--bcher-kva.example/a/../b/c",
  "not a base",
  "file:///etc/passwd",
];

const references = [
  ...[
    "| |#|#part|?|?q=1&b=%20|/|/a/b.html#c|a|a/b|./a|../a|.|..|a/..|/a/./b|/a/%2e%2e/b|/.well-known/x|a:b|a/b:c|1:2",
    "//other.example|//other.example/x|//OTHER.example/x|///x|/\\x|\\x|/a\\b|http:|http:/x|http:x|http://|https:///x",
    "http://other.example|https://other.example?x|https://other.example#x|https://other.example:443/|http://a.b:80/|http://a.b:99999/",
    "http://1.2.3|http://0x7f.1/|http://a.0x1|http://a.1|http://1.a|http://a..b/|http://.a/|http://a./",
    "http://xn--a/|http://a.xn--zz/|http://a_b.example/",
    "http://user@a.b/|http://a b/|http://a%41/|https://other.example/a b",
    "/ä|/a'b?c'd|/a\"b|/a<b>|/a|b|/{a}|/a^b|/a`b|javascript:x|mailto:a@b|HTTP://A.B/",
  ]
    .join("|")
    .split("|"),
  " /a ",
  "/a\nb",
  "\t//a.b/\t",
  "/a\0b",
  `/${"x".repeat(1500)}`,
  `/${"x".repeat(2100)}`,
  `?${"x".repeat(2040)}`,
  `http://${"a".repeat(300)}.example/`,
  `http://${"a".repeat(70)}.example/`,
];

describe("a page's links", () => {
  it.each(bases)("resolve against %.60s as URLs do", (base) => {
    const resolve = linkResolver(base);

    for (const reference of references)
      expect(resolve(reference), reference).toBe(resolveUrl(reference, base));
  });

  it("resolve as URLs do when they are composed at random", () => {
    const seed = 5;
    const random = seededRandom(seed);
    const parts = [
      ..."/..?#:&=%2eaAbz09-_~@!$'()*+,;[]\\ \t|é",
      "//",
      "http",
      "https://",
      "xn--",
      ".example",
      "www.",
    ];
    const pick = <Value>(values: readonly Value[]) => values[Math.floor(random() * values.length)]!;
    for (let round = 0; round < 20_000; round++) {
      const reference = Array.from({ length: Math.floor(random() * 9) }, () => pick(parts)).join("");
      const base = pick(bases);

      expect(linkResolver(base)(reference), `seed ${seed}: ${reference} on ${base}`).toBe(
        resolveUrl(reference, base),
      );
    }
  });
});

/** As shipped: http(s) only, no fragment, user or password, at most 2048 characters, normalised octets. */
const shipped = (href: string | undefined) => {
  if (href === undefined || !/^https?:/.test(href) || href.length > 2048) return null;
  return canonicalEscapes(href.replace(/#.*$/s, "").replace(/^(https?:\/\/)[^/?#]*@/, "$1"));
};

const wpt = sharedData("suites/url/wpt-urltestdata.json");
const commons = sharedData("suites/url/crawler-commons-resolve.json");

describe("a link with several spellings", () => {
  it.each([
    ["/%7Eann", "/~ann"],
    ["%7Eann", "/folder/~ann"],
    ["?q=%d0%bf", "/folder/page?q=%D0%BF"],
    ["/п", "/%D0%BF"],
    ["//site.example/%41%2f", "/A%2F"],
    ["https://site.example/a%2Ehtml#x", "/a.html"],
    ["/100%", "/100%"],
  ])("as %s is one URL, whichever way it is resolved", (reference, path) => {
    const base = "https://site.example/folder/page?x=1";

    expect(linkResolver(base)(reference)).toBe(`https://site.example${path}`);
    expect(resolveUrl(reference, base)).toBe(`https://site.example${path}`);
  });
});

describe.skipIf(wpt === null)("web-platform-tests' URLs", () => {
  it("resolve as browsers do", () => {
    const cases = JSON.parse(readFileSync(wpt!, "utf8")) as {
      input: string;
      base: string | null;
      href?: string;
      failure?: boolean;
    }[];
    let run = 0;
    for (const { input, base, href } of cases) {
      if (base === null || !/^https?:/.test(base)) continue;
      run++;
      expect(linkResolver(base)(input), `${JSON.stringify(input)} on ${base}`).toBe(shipped(href));
    }
    expect(run).toBeGreaterThan(200);
  });
});

describe.skipIf(commons === null)("crawler-commons' relative URLs", () => {
  it("resolve as URLs do", () => {
    const cases = JSON.parse(readFileSync(commons!, "utf8")) as { spec: string; base: string }[];
    for (const { spec, base } of cases)
      expect(linkResolver(base)(spec), `${spec} on ${base}`).toBe(resolveUrl(spec, base));
    expect(cases.length).toBeGreaterThan(10);
  });
});

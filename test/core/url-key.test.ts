import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { isDeepStrictEqual } from "node:util";
import { describe, expect, it } from "vitest";
import type { HostHash, UrlHash } from "#core/ids";
import { servicePortWords } from "#core/ip/service-ports";
import { canParseUrl, isHostName, urlHost } from "#core/ip/url-host";
import { seededRandom } from "#core/random";
import { hostHashOf, maxCanonicalUrlLength, type UrlKey, urlKeyOf } from "#core/url-key";
import { sharedData } from "../support/shared-data.ts";

function keyOf(text: string): UrlKey {
  const key = urlKeyOf(text);
  if (typeof key === "string") throw new Error(`${text}: ${key}`);
  return key;
}

describe("the canonical URL", () => {
  it.each([
    ["HTTP://Example.COM", "http://example.com/"],
    ["http://example.com:80/", "http://example.com/"],
    ["https://example.com:443/a", "https://example.com/a"],
    ["http://example.com:443/", "http://example.com:443/"],
    ["http://example.com/a#part", "http://example.com/a"],
    ["http://example.com/a#", "http://example.com/a"],
    ["http://example.com/a?", "http://example.com/a"],
    ["http://example.com/a?#part", "http://example.com/a"],
    ["http://user:secret@example.com/a", "http://example.com/a"],
    ["http://example.com/a/../b/./c", "http://example.com/b/c"],
    ["http://example.com./a", "http://example.com/a"],
    ["  http://example.com/a\n", "http://example.com/a"],
    ["http:\\\\example.com\\a", "http://example.com/a"],
    ["http://bücher.example/", "http://xn--bcher-kva.example/"],
    ["http://example.com/straße?q=ü", "http://example.com/stra%C3%9Fe?q=%C3%BC"],
    ["http://[2001:DB8:0::1]:8080/", "http://[2001:db8::1]:8080/"],
    ["http://[::FFFF:192.0.2.1]/", "http://[::ffff:c000:201]/"],
  ])("of %j is %s", (text, url) => {
    expect(keyOf(text).url).toBe(url);
  });

  // What could change which resource is meant is left alone.
  it.each([
    "http://www.example.com/",
    "http://example.com/a/",
    "http://example.com/?b=2&a=1",
    "http://example.com/?a=&a=",
    "http://example.com/?utm_source=x",
    "http://example.com/index.html",
    "http://example.com//a//b",
    "http://example.com/%7Ea/%2F",
    "http://example.com/A",
  ])("leaves %s as it is", (url) => {
    expect(keyOf(url).url).toBe(url);
  });

  // WHATWG URL section 3.5: numbers in any of the old spellings are one IPv4 address.
  it.each([
    "http://2130706433/",
    "http://0x7f.1/",
    "http://017700000001/",
    "http://127.1/",
    "http://127.0.0.1./",
    "http://１２７.0.0.1/",
  ])("of the odd spelling %s names 127.0.0.1", (text) => {
    expect(keyOf(text)).toMatchObject({ url: "http://127.0.0.1/", host: "127.0.0.1" });
  });
});

describe("the host", () => {
  it.each([
    ["http://Example.COM:8080/", "example.com"],
    ["http://example.com./", "example.com"],
    ["http://[2001:db8::1]:8080/", "2001:db8::1"],
    ["https://bücher.example/", "xn--bcher-kva.example"],
  ])("of %s is %s, without port, brackets and trailing dot", (text, host) => {
    expect(keyOf(text).host).toBe(host);
  });
});

describe("no key", () => {
  const shown = (text: string) =>
    text.length > 60 ? `${text.slice(0, 40)}… (${text.length} characters)` : text;
  const faults = [
    ["", "not-a-url"],
    ["example.com", "not-a-url"],
    ["/relative", "not-a-url"],
    ["http://", "not-a-url"],
    ["http://exa mple.com/", "not-a-url"],
    ["http://[::1/", "not-a-url"],
    ["http://256.256.256.256/", "not-a-url"],
    ["http://example.com:99999/", "not-a-url"],
    ["ftp://example.com/", "not-http"],
    ["javascript:alert(1)", "not-http"],
    ["data:text/html,x", "not-http"],
    ["mailto:a@example.com", "not-http"],
    ["file:///etc/passwd", "not-http"],
    ["http://a.example:25/", "service-port"],
    ["https://a.example:6379/x", "service-port"],
    ["http://./", "no-host"],
    ["http://../", "no-host"],
    ["http://example.com../", "no-host"],
    ["http://a..example.com/", "no-host"],
    ["http://.example.com/", "no-host"],
    // Which the URL standard takes for a host, and no crawler for one to ask.
    ["http://a!b.example/", "no-host"],
    ["http://a'b.example/", "no-host"],
    ["http://*.example/", "no-host"],
    [`http://${"a".repeat(64)}.example/`, "no-host"],
    [`http://${"abcdefg.".repeat(32)}example/`, "no-host"],
    [`http://example.com/${"a".repeat(maxCanonicalUrlLength)}`, "too-long"],
    [`http://example.com/${"ü".repeat(500)}`, "too-long"],
    ["x".repeat(10_000_000), "too-long"],
  ] as const;

  it.each(faults.map(([text, fault]) => ({ shown: shown(text), text, fault })))(
    "is given for $shown: $fault",
    ({ text, fault }) => {
      expect(urlKeyOf(text)).toBe(fault);
    },
  );

  it("is given for a URL of one character too many only", () => {
    const start = "http://example.com/";
    const longest = start + "a".repeat(maxCanonicalUrlLength - start.length);

    expect(keyOf(longest).url).toBe(longest);
    expect(urlKeyOf(`${longest}a`)).toBe("too-long");
  });
});

describe("the hashes", () => {
  it("are the first 64 bits of SHA-256 as a signed number, as a database holds it", () => {
    // printf example.com | sha256sum: a379a6f6eeafb9a5…
    expect(hostHashOf("example.com")).toBe((0xa379a6f6eeafb9a5n - (1n << 64n)).toString());
    expect(keyOf("http://example.com/").hostHash).toBe(hostHashOf("example.com"));
  });

  it("are equal for two spellings of a URL and differ for two URLs", () => {
    expect(keyOf("HTTP://EXAMPLE.com:80/#a").urlHash).toBe(keyOf("http://example.com/").urlHash);
    expect(keyOf("https://example.com/").urlHash).not.toBe(keyOf("http://example.com/").urlHash);
    expect(keyOf("https://example.com/").hostHash).toBe(keyOf("http://example.com/a").hostHash);
  });
});

const suites = [
  "wpt-urltestdata",
  "ada-extra-urltestdata",
  "wpt-toascii",
  "wpt-IdnaTestV2",
  "w3lib-url",
  "crawler-commons-resolve",
];

describe.each(suites)("the suite %s", (suite) => {
  const path = sharedData(`suites/url/${suite}.json`);

  it.skipIf(path === null)("never makes us throw, and a canonical URL is its own canonical URL", () => {
    const texts = [...stringsIn(JSON.parse(readFileSync(path as string, "utf8")))];

    const tried = texts.flatMap((text) => [text, `http://${text}/`, `http://example.com/${text}`]);
    const keys = tried.map(urlKeyOf).filter((key): key is UrlKey => typeof key !== "string");

    expect(keys.length).toBeGreaterThan(50);
    expect(keys.filter((key) => !isSound(key))).toEqual([]);
  });
});

function isSound(key: UrlKey): boolean {
  const again = urlKeyOf(key.url);
  if (
    typeof again === "string" ||
    again.url !== key.url ||
    again.urlHash !== key.urlHash ||
    again.host !== key.host
  )
    return false;
  return (
    key.url.length <= maxCanonicalUrlLength &&
    /^https?:\/\/[^#]+$/.test(key.url) &&
    /^[^\s/?#@[\]]+$/.test(key.host)
  );
}

interface WptCase {
  readonly input: string;
  readonly base?: string | null;
  readonly href?: string;
  readonly failure?: boolean;
}

describe("web-platform-tests' URLs", () => {
  const path = sharedData("suites/url/wpt-urltestdata.json");

  it.skipIf(path === null)("have a key that is their href without fragment, user and password", () => {
    const cases = JSON.parse(readFileSync(path as string, "utf8")) as WptCase[];
    // Node 20 still refuses some invalid punycode that the standard has since let through.
    const web = cases.filter(({ href }) => href !== undefined && /^https?:/.test(href) && canParseUrl(href));

    const differing = web.filter(({ href }) => {
      const key = urlKeyOf(href as string);
      if (typeof key === "string") return key !== "no-host" && key !== "service-port";
      const expected = (href as string)
        .replace(/#.*$/s, "")
        .replace(/\?$/, "")
        .replace(/^(https?:\/\/)[^/?]*@/, "$1")
        .replace(/^(https?:\/\/[^/:]+)\.(?=[/:])/, "$1");
      return key.url !== expected;
    });

    expect(web.length).toBeGreaterThan(200);
    expect(differing).toEqual([]);
  });
});

function* stringsIn(value: unknown): Generator<string> {
  if (typeof value === "string") yield value;
  else if (typeof value === "object" && value !== null)
    for (const part of Object.values(value)) yield* stringsIn(part);
}

describe("a URL that is canonical as it stands, and so is not parsed", () => {
  const suites = ["wpt-urltestdata", "ada-extra-urltestdata", "w3lib-url", "wpt-toascii"].flatMap((suite) => {
    const path = sharedData(`suites/url/${suite}.json`);
    return path === null ? [] : [...stringsIn(JSON.parse(readFileSync(path, "utf8")))];
  });

  it("has the key that the parser gives, as has every other", () => {
    const random = seededRandom(19);
    const pick = <T>(values: readonly T[]) => values[Math.floor(random() * values.length)]!;
    const made = Array.from({ length: 20_000 }, () => {
      const host = Array.from({ length: 1 + Math.floor(random() * 3) }, () => pick(hostPieces)).join(".");
      const path = Array.from({ length: Math.floor(random() * 5) }, () => pick(pieces)).join("");
      return `${pick(schemes)}${host}${pick(["/", "/", "/", "", "?", "#"])}${path}`;
    });

    const texts = [...suites, ...suites.map((text) => `http://example.org/${text}`), ...made];

    expect(texts.filter((text) => !isDeepStrictEqual(urlKeyOf(text), keyByParser(text)))).toEqual([]);
    expect(made.filter((text) => typeof urlKeyOf(text) !== "string").length).toBeGreaterThan(5000);
  });
});

const schemes = ["http://", "https://", "http://", "HTTP://", "http:/", "ftp://", "http://user@"];
const hostPieces = [
  "a",
  "www",
  "example",
  "org",
  "b-c",
  "_d",
  "1",
  "0x1",
  "xn--a",
  "xn--bcher-kva",
  "A",
  "ü",
  "",
  "x".repeat(63),
  "y".repeat(64),
  "a:80",
  "a:81",
  "-e-",
  "4b",
];
const pieces = [
  "/",
  "/.",
  "/..",
  ".",
  "/%2e",
  "/%2E%2e/",
  "a",
  "~b",
  "?",
  "?q=1&r=%20",
  "#",
  "#part",
  "'",
  '"',
  "|",
  "^",
  "{",
  "[",
  "\\",
  " ",
  "\t",
  "ü",
  "%",
  "%zz",
  "=",
  "&",
  ";",
  "@",
  ":",
  "!",
  "*",
  "(",
  ",",
  "x".repeat(1000),
  "<",
  "`",
];

/** As every URL's key was made before (and most unusual ones' is still): parsed, then written again. */
function keyByParser(text: string): ReturnType<typeof urlKeyOf> {
  if (text.length > 4 * maxCanonicalUrlLength) return "too-long";
  if (!canParseUrl(text)) return "not-a-url";
  const parsed = new URL(text);
  if (parsed.protocol !== "http:" && parsed.protocol !== "https:") return "not-http";
  if (parsed.port !== "" && servicePortWords(Number(parsed.port)) !== null) return "service-port";
  parsed.hash = "";
  parsed.username = "";
  parsed.password = "";
  if (parsed.search === "") parsed.search = "";
  const host = urlHost(parsed);
  if (!isHostName(host)) return "no-host";
  if (parsed.hostname.endsWith(".")) parsed.hostname = host;
  const url = parsed.href;
  if (url.length > maxCanonicalUrlLength) return "too-long";
  return { url, host, hostHash: hash64(host) as HostHash, urlHash: hash64(url) as UrlHash };
}

const hash64 = (text: string) => createHash("sha256").update(text).digest().readBigInt64BE(0).toString();

import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { isDeepStrictEqual } from "node:util";
import { describe, expect, it } from "vitest";
import type { HostHash, UrlHash } from "#core/ids";
import { servicePortWords } from "#core/ip/special-purpose";
import { canonicalEscapes, canParseUrl, isHostName, urlHost } from "#core/ip/url-host";
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
    // RFC 3986 section 6.2.2: unreserved characters stand for themselves, other octets have upper-case digits.
    ["http://example.com/%7Eann/%7ebob", "http://example.com/~ann/~bob"],
    ["http://example.com/%41%7a%30%2D%2E%5F", "http://example.com/Az0-._"],
    ["http://example.com/%d0%bf", "http://example.com/%D0%BF"],
    ["http://example.com/п", "http://example.com/%D0%BF"],
    ["http://example.com/?q=%d0%Bf&%61=%7e", "http://example.com/?q=%D0%BF&a=~"],
    ["http://example.com/a%2Ehtml", "http://example.com/a.html"],
    ["http://example.com/a/%2E%2e/b%2f%2E", "http://example.com/b%2F."],
    ["http://example.com:8080/%7E#%7E", "http://example.com:8080/~"],
    ["http://%65xample.com/%65", "http://example.com/e"],
    // Nothing reserved, no other characters, and nothing encoded twice.
    ["http://example.com/%2f%3a%40%21%27%3f%23", "http://example.com/%2F%3A%40%21%27%3F%23"],
    ["http://example.com/%20%25%7c%5c%7B", "http://example.com/%20%25%7C%5C%7B"],
    ["http://example.com/%257E%252e", "http://example.com/%257E%252e"],
    // A % without digits stays, and so does what would complete it.
    ["http://example.com/100%/%zz%7", "http://example.com/100%/%zz%7"],
    ["http://example.com/%%37E%4%31", "http://example.com/%%37E%4%31"],
    ["http://example.com/%%7e%a%c3%61", "http://example.com/%%7E%a%C3a"],
    ["http://[2001:DB8:0::1]:8080/", "http://[2001:db8::1]:8080/"],
    ["http://[::FFFF:192.0.2.1]/", "http://[::ffff:c000:201]/"],
  ])("of %j is %s", (text, url) => {
    expect(keyOf(text).url).toBe(url);
  });

  // Nothing that could name another resource is changed.
  it.each([
    "http://www.example.com/",
    "http://example.com/a/",
    "http://example.com/?b=2&a=1",
    "http://example.com/?a=&a=",
    "http://example.com/?utm_source=x",
    "http://example.com/index.html",
    "http://example.com//a//b",
    "http://example.com/~a/%2F",
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

describe("the octets of any text", () => {
  it("have one canonical spelling, and no other character is lost", () => {
    const random = seededRandom(21);
    const signs = "% % % 2 3 4 7 d D e E f 0 ~ / g %25 %7e %2F".split(" ");
    const texts = Array.from({ length: 30_000 }, () =>
      Array.from(
        { length: 1 + Math.floor(random() * 12) },
        () => signs[Math.floor(random() * signs.length)],
      ).join(""),
    );

    const wrong = texts.filter((text) => {
      const written = canonicalEscapes(text);
      const isIts = written === escapesByHand(text) && canonicalEscapes(written) === written;
      return !isIts || written.split("/").length !== text.split("/").length;
    });

    expect(wrong).toEqual([]);
    expect(texts.filter((text) => canonicalEscapes(text) !== text).length).toBeGreaterThan(5000);
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
    // The URL standard accepts these as hosts; we do not.
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
      return key.url !== escapesByHand(expected);
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

describe("a URL that is canonical already, and so is not parsed", () => {
  const suites = ["wpt-urltestdata", "ada-extra-urltestdata", "w3lib-url", "wpt-toascii"].flatMap((suite) => {
    const path = sharedData(`suites/url/${suite}.json`);
    return path === null ? [] : [...stringsIn(JSON.parse(readFileSync(path, "utf8")))];
  });

  it("has the key that the parser gives, like every other", () => {
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
const hostPieces = ["a www example org b-c _d 1 0x1 xn--a xn--bcher-kva A ü a:80 a:81 -e- 4b".split(" "), ""]
  .flat()
  .concat("x".repeat(63), "y".repeat(64));
const signs =
  "/ /. /.. . /%2e /%2E%2e/ a ~b ? ?q=1&r=%20 # #part ' \" | ^ { [ \\ ü % %zz %7e %41 %4 %d0%bf %2f 37";
const pieces = `${signs} = & ; @ : ! * ( , < \``.split(" ").concat(" ", "\t", "x".repeat(1000));

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
  const url = escapesByHand(parsed.href);
  if (url.length > maxCanonicalUrlLength) return "too-long";
  return { url, host, hostHash: hash64(host) as HostHash, urlHash: hash64(url) as UrlHash };
}

/** Octet by octet, as RFC 3986 section 6.2.2 says it: what is under test takes none apart that are canonical. */
function escapesByHand(url: string): string {
  const isOctet = (at: number) => /^%[0-9a-f]{2}$/i.test(url.slice(at, at + 3));
  let written = "";
  let isBehindStray = false;
  for (let at = 0; at < url.length; ) {
    if (isOctet(at)) {
      const character = String.fromCharCode(Number(`0x${url.slice(at + 1, at + 3)}`));
      const stands = !isBehindStray && /[A-Za-z0-9._~-]/.test(character);
      written += stands ? character : url.slice(at, at + 3).toUpperCase();
      [at, isBehindStray] = [at + 3, false];
      continue;
    }
    const isStray = url[at] === "%";
    const length = isStray && /[0-9a-f]/i.test(url[at + 1] ?? "") ? 2 : 1;
    written += url.slice(at, at + length);
    [at, isBehindStray] = [at + length, isStray];
  }
  return written;
}

const hash64 = (text: string) => createHash("sha256").update(text).digest().readBigInt64BE(0).toString();

import { afterEach, describe, expect, it, vi } from "vitest";
import { canParseUrl, isHostName, urlHost, withoutUser, withoutUsers } from "#core/ip/url-host";
import { urlKeyOf } from "#core/url-key";

it.each([
  ["http://EXAMPLE.org:8080/a", "example.org"],
  ["http://example.org./", "example.org"],
  ["http://münchen.example/", "xn--mnchen-3ya.example"],
  ["http://0x7f.1/", "127.0.0.1"],
  ["http://[2001:DB8::1]:80/", "2001:db8::1"],
])("the host of %s is %s", (url, host) => {
  expect(urlHost(url)).toBe(host);
  expect(urlHost(new URL(url))).toBe(host);
});

it.each(["example.org", "a_b.example", "-a.example", "a-.example", "127.0.0.1", "2001:db8::1", "localhost"])(
  "%s is a host's name",
  (text) => {
    expect(isHostName(text)).toBe(true);
  },
);

it.each([
  ...[
    "",
    ".",
    "a..b",
    "a.",
    "A.example",
    "a b",
    "a\r\nb",
    "a/b",
    "a:80",
    "[::1]",
    "::1%eth0",
    "a!b",
    "ü.example",
  ],
  ...[`${"a".repeat(64)}.example`, "abcdefg.".repeat(32)],
])("%j is none", (text) => {
  expect(isHostName(text)).toBe(false);
});

it.each([
  ["https://user:secret@h.example/a@b", "https://h.example/a@b"],
  ["//secret@h.example", "//h.example"],
  ["\\\\secret@h.example", "\\\\h.example"],
  ["ftp:user:secret@h.example/", "ftp:h.example/"],
  ["wss:secret@h.example", "wss:h.example"],
  ["h\tttps:/\n/user:secret@h.example/", "https://h.example/"],
  ["\u0001 https://secret@h.example/", "\u0001 https://h.example/"],
  ["mailto:somebody@h.example", "mailto:somebody@h.example"],
  ["/a?to=b@h.example", "/a?to=b@h.example"],
])("%j is %j without its user", (written, plain) => {
  expect(withoutUser(written)).toBe(plain);
});

it("a text keeps all but the users of the URLs in it", () => {
  const link = '<https://user:secret@h.example/a@b>; rel="canonical", <//secret@h.example>; title="to@us"';

  expect(withoutUsers(link)).toBe('<https://h.example/a@b>; rel="canonical", <//h.example>; title="to@us"');
  expect(withoutUsers("0; url='http://:secret@h.example/'")).toBe("0; url='http://h.example/'");
});

it("gives the same answer however often it is called, also compiled", () => {
  const wrong = Array.from({ length: 50_000 }, () =>
    canParseUrl("http://b\u00fccher.example/\u00e9t\u00e9"),
  ).filter((isUrl) => !isUrl);

  expect(wrong).toEqual([]);
});

it.each([
  ["//b\u00fccher.example/", "https://example.org/", true],
  ["/caf\u00e9", "https://example.org/", true],
  ["/caf\u00e9", undefined, false],
  ["http://", undefined, false],
  ["https://example.org/", undefined, true],
])("%j below %j: %j", (text, base, isUrl) => {
  expect(canParseUrl(text, base)).toBe(isUrl);
});

describe("an impossible host", () => {
  afterEach(() => void vi.unstubAllGlobals());
  const letters = (count: number) =>
    Array.from({ length: count }, (_, at) => String.fromCodePoint(0x4e00 + at)).join("");
  const dotted = Array.from({ length: 200 }, (_, at) => letters(10 + (at % 3))).join(".");

  it.each([
    [`http://${letters(2000)}/`],
    [` h\tttp:${letters(2000)}`],
    [`//${letters(2000)}/path`],
    [`\\\\${letters(2000)}`],
    [`https://user:secret@${letters(2000)}:8080/`],
    [`https://example.org:x@${letters(2000)}/`],
    [`http://${encodeURIComponent(letters(800))}/`],
    [`http://www.${letters(200)}.example/`],
    [`ftp://${dotted}/`],
  ])("is not parsed, which would take time by the square of its length: %#", (text) => {
    let parsed = 0;
    const RealUrl = URL;
    vi.stubGlobal(
      "URL",
      class extends RealUrl {
        constructor(url: string | URL, base?: string | URL) {
          parsed += 1;
          super(url, base);
        }
      },
    );

    expect(canParseUrl(text, "https://example.org/")).toBe(false);
    expect(urlKeyOf(text)).toBe("not-a-url");
    expect(parsed).toBe(0);
  });

  it.each([
    [`http://${letters(40)}.example/`],
    [`http://${"e\u0301".repeat(40)}.example/`],
    [`http://${encodeURIComponent(letters(20))}.example/`],
    [`http://example.org/${letters(500)}?${letters(500)}#${letters(500)}`],
    [`http://${"u".repeat(300)}@example.org/`],
    [`/${letters(500)}`],
    [`mailto:${letters(500)}`],
  ])("is not assumed for a valid URL: %#", (text) => {
    expect(canParseUrl(text, "https://example.org/")).toBe(true);
  });
});

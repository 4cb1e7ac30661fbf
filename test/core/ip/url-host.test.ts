import { expect, it } from "vitest";
import { isHostName, urlHost, withoutUser, withoutUsers } from "#core/ip/url-host";

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

import { expect, it } from "vitest";
import { isHostName, urlHost } from "#core/ip/url-host";

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

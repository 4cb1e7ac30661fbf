import { expect, it } from "vitest";
import { urlHost } from "#core/ip/url-host";

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

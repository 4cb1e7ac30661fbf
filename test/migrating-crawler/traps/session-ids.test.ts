/** Links lose their session and nothing else. */
import { describe, expect, it } from "vitest";
import { shipLinks, withoutSession } from "#crawler/traps/link-trap";

const hex = "0123456789abcdef0123456789abcdef";

describe("a session", () => {
  it.each([
    [`/p1;jsessionid=${hex.toUpperCase()}.node1`, "/p1"],
    [`/a;jsessionid=1/b?x=1`, "/a/b?x=1"],
    [`/p;jsessionid=${hex}?PHPSESSID=${hex}`, "/p"],
    [`/p?x=1&PHPSESSID=${hex}&y=2`, "/p?x=1&y=2"],
    [`/forum/viewtopic.php?t=5&sid=${hex}`, "/forum/viewtopic.php?t=5"],
    [`/index.php?s=${hex}&t=1`, "/index.php?t=1"],
    ["/a?sid=6ba7b810-9dad-11d1-80b4-00c04fd430c8", "/a"],
    ["/shop?CFID=12345&CFTOKEN=67890&id=3", "/shop?id=3"],
    ["/a.asp?ASPSESSIONIDQQAABBCC=XYZ&x=1", "/a.asp?x=1"],
    ["/(S(lit3py55t21z5v55vlm25s55))/orders/detail.aspx", "/orders/detail.aspx"],
    ["/shop/?osCsid=abc&amp;x=1", "/shop/?amp;x=1"],
    [`/shop/?x=1&amp;osCsid=abc`, "/shop/?x=1"],
  ])("in %s is removed: %s", (path, without) => {
    expect(withoutSession(`https://site.example${path}`)).toBe(`https://site.example${without}`);
  });
});

describe("what only looks like a session stays", () => {
  it.each([
    "/story?sid=1234",
    "/search?s=shoes",
    "/wiki/Phpsessid",
    "/page;v=1.1?x=(S(a))",
    "/sessions/2026/",
    "/a?session=spring-2026",
    "/talk?session_id=17",
    `/file/${hex}`,
    `/a?hash=${hex}`,
    "/a?",
  ])("%s", (path) => {
    expect(withoutSession(`https://site.example${path}`)).toBe(`https://site.example${path}`);
  });
});

it("links that differ only in their session become one", () => {
  const link = (url: string, anchor: string, nofollow: boolean) => ({ url, anchor, nofollow });

  const { links, trapped } = shipLinks(
    [
      link(`https://site.example/p;jsessionid=${hex}`, "", true),
      link("https://site.example/a/a/a", "trap", false),
      link("https://site.example/p", "words", false),
    ],
    "https://site.example/",
    new Date("2026-01-01"),
  );

  expect(links).toEqual([link("https://site.example/p", "words", false)]);
  expect(trapped).toBe(1);
});

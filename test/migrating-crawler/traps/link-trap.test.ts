/** Which links look like endless URL spaces, and which do not. */
import { describe, expect, it } from "vitest";
import { urlParts } from "#crawler/traps/host-memory";
import { linkTrap, shipLinks, withoutSession } from "#crawler/traps/link-trap";

const site = "https://site.example";
const trapOf = (link: string, page = "/") =>
  linkTrap(site + link, { parts: urlParts(site + page), thisYear: 2026 });

describe("a link is a trap", () => {
  it.each([
    ["/a/b/a/b/a/b", "/", "repeating"],
    ["/shop/x/x/x", "/", "repeating"],
    ["/a/1/a/1/a/1/page", "/", "repeating"],
    ["/a/b/c/a/c/b/b/a", "/", "repeating"],
    ["/a/news/about/news/about", "/a/news/about/news", "growing"],
    ["/en/x/page/en/x/", "/en/x/page/", "growing"],
    [`/${Array.from({ length: 21 }, (_, index) => `s${index}`).join("/")}`, "/", "too-deep"],
    [`/search?q=${"x".repeat(1100)}`, "/", "long-query"],
    [`/list?${Array.from({ length: 25 }, (_, index) => `p${index}=1`).join("&")}`, "/", "many-parameters"],
    ["/calendar/2031/05/", "/", "far-date"],
    ["/events?date=2031-05-17", "/", "far-date"],
    ["/events/month/1850-01/", "/", "far-date"],
    ["/view?year=2035&month=2", "/", "far-date"],
    ["/view?cal_y=12026&cal_m=2", "/", "far-date"],
    ["/blog/2040/05/17/", "/", "far-date"],
    ["/shoes?f%5B0%5D=a&f%5B1%5D=b&f%5B2%5D=c&f%5B3%5D=d", "/shoes", "facets"],
    ["/shoes?a=1&b=2&c=3&d=4&e=5&f=6", "/shoes?a=1&b=2&c=3&d=4&e=5", "facets"],
  ])("%s on %s: %s", (link, page, trap) => {
    expect(trapOf(link, page)).toBe(trap);
  });
});

describe("a link is ordinary", () => {
  it.each([
    ["/", "/"],
    ["/docs/api/v2/docs/intro", "/"],
    ["/en/products/en/", "/about/"],
    ["/0/0/0/0/", "/"],
    ["/2011/11/11/11", "/"],
    ["/0/0/0/x/y/x/y", "/"],
    ["/archive/1851/09/18/", "/"],
    ["/events/2027/05/", "/"],
    ["/thread/2071/12", "/"],
    ["/article-51160826", "/"],
    ["/article?cid=51160826", "/"],
    ["/ad?id=31000430", "/"],
    ["/news/a/b/c/d/e/f/g/h/i/j", "/"],
    ["/forum/viewtopic.php?f=1&t=2&p=3&sid=4", "/forum/viewtopic.php?f=1&t=2"],
    ["/shoes?a=1&b=2&c=3&d=4&e=5&f=6", "/"],
    ["/shoes?a=1&b=2&c=3&d=4&e=5&page=2", "/shoes?a=1&b=2&c=3&d=4&e=5"],
    ["/w/index.php?title=Talk:X&action=edit&section=2", "/"],
    ["/a/b/", "/a/"],
    ["/news/news/", "/news/"],
  ])("%s on %s", (link, page) => {
    expect(trapOf(link, page)).toBeNull();
  });

  it("when only its path, on another host, resembles this page's", () => {
    const from = { parts: urlParts(`${site}/a/news/about/news`), thisYear: 2026 };

    expect(linkTrap("https://other.example/a/news/about/news/about", from)).toBeNull();
  });
});

it("a path of many slashes is judged quickly", () => {
  const words = Array.from({ length: 400 }, (_, index) => `w${index % 397}`).join("/");

  expect(trapOf(`/${words}/${"/".repeat(1000)}?${"&".repeat(500)}`)).not.toBeNull();
});

// Links lose their session and nothing else.

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

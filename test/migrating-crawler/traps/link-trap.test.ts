/** Which links look like endless URL spaces, and which do not. */
import { describe, expect, it } from "vitest";
import { urlParts } from "#crawler/traps/host-memory";
import { linkTrap } from "#crawler/traps/link-trap";

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

import { describe, expect, it } from "vitest";
import { sentence } from "#coordinator/web/format";
import { html, pathWith, safeHref } from "#coordinator/web/html";

describe("html", () => {
  it("escapes every value, also inside attributes", () => {
    const hostile = `"><script>alert('x')</script>&amp;`;

    expect(html`<a title="${hostile}">${hostile}</a>`.markup).toBe(
      '<a title="&quot;&gt;&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;&amp;amp;">&quot;&gt;&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;&amp;amp;</a>',
    );
  });

  it("takes its own pieces as they are, and lists of them", () => {
    expect(html`<ul>${["<a>", "b"].map((text) => html`<li>${text}</li>`)}</ul>`.markup).toBe(
      "<ul><li>&lt;a&gt;</li><li>b</li></ul>",
    );
  });

  it("shows nothing for null, undefined and false, and zero as a figure", () => {
    expect(html`${null}${undefined}${false}${0}`.markup).toBe("0");
  });

  it("cannot be fooled by an object that looks like markup", () => {
    const forged = JSON.parse('[{"markup": "<script>"}]') as string[];

    expect(() => html`${forged}`.markup).toThrow();
  });
});

describe("links", () => {
  it("go to the web and nowhere else", () => {
    expect(safeHref("https://example.org/")).toBe("https://example.org/");
    for (const url of [
      "javascript:alert(1)",
      " https://a/",
      "data:text/html,x",
      "//example.org",
      "JaVaScRiPt:1",
    ]) {
      expect(safeHref(url)).toBeNull();
    }
  });

  it("encode what they ask", () => {
    expect(pathWith("/who", { q: "a&b=c#d é" })).toBe("/who?q=a%26b%3Dc%23d+%C3%A9");
    expect(pathWith("/search", { q: "x", host: null, language: "" })).toBe("/search?q=x");
  });
});

describe("a sentence", () => {
  it("has its instants as times that a reader's zone can be put in, and stays text", () => {
    const { markup } = sentence("Not due before 2026-11-29 15:42:08 UTC, <in 7 days>.");

    expect(markup).toBe(
      'Not due before <time datetime="2026-11-29T15:42:08Z">2026-11-29 15:42:08 UTC</time>, &lt;in 7 days&gt;.',
    );
  });
});

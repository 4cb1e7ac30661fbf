import { describe, expect, it } from "vitest";
import { filterChips } from "#coordinator/web/components";
import { sentence } from "#coordinator/web/format";
import { html, pathWith, safeHref, withCellLabels } from "#coordinator/web/html";

describe("html", () => {
  it("escapes every value, also inside attributes", () => {
    const hostile = `"><script>alert('x')</script>&amp;`;

    expect(html`<a title="${hostile}">${hostile}</a>`.markup).toBe(
      '<a title="&quot;&gt;&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;&amp;amp;">&quot;&gt;&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;&amp;amp;</a>',
    );
  });

  it("inserts its own fragments unescaped, and lists of them", () => {
    expect(html`<ul>${["<a>", "b"].map((text) => html`<li>${text}</li>`)}</ul>`.markup).toBe(
      "<ul><li>&lt;a&gt;</li><li>b</li></ul>",
    );
  });

  it("shows nothing for null, undefined and false, but shows zero", () => {
    expect(html`${null}${undefined}${false}${0}`.markup).toBe("0");
  });

  it("cannot be fooled by an object that looks like markup", () => {
    const forged = JSON.parse('[{"markup": "<script>"}]') as string[];

    expect(() => html`${forged}`.markup).toThrow();
  });
});

describe("links", () => {
  it("lead to the web and nowhere else", () => {
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

  it("encode their parameters", () => {
    expect(pathWith("/who", { q: "a&b=c#d é" })).toBe("/who?q=a%26b%3Dc%23d+%C3%A9");
    expect(pathWith("/search", { q: "x", host: null, language: "" })).toBe("/search?q=x");
  });
});

describe("a sentence", () => {
  it("has its instants as time elements for the reader's zone, and stays text", () => {
    const { markup } = sentence("Not due before 2026-11-29 15:42:08 UTC, <in 7 days>.");

    expect(markup).toBe(
      'Not due before <time datetime="2026-11-29T15:42:08Z">2026-11-29 15:42:08 UTC</time>, &lt;in 7 days&gt;.',
    );
  });
});

it("each chip leads to the same address without its filter, from the first page on", () => {
  const query = { q: "ferry", language: "de", country: "GR", sort: "date", page: 4 };
  const chips = [
    { name: "language", label: "Language", value: "German" },
    { name: "country", label: "Country", value: "Greece" },
  ];

  const { markup } = filterChips("/sites", query, chips);

  expect([...markup.matchAll(/href="([^"]*)"/g)].map(([, href]) => href)).toEqual([
    "/sites?q=ferry&amp;country=GR&amp;sort=date",
    "/sites?q=ferry&amp;language=de&amp;sort=date",
    "/sites?q=ferry&amp;sort=date",
  ]);
});

it("a foreign value is text with its own direction, and no filters make no list", () => {
  const one = filterChips("/sites", {}, [{ name: "q", label: "Words", value: "<b>שלום" }]);

  expect(one.markup).toContain("<bdi>&lt;b&gt;שלום</bdi>");
  expect(one.markup).not.toContain("Clear all");
  expect(filterChips("/sites", {}, []).markup).toBe("");
});

// On a narrow screen each cell of a table says what it is: in the words of the table's own head.

const labelled = (markup: ReturnType<typeof html>) => withCellLabels(markup.markup);

it("a cell is labelled by the head of its column, counting spans", () => {
  const page = html`<p>before</p><table><thead><tr><th scope="col">Host</th><th><a href="?sort=a">Pages</a> ↓</th><th>RTT</th></tr></thead>
<tbody><tr><th scope="row">a.example</th><td class="number">5</td><td>8 ms</td></tr><tr><td colspan="2">none</td><td>–</td></tr></tbody></table><p>after</p>`;

  expect(labelled(page)).toBe(
    page.markup
      .replace('<td class="number">5', '<td data-label="Pages ↓" class="number">5')
      .replace("<td>8 ms", '<td data-label="RTT">8 ms')
      .replace('<td colspan="2">', '<td data-label="Host" colspan="2">')
      .replace("<td>–", '<td data-label="RTT">–'),
  );
});

it("text for screen readers is no label, and tables without a head stay as they are", () => {
  const page = html`<table><thead><tr><th>Name</th><th><span class="hidden">Change</span></th></tr></thead><tbody><tr><td>a</td><td>b</td></tr></tbody></table
><table><tbody><tr><td>c</td></tr></tbody></table>`;

  expect(labelled(page)).toContain('<td data-label="Name">a</td><td>b</td>');
  expect(labelled(page)).toContain("<td>c</td>");
});

it("a foreign head stays text in the attribute, in linear time", () => {
  const hostile = `"><script>x</script>'`;
  const rows = Array.from({ length: 20_000 }, () => html`<tr><td>${"<td>".repeat(10)}</td></tr>`);
  const page = html`<table><thead><tr><th>${hostile}</th></tr></thead><tbody>${rows}</tbody></table>`;

  expect(
    labelled(page).match(/<td data-label="&quot;&gt;&lt;script&gt;x&lt;\/script&gt;&#39;">/g),
  ).toHaveLength(20_000);
});

import { expect, it } from "vitest";
import { filterChips } from "#coordinator/web/components";

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

it("a foreign value is text in a direction of its own, and no filter is no list", () => {
  const one = filterChips("/sites", {}, [{ name: "q", label: "Words", value: "<b>שלום" }]);

  expect(one.markup).toContain("<bdi>&lt;b&gt;שלום</bdi>");
  expect(one.markup).not.toContain("Clear all");
  expect(filterChips("/sites", {}, []).markup).toBe("");
});

/** Filters among the words equal those of the form. */
import { describe, expect, it } from "vitest";
import { readOperators } from "#coordinator/tell/search/operators";
import { operatorHelp } from "#coordinator/tell/search/search-api";

const read = (words: string, given = {}) => readOperators(words, given);

describe("filters among the words", () => {
  it("are removed from them, at any position", () => {
    expect(read("site:example.org ferry lang:de harbour after:2026-01-01")).toEqual({
      words: "ferry harbour",
      options: { host: "example.org", language: "de", from: "2026-01-01" },
    });
    expect(read('ferry INTITLE:"old port" -site:a.example -site:b.example')).toEqual({
      words: "ferry",
      options: { title: "old port", excludeHost: "a.example,b.example" },
    });
  });

  it("after: includes the day, before: excludes it, and both take months and years", () => {
    const days = (words: string) => {
      const { options } = read(`x ${words}`) as { options: { from?: string; to?: string } };
      return [options.from, options.to];
    };

    expect(days("after:2026-03-01 before:2026-03-01")).toEqual(["2026-03-01", "2026-02-28"]);
    expect(days("after:2026 before:2026-3")).toEqual(["2026-01-01", "2026-02-28"]);
  });

  it("override the form's, and leave the others", () => {
    const given = { language: "en", host: "example.org", limit: 20 };

    expect(read("ferry lang:de", given)).toEqual({ words: "ferry", options: { ...given, language: "de" } });
  });

  it("a title alone is searched for", () => {
    expect(read("title:ferry title:port")).toEqual({ words: "ferry port", options: { title: "ferry port" } });
  });

  it("are words where they are not filters", () => {
    for (const words of [
      '"site:example.org ferry"',
      "https://example.org/",
      "x:y",
      "site: ferry",
      "a-site:b",
    ])
      expect(read(words)).toEqual({ words, options: {} });
  });

  it("that are invalid are refused with the reason", () => {
    expect(read("ferry after:yesterday")).toBe("after:yesterday: must be a day, such as 2026-03-01");
    expect(read("ferry before:2026-02-31")).toBe("before:2026-02-31: must be a day, such as 2026-03-01");
    expect(read("ferry lang:german")).toBe(
      "language german: must be a code of two or three letters, such as en",
    );
    expect(read('ferry title:""')).toBe('title:"": needs a value');
  });

  it("in the help all work", () => {
    for (const [typed] of operatorHelp)
      expect([typed, Object.keys((read(`x ${typed}`) as { options: object }).options).length]).toEqual([
        typed,
        1,
      ]);
  });
});

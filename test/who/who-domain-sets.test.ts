/** `who` says which domain set decided, and why a host waits. */
import { describe, expect, it } from "vitest";
import { type DomainSetFacts, domainSetLines } from "#coordinator/tell/who/place";

const crawlers = [
  { crawlerId: 1, name: "athens", operator: [".gr", "lang:el"], partner: ["not shop.gr"] },
  { crawlerId: 2, name: "boston", operator: [], partner: [] },
  { crawlerId: 3, name: "tokyo", operator: [".jp"], partner: [] },
];
const facts = (host: string, changes: Partial<DomainSetFacts["fleet"]> = {}, own: string[] = []) => ({
  ...{ host, own, fleet: { language: null, crawlers, ...changes } },
});
const athens = { crawlerId: 1, name: "athens" };
const tokyo = { crawlerId: 3, name: "tokyo" };

describe("a host's crawler", () => {
  it("may crawl it because of the operator's and the partner's sets", () => {
    expect(domainSetLines(facts("a.gr"), athens)).toEqual([
      {
        ...{ code: "domain-set", stops: false },
        words: "athens may have it by its domain sets .gr and not shop.gr.",
      },
    ]);
  });

  it("may crawl it because of a language, known or not yet", () => {
    const [known] = domainSetLines(facts("a.com", { language: "el" }), athens);
    const [unknown] = domainSetLines(facts("a.com"), athens);

    expect(known?.words).toBe(
      "athens may have it by its domain sets lang:el and not shop.gr; its pages are in el.",
    );
    expect(unknown?.words).toContain("the language of its pages is not known yet, so that any may hold it");
  });

  it("without sets needs no explanation", () => {
    expect(domainSetLines(facts("a.com"), { crawlerId: 2, name: "boston" })).toEqual([]);
    expect(domainSetLines(facts("a.com", { crawlers: [] }), tokyo)).toEqual([]);
    expect(domainSetLines(undefined, tokyo)).toEqual([]);
  });

  it("may not crawl it: others do, or it waits if there are none", () => {
    const [moves] = domainSetLines(facts("a.com", { language: "en" }), tokyo);
    const [waits] = domainSetLines(facts("a.com", { crawlers: [crawlers[2]!] }), tokyo);

    expect(moves).toEqual({
      ...{ code: "other-domain-set", stops: true },
      words:
        "a.com (in en) is in none of tokyo's domain sets (.jp): it goes to the nearest of boston, whose sets hold it.",
    });
    expect(waits).toEqual({
      ...{ code: "no-domain-set", stops: true },
      words: "a.com is in no crawler's domain sets (tokyo has .jp): it waits until one is given it.",
    });
  });

  it("may not crawl what the coordinator's own sets exclude", () => {
    expect(domainSetLines(facts("a.com", { crawlers: [] }, [".gr"]), null)).toEqual([
      {
        ...{ code: "no-domain-set", stops: true },
        words: "a.com is in none of the domain sets of this coordinator (.gr): it is not crawled from here.",
      },
    ]);
  });
});

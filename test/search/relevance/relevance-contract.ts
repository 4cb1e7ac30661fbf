/** What every engine of the search finds in pages that are written in ten languages: the right page comes first. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { OpenedEngine } from "../engine-contract.ts";
import { measuresOf } from "./measures.ts";
import { type PageSet, writtenSet } from "./page-set.ts";
import { engineRanker, type Ranker } from "./rankers.ts";

/** `open` opens an engine without pages. */
export function relevanceContract(name: string, open: () => Promise<OpenedEngine>): void {
  describe(`over pages written in ten languages, ${name}`, () => {
    let set: PageSet;
    let opened: OpenedEngine;
    let rank: Ranker;

    beforeAll(async () => {
      [set, opened] = [await writtenSet(), await open()];
      rank = await engineRanker(set, opened);
    });
    afterAll(async () => {
      await opened.close();
    });

    const kinds = [
      "title",
      "heading",
      "inflected",
      "most words",
      "bigram",
      "dotted",
      "typo",
      "anchor",
      "topical",
    ];
    it.each(kinds)("puts a right page first: %s", async (kind) => {
      const asked = set.questions.filter((question) => question.kind === kind);
      const misses = [];
      for (const { text, grades } of asked) {
        const ranked = await rank(text);
        if (measuresOf(ranked, grades).success === 0) misses.push([text, ...ranked.slice(0, 3)]);
      }

      expect(asked.length).toBeGreaterThan(3);
      expect(misses).toEqual([]);
    });
  });
}

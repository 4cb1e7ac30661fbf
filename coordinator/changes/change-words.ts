/** A change in plain words: for the page, the command, and programs that show it to people. */

import { howMany } from "#core/format";
import type { ChangeKind, PageChange, VisitChange } from "./page-change.ts";

export const kindWords: Readonly<Record<ChangeKind, string>> = {
  "first-seen": "first seen",
  changed: "changed",
  "links-changed": "other links",
  "came-back": "came back",
  redirected: "leads elsewhere",
  gone: "gone",
  "given-up": "given up",
};

/** What happened, in one line: `43 of 64 bits of the text, 120 → 98 words; title “Old” → “New”`. */
export function changeWords(change: VisitChange): string {
  switch (change.kind) {
    case "first-seen":
    case "came-back":
      return joined([
        quoted(change.titleAfter),
        countOf(change.wordsAfter, "word"),
        countOf(change.linksAfter, "link"),
      ]);
    case "changed":
      return joined([textWords(change), wordCounts(change), titleWords(change)]);
    case "links-changed":
      return `${change.linksBefore} → ${howMany(change.linksAfter ?? 0, "link")}: ${change.linksAdded} came, ${change.linksRemoved} went`;
    case "redirected":
      return joined([`to ${change.location}`, was(change)]);
    case "gone":
      return joined([change.reason, was(change)]);
    case "given-up":
      return joined([change.reason, "so often in a row that it is hardly asked for any more"]);
  }
}

/** For JSON: with the words. */
export function toldChange(change: PageChange): PageChange & { readonly words: string } {
  return { ...change, words: changeWords(change) };
}

const joined = (parts: readonly (string | null)[]) =>
  parts.filter((part) => part !== null && part !== "").join("; ");

function textWords({ simhashDistance }: VisitChange): string | null {
  if (simhashDistance === null) return null;
  return simhashDistance === 0
    ? "the body, while the text is as good as the same"
    : `the text: ${simhashDistance} of 64 bits of its simhash differ`;
}

function wordCounts({ wordsBefore, wordsAfter }: VisitChange): string | null {
  return wordsBefore === null || wordsAfter === null || wordsBefore === wordsAfter
    ? null
    : `${wordsBefore.toLocaleString("en-GB")} → ${howMany(wordsAfter, "word")}`;
}

function titleWords({ titleBefore, titleAfter }: VisitChange): string | null {
  return titleBefore === titleAfter
    ? null
    : `title ${quoted(titleBefore) || "none"} → ${quoted(titleAfter) || "none"}`;
}

const was = ({ titleBefore }: VisitChange) => (titleBefore ? `it was ${quoted(titleBefore)}` : null);
const quoted = (title: string | null) => (title === null || title === "" ? "" : `“${title}”`);
const countOf = (count: number | null, noun: string) => (count === null ? null : howMany(count, noun));

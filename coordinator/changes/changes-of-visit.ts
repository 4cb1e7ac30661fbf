/** What a visit changed: the page as the index had it, against what was found. */
import { simhashDistance } from "#protocol/result";
import type { VisitChange } from "./page-change.ts";

export interface SeenPage {
  readonly digest: string;
  readonly simhash: string;
  readonly title: string;
  readonly words: number;
  readonly language: string | null;
}

export interface Visit {
  readonly url: string;
  readonly seenAt: Date;
  readonly status: number | null;
  /** Why there is no page; null where there is one. */
  readonly reason: string | null;
  /** What the index had of it, and has from now on; null: nothing. */
  readonly before: SeenPage | null;
  readonly after: SeenPage | null;
  /** A page was read there before, whether the index still has it or not. */
  readonly wasRead: boolean;
  readonly isFirst: boolean;
  /** Where it leads; null: it is no redirect. */
  readonly location: string | null;
  /** This visit was the last one that it was waited for. */
  readonly gaveUp: boolean;
  readonly links: { readonly after: number; readonly added: number; readonly removed: number };
}

/** None, one, or two of them: a page may change with its links, and be gone and given up at once. */
export function changesOfVisit(visit: Visit): readonly VisitChange[] {
  const { before, after } = visit;
  if (after !== null && before === null) return [arrival(visit, after)];
  if (after !== null && before !== null) return [...contentChange(visit), ...linkChange(visit)];
  return [...departure(visit), ...givingUp(visit)];
}

function arrival(visit: Visit, after: SeenPage): VisitChange {
  const kind = visit.wasRead ? "came-back" : "first-seen";
  return { ...toldOf(visit), kind, ...contentAfter(after), linksAfter: visit.links.after };
}

function contentChange(visit: Visit): readonly VisitChange[] {
  const { before, after, links } = visit;
  if (before === null || after === null || before.digest === after.digest) return [];
  const content = { ...contentBefore(before), ...contentAfter(after) };
  const distance = simhashDistance(before.simhash, after.simhash);
  const counts = { linksBefore: linksBefore(links), linksAfter: links.after };
  return [{ ...toldOf(visit), kind: "changed", ...content, simhashDistance: distance, ...counts }];
}

function linkChange(visit: Visit): readonly VisitChange[] {
  const { links, after } = visit;
  if (links.added === 0 && links.removed === 0) return [];
  const told = { ...toldOf(visit), kind: "links-changed" as const, language: after?.language ?? null };
  const counts = { linksBefore: linksBefore(links), linksAfter: links.after };
  return [{ ...told, ...counts, linksAdded: links.added, linksRemoved: links.removed }];
}

function departure(visit: Visit): readonly VisitChange[] {
  const { before, location, isFirst } = visit;
  if (location !== null && (before !== null || isFirst)) {
    const content = before === null ? {} : contentBefore(before);
    return [{ ...toldOf(visit), kind: "redirected", ...content, location }];
  }
  return before === null ? [] : [{ ...toldOf(visit), kind: "gone", ...contentBefore(before) }];
}

function givingUp(visit: Visit): readonly VisitChange[] {
  return visit.gaveUp ? [{ ...toldOf(visit), kind: "given-up" }] : [];
}

const linksBefore = ({ after, added, removed }: Visit["links"]) => Math.max(0, after - added + removed);

function contentBefore({ digest, title, words, language }: SeenPage) {
  return { digestBefore: digest, titleBefore: title, wordsBefore: words, language };
}

function contentAfter({ digest, title, words, language }: SeenPage) {
  return { digestAfter: digest, titleAfter: title, wordsAfter: words, language };
}

function toldOf({ url, seenAt, status, reason }: Visit): Omit<VisitChange, "kind"> {
  return { ...nothingTold, url, seenAt, status, reason };
}

const nothingTold = {
  language: null,
  digestBefore: null,
  digestAfter: null,
  simhashDistance: null,
  titleBefore: null,
  titleAfter: null,
  wordsBefore: null,
  wordsAfter: null,
  linksBefore: null,
  linksAfter: null,
  linksAdded: null,
  linksRemoved: null,
  location: null,
} as const;

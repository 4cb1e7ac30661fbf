/** The changes of URLs in the feed, and a reader's filter. */

import { howMany } from "#core/format";
import type { StatedPreference, UseAnswers } from "#protocol/preferences";
import { simhashDistance } from "#protocol/result";
import type { ReadOf } from "../../web/api-operation.ts";
import { answersText, statementWords } from "../batch/stated-uses.ts";
import type { changeKinds, pageChange } from "./changes-api.ts";

export type ChangeKind = (typeof changeKinds)[number];

/** What the site states about a page's uses. Where it states nothing, the field is null. */
interface StatedThen {
  readonly answers: UseAnswers;
  readonly statements: readonly StatedPreference[];
}

/** Numbers rise by one, in the order in which changes became readable. */
export interface PageChange extends Omit<ReadOf<typeof pageChange>, "words" | "stated" | "statedBefore"> {
  readonly stated: StatedThen | null;
  readonly statedBefore: StatedThen | null;
}

/** A change as one visit found it. What does not apply is null. */
interface VisitChange
  extends Omit<PageChange, "number" | "host" | "notedAt" | "stated" | "statedBefore" | "difference"> {
  /** Number of the site's list of statements (table preference_set). `before` is set when the list changed. */
  readonly preferenceSet: number | null;
  readonly preferenceSetBefore: number | null;
}

export interface ChangeFilter {
  /** Kinds to include; empty for all. */
  readonly kinds: readonly ChangeKind[];
  /** The only host to include, or null for all. */
  readonly host: string | null;
  /** Prefix of the canonical URLs to include. */
  readonly prefix: string | null;
  /** Selects pages by domain and language; null for all. */
  readonly domains: ((page: { readonly host: string; readonly language: string | null }) => boolean) | null;
}

export const everyChange: ChangeFilter = { kinds: [], host: null, prefix: null, domains: null };

export function changeFits(filter: ChangeFilter, change: PageChange): boolean {
  const { kinds, host, prefix, domains } = filter;
  if (kinds.length > 0 && !kinds.includes(change.kind)) return false;
  if (host !== null && change.host !== host) return false;
  if (prefix !== null && !change.url.startsWith(prefix)) return false;
  return domains?.(change) ?? true;
}

export interface SeenPage {
  readonly digest: string;
  readonly simhash: string;
  readonly title: string;
  readonly words: number;
  readonly language: string | null;
  /** The page asks not to be indexed. */
  readonly noindex: boolean;
}

export interface Visit {
  readonly url: string;
  readonly seenAt: Date;
  readonly status: number | null;
  /** Why there is no page; null if there is one. */
  readonly reason: string | null;
  /** The indexed page before and after the visit; null if there was none. */
  readonly before: SeenPage | null;
  readonly after: SeenPage | null;
  /** Whether a page was ever read at this URL, even if it is no longer indexed. */
  readonly wasRead: boolean;
  readonly isFirst: boolean;
  /** Target of the redirect, or null. */
  readonly location: string | null;
  /** Whether this visit gave up the URL. */
  readonly gaveUp: boolean;
  /** The site's lists of statements, numbered as in `preferenceSet`. */
  readonly stated: {
    readonly set: number | null;
    readonly before: number | null;
    /** The list is unchanged, or there was no page before. */
    readonly isSame: boolean;
    /** The page is, or was, not to be searched. */
    readonly isSilent: boolean;
  };
  readonly links: { readonly after: number; readonly added: number; readonly removed: number };
}

/** Returns up to two changes: a page may change together with its links, or be gone and given up at once. */
export function changesOfVisit(visit: Visit): readonly VisitChange[] {
  const { before, after } = visit;
  if (after !== null && before === null) return [arrival(visit, after)];
  if (after !== null && before !== null)
    return [...contentChange(visit), ...linkChange(visit), ...statedChange(visit)];
  return [...departure(visit), ...givingUp(visit)];
}

/** On an unchanged page only the statements about it can differ. */
export function statedChange(
  visit: Pick<Visit, "url" | "seenAt" | "status" | "reason" | "stated">,
): readonly VisitChange[] {
  const { stated } = visit;
  if (stated.isSame) return [];
  return [{ ...toldOf(visit), kind: "preferences-changed", preferenceSetBefore: stated.before }];
}

function arrival(visit: Visit, after: SeenPage): VisitChange {
  const kind = visit.wasRead ? "came-back" : "first-seen";
  return { ...toldOf(visit), kind, ...contentAfter(after), linksAfter: visit.links.after };
}

function contentChange(visit: Visit): readonly VisitChange[] {
  const { before, after, links } = visit;
  if (before === null || after === null) return [];
  if (before.digest === after.digest) return indexingChange(visit, before, after);
  const content = { ...contentBefore(before), ...contentAfter(after) };
  // The text of a page that is, or was, not to be searched is not stored.
  const distance = visit.stated.isSilent ? null : simhashDistance(before.simhash, after.simhash);
  const counts = { linksBefore: linksBefore(links), linksAfter: links.after };
  return [{ ...toldOf(visit), kind: "changed", ...content, simhashDistance: distance, ...counts }];
}

/** Even if the body is equal, the headers may differ. Changed statements are reported separately. */
function indexingChange(visit: Visit, before: SeenPage, after: SeenPage): readonly VisitChange[] {
  if (before.noindex === after.noindex || !visit.stated.isSame) return [];
  if (!after.noindex) return [{ ...arrival(visit, after), kind: "came-back" }];
  return [{ ...toldOf(visit), kind: "gone", reason: "noindex", ...contentBefore(before) }];
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

function toldOf(visit: Parameters<typeof statedChange>[0]): Omit<VisitChange, "kind"> {
  const { url, seenAt, status, reason, stated } = visit;
  return { ...nothingTold, url, seenAt, status, reason, preferenceSet: stated.set };
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
  preferenceSet: null,
  preferenceSetBefore: null,
} as const;

export const kindWords: Readonly<Record<ChangeKind, string>> = {
  "first-seen": "first seen",
  changed: "changed",
  "links-changed": "other links",
  "preferences-changed": "other preferences",
  "came-back": "came back",
  redirected: "redirected",
  gone: "gone",
  "given-up": "given up",
};

type Told = Omit<PageChange, "number" | "host" | "notedAt" | "difference">;

/** Describes the change in one line: `43 of 64 bits of the text, 120 → 98 words; title “Old” → “New”`. */
export function changeWords(change: Told): string {
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
      return `${change.linksBefore} → ${howMany(change.linksAfter ?? 0, "link")}: ${change.linksAdded} added, ${change.linksRemoved} removed`;
    case "preferences-changed":
      return `${statedWords(change.statedBefore)} → ${statedWords(change.stated)}`;
    case "redirected":
      return joined([`to ${change.location}`, was(change)]);
    case "gone":
      return joined([change.reason, was(change)]);
    case "given-up":
      return joined([change.reason, "so often in a row that it is hardly requested any more"]);
  }
}

export const toldChange = (change: PageChange): PageChange & { readonly words: string } => ({
  ...change,
  words: changeWords(change),
});

/** Lists all statements, including those without a recognised meaning. */
function statedWords(stated: StatedThen | null): string {
  if (stated === null) return "nothing stated";
  const words = answersText(stated.answers);
  return words === "" ? stated.statements.map(statementWords).join("; ") : words;
}

const joined = (parts: readonly (string | null)[]) =>
  parts.filter((part) => part !== null && part !== "").join("; ");

function textWords({ simhashDistance }: Told): string | null {
  if (simhashDistance === null) return null;
  return simhashDistance === 0
    ? "the body, but the text is nearly the same"
    : `the text: ${simhashDistance} of 64 bits of its simhash differ`;
}

function wordCounts({ wordsBefore, wordsAfter }: Told): string | null {
  return wordsBefore === null || wordsAfter === null || wordsBefore === wordsAfter
    ? null
    : `${wordsBefore.toLocaleString("en-GB")} → ${howMany(wordsAfter, "word")}`;
}

function titleWords({ titleBefore, titleAfter }: Told): string | null {
  return titleBefore === titleAfter
    ? null
    : `title ${quoted(titleBefore) || "none"} → ${quoted(titleAfter) || "none"}`;
}

const was = ({ titleBefore }: Told) => (titleBefore ? `it was ${quoted(titleBefore)}` : null);
const quoted = (title: string | null) => (title === null || title === "" ? "" : `“${title}”`);
const countOf = (count: number | null, noun: string) => (count === null ? null : howMany(count, noun));

/**
 * The search box: finds everything that can be opened, by part of its name. Exact matches come first, then prefixes, then words
 * that begin with the query, then other occurrences. Only what the viewer may open is found.
 */
import { z } from "zod";
import { type Actor, mayDo, type Scope } from "#core/actor";
import { parseAddress } from "#core/ip/address";
import { parseRange } from "#core/ip/range";
import { hostNamed, urlKeyOf } from "#core/url-key";
import { policyGroups } from "../../run/settings/catalogue.ts";
import { record, type ToldOf } from "../../web/api-operation.ts";
import { pathWith } from "../../web/html.ts";
import { type Listed, placedPages } from "../../web/navigation.ts";
import type { FindReads, FoundCrawler, FoundHost, NamedRows } from "./find-reads.ts";

/** Kinds in the order of precedence for equal matches. */
const foundKinds = ["page", "crawler", "host", "who", "setting", "action"] as const;
export type FoundKind = (typeof foundKinds)[number];

/** Maximum length of a query, which exceeds any crawled URL. */
export const longestQuestion = 2100;

export const mostOfKind = 10;

const foundPlace = record("Found", {
  kind: z.enum(foundKinds),
  title: z.string(),
  words: z.string().describe("What it is, or how it stands, in a sentence at most."),
  href: z.string().describe("Of a page here."),
});

export const foundAnswer = record("FoundAnswer", {
  question: z.string(),
  results: z
    .array(foundPlace)
    .describe("Kinds in the order of their best match; within a kind the best first."),
  more: z.array(z.enum(foundKinds)).describe(`Kinds of which there are more than the ${mostOfKind} shown.`),
  note: z.string().nullable().describe("Why something may be missing; null: nothing is."),
});

export type Found = ToldOf<typeof foundPlace>;
export type FindAnswer = ToldOf<typeof foundAnswer>;

/** Maximum length of a name (RFC 1035: 253 octets). */
const longestName = 253;

/** A result with the quality of its match: 0 is exact, higher is worse. */
interface Ranked extends Found {
  readonly rank: number;
}

export interface FindPorts {
  readonly reads: FindReads;
  readonly pages: () => Promise<readonly PagePlace[]>;
}

export async function find(question: string, actor: Actor, { reads, pages }: FindPorts): Promise<FindAnswer> {
  const asked = question.replace(/\p{Cc}/gu, " ").trim();
  if (asked === "") return nothingAsked(actor, await pages());
  const isName = asked.length <= longestName;
  const isReader = mayDo(actor, "read");
  const [crawlers, hosts] = await Promise.all([
    isName ? crawlersFor(asked, actor, reads) : none,
    isName && isReader ? reads.findHosts(asked.toLowerCase(), mostOfKind) : none,
  ]);
  const ranked = [
    ...matching("page", openTo(actor, await pages()), asked),
    ...(crawlers?.rows ?? []).map((row) => crawlerFound(row, asked)),
    ...(hosts?.rows ?? []).map((row) => hostFound(row, asked)),
    ...(isReader ? whoFound(asked) : []),
    ...matching("setting", openTo(actor, settingPlaces), asked),
    ...(isReader ? questionsToAsk(asked) : []),
  ];
  const full = { crawler: crawlers?.more === true, host: hosts?.more === true };
  const tooLong = crawlers === null || hosts === null;
  const note = tooLong ? "Crawlers or hosts may be missing: looking for them took too long." : null;
  return { question: asked, ...inOrder(ranked, full), note };
}

const none: NamedRows<never> = { rows: [], more: false };

function nothingAsked(actor: Actor, pages: readonly PagePlace[]): FindAnswer {
  const results = openTo(actor, pages)
    .filter(({ isMain }) => isMain)
    .map((place) => found("page", place));
  return { question: "", results, more: [], note: null };
}

const found = (kind: FoundKind, { title, words, href }: Omit<Place, "needs" | "alsoFound">): Found => ({
  ...{ kind, title, words, href },
});

function openTo<One extends Place>(actor: Actor, places: readonly One[]): readonly One[] {
  return places.filter(({ needs }) => mayDo(actor, needs));
}

/** Orders kinds by their best match, and within a kind by match, then input order. */
function inOrder(
  ranked: readonly Ranked[],
  full: Readonly<Partial<Record<FoundKind, boolean>>>,
): Pick<FindAnswer, "results" | "more"> {
  const groups = foundKinds
    .map((kind) => ({
      kind,
      all: ranked.filter((one) => one.kind === kind).sort((a, b) => a.rank - b.rank),
    }))
    .filter(({ all }) => all.length > 0)
    .sort((a, b) => a.all[0]!.rank - b.all[0]!.rank);
  return {
    results: groups.flatMap(({ all }) => all.slice(0, mostOfKind).map(({ rank: _, ...one }) => one)),
    more: groups
      .filter(({ kind, all }) => all.length > mostOfKind || full[kind] === true)
      .map(({ kind }) => kind),
  };
}

const exact = 0;
const begins = 1;
const wordBegins = 2;
const holds = 3;
/** The query matches other words than the name. */
const beside = 4;
/** The result is suggested for any text. */
const anyText = 5;

const folded = (text: string) => text.normalize("NFKC").toLowerCase();

/** Returns null if there is no match. Several words match if each of them does. */
export function matchOf(name: string, asked: string): number | null {
  const [whole, part] = [folded(name), folded(asked)];
  const single = singleMatch(whole, part);
  if (single !== null) return single;
  const words = part.split(/\s+/).filter((word) => word !== "");
  if (words.length < 2) return null;
  const each = words.map((word) => singleMatch(whole, word));
  return each.includes(null) ? null : Math.max(wordBegins, ...each.flatMap((one) => one ?? []));
}

function singleMatch(whole: string, part: string): number | null {
  if (whole === part) return exact;
  if (whole.startsWith(part)) return begins;
  for (let at = whole.indexOf(part); at > 0; at = whole.indexOf(part, at + 1))
    if (!/[\p{L}\p{N}]/u.test(whole[at - 1] ?? "")) return wordBegins;
  return whole.includes(part) ? holds : null;
}

function matching(kind: FoundKind, places: readonly Place[], asked: string): Ranked[] {
  return places.flatMap((place) => {
    const besides = () =>
      matchOf(`${place.title} ${place.alsoFound} ${place.words}`, asked) === null ? null : beside;
    const rank = matchOf(place.title, asked) ?? besides();
    return rank === null ? [] : [{ ...found(kind, place), rank }];
  });
}

async function crawlersFor(asked: string, actor: Actor, reads: FindReads) {
  const within = mayDo(actor, "read") ? null : actor.crawlers;
  if (within?.length === 0) return none;
  return await reads.findCrawlers({ text: asked.toLowerCase(), within, most: mostOfKind });
}

function crawlerFound({ name, state, place, country }: FoundCrawler, asked: string): Ranked {
  const where = [place, country].filter((one) => one !== null && one !== "").join(", ");
  const rank = matchOf(name, asked) ?? holds;
  const words = where === "" ? state : `${state}, in ${where}`;
  return { kind: "crawler", title: name, words, href: `/crawlers/${encodeURIComponent(name)}`, rank };
}

// Hosts, URLs, addresses and ranges.

function hostFound({ host, name, state, urls, fetchedUrls, hasOptedOut }: FoundHost, asked: string): Ranked {
  const counted = `${fetchedUrls.toLocaleString("en-GB")} of ${urls.toLocaleString("en-GB")} URLs fetched`;
  const words = hasOptedOut ? "has opted out" : state === "resolved" ? counted : state;
  const rank = matchOf(name ?? host, asked) ?? matchOf(host, hostNamed(asked) ?? asked) ?? holds;
  return { kind: "host", title: name ?? host, words, href: `/sites/${encodeURIComponent(host)}`, rank };
}

function whoFound(asked: string): Ranked[] {
  const ask = (words: string): Ranked => ({
    ...{ kind: "who", title: asked, words, href: pathWith("/who", { q: asked }), rank: exact },
  });
  if (/^https?:\/\//i.test(asked)) {
    if (typeof urlKeyOf(asked) === "string") return [];
    const [words, href] = ["What the index has of it", pathWith("/pages", { url: asked })];
    return [ask("Who crawls this URL, and why"), { kind: "who", title: asked, words, href, rank: begins }];
  }
  if (parseAddress(asked) !== null) return [ask("Who crawls this address, and why")];
  return parseRange(asked) === null ? [] : [ask("Who crawls this range, and why")];
}

function questionsToAsk(asked: string): Ranked[] {
  const shown = asked.length > 60 ? `${asked.slice(0, 59)}…` : asked;
  const ask = (title: string, words: string, href: string): Ranked => ({
    ...{ kind: "action", title, words, href, rank: anyText },
  });
  return [
    ask(`Search for “${shown}”`, "In the text of all pages", pathWith("/search", { q: asked.slice(0, 300) })),
    ask(`Look up “${shown}”`, "A host, range, organisation or URL", pathWith("/who", { q: asked })),
  ];
}

// Pages and settings, which are found without the database.

/** Something that people with the scope can open. */
export interface Place {
  readonly title: string;
  /** At most a sentence. */
  readonly words: string;
  readonly href: string;
  readonly needs: Scope | null;
  /** Other words that people search for. */
  readonly alsoFound: string;
}

/** A page of the navigation; `isMain` marks a top-level entry. */
interface PagePlace extends Place {
  readonly isMain: boolean;
}

/** Returns the pages that are in the navigation, and those that only the search finds. */
export const pagePlacesOf = (operations: readonly Listed[]): readonly PagePlace[] =>
  placedPages(operations).map(({ path, needs, groupName, entry, tab, alsoFound = "", summary }, at, all) => {
    const isFirst = all.findIndex((one) => one.groupName === groupName && one.entry === entry) === at;
    const place = isFirst || groupName === null ? groupName : `${groupName} · ${entry}`;
    return {
      ...{ href: path, needs, alsoFound, isMain: isFirst && groupName !== null },
      ...{ title: isFirst ? entry : (tab ?? entry), words: place ?? summary },
    };
  });

const settingPlaces: readonly Place[] = policyGroups.flatMap((group) =>
  group.policies.map(({ name, title, help }) => ({
    title,
    words: `${group.title}: ${help}`,
    href: `/policies#${name}`,
    needs: "read" as const,
    alsoFound: name,
  })),
);

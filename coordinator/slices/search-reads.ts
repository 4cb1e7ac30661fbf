/**
 * Search over all slices: each is asked side by side, and what they found is ranked as if it had been found in one. A page's
 * score is of the page and the words alone (search/page-score), so that scores of slices compare; the words become queries by
 * the configurations that pages of all slices have.
 */
import type { HostHash } from "#core/ids";
import { byHash, byText, firstOf, joinedBy, OverSlices, summed } from "../database/over-slices.ts";
import { partialOf, type Slices } from "../database/slices.ts";
import type { KnownWord } from "../search/edit-distance.ts";
import { type LinkingElsewhere, linkingHosts } from "../search/index-upkeep-store.ts";
import type { PageKey, PageReads } from "../search/page-facts.ts";
import { mostAlike, type PageParts, pageOf, unknownTarget } from "../search/page-reads.ts";
import { scoreOf, totalOf } from "../search/page-score.ts";
import { depthOf } from "../search/query.ts";
import { dateOf, facetValues, noFacets } from "../search/ranking.ts";
import {
  type Candidates,
  type FacetName,
  type Facets,
  type FacetValue,
  facetNames,
  type RankedCandidates,
  type ScoredCandidate,
  type SearchQuery,
  type SearchReads,
} from "../search/search-answer.ts";
import { wordsRead } from "../search/search-reads.ts";

interface SearchPart extends SearchReads, PageReads {
  readonly pageParts: PageParts;
}

/** `keep`: of answers that are whole questions'. */
export function searchOverSlices(
  over: OverSlices<SearchPart>,
  keep: SearchReads["keep"],
  hasIndex: boolean,
): SearchReads & PageReads {
  const ofHost = ({ hostHash }: { readonly hostHash: HostHash }) => hostHash;
  return {
    ...(hasIndex ? indexReads(over) : {}),
    candidates: async (query) => {
      if (over.isOne) return await over.shared.candidates(query);
      const { answers, partial } = await over.ask(async (slice) => await slice.candidates(query));
      return { ...candidatesOf(answers), ...partialOf(partial) };
    },
    texts: async (candidates) =>
      await over.eachOfHost(candidates, ofHost, {
        ask: async (slice, own) => await slice.texts(own),
        absent: null,
      }),
    shown: async (candidates) =>
      await over.eachOfHost(candidates, ofHost, {
        ask: async (slice, own) => await slice.shown(own),
        absent: null,
      }),
    wordsLike: async (forms, language) => {
      const { answers } = await over.ask(async (slice) => await slice.wordsLike(forms, language));
      return over.isOne ? answers[0]! : wordsOf(answers);
    },
    keep,
    page: async (key, offsets) => await pageOf(partsOver(over), key, offsets),
  };
}

function indexReads(over: OverSlices<SearchPart>): Pick<SearchReads, "ranked" | "standIn"> {
  return {
    // Where one of the indexes does not answer, the database does for all: its pages and theirs are ranked in one way.
    ranked: async (query, now) => {
      const { answers, partial } = await over.ask(
        async (slice) => (await slice.ranked?.(query, now)) ?? null,
      );
      const ranked = answers.flatMap((answer) => answer ?? []);
      if (ranked.length < answers.length) return null;
      return over.isOne ? ranked[0]! : { ...rankedOf(ranked, query), ...partialOf(partial) };
    },
    standIn: () => {
      const words = over.slices.open.map((slice) => over.of(slice).standIn?.() ?? null);
      return words.find((one) => one !== null) ?? null;
    },
  };
}

const keyOf = ({ hostHash, urlHash }: PageKey) => `${hostHash}/${urlHash}`;

/** A host on its way is in two slices: its pages count once. */
function candidatesOf(answers: readonly Candidates[]): Candidates {
  return {
    pages: joinedBy(
      answers.flatMap(({ pages }) => pages),
      keyOf,
      (first) => first,
    ),
    more: answers.some(({ more }) => more),
    unranked: answers.some(({ unranked }) => unranked === true),
    searchable: answers.some(({ searchable }) => searchable),
    cutShort: answers.some(({ cutShort }) => cutShort),
  };
}

/**
 * Each gave as many of its best as are wanted of all. What two slices have nearly alike is counted once where both are among
 * these; of what lies deeper it is not known.
 */
function rankedOf(answers: readonly RankedCandidates[], query: SearchQuery): RankedCandidates {
  const all = answers.flatMap(({ pages }) => pages);
  const pages = firstOf(
    [joinedBy(all, groupOf, joinedTexts)],
    query.sort === "date" ? byDate : byPoints,
    depthOf(query),
  );
  const repeats = all.length - new Set(all.map(groupOf)).size;
  const total = answers.reduce((sum, answer) => sum + answer.total, 0) - repeats;
  return {
    pages,
    total,
    facets: facetsOf(
      answers.map(({ facets }) => facets),
      total,
    ),
    searchable: answers.some(({ searchable }) => searchable),
  };
}

const groupOf = ({ candidate }: ScoredCandidate) => candidate.textGroup ?? keyOf(candidate);

/** The first that had the text stands for both. */
function joinedTexts(one: ScoredCandidate, other: ScoredCandidate): ScoredCandidate {
  const isSame = keyOf(one.candidate) === keyOf(other.candidate);
  const [isCopy, otherIsCopy] = [one.signals.isLaterCopy, other.signals.isLaterCopy];
  const better = isCopy === otherIsCopy ? (byPoints(one, other) <= 0 ? one : other) : isCopy ? other : one;
  return { ...better, alike: isSame ? one.alike : one.alike + other.alike + 1 };
}

const pointsOf = ({ signals }: ScoredCandidate) => totalOf(scoreOf(signals));

function byPoints(a: ScoredCandidate, b: ScoredCandidate): number {
  const [key, other] = [keyOf(a.candidate), keyOf(b.candidate)];
  return pointsOf(b) - pointsOf(a) || (key < other ? -1 : key > other ? 1 : 0);
}

function byDate(a: ScoredCandidate, b: ScoredCandidate): number {
  return dateOf(b.candidate).getTime() - dateOf(a.candidate).getTime() || byPoints(a, b);
}

function facetsOf(answers: readonly Facets[], pages: number): Facets {
  const values = (name: FacetName): FacetValue[] => {
    const joined = joinedBy(
      answers.flatMap((answer) => answer[name]),
      ({ value }) => value,
      (a, b) => ({ value: a.value, ...summed([a, b], ["pages"]) }),
    );
    return joined.sort(byPages).slice(0, facetValues);
  };
  return { ...noFacets, ...Object.fromEntries(facetNames.map((name) => [name, values(name)])), pages };
}

const byPages = (a: FacetValue, b: FacetValue) => b.pages - a.pages || (a.value < b.value ? -1 : 1);

function wordsOf(answers: readonly (readonly KnownWord[])[]): KnownWord[] {
  const words = joinedBy(
    answers.flat(),
    ({ word }) => word,
    (a, b) => ({ word: a.word, ...summed([a, b], ["pages"]) }),
  );
  return words.sort((a, b) => b.pages - a.pages || byText(a.word, b.word)).slice(0, wordsRead);
}

// One page, whose links lead to other slices and come from them.

function partsOver(over: OverSlices<SearchPart>): PageParts {
  return {
    own: async (key, offsets) =>
      await over.ofHost(key.hostHash, async (slice) => await slice.pageParts.own(key, offsets), {
        type: "silent",
      }),
    targets: async (keys) =>
      await over.eachOfHost(keys, ({ hostHash }) => hostHash, {
        ask: async (slice, own) => await slice.pageParts.targets(own),
        absent: unknownTarget,
      }),
    linksInto: async (key, most) => {
      const { answers } = await over.ask(async (slice) => await slice.pageParts.linksInto(key, most));
      if (answers.length === 1) return answers[0]!;
      const isOwn = ({ from }: (typeof answers)[number]["links"][number]) => from.hostHash === key.hostHash;
      const links = firstOf(
        answers.map((answer) => answer.links),
        (a, b) =>
          Number(isOwn(a)) - Number(isOwn(b)) ||
          byHash(a.from.hostHash, b.from.hostHash) ||
          byHash(a.from.urlHash, b.from.urlHash),
        most,
      );
      return { links, ...summed(answers, ["count"]) };
    },
    alike: async (text) => {
      const { answers } = await over.ask(async (slice) => await slice.pageParts.alike(text));
      if (answers.length === 1) return answers[0]!;
      return firstOf(
        answers,
        (a, b) => Number(b.isFirst) - Number(a.isFirst) || byText(a.url, b.url),
        mostAlike,
      );
    },
  };
}

/** For the upkeep of one slice's pages: who links to them from the others. */
export function linkingHostsElsewhere(slices: Slices, number: number): LinkingElsewhere {
  const over = new OverSlices(slices, ({ pool }) => pool);
  return async (urlHashes) => {
    const { answers, partial } = await over.ask(async (pool, slice) =>
      slice.number === number ? urlHashes.map(() => 0) : await linkingHosts(pool, urlHashes),
    );
    const counts = urlHashes.map((_, at) => answers.reduce((sum, answer) => sum + answer[at]!, 0));
    return { counts, isWhole: partial.length === 0 };
  };
}

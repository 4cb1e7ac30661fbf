/**
 * Answers a question from the index in memory. Every match is counted and scored by what is known without comparing
 * the positions of its words; the best of these are scored in full as in page-score.ts, with the ranks that Postgres
 * would give.
 */
import type { UseAnswers } from "#protocol/preferences";
import { answerTexts } from "../../../crawl/batch/stated-uses.ts";
import {
  freshnessPoints,
  fullHeadRank,
  fullLinkingHosts,
  linkPoints,
  mostPoints,
  type PageSignals,
  scoreOf,
  textPoints,
  totalOf,
} from "../page-score.ts";
import { contentTypes, unstated } from "../query.ts";
import type { FacetValue } from "../search-answer.ts";
import type { IndexAnswer, IndexArm, IndexedCandidate, IndexQuestion } from "./index-answer.ts";
import type { MemoryIndex } from "./memory-index.ts";
import { positionMask, weightOf } from "./postings.ts";
import { type Segment, segmentPages } from "./segment.ts";
import {
  addressPlacesOn,
  canMatch,
  giveBits,
  headWeight,
  matchesOf,
  placesOn,
  type TermNumbers,
} from "./segment-matches.ts";
import { allSquares, coverDensityRank, frequencyRank, weights } from "./text-rank.ts";
import { type QueryNode, readTsquery, wordsOf } from "./tsquery.ts";

/** At most this many values of a facet. */
const facetValues = 6;

/** This many times the pages wanted are scored in full, and at least this many. */
const scoredTimes = 2;
const leastScored = 80;

const daySeconds = 86_400;

/** Returns null for a query that this index cannot read but Postgres can. */
export function searchIndex(
  index: MemoryIndex,
  question: IndexQuestion,
  crawlerNames: ReadonlyMap<number, string>,
): IndexAnswer | null {
  const arms: Arm[] = [];
  for (const arm of question.arms) {
    const read = armOf(index, arm);
    if (read === null) return null;
    arms.push(read);
  }
  const terms = rememberedNumbers(index.terms);
  const isKnown = (word: string) => terms.find(word) >= 0;
  const possible = arms.filter(
    ({ query, headQuery }) => canMatch(query, isKnown) || canMatch(headQuery, isKnown),
  );
  const matches = new Matches(index, question);
  for (const [number, segment] of index.segments.entries()) {
    for (const arm of possible) {
      const bits = bitsOf(terms, segment, arm);
      if (bits === null) continue;
      addUp(segment, arm, { bits, plainTerms: matches.plainTerms });
      matches.take({ segment, number, arm, bits });
      giveBits(bits);
    }
  }
  return matches.answer(arms, crawlerNames);
}

/** Looks each word of a question up once instead of once per segment. */
function rememberedNumbers(terms: TermNumbers): TermNumbers {
  const numbers = new Map<string, number>();
  return {
    find(word) {
      const known = numbers.get(word);
      if (known !== undefined) return known;
      const number = terms.find(word);
      numbers.set(word, number);
      return number;
    },
  };
}

interface Arm {
  readonly configurations: readonly number[];
  readonly query: QueryNode;
  readonly headQuery: QueryNode;
  /** Null if there is no condition on the title. */
  readonly titleQuery: QueryNode | null;
  readonly words: readonly string[];
  /** Words that rank the head, by number. */
  readonly headWords: readonly string[];
  readonly terms: ReadonlyMap<string, number>;
  /** Each word matches by itself, so their weights add up. */
  readonly addsUp: boolean;
}

function armOf(index: MemoryIndex, arm: IndexArm): Arm | null {
  const [query, headQuery, any] = [arm.query, arm.headQuery, arm.anyQuery].map(readTsquery);
  const titleQuery = arm.titleQuery === null ? null : readTsquery(arm.titleQuery);
  if (!query || !headQuery || !any || (arm.titleQuery && !titleQuery)) return null;
  const words = wordsOf(query);
  return {
    configurations: arm.configurations
      .map((name) => index.configurations.find(name))
      .filter((one) => one !== 0),
    query,
    headQuery,
    titleQuery,
    words,
    terms: new Map(words.map((word) => [word, index.terms.find(word)])),
    headWords: wordsOf(any),
    addsUp: query.type === "word" || query.type === "or",
  };
}

/** Returns null if no page matches. The caller returns the bits with `giveBits`. */
function bitsOf(terms: TermNumbers, segment: Segment, arm: Arm): Uint32Array | null {
  const some = arm.configurations.flatMap((one) => segment.configurations.get(one) ?? []);
  if (some.length === 0) return null;
  // Most words are in few segments: the others need no look into their lists.
  const isInText = (word: string) => segment.first.has(terms.find(word));
  const isInHead = (word: string) => isInText(word) || segment.address.has(terms.find(word));
  const text = canMatch(arm.query, isInText) ? matchesOf(segment, terms, arm.query, "text") : null;
  const head = canMatch(arm.headQuery, isInHead) ? matchesOf(segment, terms, arm.headQuery, "head") : null;
  const bits = text ?? head;
  if (bits === null) return null;
  const other = text === null ? null : head;
  const title = arm.titleQuery === null ? null : matchesOf(segment, terms, arm.titleQuery, "title");
  let any = 0;
  for (let at = 0; at < segment.live.length; at++) {
    let configured = 0;
    for (const pages of some) configured |= pages[at]!;
    any |= bits[at] = (bits[at]! | (other?.[at] ?? 0)) & configured & segment.live[at]! & (title?.[at] ?? -1);
  }
  if (title !== null) giveBits(title);
  if (other !== null) giveBits(other);
  if (any !== 0) return bits;
  giveBits(bits);
  return null;
}

// What is known of each match before positions are compared. The sums of a page are at its number; who takes them
// resets them.

const sums = {
  /** The sum of the words' weights, and of their inverses. */
  weight: new Float32Array(segmentPages),
  inverse: new Float32Array(segmentPages),
  words: new Uint8Array(segmentPages),
  lowest: new Uint16Array(segmentPages),
  highest: new Uint16Array(segmentPages),
  head: new Float32Array(segmentPages),
  /** The word, from 1, last found in its head. */
  headWord: new Uint8Array(segmentPages),
  address: new Uint8Array(segmentPages),
};

const inverses = weights.map((weight) => 1 / weight);
const headRanks = weights.map((weight) => weight / allSquares);
const addressRank = weights[1] / allSquares;

function addUp(
  segment: Segment,
  { words, headWords, terms, addsUp }: Arm,
  { bits, plainTerms }: { readonly bits: Uint32Array; readonly plainTerms: readonly number[] },
): void {
  const isMatch = (doc: number) => (bits[doc >>> 5]! & (1 << (doc & 31))) !== 0;
  words.forEach((word, number) => {
    const term = terms.get(word)!;
    if (term < 0) return;
    const isOfHead = headWords.includes(word);
    const { docs, places } = segment.first;
    const [from, to] = segment.first.rangeOf(term);
    for (let at = from; at < to; at++) {
      const doc = docs[at]!;
      if (!isMatch(doc)) continue;
      const place = places[at]!;
      const weight = weightOf(place);
      sums.weight[doc]! += weights[weight]!;
      if (isOfHead && weight >= headWeight) {
        sums.head[doc]! += headRanks[weight]!;
        sums.headWord[doc] = number + 1;
      }
      if (addsUp) continue;
      sums.inverse[doc]! += inverses[weight]!;
      const position = place & positionMask;
      if (sums.words[doc]!++ === 0) sums.lowest[doc] = sums.highest[doc] = position;
      else if (position < sums.lowest[doc]!) sums.lowest[doc] = position;
      else if (position > sums.highest[doc]!) sums.highest[doc] = position;
    }
    if (addsUp) addFurther(segment, term, isMatch);
    if (isOfHead) addAddress(segment, term, { number, isMatch });
  });
  for (const term of plainTerms) {
    if (term < 0) continue;
    const { docs } = segment.address;
    const [from, to] = segment.address.rangeOf(term);
    for (let at = from; at < to; at++) {
      const doc = docs[at]!;
      if ((at === from || docs[at - 1] !== doc) && isMatch(doc)) sums.address[doc]! += 1;
    }
  }
}

function addFurther({ further }: Segment, term: number, isMatch: (doc: number) => boolean): void {
  const [from, to] = further.rangeOf(term);
  for (let at = from; at < to; at++) {
    const doc = further.docs[at]!;
    if (isMatch(doc)) sums.weight[doc]! += weights[weightOf(further.places[at]!)]!;
  }
}

/** A word that is also in title or headings counts for a quarter. */
function addAddress(
  { address }: Segment,
  term: number,
  { number, isMatch }: { readonly number: number; readonly isMatch: (doc: number) => boolean },
): void {
  const [from, to] = address.rangeOf(term);
  for (let at = from; at < to; at++) {
    const doc = address.docs[at]!;
    if (!isMatch(doc)) continue;
    sums.head[doc]! += sums.headWord[doc] === number + 1 ? addressRank / 4 : addressRank;
  }
}

function textRankOf(doc: number, length: number): number {
  const words = sums.words[doc]!;
  const divided = Math.log(length + 1);
  if (words === 0) return sums.weight[doc]! / divided;
  const noise = Math.max(0, sums.highest[doc]! - sums.lowest[doc]! - (words - 1));
  return words / sums.inverse[doc]! / (1 + noise) / divided;
}

function clear(doc: number): void {
  sums.weight[doc] = 0;
  sums.inverse[doc] = 0;
  sums.words[doc] = 0;
  sums.head[doc] = 0;
  sums.headWord[doc] = 0;
  sums.address[doc] = 0;
}

interface Taken {
  readonly segment: Segment;
  /** The segment's number. */
  readonly number: number;
  readonly arm: Arm;
  readonly bits: Uint32Array;
}

/** Counts matches and keeps the best. */
class Matches {
  readonly #index: MemoryIndex;
  readonly #question: IndexQuestion;
  readonly #passes: Filter | null;
  readonly plainTerms: readonly number[];
  readonly #best: BestOf;
  /** For groups with several pages: their matches. */
  readonly #groups = new Map<number, number>();
  readonly #byLanguage: Uint32Array;
  readonly #byHost: Uint32Array;
  readonly #byCrawler: Uint32Array;
  readonly #bySet = new Map<number, number>();
  #total = 0;

  constructor(index: MemoryIndex, question: IndexQuestion) {
    this.#index = index;
    this.#question = question;
    this.#passes = filterOf(index, question);
    this.plainTerms = question.plainWords.map((word) => index.terms.find(word));
    this.#best = new BestOf(Math.max(leastScored, scoredTimes * question.wanted));
    this.#byLanguage = new Uint32Array(index.languages.count);
    this.#byHost = new Uint32Array(index.hosts.count);
    this.#byCrawler = new Uint32Array(index.crawlers.count);
  }

  take({ segment, number, arm, bits }: Taken): void {
    const { nowS, sort, plainWords } = this.#question;
    const { columns } = segment;
    const fullHead = fullHeadRank * Math.max(1, arm.headWords.length);
    const addressEach = plainWords.length === 0 ? 0 : mostPoints.address / plainWords.length;
    for (let at = 0; at < segment.live.length; at++) {
      for (let left = bits[at]!; left !== 0; left &= left - 1) {
        const doc = 32 * at + 31 - Math.clz32(left & -left);
        if (this.#passes === null || this.#passes(segment, doc)) {
          this.#count(segment, doc);
          const dateS = dateOf(segment, doc);
          const points =
            sort === "date"
              ? dateS
              : textPoints(textRankOf(doc, columns.length[doc]!)) +
                mostPoints.head * Math.min(1, sums.head[doc]! / fullHead) +
                addressEach * sums.address[doc]! +
                linkPointsBy[Math.min(fullLinkingHosts, columns.linkingHosts[doc]!)]! +
                (freshnessByDay[Math.max(0, Math.floor((nowS - dateS) / daySeconds))] ?? 0) -
                (columns.isLaterCopy[doc] === 1 ? mostPoints.copy : 0);
          this.#best.offer(points, number * segmentPages + doc);
        }
        clear(doc);
      }
    }
  }

  #count({ columns }: Segment, doc: number): void {
    const group = columns.textGroup[doc]!;
    if (this.#index.groups.isShared(group)) {
      const matches = this.#groups.get(group) ?? 0;
      this.#groups.set(group, matches + 1);
      if (matches > 0) return;
    }
    this.#total += 1;
    this.#byLanguage[columns.language[doc]!]! += 1;
    this.#byHost[columns.host[doc]!]! += 1;
    this.#byCrawler[columns.crawler[doc]!]! += 1;
    const set = columns.preferenceSet[doc]!;
    if (set !== 0) this.#bySet.set(set, (this.#bySet.get(set) ?? 0) + 1);
  }

  answer(arms: readonly Arm[], crawlerNames: ReadonlyMap<number, string>): IndexAnswer {
    const scored = this.#best
      .codes()
      .map((code) => {
        const segment = this.#index.segments[Math.floor(code / segmentPages)]!;
        return this.#scored(segment, code % segmentPages, arms);
      })
      .sort(this.#question.sort === "date" ? byDate : byPoints);
    const { wanted } = this.#question;
    const pages = this.#withoutCopies(scored).slice(0, wanted);
    return {
      total: this.#total,
      pages: pages.map((one) => this.#candidate(one, crawlerNames)),
      facets: this.#facets(crawlerNames),
    };
  }

  #scored(segment: Segment, doc: number, arms: readonly Arm[]): Scored {
    const { columns } = segment;
    const arm = arms.findIndex(({ configurations }) => configurations.includes(columns.configuration[doc]!));
    const { query, words, headWords, terms } = arms[arm]!;
    const places = new Map(words.map((word) => [word, placesOn(segment, terms.get(word)!, doc)]));
    const head = headWords.map((word) => [
      ...(places.get(word) ?? []).filter((place) => weightOf(place) >= headWeight),
      ...addressPlacesOn(segment, terms.get(word) ?? -1, doc),
    ]);
    const { nowS } = this.#question;
    const plain = this.plainTerms;
    const inAddress = plain.filter((term) => addressPlacesOn(segment, term, doc).length > 0);
    const signals = {
      textRank: coverDensityRank(query, words, (word) => places.get(word)!, columns.length[doc]!),
      headRank: frequencyRank(head),
      addressShare: plain.length === 0 ? 0 : inAddress.length / plain.length,
      linkingHosts: columns.linkingHosts[doc]!,
      ageDays: (nowS - dateOf(segment, doc)) / daySeconds,
      isLaterCopy: columns.isLaterCopy[doc] === 1,
    };
    return { segment, doc, arm, signals, points: totalOf(scoreOf(signals)), dateS: dateOf(segment, doc) };
  }

  /** Keeps the first of pages with nearly the same text, where it is among the best. */
  #withoutCopies(scored: readonly Scored[]): Scored[] {
    const standing = new Map<number, Scored>();
    for (const one of scored) {
      const group = one.segment.columns.textGroup[one.doc]!;
      const other = standing.get(group);
      if (other === undefined || (other.signals.isLaterCopy && !one.signals.isLaterCopy))
        standing.set(group, one);
    }
    return scored.filter((one) => {
      const group = one.segment.columns.textGroup[one.doc]!;
      return group === 0 || standing.get(group) === one;
    });
  }

  #candidate(
    { segment, doc, arm, signals }: Scored,
    crawlerNames: ReadonlyMap<number, string>,
  ): IndexedCandidate {
    const { columns } = segment;
    const { hosts, countries, languages, crawlers, uses, groups } = this.#index;
    const host = columns.host[doc]!;
    const group = columns.textGroup[doc]!;
    return {
      hostHash: String(columns.hostHash[doc]!),
      urlHash: String(columns.urlHash[doc]!),
      host: hosts.nameOf(host),
      arm,
      signals,
      alike: Math.max(0, (this.#groups.get(group) ?? 1) - 1),
      textGroup: group === 0 ? null : String(groups.keyOf(group)),
      language: languages.of(columns.language[doc]!) || null,
      country: countries.of(hosts.countryOf(host)) || null,
      crawler: crawlerNames.get(Number(crawlers.of(columns.crawler[doc]!))) ?? null,
      publishedS: Number.isNaN(columns.publishedS[doc]!) ? null : columns.publishedS[doc]!,
      fetchedS: columns.fetchedS[doc]!,
      uses: uses.get(columns.preferenceSet[doc]!) ?? {},
    };
  }

  #facets(crawlerNames: ReadonlyMap<number, string>): IndexAnswer["facets"] {
    const { languages, hosts, countries, crawlers, uses } = this.#index;
    const byCountry = new Uint32Array(countries.count);
    for (let host = 0; host < this.#byHost.length; host++) {
      const pages = this.#byHost[host]!;
      if (pages > 0) byCountry[hosts.countryOf(host)]! += pages;
    }
    const byAnswer = new Map<string, number>();
    for (const [set, pages] of this.#bySet) {
      for (const answer of answerTexts(uses.get(set) ?? {}))
        byAnswer.set(answer, (byAnswer.get(answer) ?? 0) + pages);
    }
    return {
      language: mostOf(this.#byLanguage, (number) => languages.of(number)),
      country: mostOf(byCountry, (number) => countries.of(number)),
      crawler: mostOf(this.#byCrawler, (number) => crawlerNames.get(Number(crawlers.of(number))) ?? ""),
      host: mostOf(this.#byHost, (number) => hosts.nameOf(number)),
      preference: frequent([...byAnswer].map(([value, pages]) => ({ value, pages }))),
    };
  }
}

/** Leaves out values without a name. */
function mostOf(counts: Uint32Array, nameOf: (number: number) => string): FacetValue[] {
  let least = 0;
  let numbers: number[] = [];
  for (let number = 1; number < counts.length; number++) {
    if (counts[number]! <= least) continue;
    numbers.push(number);
    if (numbers.length < 16 * facetValues) continue;
    numbers = numbers.sort((a, b) => counts[b]! - counts[a]!).slice(0, 2 * facetValues);
    least = counts[numbers.at(-1)!]!;
  }
  const named = numbers.map((number) => ({ value: nameOf(number), pages: counts[number]! }));
  return frequent(named.filter(({ value }) => value !== ""));
}

function frequent(values: FacetValue[]): FacetValue[] {
  return values.sort((a, b) => b.pages - a.pages || (a.value < b.value ? -1 : 1)).slice(0, facetValues);
}

interface Scored {
  readonly segment: Segment;
  readonly doc: number;
  readonly arm: number;
  readonly signals: PageSignals;
  readonly points: number;
  readonly dateS: number;
}

const byPoints = (a: Scored, b: Scored): number => b.points - a.points || byKey(a, b);
const byDate = (a: Scored, b: Scored): number => b.dateS - a.dateS || byPoints(a, b);

/** Makes the order total, so that pages of results never overlap. */
function byKey(a: Scored, b: Scored): number {
  const key = ({ segment: { columns }, doc }: Scored) => `${columns.hostHash[doc]}/${columns.urlHash[doc]}`;
  return key(a) < key(b) ? -1 : 1;
}

/** When it was published or, if it does not say, fetched. */
function dateOf({ columns }: Segment, doc: number): number {
  const publishedS = columns.publishedS[doc]!;
  return Number.isNaN(publishedS) ? columns.fetchedS[doc]! : publishedS;
}

/** Points by linking hosts and by days, in tables because every match needs them. */
const linkPointsBy = Float64Array.from({ length: fullLinkingHosts + 1 }, (_, hosts) => linkPoints(hosts));
const freshnessByDay = Float64Array.from({ length: 3650 }, (_, day) => freshnessPoints(day + 0.5));

/** A heap of the best, the worst of them on top. */
class BestOf {
  readonly #points: Float64Array;
  readonly #codes: Float64Array;
  #count = 0;

  constructor(most: number) {
    this.#points = new Float64Array(most);
    this.#codes = new Float64Array(most);
  }

  offer(points: number, code: number): void {
    if (this.#count < this.#points.length) this.#rise(this.#count++, points, code);
    else if (points > this.#points[0]!) this.#sink(points, code);
  }

  codes(): number[] {
    return [...this.#codes.subarray(0, this.#count)];
  }

  #rise(from: number, points: number, code: number): void {
    let at = from;
    while (at > 0) {
      const above = (at - 1) >>> 1;
      if (this.#points[above]! <= points) break;
      this.#points[at] = this.#points[above]!;
      this.#codes[at] = this.#codes[above]!;
      at = above;
    }
    this.#points[at] = points;
    this.#codes[at] = code;
  }

  #sink(points: number, code: number): void {
    let at = 0;
    for (;;) {
      let below = 2 * at + 1;
      if (below >= this.#count) break;
      if (below + 1 < this.#count && this.#points[below + 1]! < this.#points[below]!) below += 1;
      if (this.#points[below]! >= points) break;
      this.#points[at] = this.#points[below]!;
      this.#codes[at] = this.#codes[below]!;
      at = below;
    }
    this.#points[at] = points;
    this.#codes[at] = code;
  }
}

// Filters as tests of one match.

type Filter = (segment: Segment, doc: number) => boolean;

/** Returns null if every match passes. */
function filterOf(index: MemoryIndex, { filters, crawlerId }: IndexQuestion): Filter | null {
  const { hosts, languages, countries, crawlers, uses } = index;
  const tests: Filter[] = [];
  if (filters.host !== null) {
    const site = hosts.find(filters.host);
    tests.push(({ columns }, doc) => site !== 0 && hosts.isBelow(columns.host[doc]!, site));
  }
  if (filters.language !== null) {
    const language = languages.find(filters.language);
    tests.push(({ columns }, doc) => language !== 0 && columns.language[doc] === language);
  }
  if (filters.country !== null) {
    const country = countries.find(filters.country);
    tests.push(({ columns }, doc) => country !== 0 && hosts.countryOf(columns.host[doc]!) === country);
  }
  if (filters.crawler !== null) {
    const crawler = crawlerId === null ? 0 : crawlers.find(String(crawlerId));
    tests.push(({ columns }, doc) => crawler !== 0 && columns.crawler[doc] === crawler);
  }
  if (filters.from !== null) {
    const fromS = Date.parse(`${filters.from}T00:00:00Z`) / 1000;
    tests.push((segment, doc) => dateOf(segment, doc) >= fromS);
  }
  if (filters.to !== null) {
    const endS = Date.parse(`${filters.to}T00:00:00Z`) / 1000 + daySeconds;
    tests.push((segment, doc) => dateOf(segment, doc) < endS);
  }
  if (filters.excludeHost !== null) {
    const sites = filters.excludeHost.split(",").map((site) => hosts.find(site));
    const known = sites.filter((site) => site !== 0);
    tests.push(({ columns }, doc) => !known.some((site) => hosts.isBelow(columns.host[doc]!, site)));
  }
  if (filters.type !== null) {
    const types = (contentTypes[filters.type] ?? []).map((type) => index.contentTypes.find(type));
    const known = types.filter((type) => type !== 0);
    tests.push(({ columns }, doc) => known.includes(columns.contentType[doc]!));
  }
  if (filters.preference !== null) {
    const [use = "", answer] = filters.preference.split("=");
    tests.push(({ columns }, doc) => {
      const stated = uses.get(columns.preferenceSet[doc]!)?.[use as keyof UseAnswers];
      return (stated ?? unstated) === answer;
    });
  }
  return tests.length === 0 ? null : (segment, doc) => tests.every((test) => test(segment, doc));
}

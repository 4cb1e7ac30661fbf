/**
 * ts_rank_cd and ts_rank as Postgres computes them (src/backend/utils/adt/tsrank.c), from places in memory: cover
 * density ranking after Clarke, Cormack and Tudhope (2000), and frequency ranking. Compared with Postgres in
 * test/search/memory.
 */
import { type Place, positionMask, weightOf } from "./postings.ts";
import type { PhraseNode, QueryNode, WordNode } from "./tsquery.ts";

/** Factors of the weights D, C, B and A. */
export const weights = [0.1, 0.2, 0.4, 1] as const;

/** Places of each word of the query on one page, by position; none for a word that is not there. */
export type PlacesOf = (word: string) => readonly Place[];

/** The same as positions alone, limited to those that a walk has met. */
type PositionsOf = (word: string) => readonly number[];

/** ts_rank_cd with normalisation 1: divided by the logarithm of the length. */
export function coverDensityRank(
  query: QueryNode,
  words: readonly string[],
  placesOf: PlacesOf,
  length: number,
): number {
  const divided = length > 0 ? Math.log(length + 1) : 1;
  if (query.type === "word") return weightSum(placesOf(query.lexeme)) / divided;
  const document = documentOf(words, placesOf);
  let sum = 0;
  let from = 0;
  for (
    let cover = coverFrom(query, document, from);
    cover !== null;
    cover = coverFrom(query, document, from)
  ) {
    const { begin, end, next } = cover;
    let inverse = 0;
    for (let at = begin; at <= end; at++) inverse += 1 / weights[document[at]!.weight]!;
    const held = end - begin;
    let noise = document[end]!.position - document[begin]!.position - held;
    if (noise < 0) noise = Math.trunc(held / 2);
    sum += (held + 1) / inverse / (1 + noise);
    from = next;
  }
  return sum / divided;
}

/** Each place of a single word is a cover, without noise. */
function weightSum(places: readonly Place[]): number {
  let sum = 0;
  for (const place of places) sum += weights[weightOf(place)]!;
  return sum;
}

interface Occurrence {
  readonly position: number;
  readonly weight: number;
  readonly words: readonly string[];
}

function documentOf(words: readonly string[], placesOf: PlacesOf): Occurrence[] {
  const found = words.flatMap((word) =>
    placesOf(word).map((place) => ({
      position: place & positionMask,
      weight: weightOf(place),
      words: [word],
    })),
  );
  found.sort((a, b) => a.position - b.position || a.weight - b.weight);
  const document: Occurrence[] = [];
  for (const one of found) {
    const last = document.at(-1);
    if (last?.position === one.position && last.weight === one.weight) {
      document[document.length - 1] = { ...last, words: [...last.words, ...one.words] };
    } else document.push(one);
  }
  return document;
}

/**
 * The next shortest range that matches the query: forward to where it first matches, and back as far as it still
 * does.
 */
function coverFrom(
  query: QueryNode,
  document: readonly Occurrence[],
  start: number,
): { begin: number; end: number; next: number } | null {
  for (let from = start; from < document.length; from++) {
    const end = walk(query, document, { from, to: document.length, step: 1 });
    if (end === null) return null;
    const begin = walk(query, document, { from: end, to: from - 1, step: -1 });
    if (begin !== null) return { begin, end, next: begin + 1 };
  }
  return null;
}

function walk(
  query: QueryNode,
  document: readonly Occurrence[],
  { from, to, step }: { readonly from: number; readonly to: number; readonly step: 1 | -1 },
): number | null {
  const met = new Map<string, number[]>();
  const positionsOf: PositionsOf = (word) => met.get(word) ?? [];
  for (let at = from; at !== to; at += step) {
    const { position, words } = document[at]!;
    for (const word of words) {
      const known = met.get(word);
      if (known === undefined) met.set(word, [position]);
      else if (step === 1) known.push(position);
      else known.unshift(position);
    }
    if (holds(query, positionsOf)) return at;
  }
  return null;
}

/** Whether words at these positions match. */
export function holds(query: QueryNode, positionsOf: PositionsOf): boolean {
  switch (query.type) {
    case "word":
      return positionsOf(query.lexeme).length > 0;
    case "phrase":
      return endsOf(query, positionsOf).positions.length > 0;
    case "not":
      return !holds(query.operand, positionsOf);
    case "and":
      return holds(query.left, positionsOf) && holds(query.right, positionsOf);
    case "or":
      return holds(query.left, positionsOf) || holds(query.right, positionsOf);
  }
}

/** Where it ends, and how many places before that it begins. */
function endsOf(
  query: WordNode | PhraseNode,
  positionsOf: PositionsOf,
): { readonly positions: readonly number[]; readonly width: number } {
  if (query.type === "word") return { positions: positionsOf(query.lexeme), width: 0 };
  const left = endsOf(query.left, positionsOf);
  const right = endsOf(query.right, positionsOf);
  const lefts = new Set(left.positions);
  const positions = right.positions.filter((end) => lefts.has(end - right.width - query.distance));
  return { positions, width: left.width + query.distance + right.width };
}

/** ts_rank for any of the words: `places` are those of each, in order; empty for words that are not on the page. */
export function frequencyRank(placesOfWords: readonly (readonly Place[])[]): number {
  let sum = 0;
  for (const places of placesOfWords) sum += wordRank(places);
  return placesOfWords.length > 0 ? sum / placesOfWords.length : 0;
}

/** The sum of 1/n² for all n. */
export const allSquares = 1.64493406685;

function wordRank(places: readonly Place[]): number {
  let [sum, heaviest, at] = [0, -1, 0];
  for (let number = 0; number < places.length; number++) {
    const weight = weights[weightOf(places[number]!)]!;
    sum += weight / (number + 1) ** 2;
    if (weight > heaviest) [heaviest, at] = [weight, number];
  }
  return places.length === 0 ? 0 : (heaviest + sum - heaviest / (at + 1) ** 2) / allSquares;
}

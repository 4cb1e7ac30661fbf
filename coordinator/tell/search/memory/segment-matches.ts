/** Which pages of a segment match, as bits: the same that Postgres finds for the query, field by field. */
import { lowestFrom, type Postings, positionMask, weightOf } from "./postings.ts";
import { type Segment, segmentPages } from "./segment.ts";
import type { TermTable } from "./term-table.ts";
import { type PhraseNode, type QueryNode, wordsOf } from "./tsquery.ts";

/**
 * `text`: the page's lexemes. `head`: those of title, headings and description (A and B), and of the address. `title`: those of
 * the title (A).
 */
export type Field = "text" | "head" | "title";

/** From this weight on a word belongs to the head (2: B). */
export const headWeight = 2;

/** The heaviest occurrence of a word comes first, so it decides whether the title has the word. */
const leastWeights: Readonly<Record<Field, number>> = { text: 0, head: headWeight, title: 3 };

/** Positions in the address follow all others, so that no phrase spans both. */
const addressAfter = 1 << 15;

// Each question needs hundreds of bit arrays for a moment, so used ones are taken again.

const used: Uint32Array[] = [];

function takeBits(): Uint32Array {
  return used.pop()?.fill(0) ?? new Uint32Array(segmentPages >>> 5);
}

export function giveBits(bits: Uint32Array): void {
  used.push(bits);
}

/** Looks up a word's number; less than 0: unknown. */
export type TermNumbers = Pick<TermTable, "find">;

/** Whether any page of the index can match, judging by which words are known. */
export function canMatch(query: QueryNode, isKnown: (word: string) => boolean): boolean {
  switch (query.type) {
    case "word":
      return isKnown(query.lexeme);
    case "not":
      return true;
    case "or":
      return canMatch(query.left, isKnown) || canMatch(query.right, isKnown);
    case "and":
    case "phrase":
      return canMatch(query.left, isKnown) && canMatch(query.right, isKnown);
  }
}

/** The caller returns it with `giveBits`. */
export function matchesOf(segment: Segment, terms: TermNumbers, query: QueryNode, field: Field): Uint32Array {
  switch (query.type) {
    case "word":
      return pagesWith(segment, terms.find(query.lexeme), field);
    case "phrase":
      return phraseMatches(segment, terms, query, field);
    case "not": {
      const bits = matchesOf(segment, terms, query.operand, field);
      for (let at = 0; at < bits.length; at++) bits[at] = ~bits[at]!;
      return bits;
    }
    case "and":
    case "or": {
      const bits = matchesOf(segment, terms, query.left, field);
      const other = matchesOf(segment, terms, query.right, field);
      if (query.type === "and") for (let at = 0; at < bits.length; at++) bits[at]! &= other[at]!;
      else for (let at = 0; at < bits.length; at++) bits[at]! |= other[at]!;
      giveBits(other);
      return bits;
    }
  }
}

function pagesWith(segment: Segment, term: number, field: Field): Uint32Array {
  const bits = takeBits();
  if (term < 0) return bits;
  const { docs, places } = segment.first;
  const [from, to] = segment.first.rangeOf(term);
  if (field === "text") {
    for (let at = from; at < to; at++) bits[docs[at]! >>> 5]! |= 1 << (docs[at]! & 31);
    return bits;
  }
  for (let at = from; at < to; at++) {
    if (weightOf(places[at]!) >= leastWeights[field]) bits[docs[at]! >>> 5]! |= 1 << (docs[at]! & 31);
  }
  if (field === "title") return bits;
  const address = segment.address;
  const [start, end] = address.rangeOf(term);
  for (let at = start; at < end; at++) bits[address.docs[at]! >>> 5]! |= 1 << (address.docs[at]! & 31);
  return bits;
}

function phraseMatches(segment: Segment, terms: TermNumbers, phrase: PhraseNode, field: Field): Uint32Array {
  const words = wordsOf(phrase);
  const bits = pagesWith(segment, terms.find(words[0]!), field);
  for (const word of words.slice(1)) {
    const other = pagesWith(segment, terms.find(word), field);
    for (let at = 0; at < bits.length; at++) bits[at]! &= other[at]!;
    giveBits(other);
  }
  const chain = chainOf(phrase).map(({ word, offset }) => ({ offset, at: words.indexOf(word) }));
  const cursors = words.map((word) => new PositionCursor(segment, terms.find(word), field));
  for (let at = 0; at < bits.length; at++) {
    for (let left = bits[at]!; left !== 0; left &= left - 1) {
      const bit = 31 - Math.clz32(left & -left);
      const positions = cursors.map((cursor) => cursor.positionsOn(32 * at + bit));
      if (!isChainIn(chain, positions)) bits[at]! &= ~(1 << bit);
    }
  }
  return bits;
}

/** The words of a phrase with their distances from the first. */
function chainOf(phrase: PhraseNode): { word: string; offset: number }[] {
  const place = (
    node: PhraseNode["left"],
    start: number,
  ): { chain: { word: string; offset: number }[]; width: number } => {
    if (node.type === "word") return { chain: [{ word: node.lexeme, offset: start }], width: 0 };
    const left = place(node.left, start);
    const right = place(node.right, start + left.width + node.distance);
    return { chain: [...left.chain, ...right.chain], width: left.width + node.distance + right.width };
  };
  return place(phrase, 0).chain;
}

function isChainIn(
  chain: readonly { readonly offset: number; readonly at: number }[],
  positions: readonly (readonly number[])[],
): boolean {
  const first = positions[chain[0]!.at]!;
  return first.some((start) =>
    chain.every(({ offset, at }) => offset === 0 || positions[at]!.includes(start + offset)),
  );
}

/** Reads one word's positions page by page. Pages must be asked for in ascending order. */
class PositionCursor {
  readonly #lists: readonly Postings[];
  readonly #least: number;
  readonly #next: number[];
  readonly #ends: readonly number[];
  readonly #positions: number[] = [];

  constructor(segment: Segment, term: number, field: Field) {
    this.#least = leastWeights[field];
    this.#lists =
      field === "head" ? [segment.first, segment.further, segment.address] : [segment.first, segment.further];
    const ranges = this.#lists.map((list) => list.rangeOf(term));
    this.#next = ranges.map(([from]) => from);
    this.#ends = ranges.map(([, to]) => to);
  }

  /** Valid until the next call. */
  positionsOn(doc: number): readonly number[] {
    this.#positions.length = 0;
    for (let number = 0; number < this.#lists.length; number++) {
      const { docs, places } = this.#lists[number]!;
      const end = this.#ends[number]!;
      let at = seek(docs, doc, this.#next[number]!, end);
      for (; at < end && docs[at] === doc; at++) {
        const place = places[at]!;
        if (number === 2) this.#positions.push(addressAfter + (place & positionMask));
        else if (weightOf(place) >= this.#least) this.#positions.push(place & positionMask);
      }
      this.#next[number] = at;
    }
    return this.#positions;
  }
}

/** Leaps that double, then a search within the last one: most distances are short. */
function seek(docs: Uint16Array, doc: number, from: number, end: number): number {
  let [low, leap] = [from, 1];
  while (low + leap < end && docs[low + leap]! < doc) {
    low += leap;
    leap *= 2;
  }
  return lowestFrom(docs, doc, low, Math.min(end, low + leap + 1));
}

/** The word's places on the page, by position. */
export function placesOn(segment: Segment, term: number, doc: number): number[] {
  const found: number[] = [];
  if (term < 0) return found;
  for (const list of [segment.first, segment.further]) collect(list, term, doc, found);
  return found.sort((a, b) => (a & positionMask) - (b & positionMask));
}

export function addressPlacesOn(segment: Segment, term: number, doc: number): number[] {
  const found: number[] = [];
  if (term >= 0) collect(segment.address, term, doc, found);
  return found;
}

function collect(list: Postings, term: number, doc: number, found: number[]): void {
  const [from, to] = list.rangeOf(term);
  for (let at = lowestFrom(list.docs, doc, from, to); at < to && list.docs[at] === doc; at++)
    found.push(list.places[at]!);
}

/** A URL's place in the order of its host's due URLs, under the strategy in force, with how it came about. */
import {
  type FrontierOrder,
  isNew,
  orderStrategy,
  scoreOf,
  told,
  type UrlFacts,
  worthShareOf,
} from "../frontier/order/strategies.ts";

/** What the frontier has of a URL's place; `place` and `of` count its list, new or old, among what is due of its host. */
export interface PlacedUrl {
  readonly facts: UrlFacts;
  /** 1: the next of its list; null: it is not due, or further back than is looked at. */
  readonly place: number | null;
  /** URLs of its list that were looked at. */
  readonly of: number;
  /** What the best new URL of its host is worth; null: not known, or there is none. */
  readonly hostWorth: number | null;
}

export interface OrderReport {
  /** The strategy's name. */
  readonly strategy: string;
  /** What it puts first. */
  readonly words: string;
  /** New: it was never visited. */
  readonly list: "new" | "old";
  /** Of a lease so much is for new URLs; null: the strategy takes both as they come. */
  readonly newShare: number | null;
  readonly score: number;
  /** The score with how it came about. */
  readonly reason: string;
  readonly place: number | null;
  readonly of: number;
  readonly hostWorth: number | null;
  /** Of hosts so many go by that; 0: all by how long they are due. */
  readonly worthShare: number;
}

export function orderReport({ facts, place, of, hostWorth }: PlacedUrl, order: FrontierOrder): OrderReport {
  const strategy = orderStrategy(order.name);
  return {
    strategy: strategy.name,
    words: strategy.words,
    list: isNew(facts) ? "new" : "old",
    newShare: strategy.mixesNewAndOld ? order.newShare : null,
    score: scoreOf(strategy, facts),
    reason: strategy.reason(facts),
    place,
    of,
    hostWorth,
    worthShare: worthShareOf(order),
  };
}

/** How its host's turn comes: "75 % of the hosts go by their best new URL, this one's is worth 9; the others by …". */
export function hostTurnWords({ hostWorth, worthShare }: OrderReport): string {
  const turns = "by how long they are due";
  if (worthShare === 0) return `hosts go ${turns}`;
  const worth =
    hostWorth === null ? "this one has none that is known and due" : `this one's is worth ${told(hostWorth)}`;
  return `${told(100 * worthShare)} % of the hosts go by their best new URL, and ${worth}; the others ${turns}`;
}

/** "3rd of 40 new URLs due on its host", or why it has no place. */
export function placeWords({ place, of, list, newShare }: OrderReport): string {
  const which = newShare === null ? "" : `${list} `;
  if (place === null) return "no place yet: it is not due, or further back than is looked at";
  return `${ordinal(place)} of ${of.toLocaleString("en-GB")} ${which}${of === 1 ? "URL" : "URLs"} due on its host`;
}

function ordinal(place: number): string {
  const teen = place % 100 >= 11 && place % 100 <= 13;
  const ending = teen ? "th" : (["th", "st", "nd", "rd"][place % 10] ?? "th");
  return `${place.toLocaleString("en-GB")}${ending}`;
}

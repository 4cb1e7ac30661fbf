/** What every answer to "who crawls this?" begins as, before anything is found. */

import { noWishes } from "../opt-outs/site-requests.ts";
import { emptyPlace, type Place } from "./place.ts";
import type { TakenFor, WhoAnswer } from "./who-answer.ts";

/** An answer that is not dated yet. */
export type Answer = Omit<WhoAnswer, "at">;

export function shownPlace({ leaf: _, crawler: __, ...place }: Place): Omit<Place, "leaf" | "crawler"> {
  return place;
}

export function emptyAnswer(question: string, takenFor: TakenFor): Answer {
  return {
    question,
    found: false,
    takenFor,
    addresses: [],
    addressesFrom: null,
    ...shownPlace(emptyPlace),
    url: null,
    order: null,
    host: null,
    inside: null,
    organisation: null,
    crawler: null,
    ...noWishes,
    standing: [],
    nearMatches: [],
  };
}

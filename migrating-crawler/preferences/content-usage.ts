/**
 * `Content-Usage` in headers and rules of robots.txt (draft-ietf-aipref-attach-05, 19 August 2026), with the labels of
 * draft-ietf-aipref-vocab-08 (14 September 2026): a dictionary (RFC 9651 section 3.2) of `train-ai`, `ai-use` and `search`,
 * each the token `y` or `n`. Any other value says nothing, and a dictionary that cannot be parsed says nothing at all.
 *
 * The drafts are departed from in two points, both to the strict side: of a key that stands twice `n` holds and not the
 * last, and each line of a header is a dictionary by itself, so that one that is broken undoes itself alone.
 */
import type { ContentUse, StatedPreference } from "#protocol/preferences";
import { withoutContradictions } from "./content-signal.ts";
import { boundedValue, type SaidUses, statementsOf } from "./statements.ts";

const labels: ReadonlyMap<string, ContentUse> = new Map([
  ["search", "search"],
  ["ai-use", "ai-input"],
  ["train-ai", "ai-train"],
]);

export function contentUsage(value: string, place: StatedPreference["place"]): StatedPreference[] {
  const members = dictionaryTokens(boundedValue(value)) ?? [];
  const said = members.flatMap(([key, token]): SaidUses => {
    const use = labels.get(key);
    if (use === undefined || (token !== "y" && token !== "n")) return [];
    return [[use, token === "y" ? "allowed" : "denied"]];
  });
  return statementsOf({ standard: "content-usage", place }, withoutContradictions(said), value);
}

/** The keys of a dictionary in order, each with its value where that is a token; null: it is none (section 4.2.2). */
export function dictionaryTokens(text: string): (readonly [key: string, token: string | null])[] | null {
  const reader = new FieldReader(text.replace(/^ +| +$/g, ""));
  const members: (readonly [string, string | null])[] = [];
  while (!reader.isDone) {
    const key = reader.take(keyForm);
    if (key === null) return null;
    let token: string | null = null;
    if (reader.take(/=/y) !== null) {
      token = reader.take(tokenForm);
      if (token === null && !reader.skipValue()) return null;
    }
    if (!reader.skipParameters()) return null;
    members.push([key, token]);
    reader.take(/[ \t]*/y);
    if (reader.isDone) return members;
    if (reader.take(/,[ \t]*/y) === null || reader.isDone) return null;
  }
  return members;
}

const keyForm = /[a-z*][a-z0-9_.*-]*/y;
const tokenForm = /[A-Za-z*][!#$%&'*+.^_`|~0-9A-Za-z:/-]*/y;
/** Of section 3.3: integers and decimals, dates, strings, byte sequences, booleans, display strings. */
const otherItem =
  /@?-?\d{1,15}(?:\.\d{1,3})?|"(?:[\x20\x21\x23-\x5b\x5d-\x7e]|\\["\\])*"|:[A-Za-z0-9+/=]*:|\?[01]|%"(?:[\x20\x21\x23\x24\x26-\x7e]|%[0-9a-f]{2})*"/y;

class FieldReader {
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  get isDone(): boolean {
    return this.#at >= this.#text.length;
  }

  /** What stands here in this form (a sticky expression), passed over; null: nothing does. */
  take(form: RegExp): string | null {
    form.lastIndex = this.#at;
    const found = form.exec(this.#text);
    if (found === null) return null;
    this.#at = form.lastIndex;
    return found[0];
  }

  /** An item that is no token, or an inner list (section 4.2.1.2). */
  skipValue(): boolean {
    if (this.take(/\(/y) === null) return this.take(otherItem) !== null;
    for (;;) {
      this.take(/ */y);
      if (this.take(/\)/y) !== null) return true;
      if (this.take(tokenForm) === null && this.take(otherItem) === null) return false;
      if (!this.skipParameters()) return false;
      const next = this.#text[this.#at];
      if (next !== " " && next !== ")") return false;
    }
  }

  skipParameters(): boolean {
    while (this.take(/; */y) !== null) {
      if (this.take(keyForm) === null) return false;
      if (this.take(/=/y) === null) continue;
      if (this.take(tokenForm) === null && this.take(otherItem) === null) return false;
    }
    return true;
  }
}

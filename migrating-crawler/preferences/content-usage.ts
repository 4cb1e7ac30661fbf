/**
 * Reads the statements about page uses that fit on one line: `Content-Usage`, `Content-Signal` and robots directives without a
 * standard.
 *
 * `Content-Usage` (draft-ietf-aipref-attach-05, 19 August 2026, labels: draft-ietf-aipref-vocab-08, 14 September 2026) is a
 * dictionary (RFC 9651 section 3.2) of `train-ai`, `ai-use` and `search`, each `y` or `n`. Other values and invalid
 * dictionaries say nothing. It is read more strictly than the drafts require: for a repeated key, `n` wins instead of the last
 * value, and each header line is a dictionary of its own, so that a broken line invalidates only itself.
 *
 * `Content-Signal` (contentsignals.org, the policy of September 2025 with the `use` level added in July 2026, labels:
 * draft-romm-aipref-contentsignals-00) is a list such as `search=yes, ai-train=no`. The policy does not cover contradictions,
 * so a denial wins. `use=immediate` forbids storing, so it denies indexing. `reference` (index, excerpt, link) and `full` deny
 * nothing that Nearcrawl does.
 *
 * `noai` and `noimageai` (DeviantArt, 2022) forbid training, the latter on images. `noml` (noml.info, 2023) forbids machine
 * learning. None of these directives concerns a search index.
 */
import type { ContentUse, StatedPreference } from "#protocol/preferences";
import { boundedValue, type SaidUses, statementsOf, withoutContradictions } from "./statements.ts";

type Place = StatedPreference["place"];

const usageLabels = new Map<string, ContentUse>([
  ["search", "search"],
  ["ai-use", "ai-input"],
  ["train-ai", "ai-train"],
]);
const signalLabels = new Map<string, ContentUse>([
  ["search", "search"],
  ["ai-input", "ai-input"],
  ["ai-train", "ai-train"],
]);
const directiveUses = new Map<string, readonly ContentUse[]>([
  ["noai", ["ai-train"]],
  ["noml", ["ai-train"]],
  ["noimageai", []],
]);

export function contentUsage(value: string, place: Place): StatedPreference[] {
  const members = dictionaryTokens(boundedValue(value)) ?? [];
  const said = members.flatMap(([key, token]) => answerOf(usageLabels.get(key), token, ["y", "n"]));
  return statementsOf({ standard: "content-usage", place }, withoutContradictions(said), value);
}

export function contentSignal(value: string, place: Place): StatedPreference[] {
  const said = boundedValue(value)
    .split(/[,;]/)
    .flatMap((part): SaidUses => {
      const [key = "", answer = ""] = part.split("=", 2).map((word) => word.trim().toLowerCase());
      if (key === "use" && answer === "immediate") return [["search", "denied"]];
      return answerOf(signalLabels.get(key), answer, ["yes", "no"]);
    });
  return statementsOf({ standard: "content-signal", place }, withoutContradictions(said), value);
}

/** `names` are the directives that apply to this crawler, in lower case. */
export function robotsWords(names: readonly string[], place: Place): StatedPreference[] {
  return [...new Set(names)].flatMap((text): StatedPreference[] => {
    const uses = directiveUses.get(text);
    return uses === undefined
      ? []
      : [{ standard: "robots-words", place, uses: [...uses], answer: "denied", text }];
  });
}

function answerOf(
  use: ContentUse | undefined,
  word: string | null,
  [yes, no]: readonly [string, string],
): SaidUses {
  if (use === undefined || (word !== yes && word !== no)) return [];
  return [[use, word === yes ? "allowed" : "denied"]];
}

/** Returns the keys in order, each with its value if that is a token, or null for an invalid dictionary (section 4.2.2). */
function dictionaryTokens(text: string): (readonly [key: string, token: string | null])[] | null {
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
/** The other items of section 3.3: integers and decimals, dates, strings, byte sequences, booleans, display strings. */
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

  /** Consumes a match of the sticky expression at this position, or returns null. */
  take(form: RegExp): string | null {
    form.lastIndex = this.#at;
    const found = form.exec(this.#text);
    if (found === null) return null;
    this.#at = form.lastIndex;
    return found[0];
  }

  /** Skips an item that is not a token, or an inner list (section 4.2.1.2). */
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

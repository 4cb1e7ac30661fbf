/**
 * What a site states of the uses of its pages, as statements that travel (protocol/preferences): legible, bounded, each
 * once. Each standard has a file of its own here; all of them read what strangers wrote.
 */
import { withoutUsers } from "#core/ip/url-host";
import {
  type ContentUse,
  maxPreferences,
  type PreferenceAnswer,
  preferenceAnswers,
  type StatedPreference,
} from "#protocol/preferences";

/** Where a statement stands, and in the words of which standard. */
export type Stated = Pick<StatedPreference, "standard" | "place">;

/** What one text says of each use: what it allows and what it denies are statements of their own. */
export type SaidUses = readonly (readonly [use: ContentUse, answer: PreferenceAnswer])[];

/** A longer text is cut before it is read. */
const maxStatementCharacters = 1000;

/** Values of one header, and lines of one kind, that are read. */
export const maxStatementValues = 50;

const maxTextCharacters = 300;

/** The statements of one text. One that says nothing that we know is kept for its text, and denies nothing. */
export function statementsOf(stated: Stated, said: SaidUses, text: string): StatedPreference[] {
  const written = legible(text);
  if (written === "") return [];
  const answers = preferenceAnswers.filter((answer) => said.some((one) => one[1] === answer));
  if (answers.length === 0) return [{ ...stated, uses: [], answer: "allowed", text: written }];
  return answers.map((answer) => ({
    ...stated,
    uses: [...new Set(said.filter((one) => one[1] === answer).map(([use]) => use))],
    answer,
    text: written,
  }));
}

/** One text that allows and denies a use denies it. */
export function withoutContradictions(said: SaidUses): SaidUses {
  const denied = new Set(said.filter(([, answer]) => answer === "denied").map(([use]) => use));
  return said.filter(([use, answer]) => answer === "denied" || !denied.has(use));
}

/** A header's values, those beyond the bound left out; a long one without the part that its bound cuts in two. */
export function boundedValues(header: string | readonly string[] | undefined): string[] {
  return [header ?? []].flat().slice(0, maxStatementValues).map(boundedValue);
}

export function boundedValue(value: string): string {
  if (value.length <= maxStatementCharacters) return value;
  const start = value.slice(0, maxStatementCharacters);
  return start.slice(0, Math.max(0, start.lastIndexOf(",")));
}

/** Each statement once, in order; of too many those that deny most. */
export function mergedStatements(stated: readonly StatedPreference[]): StatedPreference[] {
  if (stated.length < 2) return [...stated];
  const each = [...new Map(stated.map((one) => [JSON.stringify(one), one])).values()];
  if (each.length <= maxPreferences) return each;
  const strictness = ({ answer, uses }: StatedPreference) =>
    2 * preferenceAnswers.indexOf(answer) + Number(uses.includes("search"));
  const kept = new Set(
    [...each].sort((one, other) => strictness(other) - strictness(one)).slice(0, maxPreferences),
  );
  return each.filter((one) => kept.has(one));
}

/** On one line, and without users and passwords of URLs; a long text is cut and says how long it is. Postgres' text holds neither NUL nor half characters. */
export function legible(text: string): string {
  const start = withoutUsers(text.slice(0, maxTextCharacters)).replace(/[\p{Cc}\s]+/gu, " ");
  const whole = start.replace(/\p{Surrogate}/gu, "\ufffd").trim();
  if (text.length <= maxTextCharacters) return whole;
  const length = `… of ${text.length} characters`;
  return whole.slice(0, maxTextCharacters - length.length) + length;
}

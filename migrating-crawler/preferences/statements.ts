/**
 * Normalises a site's statements about page uses for transport (protocol/preferences), so that they are legible, limited and
 * without duplicates. Each standard has its own file here. All of these files read untrusted text.
 */
import { withoutUsers } from "#core/ip/url-host";
import {
  type ContentUse,
  maxPreferences,
  type PreferenceAnswer,
  preferenceAnswers,
  type StatedPreference,
} from "#protocol/preferences";

export type Stated = Pick<StatedPreference, "standard" | "place">;

/** The answers of one text. Allowed and denied uses become separate statements. */
export type SaidUses = readonly (readonly [use: ContentUse, answer: PreferenceAnswer])[];

/** Longer texts are cut before they are read. */
const maxStatementCharacters = 1000;

/** Maximum number of values per header and of lines per kind. */
export const maxStatementValues = 50;

const maxTextCharacters = 300;

/** A text without known uses is stored as text and denies nothing. */
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

/** If one text both allows and denies a use, the use is denied. */
export function withoutContradictions(said: SaidUses): SaidUses {
  const denied = new Set(said.filter(([, answer]) => answer === "denied").map(([use]) => use));
  return said.filter(([use, answer]) => answer === "denied" || !denied.has(use));
}

/** Drops values that exceed the limit, and the part that the limit cuts in two. */
export function boundedValues(header: string | readonly string[] | undefined): string[] {
  return [header ?? []].flat().slice(0, maxStatementValues).map(boundedValue);
}

export function boundedValue(value: string): string {
  if (value.length <= maxStatementCharacters) return value;
  const start = value.slice(0, maxStatementCharacters);
  return start.slice(0, Math.max(0, start.lastIndexOf(",")));
}

/** Removes duplicates and keeps the order. If there are more than the limit, the statements that deny most are kept. */
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

/**
 * Puts text on one line, without user names and passwords in URLs. A long text is cut and states its length. Postgres' text
 * cannot contain NUL or half characters.
 */
export function legible(text: string): string {
  const start = withoutUsers(text.slice(0, maxTextCharacters)).replace(/[\p{Cc}\s]+/gu, " ");
  const whole = start.replace(/\p{Surrogate}/gu, "\ufffd").trim();
  if (text.length <= maxTextCharacters) return whole;
  const length = `… of ${text.length} characters`;
  return whole.slice(0, maxTextCharacters - length.length) + length;
}

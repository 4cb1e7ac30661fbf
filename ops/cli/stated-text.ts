/** A site's statements on the uses of a page, as lines for people. */
import { answersWords, statementLines } from "#coordinator/crawl/batch/stated-uses";
import { printable } from "#core/terminal-text";
import { type StatedPreference, type UseAnswers, useAnswers } from "#protocol/preferences";

/** Each statement and the combined answer, as named lines; empty when there are none. */
export function statedFacts(stated: readonly StatedPreference[]): (readonly [name: string, fact: string])[] {
  if (stated.length === 0) return [];
  const lines = statementLines(stated).map((line) => ["states", printable(line, 400)] as const);
  return [...lines, ["for us", forUsWords(useAnswers(stated))]];
}

/** `search: denied; ai-train: denied`, with the consequence for searches. */
export function forUsWords(answers: UseAnswers): string {
  const { search } = answers;
  if (search === undefined) return `search: not stated, and so allowed; ${answersWords(answers)}`;
  const means = search === "allowed" ? "" : " (the page is not indexed; its links are followed)";
  return `${answersWords(answers)}${means}`;
}

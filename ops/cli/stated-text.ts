/** What a site states of the uses of a page, as lines for people. */
import { answersWords, type StatedUses, statementLines } from "#coordinator/results/stated-uses";
import { instantWords } from "#core/format";
import { printable } from "./output.ts";

/** None: nothing is stated. */
export function statedLines(stated: StatedUses | null): string[] {
  if (stated === null) return [];
  const { answers, statements, since, confirmedAt } = stated;
  return [
    `What the site states, since ${instantWords(since)}, found again ${instantWords(confirmedAt)}`,
    `  ${answersWords(answers)}`,
    ...statementLines(statements).map((line) => printable(`  ${line}`, 400)),
  ];
}

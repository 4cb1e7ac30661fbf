/**
 * What people type into a search, as the terms that an engine looks for: words, "phrases", `or` between two of them, and
 * -not before one. `or` binds more tightly than the blank, as in the large search engines: `ferry or boat harbour` is
 * (ferry or boat) and harbour. Every text is accepted: a quote that is not closed ends with the text, and a sign
 * without a word beside it means nothing.
 */
import { queryTerms, type Stemming, stemmingOf, wordsIn } from "#core/words/words";
import type { TermArm, TermSequence } from "./engine/search-engine.ts";

/** Several words in one operand, as in `state-of-the-art`, are looked for next to each other. */
interface Operand {
  readonly text: string;
  readonly isQuoted: boolean;
}

interface TypedWords {
  /** One operand of each group is wanted. */
  readonly groups: readonly (readonly Operand[])[];
  readonly excluded: readonly Operand[];
}

/** A sign, then a phrase or what stands up to the next blank. Phones turn quotes into typographic ones while people type. */
const operandPattern = /(-*)(?:["“”„]([^"“”„]*)["“”„]?|([^\s"“”„]+))/gu;

function readWords(words: string): TypedWords {
  const groups: Operand[][] = [];
  const excluded: Operand[] = [];
  let isAfterOr = false;
  for (const [, sign, phrase, plain = ""] of words.matchAll(operandPattern)) {
    const operand = { text: phrase ?? plain, isQuoted: phrase !== undefined };
    if (!hasWord(operand.text)) continue;
    const isFirst = groups.length + excluded.length === 0;
    const isOr = !isFirst && sign === "" && plain.toLowerCase() === "or";
    if (sign !== "") excluded.push(operand);
    else if (isAfterOr && !isOr && groups.length > 0) groups.at(-1)!.push(operand);
    else if (!isOr) groups.push([operand]);
    isAfterOr = isOr;
  }
  return { groups, excluded };
}

const hasWord = (text: string) => /[\p{L}\p{N}]/u.test(text);

/**
 * One arm for all configurations under whose rules the words are the same terms. An arm without a word to look for is
 * left out: if the list is empty, the words only exclude.
 */
export async function termArms(
  { words, title }: { readonly words: string; readonly title: string | null },
  configurations: readonly string[],
): Promise<TermArm[]> {
  const typed = readWords(words);
  const inTitle = title === null ? [] : readWords(title).groups.flat();
  const arms = new Map<string, TermArm>();
  for (const configuration of configurations) {
    const arm = armOf(typed, inTitle, await stemmingOf(configuration));
    if (arm.all.length === 0) continue;
    const key = JSON.stringify(arm);
    arms.set(key, { ...arm, configurations: [...(arms.get(key)?.configurations ?? []), configuration] });
  }
  return [...arms.values()];
}

function armOf(
  { groups, excluded }: TypedWords,
  inTitle: readonly Operand[],
  stemming: Stemming,
): Omit<TermArm, "configurations"> {
  const sequences = (texts: readonly string[]) =>
    distinct(texts.map((text) => queryTerms(text, stemming)).filter((terms) => terms.length > 0));
  const asTyped = (operands: readonly Operand[]) => sequences(operands.map(({ text }) => text));
  const rare = (operands: readonly Operand[]) =>
    sequences(operands.map((operand) => withoutStopWords(operand, stemming)));
  const groupsOf = (read: typeof rare) => distinct(groups.map(read).filter((group) => group.length > 0));
  const [wanted, titled] = [groupsOf(rare), rare(inTitle)];
  return {
    // Where there are only common words, as in the names of some bands, they are looked for.
    all: wanted.length > 0 ? wanted : groupsOf(asTyped),
    title: titled.length > 0 ? titled : asTyped(inTitle),
    none: rare(excluded),
  };
}

/** Empty if nothing else is left. Between other words they remain, since words in one operand follow each other. */
function withoutStopWords({ text, isQuoted }: Operand, stemming: Stemming): string {
  if (isQuoted) return text;
  const words = [...wordsIn(text)].filter(({ word }) => !stemming.isStopWord(word));
  return words.length === 0 ? "" : text.slice(words[0]!.from, words.at(-1)!.to);
}

function distinct<T extends TermSequence | readonly TermSequence[]>(values: readonly T[]): T[] {
  return [...new Map(values.map((value) => [JSON.stringify(value), value])).values()];
}

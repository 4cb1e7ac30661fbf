/**
 * recall@10: how many of the ten best pages of a question an answer has, where "best" is told by ranking every match with
 * every part of the score (exhaustive-reads.ts). The same seeded questions each time; their best pages are worked out
 * once and kept in a file beside the index, a line for each question, so that the work may be ended and gone on with.
 */
import { appendFileSync, existsSync, readFileSync } from "node:fs";
import type { Pool } from "pg";
import { readSearch } from "#coordinator/search/query";
import { type RankedPage, rankPages } from "#coordinator/search/ranking";
import { seededRandom } from "#core/random";
import { exhaustiveReads } from "./exhaustive-reads.ts";
import { fetchedBefore, type Language } from "./made-pages.ts";
import { type Kind, kinds, nextQuestion, type Question, someTitles } from "./questions.ts";

export const recallQuestions = 1000;

/** Ages are counted from here, whenever the bench runs. */
const recallNow = new Date(fetchedBefore);

const best = 10;

/** Pages whose points are as good as the tenth's are equally good answers; so many are kept at most. */
const tiedKept = 200;

const equalPoints = 1e-6;

export interface Truth extends Question {
  readonly matches: number;
  /** Texts (of pages with nearly the same, one) that are as good as the tenth best or better. */
  readonly texts: readonly string[];
}

/** Those that the file has; others are worked out as long as there is time. */
export async function truths(
  pool: Pool,
  languages: readonly Language[],
  { file, count, forMs }: { readonly file: string; readonly count: number; readonly forMs: number },
): Promise<Truth[]> {
  const asking = { languages, titles: await someTitles(pool), random: seededRandom(2201) };
  const questions = Array.from({ length: recallQuestions }, () => nextQuestion(asking));
  const known = existsSync(file) ? readFileSync(file, "utf8").split("\n").filter(Boolean).map(readTruth) : [];
  known.forEach((truth, at) => {
    if (truth.words !== questions[at]?.words) throw new Error(`${file} is of other questions: delete it`);
  });
  const endMs = performance.now() + forMs;
  for (const question of questions.slice(known.length, count)) {
    if (performance.now() >= endMs) break;
    const truth = await truthOf(pool, question);
    appendFileSync(file, `${JSON.stringify(truth)}\n`);
    known.push(truth);
  }
  return known.slice(0, count);
}

const readTruth = (line: string): Truth => JSON.parse(line);

async function truthOf(pool: Pool, question: Question): Promise<Truth> {
  const query = readSearch(question.words, question.filters);
  const { pages } = await rankPages(exhaustiveReads(pool), query, recallNow, Number.POSITIVE_INFINITY);
  const least = pages[Math.min(best, pages.length) - 1]?.points ?? 0;
  const good = pages.filter(({ points }) => points >= least - equalPoints);
  return { ...question, matches: pages.length, texts: good.slice(0, tiedKept).map(textOf) };
}

/** Pages with nearly the same text stand for each other: which of them is shown, the ranking decides. */
function textOf({ candidate }: RankedPage): string {
  return candidate.textGroup ?? `${candidate.hostHash}/${candidate.urlHash}`;
}

export interface Recall {
  readonly kind: Kind | "all";
  readonly questions: number;
  /** Mean over the questions that anything matches. */
  readonly recall: number;
  /** Questions of which fewer than half of the best were found. */
  readonly poor: number;
}

type RankingReads = Parameters<typeof rankPages>[0];

/** The first ten that are found. */
export async function bestTexts(reads: RankingReads, { words, filters }: Question): Promise<string[]> {
  const { pages } = await rankPages(reads, readSearch(words, filters), recallNow);
  return pages.slice(0, best).map(textOf);
}

/** `find`: the first ten texts, wherever they are found. */
export async function recallBy(
  find: (truth: Truth) => Promise<readonly string[]>,
  known: readonly Truth[],
): Promise<Recall[]> {
  const each: { readonly kind: Kind; readonly recall: number }[] = [];
  for (const truth of known) {
    if (truth.matches === 0) continue;
    const good = new Set(truth.texts);
    const hits = new Set((await find(truth)).filter((text) => good.has(text)));
    each.push({ kind: truth.kind, recall: hits.size / Math.min(best, truth.matches) });
  }
  return (["all", ...kinds] as const).map((kind) => {
    const some = each.filter((one) => kind === "all" || one.kind === kind).map(({ recall }) => recall);
    return {
      kind,
      questions: some.length,
      recall: some.reduce((sum, recall) => sum + recall, 0) / some.length,
      poor: some.filter((recall) => recall < 0.5).length,
    };
  });
}

export function recallTable(ways: Readonly<Record<string, readonly Recall[]>>): string[] {
  const [first = []] = Object.values(ways);
  return [
    `| recall@10 | questions | ${Object.keys(ways).join(" | ")} |`,
    `|---|---:|${Object.keys(ways)
      .map(() => "---:|")
      .join("")}`,
    ...first.map(({ kind, questions }, at) => {
      const cells = Object.values(ways).map((recalls) => {
        const { recall, poor } = recalls[at]!;
        if (Number.isNaN(recall)) return "–";
        return `${recall.toFixed(3)}${poor === 0 ? "" : ` (${poor} below 0.5)`}`;
      });
      return `| ${kind} | ${questions} | ${cells.join(" | ")} |`;
    }),
  ];
}

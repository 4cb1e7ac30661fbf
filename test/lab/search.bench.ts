/**
 * How long a search takes, from the typed words to the ranked pages, and what the index costs: generated pages of about 350 words in
 * five languages, in an FTS5 file and, with --url, in OpenSearch. The measure in the same run is a plain FTS5 table of the same texts,
 * asked for the ten best by BM25.
 * Run: npm run bench -- search [--pages 20000] [--questions 1000] [--url http://127.0.0.1:9200/bench]
 */
import { mkdtempSync, rmSync, statSync } from "node:fs";
import { cpus, tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { Fts5Index } from "#coordinator/tell/search/engine/fts5-index-store";
import type { EngineAnswer, EngineQuestion } from "#coordinator/tell/search/engine/search-engine";
import { openSqlite } from "#coordinator/tell/search/engine/sqlite";
import type { ExportedDocument, Operation } from "#coordinator/tell/search/export/export-operation";
import { readSearch } from "#coordinator/tell/search/query";
import { rankPages } from "#coordinator/tell/search/ranking";
import { termArms } from "#coordinator/tell/search/term-arms";
import { seededRandom } from "#core/random";
import { figure, median } from "./figure.ts";
import { madeLanguages, madePages } from "./search/made-pages.ts";
import { kinds, nextQuestion, type Question } from "./search/questions.ts";

const { values: options } = parseArgs({
  options: {
    pages: { type: "string", default: "20000" },
    questions: { type: "string", default: "1000" },
    url: { type: "string" },
  },
});
const [pages, questionsAsked] = [Number(options.pages), Number(options.questions)];
const home = mkdtempSync(join(tmpdir(), "nearcrawl-bench-search-"));
const pagesAtOnce = 500;

/** One that is filled and asked. */
interface Contender {
  readonly name: string;
  write(operations: readonly Operation[]): Promise<unknown>;
  /** Resolves when everything written can be found. */
  settle(): Promise<void>;
  ask(question: Question): Promise<unknown>;
  bytes(): Promise<number>;
  close(): Promise<void>;
}

interface Measured {
  readonly name: string;
  readonly buildMs: number;
  readonly bytes: number;
  readonly memoryMb: number;
  readonly times: readonly { readonly kind: string; readonly ms: number }[];
}

try {
  const languages = madeLanguages();
  const measured: Measured[] = [];
  for (const open of [openPlain, openOwn, ...(options.url === undefined ? [] : [openOpenSearch])])
    measured.push(await measure(await open(), languages));
  report(measured);
} finally {
  rmSync(home, { recursive: true, force: true });
}

async function measure(
  contender: Contender,
  languages: ReturnType<typeof madeLanguages>,
): Promise<Measured> {
  const { name } = contender;
  const memoryBefore = process.memoryUsage.rss();
  let buildMs = 0;
  let titles: string[] = [];
  const take = async (operations: readonly Operation[]) => {
    const startedMs = performance.now();
    await contender.write(operations);
    buildMs += performance.now() - startedMs;
  };
  let batch: Operation[] = [];
  for (const operation of madePages(pages, languages)) {
    batch.push(operation);
    if (batch.length < pagesAtOnce) continue;
    await take(batch);
    if (titles.length < 2000) titles = [...titles, ...batch.map((one) => (one as { document: ExportedDocument }).document.title)];
    batch = [];
  }
  await take(batch);
  const startedMs = performance.now();
  await contender.settle();
  buildMs += performance.now() - startedMs;
  const asking = { languages, titles, random: seededRandom(3) };
  const times: { kind: string; ms: number }[] = [];
  for (let at = -50; at < questionsAsked; at++) {
    const question = nextQuestion(asking);
    const askedMs = performance.now();
    await contender.ask(question);
    if (at >= 0) times.push({ kind: question.kind, ms: performance.now() - askedMs });
  }
  const memoryMb = (process.memoryUsage.rss() - memoryBefore) / 2 ** 20;
  const bytes = await contender.bytes();
  await contender.close();
  return { name, buildMs, bytes, memoryMb, times };
}

/**
 * How long a search takes, from the typed words to the ranked pages, and what the index costs: generated pages of about 350 words in
 * five languages, in an FTS5 file and, with --url, in OpenSearch. The measure in the same run is a plain FTS5 table of the same texts,
 * asked for the ten best by BM25.
 * Run: npm run bench -- search [--pages 20000] [--questions 1000] [--url http://127.0.0.1:9200/bench]
 */
import { mkdtempSync, rmSync, statSync } from "node:fs";
import { cpus, tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { parseArgs } from "node:util";
import { Fts5Index } from "#coordinator/tell/search/engine/fts5-index-store";
import { OpenSearchEngine } from "#coordinator/tell/search/engine/opensearch-engine";
import type { EngineAnswer, EngineQuestion } from "#coordinator/tell/search/engine/search-engine";
import { openSqlite } from "#coordinator/tell/search/engine/sqlite-store";
import { OpenSearchIndex } from "#coordinator/tell/search/export/opensearch-target";
import { readSearch } from "#coordinator/tell/search/query";
import { rankPages } from "#coordinator/tell/search/ranking";
import { termArms } from "#coordinator/tell/search/term-arms";
import { seededRandom } from "#core/random";
import { figure, median } from "./figure.ts";
import { type MadePage, madeLanguages, madePages } from "./search/made-pages.ts";
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
  write(made: readonly MadePage[]): Promise<unknown>;
  /** Resolves when everything written can be found. */
  settle(): Promise<void>;
  ask(question: Question): Promise<unknown>;
  bytes(): Promise<number>;
  /** Processor time that other processes have taken for it so far. */
  othersCpuMs?(): Promise<number>;
  close(): Promise<void>;
}

interface Measured {
  readonly name: string;
  readonly buildMs: number;
  /** Processor time of all processes. */
  readonly buildCpuMs: number;
  readonly askCpuMs: number;
  readonly bytes: number;
  readonly memoryMb: number;
  readonly times: readonly { readonly kind: string; readonly ms: number }[];
}

try {
  const measured: Measured[] = [];
  for (const open of [openPlain, openOwn, ...(options.url === undefined ? [] : [openOpenSearch])])
    measured.push(await measure(await open()));
  report(measured);
} finally {
  rmSync(home, { recursive: true, force: true });
}

async function measure(contender: Contender): Promise<Measured> {
  const { name } = contender;
  // Made anew, so that all have the same pages and questions.
  const languages = madeLanguages();
  const memoryBefore = process.memoryUsage.rss();
  let [buildMs, buildCpuMs] = [0, 0];
  const cpuMs = async () => {
    const { user, system } = process.cpuUsage();
    return (user + system) / 1000 + ((await contender.othersCpuMs?.()) ?? 0);
  };
  const timed = async (work: () => Promise<unknown>) => {
    const [startedMs, startedCpuMs] = [performance.now(), await cpuMs()];
    await work();
    buildMs += performance.now() - startedMs;
    buildCpuMs += (await cpuMs()) - startedCpuMs;
  };
  const titles: string[] = [];
  let batch: MadePage[] = [];
  for (const page of madePages(pages, languages)) {
    if (titles.length < 2000) titles.push(page.document.title);
    batch.push(page);
    if (batch.length < pagesAtOnce) continue;
    await timed(() => contender.write(batch));
    batch = [];
  }
  await timed(() => contender.write(batch));
  await timed(() => contender.settle());
  const asking = { languages, titles, random: seededRandom(3) };
  const times: { kind: string; ms: number }[] = [];
  let askedFromMs = 0;
  for (let at = -50; at < questionsAsked; at++) {
    if (at === 0) askedFromMs = await cpuMs();
    const question = nextQuestion(asking);
    const askedMs = performance.now();
    await contender.ask(question);
    if (at >= 0) times.push({ kind: question.kind, ms: performance.now() - askedMs });
  }
  const askCpuMs = (await cpuMs()) - askedFromMs;
  const memoryMb = (process.memoryUsage.rss() - memoryBefore) / 2 ** 20;
  const bytes = await contender.bytes();
  await contender.close();
  return { name, buildMs, buildCpuMs, askCpuMs, bytes, memoryMb, times };
}

/** Texts and titles in one FTS5 table with SQLite's own tokenizer and English stemmer, whatever the language. */
async function openPlain(): Promise<Contender> {
  const file = join(home, "plain.sqlite");
  const sqlite = await openSqlite(file);
  sqlite.exec(
    "create virtual table pages using fts5(title, text, content = '', tokenize = 'porter unicode61')",
  );
  let rows = 0;
  return {
    name: "plain FTS5",
    async write(made) {
      sqlite.exec("begin");
      for (const { document: page } of made)
        sqlite.run("insert into pages (rowid, title, text) values (?, ?, ?)", [
          ++rows,
          page.title,
          page.text,
        ]);
      sqlite.exec("commit");
    },
    settle: async () => {},
    async ask({ words }) {
      const match = words.startsWith('"') ? words : words.replace(/\S+/g, '"$&"');
      return sqlite.all("select rowid from pages where pages match ? order by rank limit 10", [match]);
    },
    bytes: async () => sizeOf(file),
    close: async () => sqlite.close(),
  };
}

async function openOwn(): Promise<Contender> {
  const file = join(home, "own.sqlite");
  const index = await Fts5Index.open(file);
  return {
    name: "FTS5",
    write: async (made) => await index.write(made),
    settle: async () => {},
    ask: async (question) => await ask(index, question),
    bytes: async () => sizeOf(file),
    close: async () => index.close(),
  };
}

/** `--url`: an index of its own, which is left there. */
async function openOpenSearch(): Promise<Contender> {
  const { origin, pathname } = new URL(options.url!);
  const place = { origin, index: pathname.slice(1), authorization: null, authorities: null };
  const target = new OpenSearchIndex({
    ...{ ...place, random: Math.random, pause: async (ms) => await delay(ms) },
    ...{ onTrouble: console.error, onRefused: console.error },
  });
  const engine = new OpenSearchEngine(place);
  await target.state();
  return {
    name: "OpenSearch",
    write: async (made) => await target.write(made),
    // Refreshes the index. No page has an earlier change.
    settle: async () => void (await target.endFull(0)),
    ask: async (question) => await ask(engine, question),
    bytes: async () => {
      const answer = await fetch(`${options.url}/_stats/store`);
      return ((await answer.json()) as { _all: { primaries: { store: { size_in_bytes: number } } } })._all
        .primaries.store.size_in_bytes;
    },
    async othersCpuMs() {
      const answer = await fetch(`${origin}/_nodes/stats/process`);
      const { nodes } = (await answer.json()) as {
        nodes: Record<string, { process: { cpu: { total_in_millis: number } } }>;
      };
      return Object.values(nodes).reduce((sum, node) => sum + node.process.cpu.total_in_millis, 0);
    },
    close: async () => void (await Promise.all([target.close(), engine.close()])),
  };
}

interface Asked {
  configurations(): Promise<readonly string[]> | readonly string[];
  search(question: EngineQuestion): Promise<EngineAnswer> | EngineAnswer;
}

/** Everything but what Postgres is asked for: what is shown of ten pages. */
async function ask(engine: Asked, { words, filters: given }: Question) {
  const { filters } = readSearch(words, given);
  const arms = await termArms({ words, title: null }, await engine.configurations());
  const answer = await engine.search({ arms, filters, most: 1000 });
  return rankPages(answer, "relevance", new Date());
}

function sizeOf(file: string): number {
  return statSync(file).size + (statSync(`${file}-wal`, { throwIfNoEntry: false })?.size ?? 0);
}

function report(measured: readonly Measured[]): void {
  console.log(
    `${pages} made-up pages, ${questionsAsked} questions one after the other; ${cpus().length} cores\n`,
  );
  console.log(
    "| | build ms a page | of processor | KB a page | resident MB more | p50 ms | p95 ms | p99 ms | CPU ms a search |",
  );
  console.log("|---|---:|---:|---:|---:|---:|---:|---:|---:|");
  for (const { name, buildMs, buildCpuMs, askCpuMs, bytes, memoryMb, times } of measured) {
    const ms = times.map((one) => one.ms);
    const cells = [
      (buildMs / pages).toFixed(2),
      (buildCpuMs / pages).toFixed(2),
      (bytes / pages / 1000).toFixed(2),
      memoryMb.toFixed(0),
      ...[0.5, 0.95, 0.99].map((share) => quantile(ms, share).toFixed(1)),
      (askCpuMs / times.length).toFixed(1),
    ];
    console.log(`| ${name} | ${cells.join(" | ")} |`);
  }
  console.log(`\n| p95 ms | ${measured.map(({ name }) => name).join(" | ")} |`);
  console.log(`|---|${"---:|".repeat(measured.length)}`);
  for (const kind of kinds) {
    const p95 = ({ times }: Measured) =>
      quantile(
        times.filter((one) => one.kind === kind).map(({ ms }) => ms),
        0.95,
      ).toFixed(1);
    console.log(`| ${kind} | ${measured.map(p95).join(" | ")} |`);
  }
  const [plain, ...engines] = measured;
  for (const { name, buildMs, bytes, times } of engines) {
    const p50 = (all: Measured["times"]) => median(all.map(({ ms }) => ms));
    figure(`${name}: median search`, p50(times) / p50(plain!.times), "× plain");
    figure(`${name}: build`, buildMs / plain!.buildMs, "× plain");
    figure(`${name}: bytes`, bytes / plain!.bytes, "× plain");
  }
}

function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? Number.NaN;
}

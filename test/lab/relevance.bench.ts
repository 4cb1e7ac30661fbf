/**
 * How well searches order pages: questions with judgements over real pages of the shared data and over pages written in ten
 * languages (test/search/relevance), beside plain BM25 as SQLite's FTS5 has it. Half of the questions is for tuning; figures that
 * count are those of the other half.
 * Run: npm run bench -- relevance [--url http://127.0.0.1:9200/relevance] [--json] [--misses]
 */
import { parseArgs } from "node:util";
import { formatTable, printJson } from "#ops/cli/output";
import { openFts5, openOpenSearch } from "../search/open-engines.ts";
import { type Measures, meanOf, measuresOf } from "../search/relevance/measures.ts";
import {
  type PageSet,
  pagesOf,
  type Question,
  realDocuments,
  writtenSet,
} from "../search/relevance/page-set.ts";
import { engineRanker, plainBm25, type Ranker } from "../search/relevance/rankers.ts";
import { realSet } from "../search/relevance/real-questions.ts";
import { figure } from "./figure.ts";

const { values: options } = parseArgs({
  options: {
    /** An index of OpenSearch that is made and deleted. */
    url: { type: "string" },
    json: { type: "boolean", default: false },
    /** Also the questions of the tuning half that are not answered in the best order. */
    misses: { type: "boolean", default: false },
  },
});

const engines = { fts5: async () => await openFts5(":memory:"), ...openSearchAt(options.url) };

function openSearchAt(url: string | undefined) {
  if (url === undefined) return {};
  const { origin, pathname } = new URL(url);
  return { opensearch: async () => await openOpenSearch(origin, pathname.slice(1)) };
}

interface Row extends Measures {
  readonly pages: string;
  readonly kind: string;
  readonly half: string;
  readonly questions: number;
  readonly way: string;
}

const sets = new Map([["written", await writtenSet()]]);
const documents = await realDocuments();
if (documents !== null) sets.set("real", realSet(await pagesOf(documents)));
const rows: Row[] = [];
for (const [pages, set] of sets) await measure(pages, set);
if (options.json) printJson(rows);
else process.stdout.write(`${table()}\n`);
for (const { pages, kind, half, way, ndcg } of rows)
  if (way !== "plain")
    figure(`${pages}, ${kind}, ${half}: ${way}`, ndcg, "nDCG@10", { higherIsBetter: true });

async function measure(pages: string, set: PageSet): Promise<void> {
  const plain = plainBm25(set);
  await measureWay(pages, set, "plain", plain);
  plain.close();
  for (const [name, open] of Object.entries(engines)) {
    const opened = await open();
    await measureWay(pages, set, name, await engineRanker(set, opened));
    await opened.close();
  }
}

async function measureWay(pages: string, { questions }: PageSet, way: string, rank: Ranker): Promise<void> {
  const groups = new Map<string, { readonly of: Question; readonly all: Measures[] }>();
  for (const question of questions) {
    const ranked = await rank(question.text);
    const measures = measuresOf(ranked, question.grades);
    const key = `${question.kind}/${question.half}`;
    groups.set(key, { of: question, all: [...(groups.get(key)?.all ?? []), measures] });
    const isMiss = measures.ndcg < 0.995 && question.half === "tuning";
    if (options.misses && isMiss && way !== "plain") printMiss(question, measures, ranked);
  }
  for (const { of, all } of groups.values())
    rows.push({ pages, kind: of.kind, half: of.half, questions: all.length, way, ...meanOf(all) });
}

function printMiss({ kind, text, grades }: Question, { ndcg }: Measures, ranked: readonly string[]): void {
  const found = ranked.slice(0, 5).map((url) => `${grades.get(url) ?? 0} ${url.slice(0, 60)}`);
  console.log([`${kind}: ${text} (${ndcg.toFixed(2)})`, ...found].join("\n  "));
}

function table(): string {
  const ways = [...new Set(rows.map(({ way }) => way))];
  const columns = ["pages", "kind", "half", "questions"].map((title) => ({ title }));
  const measured = ways.flatMap((way) => [`${way}: nDCG@10`, "MRR", "success@1"].map((title) => ({ title })));
  const lines = rows
    .filter(({ way }) => way === ways[0])
    .map(({ pages, kind, half, questions }) => [
      ...[pages, kind, half, String(questions)],
      ...ways.flatMap((way) => {
        const row = rows.find(
          (one) => one.way === way && one.pages === pages && one.kind === kind && one.half === half,
        )!;
        return [row.ndcg, row.reciprocalRank, row.success].map((value) => value.toFixed(3));
      }),
    ]);
  return formatTable([...columns, ...measured], lines);
}

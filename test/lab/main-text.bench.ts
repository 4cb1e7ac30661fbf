/**
 * How much of a page's main text is taken, and how much besides it: F1, precision and recall over runs of four words (as
 * scrapinghub/article-extraction-benchmark measures) by kind of page, on the real pages whose text people have marked; and what
 * is in the text of the passages that people call the page's own or its furniture. Run: npm run bench -- main-text
 * `--judges FOLDER` holds other extractors against the same gold: files NAME.json, each an object of page name to text. The
 * pages without gold are then compared with what all judges agree on. `--pages` prints each page. `--worst 20` prints those
 * with the least F1.
 */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { decodeSource } from "#crawler/extract/charset";
import { pageText } from "#crawler/extract/extract-page";
import { tidy } from "#crawler/extract/read-links";
import { WorkTurns } from "#crawler/extract/read-list";
import { type ReadPage, readPage } from "#crawler/extract/read-page";
import { structuredData } from "#crawler/extract/structured-data";
import { formatTable } from "#ops/cli/output";
import { sharedData } from "../support/shared-data.ts";
import { figure } from "./figure.ts";

interface MarkedPage {
  readonly name: string;
  readonly source: string;
  readonly file: string;
  readonly contentType: string;
  readonly human: {
    readonly mainText?: string;
    readonly with?: readonly string[];
    readonly without?: readonly string[];
  };
}

interface Marks {
  readonly precision: number;
  readonly recall: number;
}

interface Row extends Marks {
  readonly kind: string;
  readonly name: string;
  readonly extractor: string;
}

const word = /[\p{L}\p{M}\p{N}]+/gu;
const runLength = 4;

const { values: options } = parseArgs({
  args: process.argv.slice(2),
  allowPositionals: true,
  options: { judges: { type: "string" }, pages: { type: "boolean" }, worst: { type: "string" } },
});
const manifest = sharedData("suites/pages/manifest.json");
if (manifest !== null) await run(JSON.parse(readFileSync(manifest, "utf8")) as MarkedPage[]);

async function run(pages: readonly MarkedPage[]): Promise<void> {
  const extractors = new Map<string, ReadonlyMap<string, string>>(judges(options.judges));
  const ours = new Map<string, string>();
  const kinds = new Map<string, string>();
  for (const { name, file, contentType } of pages) {
    const { source } = decodeSource(readFileSync(sharedData(`suites/pages/${file}`)!), contentType);
    const read = await readPage(source, new WorkTurns(async () => {}));
    ours.set(name, textOf(read));
    kinds.set(name, kindOf(read));
  }
  const all = new Map([["ours", ours], ...extractors]);
  const gold = pages.filter(({ human }) => human.mainText !== undefined);
  const rows = [...all].flatMap(([extractor, texts]) =>
    gold.map((page): Row => {
      const marks = marksOf(texts.get(page.name) ?? "", page.human.mainText!);
      return { ...marks, extractor, name: page.name, kind: `${page.source}: ${kinds.get(page.name)}` };
    }),
  );
  console.log("against people's texts (article-extraction-benchmark) and Readability's own (readability)");
  printTable(rows, [...all.keys()]);
  printPassages(pages, all);
  const others = [...extractors.values()];
  if (others.length > 0) {
    const ungolden = pages.filter(
      ({ name, human }) =>
        human.mainText === undefined && doAgree(others.map((judge) => judge.get(name) ?? "")),
    );
    const agreed = ungolden.map(({ name }): Row => {
      const texts = others.map((judge) => judge.get(name) ?? "");
      return { ...consensus(ours.get(name)!, texts), extractor: "ours", name, kind: kinds.get(name)! };
    });
    console.log("\npages without gold: precision against what any judge has, recall of what all judges have");
    printTable(agreed, ["ours"]);
    rows.push(...agreed);
  }
  const mine = rows.filter(({ extractor }) => extractor === "ours");
  for (const source of ["aeb", "readability"]) {
    const its = meanOf(mine.filter(({ kind }) => kind.startsWith(source)));
    figure(`F1 on ${source}`, f1(its), "of 1", { higherIsBetter: true });
    figure(`precision on ${source}`, its.precision, "of 1", { higherIsBetter: true });
  }
  const shown = options.pages
    ? mine
    : [...mine].sort((a, b) => f1(a) - f1(b)).slice(0, Number(options.worst ?? 0));
  for (const row of shown) console.log(`${marksText(row)}  ${row.name}  ${row.kind}`);
}

function judges(folder: string | undefined): [string, Map<string, string>][] {
  if (folder === undefined) return [];
  return readdirSync(folder)
    .filter((file) => file.endsWith(".json"))
    .map((file) => {
      const texts = JSON.parse(readFileSync(join(folder, file), "utf8")) as Record<string, string>;
      return [file.replace(/\.json$/, ""), new Map(Object.entries(texts))];
    });
}

/** First-level headings are left out, as in the gold. */
function textOf(read: ReadPage): string {
  const titles = new Set(read.headings.filter(({ level }) => level === 1).map(({ text }) => text));
  const lines = pageText(read).pieces.flatMap(({ text }) => text.split("\n"));
  return lines.filter((line) => !titles.has(tidy(line))).join("\n");
}

/** By what the page says of itself. */
function kindOf(read: ReadPage): string {
  const type = structuredData(read.notes)?.type.toLowerCase() ?? "";
  if (/recipe/.test(type)) return "recipe";
  if (/product|offer/.test(type)) return "product";
  if (/posting|blog/.test(type)) return "blog";
  return /article|report|review/.test(type) ? "news" : "other";
}

/** Where a script has no blanks each character counts as a word. */
function runsOf(text: string): Map<string, number> {
  const words =
    text
      .normalize("NFC")
      .replace(/[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}]/gu, " $& ")
      .match(word) ?? [];
  const runs = new Map<string, number>();
  for (let at = 0; at < Math.max(1, words.length - runLength + 1); at++) {
    const run = words.slice(at, at + runLength).join(" ");
    if (run !== "") runs.set(run, (runs.get(run) ?? 0) + 1);
  }
  return runs;
}

function shared(one: ReadonlyMap<string, number>, other: ReadonlyMap<string, number>): number {
  let sum = 0;
  for (const [run, count] of one) sum += Math.min(count, other.get(run) ?? 0);
  return sum;
}

function sizeOf(runs: ReadonlyMap<string, number>): number {
  return [...runs.values()].reduce((sum, one) => sum + one, 0);
}

function marksOf(text: string, gold: string): Marks {
  const [its, wanted] = [runsOf(text), runsOf(gold)];
  const met = shared(its, wanted);
  const [size, wantedSize] = [sizeOf(its), sizeOf(wanted)];
  return {
    precision: size === 0 ? Number(wantedSize === 0) : met / size,
    recall: wantedSize === 0 ? 1 : met / wantedSize,
  };
}

function consensus(text: string, judged: readonly string[]): Marks {
  const its = runsOf(text);
  const [first, ...others] = judged.map(runsOf);
  const any = new Map(first!);
  const every = new Map(first!);
  for (const other of others) {
    for (const [run, count] of other) any.set(run, Math.max(count, any.get(run) ?? 0));
    for (const [run, count] of every) every.set(run, Math.min(count, other.get(run) ?? 0));
  }
  return {
    precision: sizeOf(its) === 0 ? Number(sizeOf(any) === 0) : shared(its, any) / sizeOf(its),
    recall: sizeOf(every) === 0 ? 1 : shared(its, every) / sizeOf(every),
  };
}

/** What judges do not agree on tells nothing. */
function doAgree([first = "", ...others]: readonly string[]): boolean {
  return others.every((other) => f1(marksOf(first, other)) > 0.6);
}

function meanOf(rows: readonly Marks[]): Marks {
  const mean = (get: (row: Marks) => number) =>
    rows.reduce((sum, row) => sum + get(row), 0) / Math.max(1, rows.length);
  return { precision: mean(({ precision }) => precision), recall: mean(({ recall }) => recall) };
}

function f1({ precision, recall }: Marks): number {
  return precision + recall === 0 ? 0 : (2 * precision * recall) / (precision + recall);
}

function marksText(marks: Marks): string {
  return `${f1(marks).toFixed(3)} (${marks.precision.toFixed(3)}, ${marks.recall.toFixed(3)})`;
}

/** Mean precision and mean recall, as the benchmark's evaluate.py has them. */
function printTable(rows: readonly Row[], extractors: readonly string[]): void {
  const kinds = [...new Set(rows.map(({ kind }) => kind))].sort();
  const cell = (kind: string | null, extractor: string) =>
    marksText(
      meanOf(rows.filter((row) => (kind === null || row.kind === kind) && row.extractor === extractor)),
    );
  const count = (kind: string) =>
    new Set(rows.filter((row) => row.kind === kind).map(({ name }) => name)).size;
  const sources = [...new Set(kinds.map((kind) => kind.split(":")[0]!))].filter(
    (source) => !kinds.includes(source),
  );
  const ofSource = (source: string, extractor: string) =>
    marksText(meanOf(rows.filter((row) => row.kind.startsWith(`${source}:`) && row.extractor === extractor)));
  console.log(
    formatTable(
      ["pages", "number", ...extractors.map((name) => `${name}: F1 (precision, recall)`)].map((title) => ({
        title,
      })),
      [
        ...kinds.map((kind) => [kind, `${count(kind)}`, ...extractors.map((name) => cell(kind, name))]),
        ...sources.map((source) => [
          `${source}, all`,
          "",
          ...extractors.map((name) => ofSource(source, name)),
        ]),
        [
          "all",
          `${new Set(rows.map(({ name }) => name)).size}`,
          ...extractors.map((name) => cell(null, name)),
        ],
      ],
    ),
  );
}

/** On trafilatura's pages people say of some passages whether they are the page's own. */
function printPassages(
  pages: readonly MarkedPage[],
  all: ReadonlyMap<string, ReadonlyMap<string, string>>,
): void {
  console.log("\npassages that people call the page's own, and its furniture: share that is in the text");
  for (const [extractor, texts] of all) {
    const share = (which: "with" | "without") => {
      const met = pages.flatMap(({ name, human }) =>
        (human[which] ?? []).map((part) => tidy(texts.get(name) ?? "").includes(tidy(part))),
      );
      return met.filter((isIn) => isIn).length / met.length;
    };
    const [own, furniture] = [share("with"), share("without")];
    console.log(`${extractor.padEnd(14)} ${own.toFixed(3)}  ${furniture.toFixed(3)}`);
    if (extractor === "ours") figure("furniture in the text", furniture, "of 1");
  }
}

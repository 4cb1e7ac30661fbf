/**
 * How fast registry text is read: CPU time per byte of unpacked text, of our readers and of other ways in the same
 * run, on generated files (same seed, same bytes); and how much memory a gigabyte of it takes. Run:
 *
 *   node --conditions=nearcrawl-source --import tsx test/bench/rir-parse.bench.ts [megabytes]
 *   node --conditions=nearcrawl-source --import tsx test/bench/rir-parse.bench.ts memory
 *
 * The whole way of `nearcrawl rir check` from files to the tree, on a generated registry of so many objects (a million;
 * the same bytes for the same number) or on files and folders of one's own, what is built here beside what is built
 * in another checkout:
 *
 *   node --conditions=nearcrawl-source --import tsx test/bench/rir-parse.bench.ts check [--objects 10000000]
 *     [--sources path]… [--against checkout] [--rounds 5] [--plain]
 *
 * Read the ratios, not the MB/s: those are this machine's, at this moment.
 */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { gzipSync } from "node:zlib";
import { generateRegistry } from "#ops/generate/generate-registry";
import { openArinXmlReader } from "#rir-import/formats/arin-xml";
import { openDelegatedReader } from "#rir-import/formats/delegated";
import type { OpenReader } from "#rir-import/formats/record";
import { openRpslReader } from "#rir-import/formats/rpsl";
import { figure } from "./figure.ts";
import { arinNet, chunksOf, rpslObject, statisticsLine } from "./rir-parse/registry-text.ts";
import {
  byteScanner,
  fromFile,
  gunzipOnly,
  ours,
  parserByRecord,
  readlineFields,
  readlineObjects,
  type Work,
} from "./rir-parse/sides.ts";
import { type Checked, checkOnce, stages, stagesOf } from "./rir-parse/whole-way.ts";

const runs = 9;
const warmUps = 2;
const print = (line: string) => process.stdout.write(`${line}\n`);
const median = (values: readonly number[]) =>
  [...values].sort((a, b) => a - b)[values.length >> 1] ?? Number.NaN;
const bytesOf = (chunks: readonly Buffer[]) => chunks.reduce((total, chunk) => total + chunk.length, 0);

/** All sides take turns, so that a busy moment of the machine meets all of them; the last side is the yardstick. */
async function compare(name: string, bytes: number, sides: Readonly<Record<string, Work>>): Promise<void> {
  const speeds = new Map<string, number[]>(Object.keys(sides).map((side) => [side, []]));
  const counts = new Set<number>();
  for (let run = 0; run < warmUps + runs; run++) {
    for (const [side, work] of Object.entries(sides)) {
      const before = process.cpuUsage();
      counts.add(await work());
      const { user, system } = process.cpuUsage(before);
      if (run >= warmUps) speeds.get(side)!.push(bytes / (user + system));
    }
  }
  if (counts.size !== 1) throw new Error(`${name}: the sides disagree: ${[...counts].join(", ")} records`);
  const yardstick = [...speeds.values()].at(-1)!;
  for (const [side, values] of speeds) {
    const ratio = median(values.map((value, run) => value / (yardstick[run] as number)));
    const [low, high] = [Math.min(...values), Math.max(...values)].map((value) => value.toFixed(0));
    if (side.startsWith("ours"))
      figure(`${name}, ${side}`, median(values), "MB a CPU second", { higherIsBetter: true });
    print(`| ${name} | ${side} | ${median(values).toFixed(0)} | ${low} to ${high} | ${ratio.toFixed(2)} |`);
  }
}

async function speeds(megabytes: number): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "rir-parse-bench-"));
  try {
    print(
      "| input | side | MB per CPU second, median | spread | times the byte scanner |\n|---|---|---|---|---|",
    );
    await rpslSpeeds(folder, chunksOf(megabytes * 1e6, rpslObject));
    const lines = chunksOf(megabytes * 0.25e6, statisticsLine, ["2|ripencc|1|1|||\n", ""]);
    await compare("statistics", bytesOf(lines), {
      ours: ours(openDelegatedReader, lines),
      readline: readlineFields(lines),
      "byte scanner": byteScanner(lines, "b\n"),
    });
    const nets = chunksOf(megabytes * 0.25e6, arinNet, ["<bulkwhois>", "</bulkwhois>"]);
    await compare("ARIN XML", bytesOf(nets), {
      ours: ours(openArinXmlReader, nets),
      "fast-xml-parser by record": parserByRecord(nets),
      "byte scanner": byteScanner(nets, ">\n"),
    });
  } finally {
    rmSync(folder, { recursive: true });
  }
  print(`\nnode ${process.version}, ${runs} runs after ${warmUps} to warm up, ${megabytes} MB of RPSL`);
}

async function rpslSpeeds(folder: string, chunks: readonly Buffer[]): Promise<void> {
  const [plain, packed] = [join(folder, "plain.db"), join(folder, "packed.db.gz")];
  const gzip = gzipSync(Buffer.concat(chunks));
  writeFileSync(plain, Buffer.concat(chunks));
  writeFileSync(packed, gzip);
  const records = await byteScanner(chunks, "\n\n")();
  await compare("RPSL", bytesOf(chunks), {
    "ours, in memory": ours(openRpslReader, chunks),
    "ours, from a file": fromFile(plain),
    "ours, from gzip": fromFile(packed),
    "gunzip alone": gunzipOnly(gzip, records),
    readline: readlineObjects(chunks),
    "byte scanner": byteScanner(chunks, "\n\n"),
  });
}

/** A gigabyte that is nowhere whole: eight megabytes, again and again, in memory that is used again. */
function memory(name: string, open: OpenReader, part: () => string, frame: readonly [string, string]): void {
  const chunks = chunksOf(8e6, part);
  const nothing = () => {};
  const reader = open("bench", {
    record: nothing,
    ignore: nothing,
    malformed: nothing,
    warn: nothing,
    facts: nothing,
  });
  reader.push(Buffer.from(frame[0]));
  let bytes = 0;
  for (; bytes < 1e9; bytes += bytesOf(chunks)) for (const chunk of chunks) reader.push(Buffer.from(chunk));
  reader.push(Buffer.from(frame[1]));
  reader.end();
  const peak = Math.round(process.resourceUsage().maxRSS / 1024);
  print(`${name}: ${(bytes / 1e9).toFixed(2)} GB read, peak memory so far ${peak} MB`);
}

const here = join(import.meta.dirname, "../..");

async function wholeWay(args: readonly string[]): Promise<void> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      objects: { type: "string", default: "1000000" },
      sources: { type: "string", multiple: true, default: [] },
      against: { type: "string" },
      rounds: { type: "string", default: "5" },
      plain: { type: "boolean", default: false },
    },
  });
  const folder = mkdtempSync(join(tmpdir(), "rir-check-bench-"));
  try {
    const isGenerated = values.sources.length === 0;
    const isPlain = values.plain;
    if (isGenerated) await generateRegistry({ objects: Number(values.objects), seed: 1, folder, isPlain });
    const sources = isGenerated ? [folder] : values.sources;
    const against = values.against === undefined ? [] : [["before", values.against] as const];
    const sides = new Map([...against, ["now", here] as const]);
    checkInTurns(sides, sources, Number(values.rounds));
    stageTable(sides, sources);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

function checkInTurns(sides: ReadonlyMap<string, string>, sources: readonly string[], rounds: number): void {
  const checked = new Map<string, Checked[]>([...sides.keys()].map((side) => [side, []]));
  for (let round = 0; round < rounds; round++)
    for (const [side, checkout] of sides) checked.get(side)!.push(checkOnce(checkout, sources));
  const answers = new Set([...checked.values()].flat().map(({ answer }) => answer));
  const [{ records }] = [...checked.values()][0] as [Checked];
  print(
    `${records.toLocaleString("en")} records; the answers are ${answers.size === 1 ? "the same" : "DIFFERENT"}`,
  );
  print("\n| side | µs of CPU an object, median | spread | wall s | peak MB | CPU, share of before |");
  print("|---|---|---|---|---|---|");
  const first = [...checked.values()][0] as readonly Checked[];
  for (const [side, runs] of checked) {
    const micros = runs.map(({ cpuSeconds }) => (cpuSeconds * 1e6) / records);
    const [low, high] = [Math.min(...micros), Math.max(...micros)].map((value) => value.toFixed(2));
    const wall = median(runs.map(({ wallSeconds }) => wallSeconds)).toFixed(1);
    const peak = (Math.max(...runs.map(({ peakBytes }) => peakBytes)) / 2 ** 20).toFixed(0);
    const share = median(runs.map(({ cpuSeconds }, run) => cpuSeconds / (first[run] as Checked).cpuSeconds));
    print(
      `| ${side} | ${median(micros).toFixed(2)} | ${low} to ${high} | ${wall} | ${peak} | ${share.toFixed(2)} |`,
    );
  }
}

function stageTable(sides: ReadonlyMap<string, string>, sources: readonly string[]): void {
  const columns = [...sides].map(([side, checkout]) => ({ side, shares: stagesOf(checkout, sources) }));
  print(
    `\n| stage | ${columns.map(({ side }) => `${side}, %`).join(" | ")} |\n|---|${"---|".repeat(columns.length)}`,
  );
  for (const stage of stages)
    print(
      `| ${stage} | ${columns.map(({ shares }) => (100 * (shares.get(stage) ?? 0)).toFixed(1)).join(" | ")} |`,
    );
}

if (process.argv[2] === "check") await wholeWay(process.argv.slice(3));
else if (process.argv[2] === "memory") {
  memory("RPSL", openRpslReader, rpslObject, ["", ""]);
  memory("ARIN XML", openArinXmlReader, arinNet, ["<bulkwhois>", "</bulkwhois>"]);
  memory("statistics", openDelegatedReader, statisticsLine, ["2|ripencc|1|1|||\n", ""]);
} else await speeds(Number(process.argv[2] ?? 32));

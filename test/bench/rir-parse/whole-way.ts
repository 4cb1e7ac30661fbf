/**
 * The whole way of `nearcrawl rir check`, as a process: from files to the tree, CPU time of all threads, wall time and
 * peak memory; and a table of where the time goes, from CPU profiles of all threads. Of this checkout, and of another
 * one beside it, by turns.
 */
import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import type { FileReport } from "#rir-import/read/file-report";

export interface Checked {
  readonly cpuSeconds: number;
  readonly wallSeconds: number;
  readonly peakBytes: number;
  /** Of all files. */
  readonly records: number;
  /** The answer without what takes its time. */
  readonly answer: string;
}

const preload = pathToFileURL(join(import.meta.dirname, "write-usage.mjs")).href;

/** Checks the sources with what is built in a checkout. */
export function checkOnce(
  checkout: string,
  sources: readonly string[],
  nodeArguments: readonly string[] = [],
): Checked {
  const folder = mkdtempSync(join(tmpdir(), "rir-check-bench-"));
  const usage = join(folder, "usage.json");
  try {
    const startedAt = performance.now();
    const command = [join(checkout, "dist/ops/cli/main.js"), "rir", "check", ...sources, "--json"];
    const { status, stdout, stderr } = spawnSync(
      process.execPath,
      [...nodeArguments, "--import", preload, ...command],
      { maxBuffer: 2 ** 28, env: { ...process.env, NEARCRAWL_BENCH_USAGE: usage } },
    );
    const wallSeconds = (performance.now() - startedAt) / 1000;
    if (status !== 0) throw new Error(`check ended with ${status}: ${stderr.toString().slice(-500)}`);
    const { files, state } = JSON.parse(stdout.toString()) as { files: FileReport[]; state: unknown };
    const records = files.reduce((sum, { read }) => sum + read, 0);
    const answer = JSON.stringify([files.map(({ seconds: _, ...file }) => file), state]);
    return { ...JSON.parse(readFileSync(usage, "utf8")), wallSeconds, records, answer };
  } finally {
    rmSync(folder, { recursive: true });
  }
}

interface Profile {
  readonly nodes: readonly {
    readonly id: number;
    readonly callFrame: { readonly functionName: string; readonly url: string };
    readonly children?: readonly number[];
  }[];
  readonly samples: readonly number[];
  readonly timeDeltas: readonly number[];
}

/** Share of each stage in the time of all threads that run JavaScript; unpacking runs beside them. */
export function stagesOf(checkout: string, sources: readonly string[]): ReadonlyMap<string, number> {
  const folder = mkdtempSync(join(tmpdir(), "rir-check-profile-"));
  try {
    checkOnce(checkout, sources, ["--cpu-prof", `--cpu-prof-dir=${folder}`]);
    const times = new Map<string, number>();
    for (const file of readdirSync(folder))
      addStages(times, JSON.parse(readFileSync(join(folder, file), "utf8")) as Profile);
    const total = [...times.values()].reduce((sum, time) => sum + time, 0);
    return new Map([...times].map(([stage, time]) => [stage, time / total]));
  } finally {
    rmSync(folder, { recursive: true });
  }
}

export const stages = [
  "read, unpack, cut",
  "scan",
  "fields",
  "names and holders",
  "checks",
  "ranges",
  "joining threads",
  "tree: holders",
  "tree: sort, merge, nest",
  "report",
  "garbage collection",
  "start",
  "other",
] as const;

type Stage = (typeof stages)[number];

type Rule = readonly [Stage, file: RegExp, name?: RegExp];

/** By file and function: what is called from there, however deep, is of this stage. */
const wholeCalls: readonly Rule[] = [
  ["garbage collection", /^$/, /^\(garbage collector\)$/],
  ["joining threads", /(text-pool|holder-references|candidate-table|to-subnets)\.js$/, /^(absorb|joined)$/],
  ["tree: holders", /holder-references\.js$/, /^(addTo|resolve|describe)$/],
  ["tree: holders", /registry-state\.js$/, /^add$/],
  ["tree: sort, merge, nest", /to-subnets\.js$/, /^build(State|Family)$/],
];

/** Of the innermost frame of which anything is said here. */
const innermost: readonly Rule[] = [
  ["names and holders", /(text-pool|pair-index|holder-references|pending-texts|to-subnets)\.js$/],
  ["checks", /(precedence|special-purpose)\.js$/],
  ["ranges", /(candidate-table|range-columns)\.js$/],
  ["report", /(file-report|output|files-text)\.js$/],
  [
    "fields",
    /(rpsl-values|range-reader|registry-range|text-decoding|arin-xml|formats\/rpsl|formats\/delegated)\.js$/,
  ],
  ["scan", /(rpsl-scanner|xml-picker|xml-records|delegated-lines|line-blocks)\.js$/],
  ["read, unpack, cut", /(zlib|node:fs|internal\/fs|internal\/streams|open-source|zip|rpsl-pieces|crypto)/],
  ["start", /(loader|modules|esm|node_modules)/],
];

function addStages(times: Map<string, number>, { nodes, samples, timeDeltas }: Profile): void {
  const byId = new Map(nodes.map((node) => [node.id, node]));
  const parents = new Map(
    nodes.flatMap((node) => (node.children ?? []).map((child) => [child, node.id] as const)),
  );
  const stageOf = (id: number): Stage | "" => {
    const frames: Profile["nodes"][number]["callFrame"][] = [];
    for (let at: number | undefined = id; at !== undefined; at = parents.get(at))
      frames.push(byId.get(at)!.callFrame);
    if (frames[0]?.functionName === "(idle)") return "";
    const fits = ([, file, name]: Rule, { url, functionName }: Profile["nodes"][number]["callFrame"]) =>
      file.test(url) && (name?.test(functionName) ?? true);
    const whole = wholeCalls.find((rule) => frames.some((frame) => fits(rule, frame)));
    const near = frames.map((frame) => innermost.find((rule) => fits(rule, frame)));
    const rule = whole ?? near.find((found) => found !== undefined);
    return rule?.[0] ?? "other";
  };
  const known = new Map<number, Stage | "">();
  samples.forEach((id, at) => {
    const stage = known.get(id) ?? stageOf(id);
    known.set(id, stage);
    if (stage !== "") times.set(stage, (times.get(stage) ?? 0) + (timeDeltas[at] as number));
  });
}

/**
 * Soak: hours of the emulated Internet at full rate. Real crawlers fetch pages that change, again and again, since for the
 * coordinator a day is over every minute: what it keeps for days comes to its end within the run, and what is done once an
 * hour or a day is done every minute. Somebody looks at the pages all the while. Every minute it is looked at how much memory
 * (collected first), handles, threads and disk each process and each table takes, how late the coordinator's event loop is,
 * and how long each duty took; at the end, of every figure, whether it is flat. Linux.
 * Run: npm run bench -- soak [hours, default 6] [--day-seconds 60] [--sample-seconds 60] [--crawlers 4] [--sites 500] [--out file]
 * Ctrl-C ends it with the samples that there are. Exit codes: 0 everything flat, 1 something grows, 2 wrong usage.
 */
import { writeFileSync } from "node:fs";
import { loadavg } from "node:os";
import { setTimeout as delay } from "node:timers/promises";
import { parseArgs } from "node:util";
import { keptDays, tableEnds } from "#coordinator/storage/table-ends";
import { changes, type Look, retention, SoakFleet } from "./soak/fleet.ts";
import { type Sample, type Tolerance, type Trend, trendOf, trendRule } from "./soak/trend.ts";

const asked = options();
const fleet = await SoakFleet.start(asked);
const startMs = performance.now();
const endMs = startMs + asked.hours * 3_600_000;
const looks: { readonly hours: number; readonly look: Look; readonly load: number }[] = [];
let isStopped = false;
let days = 0;
const stop = new AbortController();
process.once("SIGINT", () => {
  isStopped = true;
  stop.abort();
});

try {
  const pages = visitPages();
  const clock = turnDays();
  for (let at = 1; !isStopped && performance.now() < endMs; at += 1) {
    await pause(startMs + at * asked.sampleSeconds * 1000 - performance.now());
    const look = await fleet.look();
    looks.push({ hours: (performance.now() - startMs) / 3_600_000, look, load: loadavg()[0]! });
    say(progress(look));
  }
  isStopped = true;
  stop.abort();
  await Promise.all([pages, clock]);
  report();
} finally {
  await fleet.close();
}
process.exit();

function options() {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      "day-seconds": { type: "string", default: "60" },
      "sample-seconds": { type: "string", default: "60" },
      crawlers: { type: "string", default: "4" },
      sites: { type: "string", default: "500" },
      out: { type: "string" },
    },
  });
  const number = (name: string, text: string, [least, most]: readonly [number, number]): number => {
    const value = Number(text);
    if (value >= least && value <= most) return value;
    process.stderr.write(`soak: ${name} ${text}: must be a number from ${least} to ${most}\n`);
    process.exit(2);
  };
  return {
    hours: number("hours", positionals[0] ?? "6", [0.02, 1000]),
    daySeconds: number("--day-seconds", values["day-seconds"], [10, 86_399]),
    sampleSeconds: number("--sample-seconds", values["sample-seconds"], [1, 3600]),
    crawlers: number("--crawlers", values.crawlers, [1, 30]),
    sites: number("--sites", values.sites, [10, 20_000]),
    out: values.out ?? null,
  };
}

function say(line: string): void {
  process.stdout.write(`${line}\n`);
}

async function pause(ms: number): Promise<void> {
  await delay(Math.max(0, ms), undefined, { signal: stop.signal }).catch(() => {});
}

async function turnDays(): Promise<void> {
  for (;;) {
    await pause(asked.daySeconds * 1000);
    if (isStopped) return;
    fleet.nextDay();
    days += 1;
  }
}

/** Somebody who goes through the pages without end, one in half a second. */
async function visitPages(): Promise<void> {
  const paths = [
    "/",
    "/fleet",
    "/queue",
    "/search?q=the",
    "/storage",
    "/changes",
    "/api/overview",
    "/metrics",
    "/explore",
  ];
  for (let at = 0; !isStopped; at += 1) {
    await fetch(`${fleet.pagesUrl}${paths[at % paths.length]}`, { signal: AbortSignal.timeout(30_000) })
      .then((answer) => answer.arrayBuffer())
      .catch(() => {});
    await pause(500);
  }
}

function progress(look: Look): string {
  const megabytes = (name: string) => `${((look.get(name) ?? 0) / 2 ** 20).toFixed(0)} MB`;
  return [
    `${((performance.now() - startMs) / 60_000).toFixed(0).padStart(4)} min, day ${days}`,
    `${(look.get("fetches a minute") ?? 0).toFixed(0)} fetches a minute`,
    `coordinator ${megabytes("coordinator, resident bytes")} (heap ${megabytes("coordinator, heap bytes")}, ${look.get("coordinator, handles")} handles)`,
    `database ${megabytes("database, bytes")}`,
    `load ${loadavg()[0]!.toFixed(1)}`,
  ].join(" · ");
}

// The report.

/** By what a figure's name ends in, or begins with. What wavers by less is no growth. */
function toleranceOf(name: string): Tolerance {
  if (name.startsWith("duty ")) return { share: 0.5, least: 50 };
  if (name.endsWith("late p99 ms")) return { share: 0.5, least: 20 };
  if (name === "coordinator, handles" || name.endsWith("connections")) return { share: 0.15, least: 8 };
  // A connection for each of the hosts that it has at a time.
  if (name.endsWith("handles")) return { share: 0.15, least: 32 };
  if (name.endsWith("threads")) return { share: 0.1, least: 2 };
  if (name.endsWith("resident bytes")) return { share: 0.15, least: 16 * 2 ** 20 };
  if (name.startsWith("table ") || name.startsWith("database, ")) return { share: 0.15, least: 2 ** 20 };
  return { share: 0.15, least: 4 * 2 ** 20 };
}

/** Why a table may grow all the while that this run takes; null: it may not. */
function growthOf(name: string): string | null {
  if (name === "database, bytes") return "as its tables do";
  if (name === "database, log bytes") return "up to max_wal_size, 4 GB";
  const table = /^table (\w+)/.exec(name)?.[1];
  if (table === undefined) return null;
  const end = tableEnds[table];
  if (end === undefined) return null;
  const kept = keptDays(end, { retention, changes });
  if (kept !== null) return kept > days / 2 ? `kept for ${kept} days, of which this run has ${days}` : null;
  if (end.type === "each") return `for each ${end.words}`;
  return end.type === "bounded" && end.mostRows !== null ? `up to ${end.mostRows} rows` : null;
}

interface Row {
  readonly name: string;
  readonly trend: Trend;
  readonly allowed: string | null;
}

function report(): void {
  const names = [...new Set(looks.flatMap(({ look }) => [...look.keys()]))];
  const judged = names.filter((name) => name !== "fetches a minute" && name !== "URLs known");
  const rows = judged.map((name): Row => {
    const trend = trendOf(samplesOf(name), toleranceOf(name));
    return { name, trend, allowed: trend.verdict === "grows" ? growthOf(name) : null };
  });
  const growing = rows.filter(({ trend, allowed }) => trend.verdict === "grows" && allowed === null);
  const isTable = ({ name }: Row) => name.startsWith("table ");
  const isDuty = ({ name }: Row) => name.startsWith("duty ");
  const rate = trendOf(samplesOf("fetches a minute"), { share: 0.15, least: 10 });
  const lines = [
    `${looks.length} samples over ${(60 * (looks.at(-1)?.hours ?? 0)).toFixed(0)} minutes, ${days} days of the coordinator's clock; ${asked.crawlers} crawlers, ${asked.sites} sites; load average ${median("load")}.`,
    `Fetches a minute: ${rate.first.toFixed(0)} in the first quarter, ${rate.last.toFixed(0)} in the last. URLs known: ${looks.at(-1)?.look.get("URLs known")}.`,
    "",
    `Rule: ${trendRule}.`,
    ...table(
      "Processes and disk",
      rows.filter((row) => !isTable(row) && !isDuty(row)),
    ),
    ...table("Duties", rows.filter(isDuty)),
    ...table(
      "Tables",
      rows.filter((row) => isTable(row) && row.trend.last > 2 ** 17),
    ),
    "",
    `Warnings and errors that the coordinator logged: ${logWords()}`,
    "",
    growing.length === 0
      ? "**Flat**: nothing grows that has no reason to."
      : `**Grows**: ${growing.map(({ name }) => name).join("; ")}.`,
  ];
  say(lines.join("\n"));
  if (asked.out !== null) writeFileSync(asked.out, `${lines.join("\n")}\n`);
  if (growing.length > 0) process.exitCode = 1;
}

function samplesOf(name: string): readonly Sample[] {
  return looks.flatMap(({ hours, look }) => {
    const value = look.get(name);
    return value === undefined ? [] : [{ hours, value }];
  });
}

function median(_: "load"): string {
  const sorted = looks.map(({ load }) => load).sort((a, b) => a - b);
  return (sorted[sorted.length >> 1] ?? 0).toFixed(1);
}

function logWords(): string {
  const entries = Object.entries(fleet.logged).sort(([, a], [, b]) => b - a);
  return entries.length === 0 ? "none" : entries.map(([words, times]) => `${words} × ${times}`).join("; ");
}

function table(title: string, rows: readonly Row[]): readonly string[] {
  return [
    "",
    `## ${title}`,
    "",
    "| figure | first quarter, median | last quarter, median | slope of the second half, an hour | verdict |",
    "|---|---:|---:|---:|---|",
    ...rows.map(({ name, trend, allowed }) => {
      const { first, last, slopePerHour, verdict } = trend;
      const told = verdict === "grows" ? (allowed === null ? "**grows**" : `grows: ${allowed}`) : verdict;
      const [words, unit] = unitOf(name);
      return `| ${words} | ${shown(first, unit)} | ${shown(last, unit)} | ${shown(slopePerHour, unit)} | ${told} |`;
    }),
  ];
}

function unitOf(name: string): readonly [string, "MB" | "ms" | ""] {
  if (name.endsWith("bytes")) return [name.replace(/,? bytes$/, ""), "MB"];
  return [name.replace(/ ms\b/, ""), / ms( |$)/.test(name) ? "ms" : ""];
}

function shown(value: number, unit: "MB" | "ms" | ""): string {
  if (Number.isNaN(value)) return "–";
  if (unit === "MB") return `${(value / 2 ** 20).toFixed(2)} MB`;
  return unit === "ms" ? `${value.toFixed(1)} ms` : value.toFixed(1);
}

/**
 * How long a coordinator takes to be ready: the built command, from the start of its process to the first 200 of
 * /ready, with the processor time and the peak of memory until then. On an empty database, embedded and a server's,
 * the first time and again; and on a database of ten million subnets and a million delegations, its tree from the rows and
 * from the snapshot. The large database is made once (minutes) and kept in a folder for the next run. Linux: /proc.
 *
 * Run: npm run build && npm run bench -- coordinator-start [short | large] [--rounds 3] [--subnets 10000000]
 *   [--delegations 1000000] [--home FOLDER] [--profile FOLDER] (V8 profiles of the starts); `short`: empty databases
 *   alone; `large`: the large one alone
 */
import { type ChildProcessByStdio, spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { parseArgs } from "node:util";
import { openDatabase } from "#db/connect";
import { stopEmbeddedPostgres } from "#db/embedded-postgres";
import { migrate } from "#db/migrate";
import { spread } from "./crawl/spread.ts";
import { figure } from "./figure.ts";
import { median } from "./runner/compare-figures.ts";
import { seedSubnets } from "./start/seed-subnets.ts";

const { values: options, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    rounds: { type: "string", default: "3" },
    subnets: { type: "string", default: "10000000" },
    delegations: { type: "string", default: "1000000" },
    home: { type: "string", default: join(tmpdir(), "nearcrawl-bench-start") },
    profile: { type: "string" },
  },
});
const rounds = Number(options.rounds);
const readyWithinMs = 600_000;
const ticksPerSecond = 100;
const command = join(import.meta.dirname, "../../dist/ops/cli/main.js");

interface Started {
  readonly seconds: number;
  readonly cpuSeconds: number;
  readonly peakMb: number;
}

interface Place {
  readonly home: string;
  readonly databaseUrl: string | null;
  readonly schema: string;
}

const scratch = mkdtempSync(join(tmpdir(), "nearcrawl-bench-"));
chmodSync(scratch, 0o711);
try {
  console.log(`${rounds} starts each, median (lowest to highest)`);
  console.log("| start | ready, s | processor time, s | peak, MB |");
  console.log("|---|---|---|---|");
  if (!positionals.includes("large")) await emptyDatabases();
  if (!positionals.includes("short")) await largeDatabase();
} finally {
  rmSync(scratch, { recursive: true, force: true });
}

async function emptyDatabases(): Promise<void> {
  const embedded = (round: number): Place => ({
    ...{ home: join(scratch, `embedded-${round}`), databaseUrl: null, schema: "bench" },
  });
  await measure("empty, embedded, first", embedded);
  await measure("empty, embedded, again", embedded);
  const home = join(scratch, "server");
  const database = await openDatabase({ databaseUrl: null, home, schema: "held" });
  try {
    const served = (round: number): Place => ({
      ...{ home: join(scratch, `home-${round}`), databaseUrl: database.url, schema: `bench_${round}` },
    });
    await measure("empty, a server's, first", served);
    await measure("empty, a server's, again", served);
  } finally {
    await database.close();
  }
}

async function largeDatabase(): Promise<void> {
  const [subnets, delegations] = [Number(options.subnets), Number(options.delegations)];
  const schema = `start_${subnets}_${delegations}`;
  const home = join(options.home, "server");
  mkdirSync(options.home, { recursive: true });
  chmodSync(options.home, 0o711);
  const database = await openDatabase({ databaseUrl: null, home, schema });
  try {
    await migrate(database);
    await seedSubnets(database.pool, { subnets, delegations, say: (line) => console.error(line) });
    const own = join(scratch, "large");
    const place = () => ({ home: own, databaseUrl: database.url, schema });
    const words = `${subnets} subnets, ${delegations} delegations`;
    const forget = () => rmSync(join(own, "snapshots"), { recursive: true, force: true });
    await measure(`${words}, tree from the rows`, place, forget);
    await measure(`${words}, tree from the snapshot`, place);
  } finally {
    await database.close();
    await stopEmbeddedPostgres(home);
  }
}

async function measure(
  name: string,
  place: (round: number) => Place,
  before: () => void = () => {},
): Promise<void> {
  const all: Started[] = [];
  for (let round = 1; round <= rounds; round++) {
    before();
    all.push(await start(place(round), `${name.replaceAll(/[^a-z0-9]+/g, "-")}-${round}`));
  }
  const of = (pick: (one: Started) => number) => all.map(pick);
  const cells = [
    spread(of(({ seconds }) => seconds)),
    spread(of(({ cpuSeconds }) => cpuSeconds)),
    spread(
      of(({ peakMb }) => peakMb),
      0,
    ),
  ];
  console.log(`| ${name} | ${cells.join(" | ")} |`);
  figure(`${name}, processor time`, median(of(({ cpuSeconds }) => cpuSeconds)), "s");
  figure(`${name}, peak`, median(of(({ peakMb }) => peakMb)), "MB");
}

/** Until it is ready; then it is stopped. */
async function start({ home, databaseUrl, schema }: Place, profileName: string): Promise<Started> {
  const profile =
    options.profile === undefined
      ? []
      : ["--cpu-prof", `--cpu-prof-dir=${options.profile}`, `--cpu-prof-name=${profileName}.cpuprofile`];
  const args = [
    "--home",
    home,
    "--schema",
    schema,
    "--listen",
    "127.0.0.1:0",
    "--contact",
    "bench@example.org",
  ];
  const server = databaseUrl === null ? [] : ["--database-url", databaseUrl];
  const startedMs = performance.now();
  const child = spawn(process.execPath, [...profile, command, "coordinator", ...args, ...server], {
    stdio: ["ignore", "pipe", "ignore"],
    env: { ...process.env, DATABASE_URL: "" },
  });
  try {
    const webUrl = await urlSaidBy(child);
    await untilReady(webUrl);
    const seconds = (performance.now() - startedMs) / 1000;
    return { seconds, ...usageOf(child.pid!) };
  } finally {
    child.kill("SIGTERM");
    if (child.exitCode === null) await once(child, "exit");
  }
}

/** The command says it when it listens; what it says later is read, too. */
async function urlSaidBy(child: ChildProcessByStdio<null, Readable, null>): Promise<string> {
  const tooLate = setTimeout(() => child.kill("SIGKILL"), readyWithinMs);
  let said = "";
  try {
    return await new Promise((resolve, reject) => {
      child.stdout.on("data", (chunk: Buffer) => {
        said += chunk;
        const url = /^coordinator at (\S+?),/m.exec(said)?.[1];
        if (url !== undefined) resolve(url);
      });
      child.once("exit", () => reject(new Error(`the coordinator ended before it was ready: ${said}`)));
    });
  } finally {
    clearTimeout(tooLate);
  }
}

async function untilReady(webUrl: string): Promise<void> {
  for (;;) {
    const { status } = await fetch(`${webUrl}/ready`);
    if (status === 200) return;
    if (status !== 503) throw new Error(`${webUrl}/ready answers ${status}`);
  }
}

/** proc(5): user and system time in /proc/PID/stat, the peak in /proc/PID/status. */
function usageOf(pid: number): Omit<Started, "seconds"> {
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8")
    .replace(/^.*\) /s, "")
    .split(" ");
  const peak = /^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1];
  return {
    cpuSeconds: (Number(fields[11]) + Number(fields[12])) / ticksPerSecond,
    peakMb: Number(peak) / 1024,
  };
}

/**
 * How long a search takes while 20 people search without a pause: the page over HTTP, from the pages' server in its own process,
 * with Postgres beside it. A million generated pages of about 330 lexemes, 20,000 hosts, five languages; generated once (minutes)
 * and kept in a folder for the next run. Each search method has its own server and answers the same queries, in turns.
 * Run: npm run bench -- search [--pages 1000000] [--users 20] [--seconds 30] [--home FOLDER]
 */
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readFileSync } from "node:fs";
import { cpus, tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import type { Pool } from "pg";
import { Agent, request } from "undici";
import { seededRandom } from "#core/random";
import { openDatabase } from "#db/connect";
import { migrate } from "#db/migrate";
import { figure } from "./figure.ts";
import { type Kind, kinds, nextQuestion, type Question, someTitles } from "./search/questions.ts";
import { madeLanguages, pagesSeeded, seedIndex } from "./search/seed-index.ts";

const { values: options } = parseArgs({
  options: {
    pages: { type: "string", default: "1000000" },
    users: { type: "string", default: "20" },
    seconds: { type: "string", default: "30" },
    home: { type: "string", default: join(tmpdir(), "nearcrawl-bench-search") },
  },
});
const [pages, users, seconds] = [Number(options.pages), Number(options.users), Number(options.seconds)];
/** The compared search methods. */
const ways = ["database", "index"] as const;
type Way = (typeof ways)[number];
const rounds = 3;

/** More than all rounds of one method use, so that no answer is cached. */
const questionsMade = 30_000;

const database = await openDatabase({
  databaseUrl: process.env.DATABASE_URL ?? null,
  home: options.home,
  schema: `search_${pages}`,
  maxConnections: 4,
});
const { pool } = database;

interface Timed extends Question {
  readonly ms: number;
  readonly cutShort: boolean;
}

/** The times of one method in all its rounds. */
interface Measured {
  readonly answers: Timed[];
  readonly p95s: number[];
  serverMs: number;
  indexMs: number;
  postgresMs: number;
}

await migrate(database);
const languages = madeLanguages();
if ((await pagesSeeded(pool)) !== pages) {
  console.log(`making ${pages} pages in ${options.home}`);
  await seedIndex(pool, { pages, languages, say: (line) => console.log(line) });
}
const titles = await someTitles(pool);
const agent = new Agent({ connections: users });
try {
  await measure();
} finally {
  await agent.close();
  await database.close();
}

async function measure(): Promise<void> {
  const servers = await Promise.all(ways.map(startServer));
  const measured = new Map(
    ways.map((way): [Way, Measured] => [
      way,
      { answers: [], p95s: [], serverMs: 0, indexMs: 0, postgresMs: 0 },
    ]),
  );
  const asking = { languages, titles, random: seededRandom(3) };
  const questions = Array.from({ length: questionsMade }, () => nextQuestion(asking));
  for (const { origin } of servers)
    await ask(origin, { forSeconds: Math.min(5, seconds), questions: questions.slice(-1000), answers: [] });
  for (let round = 0; round < rounds; round++) {
    const some = questions.slice((round * questionsMade) / rounds);
    for (const server of servers)
      await measureRound(server, { questions: some, all: measured.get(server.way)! });
  }
  const { indexPid, indexBuiltMs } = servers.find(({ way }) => way === "index")!;
  const index = `built in ${((indexBuiltMs ?? Number.NaN) / 1000).toFixed(0)} s, ${residentMb(indexPid ?? 0).toFixed(0)} MB`;
  for (const { child } of servers) child.disconnect();
  report(measured, index);
}

async function measureRound(
  server: Server,
  { questions, all }: { readonly questions: readonly Question[]; readonly all: Measured },
): Promise<void> {
  const answers: Timed[] = [];
  const before = await cpuNow(server);
  await ask(server.origin, { forSeconds: seconds / rounds, questions, answers });
  const after = await cpuNow(server);
  all.serverMs += after.server - before.server;
  all.indexMs += after.index - before.index;
  all.postgresMs += after.postgres - before.postgres;
  all.answers.push(...answers);
  all.p95s.push(
    quantile(
      answers.map(({ ms }) => ms),
      0.95,
    ),
  );
}

interface Server {
  readonly way: Way;
  readonly child: ChildProcess;
  readonly origin: string;
  readonly indexPid: number | null;
  readonly indexBuiltMs: number | null;
}

async function startServer(way: Way): Promise<Server> {
  const child = fork(join(import.meta.dirname, "search/server.ts"), [database.url, way], {
    execArgv: ["--conditions=nearcrawl-source", "--import", "tsx"],
  });
  const [{ port, ...index }] = (await once(child, "message")) as [
    { readonly port: number } & Pick<Server, "indexPid" | "indexBuiltMs">,
  ];
  return { way, child, origin: `http://127.0.0.1:${port}`, ...index };
}

/** Every user asks, reads the whole answer, and asks again. */
async function ask(
  origin: string,
  {
    forSeconds,
    questions,
    answers,
  }: { readonly forSeconds: number; readonly questions: readonly Question[]; readonly answers: Timed[] },
): Promise<void> {
  const endMs = performance.now() + 1000 * forSeconds;
  let asked = 0;
  const user = async () => {
    while (performance.now() < endMs) {
      const question = questions[asked++ % questions.length]!;
      const startedMs = performance.now();
      const query = new URLSearchParams({ q: question.words, ...question.filters });
      const { statusCode, body } = await request(`${origin}/search?${query}`, { dispatcher: agent });
      const text = await body.text();
      if (statusCode !== 200) throw new Error(`${statusCode} for ${query}`);
      answers.push({ ...question, ms: performance.now() - startedMs, cutShort: text.includes("cut short") });
    }
  };
  await Promise.all(Array.from({ length: users }, user));
}

async function cpuNow({ child, indexPid }: Server) {
  return {
    server: cpuMsOf(child.pid!),
    index: indexPid === null ? 0 : cpuMsOf(indexPid),
    postgres: processorTime(await serverPid(pool)).serverMs,
  };
}

/** Resident memory of a process in MB; Linux: from /proc. */
function residentMb(pid: number): number {
  const [, kb = "NaN"] = /VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8")) ?? [];
  return Number(kb) / 1024;
}

function report(measured: ReadonlyMap<Way, Measured>, index: string): void {
  console.log(
    `${pages} made-up pages; ${users} users without a pause, ${seconds} s for each way in ${rounds} rounds, the ways in turns; ${cpus().length} cores`,
  );
  console.log(`ways: \`database\`: Postgres alone; \`index\`: in memory (${index})\n`);
  console.log(
    "| | searches | a second | p50 ms | p95 ms | p99 ms | CPU ms: pages' server | index | Postgres | in all | cut short |",
  );
  console.log("|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|");
  for (const [way, { answers, serverMs, indexMs, postgresMs }] of measured) {
    const ms = answers.map((one) => one.ms);
    const cells = [
      answers.length,
      (answers.length / seconds).toFixed(0),
      ...[0.5, 0.95, 0.99].map((share) => quantile(ms, share).toFixed(0)),
      ...[serverMs, indexMs, postgresMs, serverMs + indexMs + postgresMs].map((cpu) =>
        (cpu / answers.length).toFixed(1),
      ),
      answers.filter(({ cutShort }) => cutShort).length,
    ];
    console.log(`| ${way} | ${cells.join(" | ")} |`);
    figure(way, (serverMs + indexMs + postgresMs) / answers.length, "ms CPU a search");
  }
  for (const [way, { p95s }] of measured)
    console.log(`p95 by round, ${way}: ${p95s.map((ms) => ms.toFixed(0)).join(", ")} ms.`);
  console.log(`\n| p95 ms | ${[...measured.keys()].join(" | ")} |`);
  console.log(`|---|${"---:|".repeat(measured.size)}`);
  for (const kind of kinds)
    console.log(
      `| ${kind} | ${[...measured.values()].map(({ answers }) => p95Of(answers, kind)).join(" | ")} |`,
    );
}

function p95Of(answers: readonly Timed[], kind: Kind): string {
  const ms = answers.filter((one) => one.kind === kind).map((one) => one.ms);
  return quantile(ms, 0.95).toFixed(0);
}

function quantile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? Number.NaN;
}

// * Processor time of this process and of the whole Postgres server beside it: its backends, those that have ended, and
// what works behind them (checkpoints, the log, vacuum). Linux: from /proc.

interface ProcessorTime {
  readonly ownMs: number;
  readonly serverMs: number;
}

/** The server's first process, of which all others are children. */
async function serverPid(pool: Pool): Promise<number> {
  const { rows } = await pool.query<{ pid: number }>("select pg_backend_pid() as pid");
  return statOf(rows[0]!.pid).parent;
}

function processorTime(server: number): ProcessorTime {
  const { user, system } = process.cpuUsage();
  const children = readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => tryStat(Number(name)) ?? [])
    .filter(({ parent }) => parent === server);
  const { ticks, endedTicks } = statOf(server);
  const serverTicks = children.reduce((sum, child) => sum + child.ticks, ticks + endedTicks);
  return { ownMs: (user + system) / 1000, serverMs: 10 * serverTicks };
}

/** User and system time of one process; 0 when it is gone. */
function cpuMsOf(pid: number): number {
  return 10 * (tryStat(pid)?.ticks ?? 0);
}

interface Stat {
  readonly parent: number;
  /** Of 10 ms, user and system; `endedTicks` of children that have ended. */
  readonly ticks: number;
  readonly endedTicks: number;
}

/** proc(5): fields 4 and 14 to 17 of /proc/PID/stat. */
function statOf(pid: number): Stat {
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8")
    .replace(/^.*\) /s, "")
    .split(" ")
    .map(Number);
  return { parent: fields[1]!, ticks: fields[11]! + fields[12]!, endedTicks: fields[13]! + fields[14]! };
}

/** Null: the process has ended meanwhile. */
function tryStat(pid: number): Stat | null {
  try {
    return statOf(pid);
  } catch {
    return null;
  }
}

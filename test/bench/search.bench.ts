/**
 * How long a search takes when 20 people search at once, without a pause: the page itself, over HTTP, from the
 * pages' server in a process of its own, with Postgres beside it. A million made-up pages of about 330 lexemes each,
 * 20,000 hosts, five languages; they are made once (minutes) and kept in a folder for the next run. Each way of
 * looking has its own server and is asked the same questions, the ways in turns.
 * Run: npm run bench -- search [--pages 1000000] [--users 20] [--seconds 30] [--home FOLDER] [--write] [--hold]
 * With --hold it waits for a line on its standard input when all servers stand, so that the machine can be made quiet.
 *
 * `search recall` asks 1,000 seeded questions instead and tells how many of the ten best pages each way of looking finds;
 * which are the best is worked out first, for so many seconds at a time, and kept in the folder (search/recall.ts).
 * Run: npm run bench -- search recall [--questions 1000] [--seconds 30] [--pages 1000000] [--home FOLDER]
 */
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { cpus, tmpdir, totalmem } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { Agent, request } from "undici";
import { createSearchReads } from "#coordinator/search/search-reads";
import { seededRandom } from "#core/random";
import { openDatabase } from "#db/connect";
import { migrate } from "#db/migrate";
import { backendsCpuMs, cpuMs } from "./search/cpu-time.ts";
import { formerSearchReads } from "./search/former-search.ts";
import { type Kind, kinds, nextQuestion, type Question, someTitles } from "./search/questions.ts";
import { type Recall, recallOf, recallQuestions, recallTable, type Truth, truths } from "./search/recall.ts";
import { madeLanguages, pagesSeeded, seedIndex } from "./search/seed-index.ts";
import { type Way, ways } from "./search/ways.ts";

const {
  values: options,
  positionals: [only],
} = parseArgs({
  allowPositionals: true,
  options: {
    questions: { type: "string", default: String(recallQuestions) },
    pages: { type: "string", default: "1000000" },
    users: { type: "string", default: "20" },
    seconds: { type: "string", default: "30" },
    home: { type: "string", default: join(tmpdir(), "nearcrawl-bench-search") },
    write: { type: "boolean", default: false },
    hold: { type: "boolean", default: false },
  },
});
const [pages, users, seconds] = [Number(options.pages), Number(options.users), Number(options.seconds)];
const rounds = 3;

const database = await openDatabase({
  databaseUrl: process.env.DATABASE_URL ?? null,
  home: options.home,
  schema: `search_${pages}`,
  maxConnections: 4,
});
const { pool } = database;
const lines: string[] = [];
const say = (line: string) => {
  lines.push(line);
  console.log(line);
};

interface Timed extends Question {
  readonly ms: number;
  readonly cutShort: boolean;
}

/** What one way took in all its rounds. */
interface Measured {
  readonly answers: Timed[];
  readonly p95s: number[];
  serverMs: number;
  postgresMs: number;
}

await migrate(database);
const languages = await madeLanguages(pool);
const seedingMs = await seedWhereNeeded();
const titles = await someTitles(pool);
const agent = new Agent({ connections: users });
try {
  if (only === "recall") await recall();
  else await measure();
} finally {
  await agent.close();
  await database.close();
}

async function recall(): Promise<void> {
  const known = await knownTruths(1000 * seconds);
  console.log(`${known.length} of ${options.questions} questions, all matches of each ranked\n`);
  if (known.length > 0) console.log(recallTable(await recalls(known)).join("\n"));
}

async function knownTruths(forMs: number): Promise<Truth[]> {
  const file = join(options.home, `recall-${pages}.ndjson`);
  return await truths(pool, languages, { file, count: Number(options.questions), forMs });
}

async function recalls(known: readonly Truth[]): Promise<Record<Way, readonly Recall[]>> {
  const nowMs = () => performance.now();
  return {
    former: await recallOf(formerSearchReads(pool, nowMs), known),
    database: await recallOf(createSearchReads(pool, nowMs), known),
  };
}

async function seedWhereNeeded(): Promise<number | null> {
  if ((await pagesSeeded(pool)) === pages) return null;
  const startedMs = performance.now();
  console.log(`making ${pages} pages in ${options.home}`);
  await seedIndex(pool, { pages, languages, say: (line) => console.log(line) });
  return performance.now() - startedMs;
}

async function measure(): Promise<void> {
  const servers = await Promise.all(ways.map(async (way) => ({ way, ...(await startServer(way)) })));
  const measured = new Map(
    ways.map((way): [Way, Measured] => [way, { answers: [], p95s: [], serverMs: 0, postgresMs: 0 }]),
  );
  try {
    for (const { origin } of servers)
      await ask(origin, { forSeconds: Math.min(5, seconds), seed: 1, answers: [] });
    for (let round = 0; round < rounds; round++) {
      for (const { way, origin, child } of servers) {
        const all = measured.get(way)!;
        const answers: Timed[] = [];
        const before = await cpuNow(child.pid);
        await ask(origin, { forSeconds: seconds / rounds, seed: 100 + round, answers });
        const after = await cpuNow(child.pid);
        all.serverMs += after.server - before.server;
        all.postgresMs += after.postgres - before.postgres;
        all.answers.push(...answers);
        all.p95s.push(
          quantile(
            answers.map(({ ms }) => ms),
            0.95,
          ),
        );
      }
    }
  } finally {
    for (const { child } of servers) child.stdin.end();
  }
  const known = await knownTruths(0);
  report(measured, known.length === 0 ? null : await recalls(known));
}

async function startServer(way: Way) {
  const file = join(import.meta.dirname, "search/server.ts");
  const child = spawn(
    process.execPath,
    ["--conditions=nearcrawl-source", "--import", "tsx", file, database.url, way],
    { stdio: ["pipe", "pipe", "inherit"] },
  );
  const [port] = (await once(child.stdout, "data")) as [Buffer];
  return { child, origin: `http://127.0.0.1:${port.toString().trim()}` };
}

/** Every user asks, reads the whole answer, and asks the next. The same seed asks the same questions. */
async function ask(
  origin: string,
  { forSeconds, seed, answers }: { readonly forSeconds: number; readonly seed: number; answers: Timed[] },
): Promise<void> {
  const asking = { languages, titles, random: seededRandom(seed) };
  const endMs = performance.now() + 1000 * forSeconds;
  const user = async () => {
    while (performance.now() < endMs) {
      const question = nextQuestion(asking);
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

/** NaN where it cannot be told. */
async function cpuNow(pid: number | undefined) {
  return {
    server: cpuMs(pid ?? 0) ?? Number.NaN,
    postgres: (await backendsCpuMs(pool)) ?? Number.NaN,
  };
}

function report(
  measured: ReadonlyMap<Way, Measured>,
  recalled: Readonly<Record<Way, readonly Recall[]>> | null,
): void {
  const [core] = cpus();
  say("# Search: 20 users at once");
  say("");
  say(
    `- ${new Date().toISOString().slice(0, 10)}, commit ${commit()}, ${cpus().length} × ${core?.model.trim()}, ${(totalmem() / 2 ** 30).toFixed(0)} GB, Node ${process.version}`,
  );
  say(
    `- ${pages} made-up pages${seedingMs === null ? " (made by an earlier run)" : `, made in ${(seedingMs / 60_000).toFixed(1)} minutes`}; ${users} users without a pause, ${seconds} s for each way in ${rounds} rounds, the ways in turns`,
  );
  say("- ways: `former`: commit 2d62f465; `database`: the index in Postgres, as it is now");
  say("");
  say(
    "| | searches | a second | p50 ms | p95 ms | p99 ms | CPU ms: pages' server | Postgres | in all | cut short | recall@10 |",
  );
  say("|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|");
  for (const [way, { answers, serverMs, postgresMs }] of measured) {
    const ms = answers.map((one) => one.ms);
    const cells = [
      answers.length,
      (answers.length / seconds).toFixed(0),
      ...[0.5, 0.95, 0.99].map((share) => quantile(ms, share).toFixed(0)),
      ...[serverMs, postgresMs, serverMs + postgresMs].map((cpu) => (cpu / answers.length).toFixed(1)),
      answers.filter(({ cutShort }) => cutShort).length,
      recalled?.[way][0]?.recall.toFixed(3) ?? "–",
    ];
    say(`| ${way} | ${cells.join(" | ")} |`);
  }
  say("");
  for (const [way, { p95s }] of measured)
    say(`p95 by round, ${way}: ${p95s.map((ms) => ms.toFixed(0)).join(", ")} ms.`);
  say("");
  say(`| p95 ms | ${[...measured.keys()].join(" | ")} |`);
  say(`|---|${"---:|".repeat(measured.size)}`);
  for (const kind of kinds) {
    say(`| ${kind} | ${[...measured.values()].map(({ answers }) => p95Of(answers, kind)).join(" | ")} |`);
  }
  if (recalled !== null) {
    say("");
    for (const line of recallTable(recalled)) say(line);
  }
  if (options.write || pages >= 1_000_000) {
    writeFileSync(join(import.meta.dirname, "results/search.md"), `${lines.join("\n")}\n`);
  }
}

function p95Of(answers: readonly Timed[], kind: Kind): string {
  const ms = answers.filter((one) => one.kind === kind).map((one) => one.ms);
  return quantile(ms, 0.95).toFixed(0);
}

function quantile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? Number.NaN;
}

function commit(): string {
  return execFileSync("git", ["rev-parse", "--short", "HEAD"], {
    cwd: import.meta.dirname,
    encoding: "utf8",
  }).trim();
}

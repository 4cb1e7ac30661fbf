/**
 * How long a search takes when 20 people search at once, without a pause: the page itself, over HTTP, from the
 * pages' server in a process of its own, with Postgres beside it. A million made-up pages of about 330 lexemes each,
 * 20,000 hosts, five languages; they are made once (minutes) and kept in a folder for the next run. The former query
 * is asked some of the same questions one after the other.
 * Run: npm run bench -- search [--pages 1000000] [--users 20] [--seconds 30] [--home FOLDER] [--write]
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
import { formerSearchMs } from "./search/former-search.ts";
import { type Asking, kinds, nextQuestion, type Question, someTitles } from "./search/questions.ts";
import { recallOf, recallQuestions, recallTable, truths } from "./search/recall.ts";
import { madeLanguages, pagesSeeded, seedIndex } from "./search/seed-index.ts";

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
  },
});
const [pages, users, seconds] = [Number(options.pages), Number(options.users), Number(options.seconds)];
const rounds = 3;
const formerQuestions = 15;
const formerLongestMs = 10_000;

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

await migrate(database);
const languages = await madeLanguages(pool);
const seedingMs = await seedWhereNeeded();
if (only === "recall") {
  await recall();
  process.exit();
}
const asking: Asking = {
  languages,
  titles: await someTitles(pool),
  random: seededRandom(Date.now() % 1_000_000),
};
const server = await startServer();
const agent = new Agent({ connections: users });
try {
  await ask(Math.min(10, seconds), []);
  const timed: Timed[][] = [];
  const cpuBefore = await cpuNow();
  for (let round = 0; round < rounds; round++) {
    const answers: Timed[] = [];
    await ask(seconds / rounds, answers);
    timed.push(answers);
  }
  const cpuAfter = await cpuNow();
  report(timed, await former(), {
    server: cpuAfter.server - cpuBefore.server,
    postgres: cpuAfter.postgres - cpuBefore.postgres,
  });
} finally {
  server.stdin?.end();
  await agent.close();
  await database.close();
}

async function recall(): Promise<void> {
  const file = join(options.home, `recall-${pages}.ndjson`);
  const known = await truths(pool, languages, {
    file,
    count: Number(options.questions),
    forMs: 1000 * seconds,
  });
  const reads = createSearchReads(pool, () => performance.now());
  console.log(`${known.length} of ${options.questions} questions; all matches of each were ranked\n`);
  if (known.length > 0) console.log(recallTable({ database: await recallOf(reads, known) }).join("\n"));
  await database.close();
}

async function seedWhereNeeded(): Promise<number | null> {
  if ((await pagesSeeded(pool)) === pages) return null;
  const startedMs = performance.now();
  console.log(`making ${pages} pages in ${options.home}`);
  await seedIndex(pool, { pages, languages, say: (line) => console.log(line) });
  return performance.now() - startedMs;
}

async function startServer() {
  const file = join(import.meta.dirname, "search/server.ts");
  const child = spawn(
    process.execPath,
    ["--conditions=nearcrawl-source", "--import", "tsx", file, database.url],
    { stdio: ["pipe", "pipe", "inherit"] },
  );
  const [port] = (await once(child.stdout, "data")) as [Buffer];
  return Object.assign(child, { origin: `http://127.0.0.1:${port.toString().trim()}` });
}

/** Every user asks, reads the whole answer, and asks the next. */
async function ask(forSeconds: number, answers: Timed[]): Promise<void> {
  const endMs = performance.now() + 1000 * forSeconds;
  const user = async () => {
    while (performance.now() < endMs) {
      const question = nextQuestion(asking);
      const startedMs = performance.now();
      const query = new URLSearchParams({ q: question.words, ...question.filters });
      const { statusCode, body } = await request(`${server.origin}/search?${query}`, { dispatcher: agent });
      const text = await body.text();
      if (statusCode !== 200) throw new Error(`${statusCode} for ${query}`);
      answers.push({ ...question, ms: performance.now() - startedMs, cutShort: text.includes("cut short") });
    }
  };
  await Promise.all(Array.from({ length: users }, user));
}

/** NaN where it cannot be told. */
async function cpuNow() {
  return {
    server: cpuMs(server.pid ?? 0) ?? Number.NaN,
    postgres: (await backendsCpuMs(pool)) ?? Number.NaN,
  };
}

/** One after the other, on a server that does nothing else. */
async function former(): Promise<{ readonly ms: number; readonly tooLong: number }> {
  const all: number[] = [];
  let tooLong = 0;
  for (let asked = 0; asked < formerQuestions; asked++) {
    const ms = await formerSearchMs(pool, nextQuestion(asking).words, formerLongestMs);
    if (ms === null) tooLong += 1;
    all.push(ms ?? formerLongestMs);
  }
  return { ms: quantile(all, 0.5), tooLong };
}

function report(
  timed: readonly (readonly Timed[])[],
  old: Awaited<ReturnType<typeof former>>,
  cpu: Awaited<ReturnType<typeof cpuNow>>,
): void {
  const all = timed.flat();
  const [core] = cpus();
  say("# Search: 20 users at once");
  say("");
  say(
    `- ${new Date().toISOString().slice(0, 10)}, commit ${commit()}, ${cpus().length} × ${core?.model.trim()}, ${(totalmem() / 2 ** 30).toFixed(0)} GB, Node ${process.version}`,
  );
  say(
    `- ${pages} made-up pages${seedingMs === null ? " (made by an earlier run)" : `, made in ${(seedingMs / 60_000).toFixed(1)} minutes`}; ${users} users without a pause, ${seconds} s in ${rounds} rounds`,
  );
  say(
    `- ${all.length} searches, ${(all.length / seconds).toFixed(0)} a second; ${all.filter(({ cutShort }) => cutShort).length} were cut short`,
  );
  say("");
  say("| | searches | p50 ms | p95 ms | p99 ms |");
  say("|---|---:|---:|---:|---:|");
  row("all", all);
  for (const kind of kinds)
    row(
      kind,
      all.filter((one) => one.kind === kind),
    );
  say("");
  say(
    `CPU a search: ${(cpu.postgres / all.length).toFixed(1)} ms in Postgres, ${(cpu.server / all.length).toFixed(1)} ms in the pages' server.`,
  );
  const p95 = timed.map((round) =>
    quantile(
      round.map(({ ms }) => ms),
      0.95,
    ),
  );
  say(`p95 by round: ${[...p95].map((ms) => ms.toFixed(0)).join(", ")} ms. The aim: 150 ms.`);
  say(
    `The former query, alone and one at a time: median ${old.ms.toFixed(0)} ms, ${old.tooLong} of ${formerQuestions} took longer than ${formerLongestMs / 1000} s.`,
  );
  if (options.write || pages >= 1_000_000) {
    writeFileSync(join(import.meta.dirname, "results/search.md"), `${lines.join("\n")}\n`);
  }
}

function row(name: string, some: readonly Timed[]): void {
  const ms = some.map((one) => one.ms);
  const at = [0.5, 0.95, 0.99].map((share) => quantile(ms, share).toFixed(0));
  say(`| ${name} | ${some.length} | ${at.join(" | ")} |`);
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

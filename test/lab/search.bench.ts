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
import { type ChildProcess, execFileSync, fork } from "node:child_process";
import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { cpus, tmpdir, totalmem } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { Agent, request } from "undici";
import { seededRandom } from "#core/random";
import { openDatabase } from "#db/connect";
import { migrate } from "#db/migrate";
import { figure } from "./figure.ts";
import { cpuMsOf, processorTime, serverPid } from "./processor-time.ts";
import { resultFile } from "./result-file.ts";
import { type Kind, kinds, nextQuestion, type Question, someTitles } from "./search/questions.ts";
import { type Recall, recallBy, recallQuestions, recallTable, type Truth, truths } from "./search/recall.ts";
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
    hold: { type: "boolean", default: false },
  },
});
const [pages, users, seconds] = [Number(options.pages), Number(options.users), Number(options.seconds)];
/** The ways of looking for pages that are held against each other. */
const ways = ["database", "index"] as const;
type Way = (typeof ways)[number];
const rounds = 3;

/** More than are asked in all rounds of one way, so that none is answered from what was kept. */
const questionsMade = 30_000;

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
  indexMs: number;
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
  if (known.length === 0) return;
  const servers = await startServers();
  console.log(recallTable(await recalls(servers, known)).join("\n"));
  for (const { child } of servers) child.disconnect();
}

async function knownTruths(forMs: number): Promise<Truth[]> {
  const file = join(options.home, `recall-${pages}.ndjson`);
  return await truths(pool, languages, { file, count: Number(options.questions), forMs });
}

async function recalls(servers: readonly Server[], known: readonly Truth[]): Promise<Recalls> {
  const each = {} as Record<Way, Recall[]>;
  for (const { way, child } of servers) {
    const find = async (question: Question) => {
      const found = once(child, "message") as Promise<[string[]]>;
      child.send(question);
      return (await found)[0];
    };
    each[way] = await recallBy(find, known);
  }
  return each;
}

type Recalls = Readonly<Record<Way, readonly Recall[]>>;

async function seedWhereNeeded(): Promise<number | null> {
  if ((await pagesSeeded(pool)) === pages) return null;
  const startedMs = performance.now();
  console.log(`making ${pages} pages in ${options.home}`);
  await seedIndex(pool, { pages, languages, say: (line) => console.log(line) });
  return performance.now() - startedMs;
}

async function measure(): Promise<void> {
  const servers = await startServers();
  const measured = new Map(
    ways.map((way): [Way, Measured] => [
      way,
      { answers: [], p95s: [], serverMs: 0, indexMs: 0, postgresMs: 0 },
    ]),
  );
  const known = await knownTruths(0);
  const recalled = known.length === 0 ? null : await recalls(servers, known);
  if (options.hold) {
    console.log("ready");
    await once(process.stdin, "data");
  }
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
  report(measured, { recalled, index });
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

async function startServers(): Promise<Server[]> {
  return await Promise.all(ways.map(startServer));
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

/** Every user asks, reads the whole answer, and asks the next. */
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

/** MB that a process holds; Linux: from /proc. */
function residentMb(pid: number): number {
  const [, kb = "NaN"] = /VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8")) ?? [];
  return Number(kb) / 1024;
}

function report(
  measured: ReadonlyMap<Way, Measured>,
  { recalled, index }: { readonly recalled: Recalls | null; readonly index: string },
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
  say(`- ways: \`database\`: Postgres alone; \`index\`: in memory (${index})`);
  say("");
  say(
    "| | searches | a second | p50 ms | p95 ms | p99 ms | CPU ms: pages' server | index | Postgres | in all | cut short | recall@10 |",
  );
  say("|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|");
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
      recalled?.[way][0]?.recall.toFixed(3) ?? "–",
    ];
    say(`| ${way} | ${cells.join(" | ")} |`);
    figure(way, (serverMs + indexMs + postgresMs) / answers.length, "ms CPU a search");
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
    writeFileSync(resultFile("search.md", pages >= 1_000_000), `${lines.join("\n")}\n`);
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

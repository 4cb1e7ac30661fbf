/**
 * `nearcrawl up` as a person runs it, with processes killed in the middle: a crawler, the coordinator, then
 * `up` itself. Nothing is lost, nothing is stored twice, and the run comes to its end.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { readdirSync, readFileSync, rmSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createFrontierStore } from "#coordinator/postgres/frontier-store";
import { type Database, openDatabase } from "#db/connect";
import { stopEmbeddedPostgres } from "#db/embedded-postgres";
import { builtProgram, projectRoot } from "../support/built-command.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { until } from "../support/until.ts";

const home = temporaryFolder("nearcrawl-killed-");
const sites = 24;
let running: ChildProcess | null = null;
let database: Database;
let output = "";
let complaints = "";

async function startUp(): Promise<ChildProcess> {
  const main = await builtProgram("ops/nearcrawl/main");
  const args = ["up", "--sites", String(sites), "--crawlers", "3", "--pages-per-site", "4", "--seed", "5"];
  const { DATABASE_URL: _, ...env } = process.env;
  const child = spawn(process.execPath, [main, ...args, "--port", "0", "--exit", "--json", "--home", home], {
    cwd: projectRoot,
    env,
    stdio: ["ignore", "pipe", "pipe"],
  });
  [output, complaints] = ["", ""];
  child.stdout.on("data", (text) => {
    output += text;
  });
  child.stderr.on("data", (text) => {
    complaints += text;
  });
  running = child;
  return child;
}

/** Processes of this run whose command line holds the word, by /proc. */
function pidsOf(word: string): number[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => {
      try {
        const line = readFileSync(`/proc/${pid}/cmdline`, "utf8");
        return line.includes(home) && line.includes(word) && pid !== running?.pid;
      } catch {
        return false;
      }
    });
}

const exitOf = (child: ChildProcess): Promise<number | null> =>
  new Promise((done) => child.once("exit", (code) => done(code)));

async function pagesReach(count: number): Promise<void> {
  await until(async () => {
    if (running?.exitCode !== null) throw new Error(`up ended early: ${output}${complaints}`);
    const progress = await createFrontierStore(database.pool)
      .progress(new Date())
      .catch(() => null);
    return (progress?.pages ?? 0) >= count;
  }, 90_000);
}

beforeAll(async () => {
  await startUp();
  database = await openDatabase({ databaseUrl: null, home, schema: "world" });
});

afterAll(async () => {
  running?.kill("SIGKILL");
  await database?.close();
  await stopEmbeddedPostgres(home);
  rmSync(home, { recursive: true, force: true });
}, 60_000);

describe.skipIf(process.platform !== "linux")(
  "a run whose processes are killed",
  { timeout: 240_000 },
  () => {
    it("goes on when a crawler, the coordinator and up itself die by SIGKILL, and stores nothing twice", async () => {
      await pagesReach(6);
      const [crawler] = pidsOf("crawler-");
      expect(crawler).toBeDefined();
      process.kill(crawler!, "SIGKILL");

      await pagesReach(18);
      const [coordinator] = pidsOf("settings/coordinator.json");
      expect(coordinator).toBeDefined();
      process.kill(coordinator!, "SIGKILL");

      await pagesReach(32);
      const ended = exitOf(running!);
      running!.kill("SIGKILL");
      await ended;
      await until(() => pidsOf("settings/").length === 0, 30_000);

      const code = await exitOf(await startUp());

      expect(code, complaints).toBe(0);
      const result = JSON.parse(output) as { finished: boolean; hostsFetched: number; hosts: number };
      expect(result).toMatchObject({ finished: true, hosts: sites, hostsFetched: sites });
      const { rows } = await database.pool.query(
        `select (select count(*)::int from run) as runs,
         count(*)::int as fetches, count(distinct (host_hash, url_hash))::int as urls
       from page_fetch`,
      );
      expect(rows[0].runs).toBe(1);
      expect(rows[0].fetches).toBe(rows[0].urls);
      const rounds = await database.pool.query(
        "select count(*)::int as open from lease where closed_at is null",
      );
      expect(rounds.rows[0].open).toBe(0);
    });
  },
);

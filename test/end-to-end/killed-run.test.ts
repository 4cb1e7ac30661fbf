/**
 * `nearcrawl up` with processes killed in the middle: Postgres, the coordinator, then `up` itself; in npm run test:long also a
 * Postgres backend, a crawler, and Postgres too often. Nothing is lost or stored twice, and the run finishes.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { appendFileSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createFrontierStore } from "#coordinator/crawl/frontier/frontier-store";
import { openDatabase } from "#db/connect";
import { readPidFile, startEmbeddedPostgres, stopEmbeddedPostgres } from "#db/embedded-postgres";
import type { Database } from "#db/server-database";
import { builtProgram, projectRoot } from "../support/built-command.ts";
import { contradictionsIn, databaseChecks } from "../support/database-checks.ts";
import { isLong } from "../support/long.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { until } from "../support/until.ts";

const home = temporaryFolder("nearcrawl-killed-");
const sites = isLong ? 24 : 12;
let running: ChildProcess | null = null;
let database: Database;
let output = "";
let complaints = "";

async function startUp(): Promise<ChildProcess> {
  const main = await builtProgram("ops/cli/main");
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

/** Processes of this run whose command line contains the word, from /proc. */
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

const goesOn = "the run goes on";

/** The server process behind one of the run's connections. */
async function someBackend(): Promise<number> {
  const { rows } = await database.pool.query<{ pid: number }>(
    `select pid from pg_stat_activity
     where backend_type = 'client backend' and application_name = 'nearcrawl' and pid <> pg_backend_pid()
     limit 1`,
  );
  return rows[0]!.pid;
}

const exitOf = (child: ChildProcess): Promise<number | null> =>
  new Promise((done) => child.once("exit", (code) => done(code)));

function stillRuns(): void {
  if (running?.exitCode !== null) throw new Error(`up ended early: ${output}${complaints}`);
}

/** Waits until the run reports that the killed Postgres is back. */
async function isBack(): Promise<void> {
  await until(() => {
    stillRuns();
    return complaints.includes(goesOn);
  }, 60_000);
}

async function pagesReach(count: number): Promise<void> {
  await until(async () => {
    stillRuns();
    const progress = await createFrontierStore(database.pool)
      .progress()
      .catch(() => null);
    return (progress?.pages ?? 0) >= count;
  }, 90_000);
}

beforeAll(async () => {
  await startUp();
  // By its URL: opening it as the embedded database would restart a killed server, which is the run's task.
  const { url } = await startEmbeddedPostgres(home);
  database = await openDatabase({ databaseUrl: url, home, schema: "world" });
});

afterAll(async () => {
  running?.kill("SIGKILL");
  await database?.close();
  await stopEmbeddedPostgres(home);
  rmSync(home, { recursive: true, force: true });
}, 60_000);

describe.skipIf(process.platform !== "linux")(
  "a run whose processes are killed",
  { timeout: 360_000 },
  () => {
    it("continues after SIGKILL of Postgres, a crawler, the coordinator and up itself, and stores nothing twice", async () => {
      await pagesReach(3);
      const [first] = pidsOf("settings/coordinator.json");
      process.kill(readPidFile(home)!.pid, "SIGKILL");
      await isBack();
      // Its lock may be back before it watches the server again.
      const died =
        "the embedded Postgres had died and was started again (1 of at most 3 times in 10 minutes)";
      await until(() => complaints.includes(died), 10_000);
      // Each process that uses it notices by itself.
      const log = join(home, "world/logs/coordinator.log");
      const said = "was started again (1 of at most 3 times in 10 minutes)";
      await until(() => readFileSync(log, "utf8").includes(said), 10_000);
      complaints = "";

      if (isLong) {
        await pagesReach(5);
        process.kill(await someBackend(), "SIGKILL");
        await isBack();
        expect(complaints.match(new RegExp(goesOn, "g"))).toHaveLength(1);
        expect(pidsOf("settings/coordinator.json")).toEqual([first]);

        await pagesReach(8);
        const [crawler] = pidsOf("crawler-");
        expect(crawler).toBeDefined();
        process.kill(crawler!, "SIGKILL");
      }

      await pagesReach((3 * sites) / 4);
      process.kill(first!, "SIGKILL");
      await until(() => pidsOf("settings/coordinator.json").some((pid) => pid !== first), 30_000);

      await pagesReach((4 * sites) / 3);
      const ended = exitOf(running!);
      running!.kill("SIGKILL");
      await ended;
      await until(() => pidsOf("settings/").length === 0, 30_000);

      if (isLong) {
        // As if it had died three times already.
        for (const pid of [1, 2])
          appendFileSync(join(home, "postgres-restarts"), `${pid} ${new Date().toISOString()}\n`);
        const given = exitOf(await startUp());
        await until(() => complaints.includes("web page:"), 60_000);
        process.kill(readPidFile(home)!.pid, "SIGKILL");
        expect(await given, complaints).toBe(1);
        expect(complaints).toMatch(/died 4 times within 10 minutes, and is not started again by itself/);
        expect(pidsOf("settings/")).toEqual([]);
        rmSync(join(home, "postgres-restarts"));
      }

      const code = await exitOf(await startUp());

      expect(code, complaints).toBe(0);
      const result = JSON.parse(output) as { finished: boolean; hostsFetched: number; hosts: number };
      expect(result).toMatchObject({ finished: true, hosts: sites, hostsFetched: sites });
      // That run started the server and stopped it.
      await startEmbeddedPostgres(home);
      const { rows } = await database.pool.query(
        `select (select count(*)::int from run) as runs,
         count(*)::int as fetches, count(distinct (host_hash, url_hash))::int as urls
       from page_fetch`,
      );
      expect(rows[0].runs).toBe(1);
      expect(rows[0].fetches).toBe(rows[0].urls);
      // A finished run does not wait until every change is numbered.
      const checks = databaseChecks.filter(({ name }) => name !== "change-feed");
      expect(await contradictionsIn(database.pool, checks)).toEqual([]);
    });
  },
);

/** The record of runs on a real database: what resumes, what starts again, and what is refused. */
import { existsSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from "vitest";
import { serverState } from "#coordinator/run/journal/epoch-store";
import { reviewDatabase } from "#coordinator/run/journal/went-back-store";
import { UsageError } from "#core/errors";
import { migrate } from "#db/migrate";
import type { Database } from "#db/server-database";
import { databaseCommand } from "#ops/cli/commands/database";
import { type OpenedRun, type OpenRunOptions, openRun } from "#ops/cli/up/run-record";
import { inProcess } from "../../support/command-in-process.ts";
import { testDatabase } from "../../support/database.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";
import { until } from "../../support/until.ts";

const root = temporaryFolder("nearcrawl-run-");
let own: Database;
let folder: string;
let runs: OpenedRun[] = [];
const told: string[] = [];

beforeAll(async () => {
  own = await testDatabase();
});
beforeEach(async () => {
  folder = join(root, "data");
  await own.pool.query(`delete from run; delete from rejected_url`);
});
afterEach(async () => {
  for (const run of runs) await run.close();
  runs = [];
});
afterAll(async () => {
  await own.close();
  rmSync(root, { recursive: true, force: true });
});

const parameters = { sites: 50, policy: "nearest", fixture: null, lambdaMs: 0.1 };

async function open(differences: Partial<OpenRunOptions> = {}): Promise<OpenedRun> {
  const run = await openRun({
    database: { databaseUrl: own.url, home: root, schema: own.schema },
    parameters,
    folder,
    fresh: false,
    disposable: true,
    throughOutages: async (work) => await work(),
    note: (words) => told.push(words),
    ...differences,
  });
  runs.push(run);
  return run;
}

/** Marks the database and the folder, then ends the run without completing it. */
async function breakOff(run: OpenedRun): Promise<void> {
  await run.database.pool.query("insert into rejected_url (url, reason, source) values ('mark', '', '')");
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, "mark"), "");
  await run.close();
  runs = runs.filter((one) => one !== run);
}

async function marks(run: OpenedRun): Promise<[boolean, boolean]> {
  const { rows } = await run.database.pool.query("select from rejected_url where url = 'mark'");
  return [rows.length === 1, existsSync(join(folder, "mark"))];
}

it("resumes an interrupted run with the same parameters", async () => {
  const first = await open();
  await breakOff(first);

  const second = await open({ parameters: { lambdaMs: 0.1, policy: "nearest", fixture: null, sites: 50 } });

  expect([first.resumed, second.resumed, second.runId === first.runId]).toEqual([false, true, true]);
  expect(await marks(second)).toEqual([true, true]);
});

it.each([
  ["other parameters", { parameters: { ...parameters, sites: 51 } }],
  ["fewer parameters", { parameters: { sites: 50 } }],
  ["a fresh run", { fresh: true }],
])("starts anew, from an empty schema and folder, when it is asked for %s", async (_, differences) => {
  await breakOff(await open());

  const second = await open(differences);

  expect(second.resumed).toBe(false);
  expect(await marks(second)).toEqual([false, false]);
});

it("starts again after a finished run", async () => {
  const first = await open();
  await first.finish({ pages: 5 });
  const { rows } = await own.pool.query("select summary, finished_at is not null as finished from run");
  expect(rows).toEqual([{ summary: { pages: 5 }, finished: true }]);
  await breakOff(first);
  told.length = 0;

  const second = await open();

  expect(second.resumed).toBe(false);
  expect(await marks(second)).toEqual([false, false]);
  expect(told).toEqual(["a new emulated Internet begins, and the data of the run before is removed"]);
});

it("continues a finished run of a restored database, and refuses to empty it for another", async () => {
  const first = await open();
  await first.finish({ pages: 5 });
  await breakOff(first);
  const { timeline } = await serverState(own.pool);
  await own.pool.query("update database_epoch set timeline = $1", [(timeline ?? 0) + 1]);

  await expect(open({ parameters: { ...parameters, sites: 51 } })).rejects.toThrow(
    /^the database was restored, and its run had other parameters \(.*"sites":50.*\): give the same ones, or --fresh/,
  );
  const second = await open();

  expect([second.resumed, second.runId === first.runId]).toEqual([true, true]);
  expect(await marks(second)).toEqual([true, true]);
  await own.pool.query("update database_epoch set timeline = $1", [timeline]);
});

it("does not empty a schema that a newer version has migrated, except for a fresh run", async () => {
  await breakOff(await open());
  await own.pool.query("insert into migration (name, run_on, version) values ('9001-later', now(), '9.0.0')");

  await expect(open({ parameters: { sites: 51 } })).rejects.toThrow(/9001-later by version 9\.0\.0/);
  const { rowCount } = await own.pool.query("select from rejected_url where url = 'mark'");
  const fresh = await open({ fresh: true });

  expect([rowCount, existsSync(join(folder, "mark"))]).toEqual([1, false]);
  expect(await marks(fresh)).toEqual([false, false]);
});

it("always keeps the data of the real web", async () => {
  const real = { disposable: false };
  const first = await open(real);
  await first.finish(null);
  await breakOff(first);

  const second = await open({ ...real, fresh: true, parameters: {} });

  expect(second.resumed).toBe(false);
  expect(second.runId).not.toBe(first.runId);
  expect(await marks(second)).toEqual([true, true]);
});

it("refuses a second run in the same schema during the first, and changes nothing", async () => {
  const first = await open();
  await first.database.pool.query("insert into rejected_url (url, reason, source) values ('mark', '', '')");

  await expect(open({ fresh: true })).rejects.toThrow(UsageError);
  await expect(open()).rejects.toThrow(`schema ${own.schema}`);

  expect((await marks(first))[0]).toBe(true);
});

it("reports in one line that the server was away, and is still the only run", async () => {
  const first = await open();
  told.length = 0;

  // Closes every connection of the run, as when Postgres is killed.
  await own.pool.query(
    `select pg_terminate_backend(l.pid) from pg_locks l
     join pg_stat_activity a using (pid) where a.datname = current_database() and l.locktype = 'advisory'`,
  );
  await until(() => told.length > 0, 10_000);

  expect(told).toEqual([expect.stringMatching(/^the database went away, and is back after \d+\.\d s: /)]);
  await expect(open()).rejects.toThrow(`schema ${own.schema}`);
  expect(first.resumed).toBe(false);
});

it("opens one of twenty simultaneous runs", async () => {
  const opened = await Promise.allSettled(Array.from({ length: 20 }, () => open()));

  expect(opened.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
});

it("a server without the home's database, or with another one, is refused before anything is created", async () => {
  const journalRoot = join(root, "journal");
  const isThere = async () =>
    (await own.pool.query("select from pg_namespace where nspname = $1", [own.schema])).rowCount === 1;
  const reviewed = {
    pool: own.pool,
    journalRoot,
    log: { warn: () => {}, error: () => {} },
    now: () => new Date(),
  };
  await reviewDatabase(reviewed);
  await (await open({ disposable: false })).close();

  await own.pool.query(`drop schema "${own.schema}" cascade`);
  await expect(open({ disposable: false })).rejects.toThrow(
    /holds no database, and the journal in .* is of \S{36}: nothing is made there.*database start-over/,
  );
  expect(await isThere()).toBe(false);
  await migrate(own);
  await expect(open({ disposable: false })).rejects.toThrow(
    /holds another database \(\S{36}\), and the journal in .* is of/,
  );

  const place = ["--home", root, "--database-url", own.url, "--schema", own.schema];
  expect((await inProcess(databaseCommand(), ["start-over", "--yes", ...place])).code).toBe(0);
  await (await open({ disposable: false })).close();
  runs = [];
});

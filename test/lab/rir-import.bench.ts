/**
 * An import of any size, whole: files generated in the registries' formats are checked, planned, applied, a
 * quarter later planned and applied again, rolled back; in Postgres, with delegations in place. Every step is
 * a process of its own, so that its memory is its own. The baseline in the same run: the same rows by plain
 * COPY, bytes from a file, into a bare table and into one with the same indexes. Run:
 *
 *   node --conditions=nearcrawl-source --import tsx test/lab/rir-import.bench.ts [objects] [rounds]
 *
 * A million objects and three rounds unless told. Each round begins with an empty schema.
 */
import { execFile } from "node:child_process";
import { chmodSync, createReadStream, createWriteStream, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import { promisify } from "node:util";
import { from as copyFrom, to as copyTo } from "pg-copy-streams";
import { openDatabase } from "#db/connect";
import { startEmbeddedPostgres, stopEmbeddedPostgres } from "#db/embedded-postgres";
import { migrate } from "#db/migrate";
import type { Database } from "#db/server-database";
import { applyImport } from "#rir-import/apply";
import { readState } from "#rir-import/check";
import { planImport } from "#rir-import/plan";
import { rollbackImport } from "#rir-import/rollback";
import { generateRegistry } from "./generate/generate-registry.ts";

const delegated = 100_000;
const seed = 20261121;
const columns =
  "subnet_id, first_address, last_address, parent_id, holder_id, country, registry, name, added_in, crosses";

interface Measured {
  readonly seconds: number;
  readonly cpuSeconds: number;
  readonly peakMb: number;
  readonly detail: string;
}

type Step = (database: Database, folder: string) => Promise<string>;

const steps: Readonly<Record<string, Step>> = {
  check: async (_, folder) => {
    const { summary } = (await readState([folder], () => {})).state;
    return `${summary.subnets} subnets, ${summary.holders} holders, ${summary.deepest} deep`;
  },
  plan: async (database, folder) => {
    const { changes } = await planImport(database, [folder]);
    return `${changes.added} added, ${changes.changed} changed, ${changes.moved} moved, ${changes.removed} removed`;
  },
  apply: async (database, folder) => {
    const { plan, seconds } = await applyImport(database, [folder]);
    const { kept, inherited, lost } = plan.delegations;
    return `reading ${seconds.reading.toFixed(1)} s, comparing ${seconds.comparing.toFixed(1)} s, writing ${seconds.writing.toFixed(1)} s; delegations: ${kept} kept, ${inherited} inherited, ${lost} lost`;
  },
  rollback: async (database) => JSON.stringify((await rollbackImport(database)).undone),
};

async function runStep([name = "", databaseUrl = "", schema = "", folder = ""]: readonly string[]) {
  const database = await openDatabase({ databaseUrl, schema, home: "/nonexistent" });
  await migrate(database);
  const startedAt = performance.now();
  const cpuBefore = process.cpuUsage();
  const detail = await steps[name]!(database, folder);
  const { user, system } = process.cpuUsage(cpuBefore);
  const measured: Measured = {
    seconds: (performance.now() - startedAt) / 1000,
    cpuSeconds: (user + system) / 1e6,
    peakMb: process.resourceUsage().maxRSS / 1024,
    detail,
  };
  await database.close();
  process.stdout.write(JSON.stringify(measured));
}

async function measure(name: string, database: Database, folder: string): Promise<Measured> {
  const script = [
    ...process.execArgv,
    import.meta.filename,
    "step",
    name,
    database.url,
    database.schema,
    folder,
  ];
  const { stdout } = await promisify(execFile)(process.execPath, script, { maxBuffer: 2 ** 24 });
  return JSON.parse(stdout) as Measured;
}

/** Seconds of COPY from a file into a fresh table. */
async function copySeconds(database: Database, file: string, indexes: string): Promise<number> {
  const client = await database.pool.connect();
  try {
    await client.query(`create table baseline (like subnet including defaults ${indexes})`);
    const startedAt = performance.now();
    const copy = client.query(copyFrom(`copy baseline (${columns}) from stdin (format binary)`));
    await pipeline(createReadStream(file, { highWaterMark: 1_048_576 }), copy);
    return (performance.now() - startedAt) / 1000;
  } finally {
    await client.query("drop table baseline");
    client.release();
  }
}

async function saveRows(database: Database, file: string): Promise<void> {
  const client = await database.pool.connect();
  try {
    const rows = client.query(
      copyTo(`copy (select ${columns} from subnet order by subnet_id) to stdout (format binary)`),
    );
    await pipeline(rows, createWriteStream(file));
  } finally {
    client.release();
  }
}

/** A crawler has every n-th subnet, as after a crawl. */
async function delegate(database: Database): Promise<void> {
  await database.pool.query(
    `with k as (insert into crawler (name) values ('bench') returning crawler_id),
     chosen as (
       select subnet_id from subnet
       where subnet_id % greatest(1, (select count(*) from subnet) / $1) = 0
       limit $1
     )
     insert into delegation (subnet_id, crawler_id, cause, measured, delegated_at)
     select subnet_id, crawler_id, 'operator', true, now() from k cross join chosen`,
    [delegated],
  );
}

async function diskMb(database: Database): Promise<string> {
  const { rows } = await database.pool.query<{ name: string; mb: string }>(
    `select c.relname as name, round(pg_total_relation_size(c.oid) / 1e6) as mb
     from pg_class c join pg_namespace n on n.oid = c.relnamespace
     where n.nspname = $1 and c.relkind = 'r' and c.relname in ('subnet', 'holder', 'subnet_before')
     order by c.relname`,
    [database.schema],
  );
  return rows.map(({ name, mb }) => `${name} ${mb} MB`).join(", ");
}

const secondsOf = (values: readonly number[]) => {
  const sorted = [...values].sort((a, b) => a - b);
  const median = sorted[Math.floor(sorted.length / 2)]!.toFixed(1);
  return sorted.length === 1 ? median : `${median} [${sorted[0]!.toFixed(1)}..${sorted.at(-1)!.toFixed(1)}]`;
};

async function main(objects: number, rounds: number): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "nearcrawl-import-bench-"));
  chmodSync(folder, 0o711);
  const home = join(folder, "home");
  const say = (line: string) => process.stdout.write(`${line}\n`);
  try {
    const [first, later] = [join(folder, "first"), join(folder, "later")];
    await generateRegistry({ objects, seed, folder: first });
    await generateRegistry({ objects, seed, folder: later, generation: 1, changedShare: 0.01 });
    const { url } = await startEmbeddedPostgres(home);
    const results = new Map<string, Measured[]>();
    const copies: { bare: number[]; indexed: number[] } = { bare: [], indexed: [] };
    let disk = "";
    for (let round = 0; round < rounds; round += 1) {
      const database = await openDatabase({ databaseUrl: url, home, schema: `bench${round}` });
      await migrate(database);
      const step = async (title: string, name: string, source: string) => {
        const measured = await measure(name, database, source);
        results.set(title, [...(results.get(title) ?? []), measured]);
        say(`round ${round + 1}: ${title}: ${measured.seconds.toFixed(1)} s, ${measured.detail}`);
      };
      await step("check and tree in memory", "check", first);
      await step("plan, nothing there yet", "plan", first);
      await step("apply, nothing there yet", "apply", first);
      await delegate(database);
      const rows = join(folder, "rows");
      await saveRows(database, rows);
      copies.bare.push(await copySeconds(database, rows, ""));
      copies.indexed.push(await copySeconds(database, rows, "including indexes"));
      rmSync(rows);
      await step("plan, 1 % changed", "plan", later);
      await step("apply, 1 % changed", "apply", later);
      disk = await diskMb(database);
      await step("rollback of it", "rollback", "");
      await database.pool.query(`drop schema "${database.schema}" cascade`);
      await database.close();
    }
    say(`\n${objects} objects, ${rounds} rounds, median [smallest..largest]\n`);
    say(
      "| step | seconds | CPU seconds of the importer | peak memory, MB | last round |\n|---|---|---|---|---|",
    );
    for (const [title, measured] of results) {
      const peak = Math.max(...measured.map(({ peakMb }) => peakMb)).toFixed(0);
      const seconds = secondsOf(measured.map(({ seconds }) => seconds));
      const cpu = secondsOf(measured.map(({ cpuSeconds }) => cpuSeconds));
      say(`| ${title} | ${seconds} | ${cpu} | ${peak} | ${measured.at(-1)!.detail} |`);
    }
    say(`| plain COPY of the rows, bare table | ${secondsOf(copies.bare)} | | | |`);
    say(`| plain COPY of the rows, same indexes | ${secondsOf(copies.indexed)} | | | |`);
    say(`\nOn disk, indexes and all: ${disk}.`);
  } finally {
    await stopEmbeddedPostgres(home).catch(() => {});
    rmSync(folder, { recursive: true, force: true });
  }
}

const [mode, ...rest] = process.argv.slice(2);
if (mode === "step") await runStep(rest);
else await main(Number(mode ?? 1_000_000), Number(rest[0] ?? 3));

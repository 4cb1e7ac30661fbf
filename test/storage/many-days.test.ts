/** Forty days of a small crawl with a retention of days: each table's rows end, or grow with what is known. */
import { afterAll, beforeAll, expect, it } from "vitest";
import { policySections } from "#coordinator/run/settings/schema";
import { keptDays, tableEnds } from "#coordinator/tell/storage/table-ends";
import type { Database } from "#db/server-database";
import { testDatabase } from "../support/database.ts";
import { isLong } from "../support/long.ts";
import { SimulatedDays } from "../support/simulated-days.ts";

const retention = policySections.retention.parse({
  ...{ fetchDays: 5, leaseHours: 24, roundDays: 5, historyDays: 12, rejectedDays: 5, recordDays: 30 },
});
const changes = policySections.changes.parse({ keepDays: 5 });

let database: Database;
let days: SimulatedDays;
beforeAll(async () => {
  database = await testDatabase();
  days = new SimulatedDays(database, {
    ...{ hosts: 12, urlsPerHost: 10, newUrlsPerDay: 1, crawlers: 4, roundsPerDay: 4, retention, changes },
  });
  if (isLong) await days.begin();
}, 120_000);
afterAll(async () => await database?.close());

async function tables(): Promise<string[]> {
  const { rows } = await database.pool.query<{ name: string }>(
    `select relname as name from pg_class
     where relnamespace = current_schema()::regnamespace and relkind in ('r', 'p') and not relispartition
     order by relname`,
  );
  return rows.map(({ name }) => name);
}

async function rowsOf(names: readonly string[]): Promise<Record<string, number>> {
  const { rows } = await database.pool.query<Record<string, number>>(
    `select ${names.map((name) => `(select count(*)::int from "${name}") as "${name}"`).join(", ")}`,
  );
  return rows[0]!;
}

async function fetchParts(): Promise<string[]> {
  const { rows } = await database.pool.query<{ name: string }>(
    "select inhrelid::regclass::text as name from pg_inherits where inhparent = 'page_fetch'::regclass order by 1",
  );
  return rows.map(({ name }) => name);
}

it("retention of every table is stated, and of no table that is not there", async () => {
  expect(Object.keys(tableEnds).sort()).toEqual(await tables());
});

it.runIf(isLong)(
  "tables with an end are as large after forty days as after twenty, and the others grow with what is known",
  async () => {
    const names = await tables();
    const seen: Record<string, number>[] = [];
    for (let day = 0; day < 40; day++) {
      await days.nextDay();
      seen.push(await rowsOf(names));
    }

    const most = (name: string, from: number, to: number) =>
      Math.max(...seen.slice(from, to).map((rows) => rows[name]!));
    const growing = names.filter((name) => {
      const end = tableEnds[name]!;
      if (end.type === "bounded" && end.mostRows !== null) return most(name, 0, 40) > end.mostRows;
      const kept = keptDays(end, { retention, changes });
      const isEnded = end.type === "bounded" || (kept !== null && kept <= 15);
      return isEnded && most(name, 30, 40) > 1.2 * most(name, 10, 25) + 5;
    });
    expect(growing).toEqual([]);
    // There was something to delete.
    expect(most("page_fetch", 35, 40)).toBeGreaterThan(20);
    expect(most("lease", 35, 40)).toBeGreaterThan(5);
    expect(most("delegation_history", 35, 40)).toBeGreaterThan(0);
    expect(seen.at(-1)!.rejected_url).toBeLessThan(3 + 3 * 7);
    expect(seen.at(-1)!.minute_figures).toBe(14 * 40);
    expect(seen.at(-1)!.day_figures).toBeGreaterThanOrEqual(40);
    // Partitions of fetches: the kept days, today's, those created ahead, and the default one.
    const parts = await fetchParts();
    expect(parts.length).toBeLessThanOrEqual(5 + 1 + 3 + 1);
    expect(parts).toContain("page_fetch_20310209");
    const { rows } = await database.pool.query("select count(*)::int as rows from page_fetch_default");
    expect(rows).toEqual([{ rows: 0 }]);
    // Leases are counted in their days' figures before they are deleted.
    const { rows: leases } = await database.pool.query<{ ended: number; urls: number; closed: number }>(
      `select sum(leases_done + leases_expired + leases_returned)::int as ended, sum(leased_urls)::int as urls,
       (select count(*)::int from lease where closed_at is not null) as closed
     from day_figures`,
    );
    const { rows: granted } = await database.pool.query<{ last: number }>(
      "select last_value::int as last from pg_sequences where schemaname = current_schema() and sequencename = 'lease_lease_id_seq'",
    );
    expect(leases[0]!.ended + leases[0]!.closed).toBe(granted[0]!.last);
    expect(leases[0]!.urls).toBeGreaterThan(100);
    // Delegations keep the rounds that decided them, however old.
    const { rows: without } = await database.pool.query(
      `select from delegation d
     where d.round_id is not null and not exists (select from probe_round r where r.round_id = d.round_id)`,
    );
    expect(without).toEqual([]);
  },
  600_000,
);

/** Reads the database's size from the catalogue and the oldest rows of growing tables. */
import type { Pool } from "pg";
import { estimatedRows, tableSizes } from "#db/table-sizes";
import { epochs } from "../../run/journal/epoch-store.ts";
import { spanFigures } from "../overview/figure-store.ts";
import type { StorageFacts } from "./table-ends.ts";

/** How many epochs are shown. Each began with a restore or a failover. */
const epochsShown = 20;

export async function storageFacts(pool: Pool, now: Date): Promise<StorageFacts> {
  const [sizes, oldest, day, delegations, everyEpoch] = await Promise.all([
    tableSizes(pool),
    oldestRows(pool),
    spanFigures(pool, 1440, now),
    estimatedRows(pool, "delegation"),
    epochs(pool, epochsShown),
  ]);
  const isAWholeDay = (await firstMinute(pool, now)) === null;
  return {
    sizes,
    oldest,
    addedADay: isAWholeDay
      ? new Map([
          ["page_fetch", day.fetches],
          ["probe_round", day.rounds],
          ["probe", day.probes],
        ])
      : new Map(),
    delegations,
    epochs: everyEpoch,
  };
}

/** Returns when figures began if that was within the last day; null if earlier, so that a day's figures cover a day. */
async function firstMinute(pool: Pool, now: Date): Promise<Date | null> {
  const { rows } = await pool.query<{ first: Date | null }>(
    "select min(minute) as first from minute_figures",
  );
  const first = rows[0]!.first;
  return first === null || first.getTime() > now.getTime() - 86_400_000 ? (first ?? now) : null;
}

/** Each query uses an index or the smallest key. */
const oldestSql: Readonly<Record<string, string>> = {
  page_fetch: "select min(fetched_at) from page_fetch",
  lease: "select granted_at from lease order by lease_id limit 1",
  probe_round: "select decided_at from probe_round order by round_id limit 1",
  delegation_history: "select min(changed_at) from delegation_history",
  rejected_url: "select min(last_seen_at) from rejected_url",
  page_change: "select noted_at from page_change order by change_number limit 1",
  audit_entry: "select min(at) from audit_entry",
  journal_entry: "select min(at) from journal_entry",
  submission: "select min(submitted_at) from submission",
  incident: "select min(last_at) from incident",
  minute_figures: "select min(minute) from minute_figures",
  day_figures: "select min(day)::timestamp at time zone 'UTC' from day_figures",
  coverage_day: "select min(day)::timestamp at time zone 'UTC' from coverage_day",
  crawler_figures: "select min(quarter) from crawler_figures",
  crawler_day_figures: "select min(day)::timestamp at time zone 'UTC' from crawler_day_figures",
  gauge_sample: "select min(at) from gauge_sample",
  accuracy_sample: "select min(sampled_at) from accuracy_sample",
  double_check: "select min(decided_at) from double_check where verdict is not null",
};

async function oldestRows(pool: Pool): Promise<ReadonlyMap<string, Date>> {
  const names = Object.keys(oldestSql);
  const { rows } = await pool.query<Record<string, Date | null>>(
    `select ${names.map((name) => `(${oldestSql[name]}) as "${name}"`).join(", ")}`,
  );
  const row = rows[0]!;
  return new Map(names.flatMap((name) => (row[name] instanceof Date ? [[name, row[name]] as const] : [])));
}

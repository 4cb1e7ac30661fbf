/** Hints as people see them: hosts that gave some, the latest first, with their keys and subscribed feeds. */
import type { Pool } from "pg";
import type { HostHash } from "#core/ids";
import { hostHashOf } from "#core/url-key";
import { byHash, byText, firstOf, OverSlices, summed } from "../database/over-slices.ts";
import { type Slices, slicesOf } from "../database/slices.ts";
import { type FeedReport, type HintKeyReport, type HintSource, type HostHints, trustIn } from "./hint.ts";

export interface HintReads {
  latest(limit: number): Promise<readonly HostHints[]>;
  /** Feeds that name a hub, by what became of it. */
  feeds(): Promise<Readonly<Record<FeedReport["state"], number>>>;
}

export function createHintReads(from: Pool | Slices): HintReads {
  const over = new OverSlices(slicesOf(from), ({ pool }) => pool);
  return {
    latest: async (limit) => {
      const { answers } = await over.ask(
        async (pool) =>
          await hintsWhere(pool, "true order by last_at desc, host_hash, source limit $1", [limit]),
      );
      return over.isOne ? answers[0]! : firstOf(answers, byLatest, limit);
    },
    feeds: async () => {
      const { answers } = await over.ask(feedCounts);
      return summed(answers, ["found", "asked", "active", "denied", "failed"]);
    },
  };
}

const byLatest = (a: HostHints, b: HostHints): number =>
  Date.parse(b.lastAt) - Date.parse(a.lastAt) ||
  byHash(hostHashOf(a.host), hostHashOf(b.host)) ||
  byText(a.source, b.source);

/** Of one host, a row for each source. */
export async function hintsOf(pool: Pool, hostHash: HostHash): Promise<readonly HostHints[]> {
  return await hintsWhere(pool, "host_hash = $1 order by source", [hostHash]);
}

interface HintRow {
  readonly hostHash: HostHash;
  readonly host: string;
  readonly source: HintSource;
  readonly received: number;
  readonly taken: number;
  readonly right: number;
  readonly wrong: number;
  readonly dropped: number;
  readonly recentRight: number;
  readonly recentWrong: number;
  readonly lastAt: Date;
  readonly waiting: number;
}

const shownOfHost = 10;

async function hintsWhere(pool: Pool, which: string, values: readonly unknown[]): Promise<HostHints[]> {
  const { rows } = await pool.query<HintRow>(
    `select host_hash as "hostHash", host, source, received::float8 as received, taken::float8 as taken,
       right_hints::float8 as "right", wrong_hints::float8 as "wrong", dropped::float8 as dropped,
       recent_right as "recentRight", recent_wrong as "recentWrong", last_at as "lastAt",
       (select count(*)::int from hint h where h.host_hash = hh.host_hash and h.source = hh.source) as waiting
     from hint_host hh
     where ${which}`,
    [...values],
  );
  if (rows.length === 0) return [];
  const hosts = rows.map(({ hostHash }) => hostHash);
  const [keys, feeds] = [await keysOf(pool, hosts), await feedsOf(pool, hosts)];
  return rows.map(({ hostHash, recentRight, recentWrong, lastAt, ...row }) => ({
    ...row,
    trust: trustIn({ recentRight, recentWrong }),
    lastAt: lastAt.toISOString(),
    keys: row.source === "indexnow" ? (keys.get(hostHash) ?? []) : [],
    feeds: row.source === "websub" ? (feeds.get(hostHash) ?? []) : [],
  }));
}

async function keysOf(pool: Pool, hosts: readonly HostHash[]): Promise<Map<HostHash, HintKeyReport[]>> {
  const { rows } = await pool.query<
    Omit<HintKeyReport, "folder"> & { readonly hostHash: HostHash; readonly scope: string }
  >(
    // Whoever reads the key's name in its file's could give hints in the site's name, here and elsewhere.
    `select k.host_hash as "hostHash", replace(k.location, k.key, '…') as location, k.scope, k.state, k.words
     from unnest($1::bigint[]) as asked (host_hash)
     cross join lateral (
       select * from hint_key own where own.host_hash = asked.host_hash order by asked_at desc limit ${shownOfHost}
     ) k`,
    [[...new Set(hosts)]],
  );
  return listed(rows, ({ scope, location, state, words }) => {
    const folder = scope.replace(/^\/\/[^/]*/, "");
    return { location, folder: folder === "/" ? null : folder, state, words };
  });
}

async function feedsOf(pool: Pool, hosts: readonly HostHash[]): Promise<Map<HostHash, FeedReport[]>> {
  const { rows } = await pool.query<
    Omit<FeedReport, "leaseEndsAt"> & { readonly hostHash: HostHash; readonly leaseEndsAt: Date | null }
  >(
    `select s.host_hash as "hostHash", s.feed, s.hub, s.state, s.words, s.lease_ends_at as "leaseEndsAt",
       s.deliveries::float8 as deliveries, s.forged::float8 as forged
     from unnest($1::bigint[]) as asked (host_hash)
     cross join lateral (
       select * from websub_subscription own
       where own.host_hash = asked.host_hash
       order by lease_ends_at desc nulls last, url_hash
       limit ${shownOfHost}
     ) s`,
    [[...new Set(hosts)]],
  );
  return listed(rows, ({ hostHash: _, leaseEndsAt, ...feed }) => ({
    ...feed,
    leaseEndsAt: leaseEndsAt?.toISOString() ?? null,
  }));
}

function listed<Row extends { readonly hostHash: HostHash }, Report>(
  rows: readonly Row[],
  reportOf: (row: Row) => Report,
): Map<HostHash, Report[]> {
  const lists = new Map<HostHash, Report[]>();
  for (const row of rows) lists.set(row.hostHash, [...(lists.get(row.hostHash) ?? []), reportOf(row)]);
  return lists;
}

async function feedCounts(pool: Pool): Promise<Record<FeedReport["state"], number>> {
  const { rows } = await pool.query<{ state: FeedReport["state"]; feeds: number }>(
    "select state, count(*)::int as feeds from websub_subscription group by state",
  );
  const none = { found: 0, asked: 0, active: 0, denied: 0, failed: 0 };
  return { ...none, ...Object.fromEntries(rows.map(({ state, feeds }) => [state, feeds])) };
}

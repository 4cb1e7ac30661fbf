/**
 * Signals that pages have changed: counted in frontier_url since the last fetch, and what visits prove of them in
 * host_signals. Whoever hears of a change (a sitemap's lastmod) hands it to `heedSignals`, whatever the strategy: *ncis*
 * brings its page's turn nearer, by as much as the host's signals have proven to be worth, others take the page for due.
 * What moves a fetch by a rule of its own (hints) has it counted by `countSignals`. One statement for all signals of a
 * batch, and one for those that move something; a page's time is found by its primary key.
 */
import type { PoolClient } from "pg";
import type { HostHash, UrlHash } from "#core/ids";
import { columnsOf } from "../database/transaction.ts";
import { importanceOf, type PlanInForce, plannedIntervalSeconds } from "./recrawl-plan.ts";
import { type HostSignalsRow, plannedChannel, signalColumns, signalSums } from "./sample-store.ts";
import { addSignalSums, heededQuality, noSignalSums, type SignalSums } from "./signal-quality.ts";

/** Somebody says that a page has changed. */
export interface ChangeSignal {
  readonly hostHash: HostHash;
  readonly urlHash: UrlHash;
  /** When it changed, as is stated; of a hint without a time, when it came. */
  readonly changedAt: Date;
}

/** Signals of one page closer together than this are one: a change is told by several, or a page saved three times over. */
const oneSignalSeconds = 600;

/** More than so many since its last fetch say no more. */
const mostSignals = 100;

/**
 * Pages of which the frontier knows nothing, and signals of what was fetched since, count for nothing. The hosts are locked,
 * and settled by the caller. Gives the number of signals that are news.
 */
export async function heedSignals(
  client: PoolClient,
  signals: readonly ChangeSignal[],
  { plan, now }: { readonly plan: PlanInForce; readonly now: Date },
): Promise<number> {
  const stated = signals.filter(({ changedAt }) => changedAt <= now);
  if (stated.length === 0) return 0;
  const counted = await countSignals(client, stated);
  if (plan.strategy === "ncis" && plan.multiplier !== null) await bringNearer(client, counted, { plan, now });
  else await makeDue(client, stated, now);
  return counted.length;
}

/** Its host is locked, and settled by the caller. */
async function makeDue(client: PoolClient, signals: readonly ChangeSignal[], now: Date): Promise<void> {
  await client.query(
    `update frontier_url u
     set next_fetch_at = $4
     from unnest($1::bigint[], $2::bigint[], $3::timestamptz[]) as given (host_hash, url_hash, changed_at)
     where u.host_hash = given.host_hash
       and u.url_hash = given.url_hash
       and u.state = 'due'
       and u.next_fetch_at > $4
       and u.last_outcome in ('fetched', 'unchanged')
       and u.last_fetched_at < given.changed_at`,
    [...columnsOf(signals, ["hostHash", "urlHash", "changedAt"]), now],
  );
}

interface SignalledRow extends HostSignalsRow {
  readonly hostHash: HostHash;
  readonly urlHash: UrlHash;
  readonly pageSignals: number;
  readonly changesPerDay: number | null;
  readonly backLinks: number;
  readonly pageRank: number | null;
  readonly lastFetchedAt: Date;
  readonly multiplier: number | null;
}

/** The hosts are locked. Gives what is known of the pages of those that are news. */
export async function countSignals(
  client: PoolClient,
  signals: readonly ChangeSignal[],
): Promise<readonly SignalledRow[]> {
  const { rows } = await client.query<SignalledRow>(
    `with counted as (
       update frontier_url u
       set signals = case when u.signalled_at > u.last_fetched_at then least(u.signals + 1, ${mostSignals}) else 1 end,
           signalled_at = given.changed_at
       from (
         select host_hash, url_hash, max(changed_at) as changed_at
         from unnest($1::bigint[], $2::bigint[], $3::timestamptz[]) as stated (host_hash, url_hash, changed_at)
         group by host_hash, url_hash
       ) given
       where u.host_hash = given.host_hash
         and u.url_hash = given.url_hash
         and u.state = 'due'
         and u.last_outcome in ('fetched', 'unchanged')
         and u.last_fetched_at < given.changed_at
         and (u.signalled_at is null or u.signalled_at <= u.last_fetched_at
           or u.signalled_at < given.changed_at - interval '${oneSignalSeconds} seconds')
       returning u.*
     )
     select seen.host_hash as "hostHash", seen.url_hash as "urlHash", seen.signals as "pageSignals",
       seen.changes_per_day::float8 as "changesPerDay", seen.back_links as "backLinks", seen.last_fetched_at as "lastFetchedAt",
       k.page_rank::float8 as "pageRank", p.multiplier, ${signalColumns("s")}
     from counted seen
     left join url_rank k on k.host_hash = seen.host_hash and k.url_hash = seen.url_hash
     left join recrawl_host p on p.host_hash = seen.host_hash and p.channel_id = ${plannedChannel("seen")}
     left join host_signals s on s.host_hash = seen.host_hash`,
    columnsOf(signals, ["hostHash", "urlHash", "changedAt"]),
  );
  return rows;
}

/** The page's time moves forward only, and not into the past: who looks for work looks at what becomes due from now on. */
async function bringNearer(
  client: PoolClient,
  signalled: readonly SignalledRow[],
  { plan, now }: { readonly plan: PlanInForce; readonly now: Date },
): Promise<void> {
  const times = signalled.flatMap((row) => {
    const at = nextFetchOf(row, plan);
    const { hostHash, urlHash } = row;
    return at === null ? [] : [{ hostHash, urlHash, at: new Date(Math.max(at, now.getTime())) }];
  });
  if (times.length === 0) return;
  await client.query(
    `update frontier_url u
     set next_fetch_at = given.at
     from unnest($1::bigint[], $2::bigint[], $3::timestamptz[]) as given (host_hash, url_hash, at)
     where u.host_hash = given.host_hash and u.url_hash = given.url_hash and u.next_fetch_at > given.at`,
    columnsOf(times, ["hostHash", "urlHash", "at"]),
  );
}

/** In milliseconds; null: its host's signals are not heeded, or nothing is known of its changes. */
function nextFetchOf(row: SignalledRow, plan: PlanInForce): number | null {
  const signalQuality = heededQuality(signalSums(row));
  const { changesPerDay, pageSignals: signals, multiplier: hostMultiplier } = row;
  if (signalQuality === null || changesPerDay === null) return null;
  const page = { changesPerDay, importance: importanceOf(row, plan.rankedPages), group: null };
  const seconds = plannedIntervalSeconds({ ...page, hostMultiplier, signals, signalQuality }, plan);
  return seconds === null ? null : row.lastFetchedAt.getTime() + seconds * 1000;
}

export interface HostEvidence extends SignalSums {
  readonly hostHash: HostHash;
}

/** What visits proved of hosts' signals. The hosts are locked. */
export async function noteEvidence(client: PoolClient, found: readonly HostEvidence[]): Promise<void> {
  const byHost = new Map<HostHash, SignalSums>();
  for (const { hostHash, ...sums } of found)
    byHost.set(hostHash, addSignalSums(byHost.get(hostHash) ?? noSignalSums, sums));
  if (byHost.size === 0) return;
  const rows = [...byHost].map(([hostHash, sums]) => ({ hostHash, ...sums }));
  const known = await client.query<SignalSums & { readonly hostHash: HostHash }>(
    `select s.host_hash as "hostHash", ${signalColumns("s")} from host_signals s where s.host_hash = any($1::bigint[])`,
    [[...byHost.keys()]],
  );
  const before = new Map(known.rows.map((row) => [row.hostHash, row]));
  // Of a host that never signalled anything there is nothing to keep.
  const kept = rows.flatMap(({ hostHash, ...sums }) => {
    const own = before.get(hostHash);
    if (own === undefined && sums.signals === 0) return [];
    return [{ hostHash, ...addSignalSums(own ?? noSignalSums, sums) }];
  });
  if (kept.length === 0) return;
  await client.query(
    `insert into host_signals (host_hash, signals, true_signals, missed_changes, evidence)
     select * from unnest($1::bigint[], $2::real[], $3::real[], $4::real[], $5::real[])
     on conflict (host_hash) do update
     set signals = excluded.signals, true_signals = excluded.true_signals,
         missed_changes = excluded.missed_changes, evidence = excluded.evidence`,
    columnsOf(kept, ["hostHash", "signals", "trueSignals", "missedChanges", "evidence"]),
  );
}

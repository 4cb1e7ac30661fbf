/**
 * Keeps table site up to date. Writers of results and hosts leave keys in site_touch, which the job processes within seconds.
 * It also cycles through all hosts by key for changes that nobody reports: delegations, registry data, languages. One
 * coordinator works at a time, one piece per transaction, so if it is killed, another continues with its piece.
 */
import { domainToUnicode } from "node:url";
import type { Pool, PoolClient } from "pg";
import type { HostHash } from "#core/ids";
import { paymentsInARow } from "../../crawl/frontier/budgets.ts";
import { columnsOf, inTransaction } from "../../database/transaction.ts";

/** How many hosts a piece has: a transaction of tens of milliseconds. */
const pieceHosts = 500;
const pieceTouches = 100;
/** If a round was shorter, the next one starts only after this time. */
const leastPauseMs = 20_000;
/** Maximum number of a host's due URLs that are counted. */
export const mostDueUrls = 10_000;
/** Delegations may be committed this much later than their time. */
const lateMs = 60_000;

interface SitesStep {
  readonly hosts: number;
  /** Whether the host was reported as changed. */
  readonly isTold: boolean;
  /** Whether all touches are processed and the round is complete. */
  readonly rests: boolean;
  /** Whether it is the first round, during which some hosts have no row yet. */
  readonly isFirstRound: boolean;
}

interface State {
  reached_host: HostHash | null;
  began_at: Date | null;
  finished_at: Date | null;
  looked_at: Date | null;
}

/** Processes one piece: reported hosts, hosts that became due, and the next ones of the round. */
export async function keepSites(pool: Pool, now: Date): Promise<SitesStep> {
  const piece = async (client: PoolClient): Promise<SitesStep> => {
    const { rows } = await client.query<State>("select * from site_upkeep for update skip locked");
    const state = rows[0];
    if (state === undefined) return { hosts: 0, isTold: false, rests: true, isFirstRound: false };
    const isFirstRound = state.finished_at === null;
    const touched = await takeTouches(client);
    if (touched.length > 0) {
      await refresh(client, touched, now);
      return { hosts: touched.length, isTold: true, rests: false, isFirstRound };
    }
    const changed = await changedSince(client, state, now);
    if (changed.length > 0) await refresh(client, changed, now);
    if (isResting(state, now)) return { hosts: changed.length, isTold: false, rests: true, isFirstRound };
    const walked = await walk(client, state, now);
    return { hosts: changed.length + walked, isTold: false, rests: walked === 0, isFirstRound };
  };
  // A new host is counted from its fetches, which must match the processed touches exactly.
  return await inTransaction(pool, piece, "set transaction isolation level repeatable read");
}

function isResting({ reached_host: at, finished_at: finished }: State, now: Date): boolean {
  return at === null && finished !== null && now.getTime() - finished.getTime() < leastPauseMs;
}

interface TouchedHost {
  readonly hostHash: HostHash;
  readonly fetches: number;
  readonly failures: number;
  readonly fetchedAt: Date | null;
}

const untouched = (hostHash: HostHash): TouchedHost => ({
  ...{ hostHash, fetches: 0, failures: 0, fetchedAt: null },
});

/** Returns each host once, with the sum of its touches. */
async function takeTouches(client: PoolClient): Promise<TouchedHost[]> {
  const { rows } = await client.query<TouchedHost>(
    `with taken as (
       delete from site_touch
       where ctid = any(array(select ctid from site_touch limit ${pieceTouches} for update skip locked))
       returning *
     )
     select t.host_hash as "hostHash", coalesce(sum(t.fetches), 0)::int as fetches,
       coalesce(sum(t.failures), 0)::int as failures, max(t.fetched_at) as "fetchedAt"
     from taken
     cross join lateral unnest(taken.host_hashes, taken.fetches, taken.failures, taken.fetched_at)
       as t (host_hash, fetches, failures, fetched_at)
     group by 1`,
  );
  return rows;
}

/** Returns hosts that became due since the last look, and some hosts of reassigned subnets. The round covers the rest. */
async function changedSince(client: PoolClient, { looked_at }: State, now: Date): Promise<TouchedHost[]> {
  await client.query("update site_upkeep set looked_at = $1", [now]);
  if (looked_at === null) return [];
  const { rows } = await client.query<{ host_hash: HostHash }>(
    `(select host_hash
      from site
      where standing = 'ready' and due_at > $1 and due_at <= $2
      limit ${pieceHosts})
     union
     (select s.host_hash
      from site s
      join delegation d on d.subnet_id = s.subnet_id
      where s.subnet_id in (
          select subnet_id from delegation_history where changed_at > $3 order by changed_at desc limit ${pieceHosts}
        )
        and s.crawler_id is distinct from d.crawler_id
      limit ${pieceHosts})`,
    [looked_at, now, new Date(looked_at.getTime() - lateMs)],
  );
  return rows.map(({ host_hash }) => untouched(host_hash));
}

/** Refreshes the next hosts by key and removes those that the frontier no longer has. */
async function walk(client: PoolClient, state: State, now: Date): Promise<number> {
  const { rows } = await client.query<{ host_hash: HostHash }>(
    `select host_hash
     from frontier_host
     ${state.reached_host === null ? "" : "where host_hash > $1"}
     order by host_hash
     limit ${pieceHosts}`,
    state.reached_host === null ? [] : [state.reached_host],
  );
  const hosts = rows.map(({ host_hash }) => host_hash);
  const last = hosts.length === pieceHosts ? hosts.at(-1)! : null;
  await client.query(
    `delete from site s
     where ($1::bigint is null or host_hash > $1) and ($2::bigint is null or host_hash <= $2)
       and not exists (select from frontier_host h where h.host_hash = s.host_hash)`,
    [state.reached_host, last],
  );
  await refresh(client, hosts.map(untouched), now);
  await client.query(
    `update site_upkeep
     set reached_host = $1, began_at = case when reached_host is null then $2 else began_at end,
       finished_at = case when $1::bigint is null then $2 else finished_at end,
       took_seconds = case when $1::bigint is not null then took_seconds
         when reached_host is null then 0 else extract(epoch from $2 - began_at) end`,
    [last, now],
  );
  return last === null ? 0 : hosts.length;
}

/** Writes new and changed rows. */
async function refresh(client: PoolClient, touched: readonly TouchedHost[], now: Date): Promise<void> {
  if (touched.length === 0) return;
  const day = Math.floor((now.getTime() - Date.UTC(2000, 0, 1)) / 86_400_000);
  const { rows } = await client.query<{ host_hash: HostHash; host: string | null }>(refreshSql, [
    ...columnsOf(touched, ["hostHash", "fetches", "failures", "fetchedAt"]),
    now,
    day,
  ]);
  const named = rows.flatMap(({ host_hash: hostHash, host }) => {
    const name = domainToUnicode(host ?? "");
    return name === "" || name === host ? [] : [{ hostHash, name }];
  });
  if (named.length === 0) return;
  await client.query(
    `update site s
     set name = given.name
     from unnest($1::bigint[], $2::text[]) as given (host_hash, name)
     where s.host_hash = given.host_hash`,
    columnsOf(named, ["hostHash", "name"]),
  );
}

const columns = [
  ...[
    "host_hash",
    "host",
    "standing",
    "due_at",
    "subnet_id",
    "crawler_id",
    "holder_id",
    "country",
    "language",
  ],
  ...[
    "tld",
    "channels",
    "pages",
    "urls",
    "due_urls",
    "counted_day",
    "failed_days",
    "fetched_days",
    "failures",
  ],
  ...["fetches", "fetched_at", "added_at", "rtt_ms", "bytes"],
];
const written = columns.filter((column) => column !== "host_hash");
const sumOf = (days: string) => `(select least(2147483647, sum(one)) from unnest(${days}) one)::int`;

/** SQL: the state of row `h` of frontier_host. A host may be in progress as well (`siteState`). */
export const standingSql = (now: string): string => `
  case
    when h.opt_out_id is not null then 'opted-out'
    when h.state in ('unresolved', 'unresolvable') then h.state
    when h.state = 'refused' then 'address'
    when coalesce(h.payments_asked, 0) >= ${paymentsInARow} and h.not_before > ${now} then 'payment'
    when h.challenges is not null and h.not_before > ${now} then 'bot-gate'
    when h.robots_state in ('closed', 'unreachable') and (h.due_at is null or h.due_at > ${now}) then 'robots'
    when h.due_at is null and h.lease_id is null then 'nothing-due'
    else 'ready'
  end`;

/**
 * $1 to $4 are hosts with their touches, $5 is now, and $6 today. A host without a row is counted from its fetches, which
 * include those of its touches.
 */
const refreshSql = `
  with given as materialized (
    select * from unnest($1::bigint[], $2::int[], $3::int[], $4::timestamptz[])
      as t (host_hash, fetches, failures, fetched_at)
  ), found as (
    select h.host_hash, h.host,
      ${standingSql("$5")} as standing,
      h.due_at, h.subnet_id, coalesce(f.crawler_id, d.crawler_id) as crawler_id, n.holder_id, n.country, h.language,
      lower(substring(h.host from '[.]([^.0-9:][^.:]*)$')) as tld,
      least(32767, c.channels)::smallint as channels,
      h.good_pages + h.near_duplicates as pages, h.url_count as urls, u.due_urls, $6::int as counted_day,
      case when s.host_hash is null then e.failed_days
        else moved_days(s.failed_days, $6::int - s.counted_day, given.failures) end as failed_days,
      case when s.host_hash is null then e.fetched_days
        else moved_days(s.fetched_days, $6::int - s.counted_day, given.fetches) end as fetched_days,
      case when s.host_hash is null then e.fetched_at else greatest(s.fetched_at, given.fetched_at) end as fetched_at,
      h.admitted_at as added_at,
      case when h.finer_id is null then d.rtt_ms else f.rtt_ms end as rtt_ms, h.fetched_bytes as bytes
    from given
    cross join lateral (select * from frontier_host where host_hash = given.host_hash offset 0) h
    left join site s on s.host_hash = given.host_hash
    left join delegation d on d.subnet_id = h.subnet_id and h.finer_id is null
    left join finer_delegation f on f.finer_id = h.finer_id
    left join subnet n on n.subnet_id = h.subnet_id
    cross join lateral (select count(*) as channels from channel where host_hash = h.host_hash) c
    cross join lateral (
      select count(*)::int as due_urls
      from (
        select
        from frontier_url
        where host_hash = h.host_hash and state = 'due' and next_fetch_at <= $5 and h.due_at <= $5
        limit ${mostDueUrls}
      ) due
    ) u
    left join lateral (
      select array_agg(coalesce(b.failures, 0) order by nth) as failed_days,
        array_agg(coalesce(b.fetches, 0) order by nth) as fetched_days, max(b.fetched_at) as fetched_at
      from generate_series(1, 7) nth
      left join (
        select 1 + least(6, greatest(0, $6::int - ((p.fetched_at at time zone 'UTC')::date - date '2000-01-01'))) as nth,
          count(*) filter (where p.blame is not null)::int as failures, count(*)::int as fetches,
          max(p.fetched_at) as fetched_at
        from page_fetch p
        where s.host_hash is null and h.fetches > 0 and p.host_hash = h.host_hash
          and p.fetched_at >= ($5::timestamptz at time zone 'UTC')::date::timestamp at time zone 'UTC' - interval '6 days'
          and p.outcome not in ('refused-by-robots', 'refused-address')
        group by 1
      ) b using (nth)
      where s.host_hash is null
    ) e on true
  ), summed as (
    select *, ${sumOf("failed_days")} as failures, ${sumOf("fetched_days")} as fetches from found
  )
  insert into site as s (${columns.join(", ")})
  select ${columns.join(", ")} from summed
  on conflict (host_hash) do update
  set (${written.join(", ")}) = (${written.map((column) => `excluded.${column}`).join(", ")})
  where (${written.map((column) => `s.${column}`).join(", ")}) is distinct from (${written
    .map((column) => `excluded.${column}`)
    .join(", ")})
  returning host_hash, case when host like '%xn--%' and name is null then host end as host`;

/** Table finer_delegation: hosts that are delegated by themselves, and parts of leaves. What is read of it. */
import type { Pool } from "pg";
import { asCrawlerId, asRoundId, asSubnetId, type CrawlerId, type HostHash, type SubnetId } from "#core/ids";
import { urlHost } from "#core/ip/url-host";
import { inTransaction } from "../../database/transaction.ts";
import { saveFinerRound } from "./covered-host-store.ts";
import {
  asFinerId,
  type FinerDelegation,
  type FinerDelegationStore,
  type FinerPlace,
  type HostPlace,
} from "./override.ts";
import { endFiner, endOutdated, inherit, reviewed, setHost, setParts } from "./writes.ts";

export function createFinerDelegationStore(pool: Pool): FinerDelegationStore {
  return {
    hostPlaces: async (hosts) => await hostPlaces(pool, hosts),
    saveRound: async (round) =>
      await inTransaction(pool, async (client) => await saveFinerRound(client, round)),
    setHost: async (host, times) =>
      await inTransaction(pool, async (client) => await setHost(client, host, times)),
    partsOf: async (subnetId) => await partsOf(pool, subnetId),
    setParts: async (leaf, times) =>
      await inTransaction(pool, async (client) => await setParts(client, leaf, times)),
    dueForReview: async (limit, now) => await dueForReview(pool, limit, now),
    reviewed: async (finerId, decision, times) =>
      await inTransaction(pool, async (client) => await reviewed(client, { finerId, decision }, times)),
    end: async (finerId, reason, now) =>
      await inTransaction(pool, async (client) => await endFiner(client, [finerId], { reason, now })),
    crawlers: async () => await crawlers(pool),
    inherit: async (gone, heirs, now) =>
      await inTransaction(pool, async (client) => await inherit(client, { gone, heirs }, now)),
    endOutdated: async (now) => await inTransaction(pool, async (client) => await endOutdated(client, now)),
  };
}

interface HostPlaceRow {
  host_hash: HostHash;
  host: string;
  url: string;
  addresses: string[];
  subnet_id: number;
}

async function hostPlaces(pool: Pool, hosts: readonly HostHash[]): Promise<HostPlace[]> {
  const { rows } = await pool.query<HostPlaceRow>(
    `select h.host_hash, h.host, u.url, array(select host(a) from unnest(h.addresses) a) as addresses, h.subnet_id
       from frontier_host h
       cross join lateral (
         select url
         from frontier_url
         where host_hash = h.host_hash and state = 'due'
         limit 1
       ) u
       where h.host_hash = any($1::bigint[])
         and h.state = 'resolved'
         and h.subnet_id is not null
         and h.opt_out_id is null`,
    [hosts],
  );
  const { rows: own } = await pool.query<{ host_hash: HostHash }>(
    "select host_hash from finer_delegation where host_hash = any($1::bigint[])",
    [hosts],
  );
  const byThemselves = new Set(own.map((row) => row.host_hash));
  return rows.map((row) => ({
    hostHash: row.host_hash,
    host: row.host,
    url: row.url,
    addresses: row.addresses,
    subnetId: asSubnetId(row.subnet_id),
    byItself: byThemselves.has(row.host_hash),
  }));
}

async function crawlers(pool: Pool): Promise<CrawlerId[]> {
  const { rows } = await pool.query<{ crawler_id: number }>(
    "select distinct crawler_id from finer_delegation order by crawler_id",
  );
  return rows.map((row) => asCrawlerId(row.crawler_id));
}

interface FinerRow {
  finer_id: number;
  subnet_id: number;
  host_hash: HostHash | null;
  first_address: string;
  last_address: string;
  crawler_id: number;
  round_id: number;
  rtt_ms: number | null;
  runner_up_id: number | null;
  runner_up_rtt_ms: number | null;
  subnet_rtt_ms: number | null;
  subnet_crawler_id: number | null;
  url: string;
  address: string;
}

const finerSelect = `
  select f.finer_id, f.subnet_id, f.host_hash, host(f.first_address) as first_address,
    host(f.last_address) as last_address, f.crawler_id, f.round_id, f.rtt_ms, f.runner_up_id,
    f.runner_up_rtt_ms, f.subnet_rtt_ms, d.crawler_id as subnet_crawler_id,
    r.target_url as url, host(r.target_address) as address
  from finer_delegation f
  join probe_round r using (round_id)
  left join delegation d on d.subnet_id = f.subnet_id`;

async function partsOf(pool: Pool, subnetId: SubnetId): Promise<FinerDelegation[]> {
  const { rows } = await pool.query<FinerRow>(
    `${finerSelect} where f.subnet_id = $1 and f.host_hash is null order by f.first_address`,
    [subnetId],
  );
  return rows.map(finerOf);
}

async function dueForReview(pool: Pool, limit: number, now: Date): Promise<FinerDelegation[]> {
  const { rows } = await pool.query<FinerRow>(
    `${finerSelect} where f.review_at <= $1 order by f.review_at, f.finer_id limit $2`,
    [now, limit],
  );
  return rows.map(finerOf);
}

function finerOf(row: FinerRow): FinerDelegation {
  const host = urlHost(row.url);
  return {
    finerId: asFinerId(row.finer_id),
    place: placeOf(row, host),
    subnetId: asSubnetId(row.subnet_id),
    crawlerId: asCrawlerId(row.crawler_id),
    subnetCrawlerId: crawlerOrNull(row.subnet_crawler_id),
    roundId: asRoundId(row.round_id),
    rttMs: row.rtt_ms,
    runnerUpId: crawlerOrNull(row.runner_up_id),
    runnerUpRttMs: row.runner_up_rtt_ms,
    subnetRttMs: row.subnet_rtt_ms,
    target: { url: row.url, host, address: row.address },
  };
}

function crawlerOrNull(id: number | null): CrawlerId | null {
  return id === null ? null : asCrawlerId(id);
}

function placeOf(row: FinerRow, host: string): FinerPlace {
  if (row.host_hash !== null) return { type: "host", hostHash: row.host_hash, host };
  return { type: "part", first: row.first_address, last: row.last_address };
}

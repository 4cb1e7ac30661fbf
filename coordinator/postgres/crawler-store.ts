/** Tables crawler, spool and crawler_rtt: the crawler registry, and how far the crawlers are from each other. */
import type { Pool } from "pg";
import { partitionOf } from "#core/dset/partition";
import { asCrawlerId, asSubnetId } from "#core/ids";
import type { ProbeMethod } from "#protocol/messages";
import type { CrawlerRecord, CrawlerStore, PeerRtt } from "../flows/crawler-ports.ts";
import { ChannelListener } from "./channel-listener.ts";
import { noteAbsence } from "./crawler-absences.ts";
import {
  connectedState,
  crawlerLeaves,
  drainCrawler,
  hasJoined,
  mustJoin,
  resumeCrawler,
} from "./crawler-draining.ts";
import { crawlerOfKey, measuresOnly, registerCrawler } from "./crawler-keys.ts";
import { inTransaction } from "./transaction.ts";

export function createCrawlerStore(pool: Pool): CrawlerStore {
  return {
    register: async (crawler) => await registerCrawler(pool, crawler),
    authenticate: async (name, keyHash) => await crawlerOfKey(pool, name, keyHash),

    arrive: async (arrival) => await arrive(pool, arrival),

    leave: async (departure) => await crawlerLeaves(pool, departure),

    async heartbeat(crawlerId, heartbeat, now) {
      const { type: _, ...said } = heartbeat;
      await pool.query("update crawler set heartbeat = $2, last_seen_at = $3 where crawler_id = $1", [
        crawlerId,
        JSON.stringify(said),
        now,
      ]);
    },

    list: async () => await list(pool),

    async markAllOffline(reason, now) {
      await pool.query(
        `update crawler
         set state = 'offline', offline_reason = $1, last_seen_at = coalesce(last_seen_at, $2)
         where state <> 'offline'`,
        [reason, now],
      );
    },

    saveRtts: async (rtts, now) => await saveRtts(pool, rtts, now),

    async rtts() {
      const { rows } = await pool.query<{ from: number; to: number; rtt_ms: number; method: ProbeMethod }>(
        `select from_crawler_id as "from", to_crawler_id as "to", rtt_ms, method
         from crawler_rtt
         order by from_crawler_id, to_crawler_id`,
      );
      return rows.map((row) => ({
        from: asCrawlerId(row.from),
        to: asCrawlerId(row.to),
        rttMs: row.rtt_ms,
        method: row.method,
      }));
    },

    drain: async (name, now, by) => await drainCrawler(pool, name, now, by),
    resume: async (name, now, by) => await resumeCrawler(pool, name, now, by),
    mustJoin: async (crawlerId, now) => await mustJoin(pool, crawlerId, now),
    hasJoined: async (crawlerId) => await hasJoined(pool, crawlerId),

    onChange: async (changed) => {
      const listener = new ChannelListener(pool, "nearcrawl_fleet", changed);
      await listener.listen();
      return { stop: async () => await listener.stop() };
    },
  };
}

async function arrive(pool: Pool, arrival: Parameters<CrawlerStore["arrive"]>[0]): Promise<number> {
  const { crawlerId, hello, address, subnetId, now } = arrival;
  return await inTransaction(pool, async (client) => {
    // Who left for good and comes all the same is taken back; what an operator asked for stays.
    await client.query(
      `update crawler
       set draining_since = null, drain_asked_by = null
       where crawler_id = $1 and drain_asked_by = 'crawler'`,
      [crawlerId],
    );
    await noteAbsence(client, { crawlerId, lastEnd: hello.lastEnd ?? null, now });
    await client.query(
      `update crawler
       set address = $2, subnet_id = $3, place = $4, country = $5, latitude = $6, longitude = $7,
           pages_per_day = least($8, granted_pages_per_day), bytes_per_day = least($9, granted_bytes_per_day),
           partner_pages_per_day = $8, partner_bytes_per_day = $9,
           concurrent_hosts = $10, probe_methods = $11,
           software_version = $12, state = ${connectedState}, connected_at = $13, last_seen_at = $13,
           unlisted = $14, partner_contact = $15, partner_domain_sets = $16,
           pace = null, pace_due_slices = null, pace_since = null,
           was_offline_since = case when offline_reason is null then was_offline_since else last_seen_at end,
           was_offline_reason = coalesce(offline_reason, was_offline_reason), offline_reason = null
       where crawler_id = $1`,
      [
        crawlerId,
        address,
        subnetId,
        hello.place?.name ?? null,
        hello.place?.country ?? null,
        hello.place?.latitude ?? null,
        hello.place?.longitude ?? null,
        hello.limits.pagesPerDay,
        hello.limits.bytesPerDay,
        hello.limits.concurrentHosts,
        hello.capabilities.probeMethods,
        hello.softwareVersion,
        now,
        hello.listAddress === false,
        hello.contact ?? null,
        hello.domainSets ?? [],
      ],
    );
    await client.query(
      "insert into spool (crawler_id, spool_id) values ($1, $2) on conflict (crawler_id, spool_id) do nothing",
      [crawlerId, hello.spoolId],
    );
    const { rows } = await client.query<{ acknowledged_sequence: string }>(
      "select acknowledged_sequence from spool where crawler_id = $1 and spool_id = $2",
      [crawlerId, hello.spoolId],
    );
    return Number(rows[0]!.acknowledged_sequence);
  });
}

interface CrawlerRow {
  crawler_id: number;
  name: string;
  address: string | null;
  subnet_id: number | null;
  country: string | null;
  place: string | null;
  latitude: number | null;
  longitude: number | null;
  pages_per_day: number;
  bytes_per_day: string;
  concurrent_hosts: number;
  probe_methods: ProbeMethod[];
  state: CrawlerRecord["state"];
  last_seen_at: Date | null;
  offline_reason: string | null;
  draining_since: Date | null;
  joining_since: Date | null;
  distrusted_at: Date | null;
  probes_doubted_at: Date | null;
  measures_only: boolean;
  domain_sets: string[];
  partner_domain_sets: string[];
}

async function list(pool: Pool): Promise<CrawlerRecord[]> {
  const { rows } = await pool.query<CrawlerRow>(
    `select crawler_id, name, host(address) as address, subnet_id, country, place, latitude, longitude,
       pages_per_day, bytes_per_day, concurrent_hosts, probe_methods, state, last_seen_at, offline_reason,
       draining_since, joining_since, distrusted_at, probes_doubted_at, ${measuresOnly} as measures_only,
       domain_sets, partner_domain_sets
     from crawler
     left join crawler_trust using (crawler_id)
     order by crawler_id`,
  );
  return rows.map((row) => ({
    crawlerId: asCrawlerId(row.crawler_id),
    name: row.name,
    address: row.address,
    subnetId: row.subnet_id === null ? null : asSubnetId(row.subnet_id),
    country: row.country,
    place: row.place,
    latitude: row.latitude,
    longitude: row.longitude,
    pagesPerDay: row.pages_per_day,
    bytesPerDay: Number(row.bytes_per_day),
    concurrentHosts: row.concurrent_hosts,
    probeMethods: row.probe_methods,
    state: row.state,
    lastSeenAt: row.last_seen_at,
    offlineReason: row.offline_reason,
    drainingSince: row.draining_since,
    joiningSince: row.joining_since,
    ...(row.measures_only ? { measuresOnly: true } : {}),
    ...(row.distrusted_at === null ? {} : { distrustedSince: row.distrusted_at }),
    ...(row.probes_doubted_at === null ? {} : { probesDoubtedSince: row.probes_doubted_at }),
    ...(row.domain_sets.length + row.partner_domain_sets.length === 0
      ? {}
      : { partition: partitionOf(row.domain_sets, row.partner_domain_sets) }),
  }));
}

/** What a crawler says of peers that the registry doesn't hold is left out; of several values for a pair the last counts. */
async function saveRtts(pool: Pool, rtts: readonly PeerRtt[], now: Date): Promise<void> {
  const latest = [...new Map(rtts.map((one) => [`${one.from}-${one.to}`, one])).values()];
  await pool.query(
    `insert into crawler_rtt (from_crawler_id, to_crawler_id, rtt_ms, method, measured_at)
     select given.from_id, given.to_id, given.rtt_ms, given.method, $5
     from unnest($1::int[], $2::int[], $3::real[], $4::text[]) as given (from_id, to_id, rtt_ms, method)
     join crawler f on f.crawler_id = given.from_id
     join crawler t on t.crawler_id = given.to_id
     where given.from_id <> given.to_id
     order by given.from_id, given.to_id
     on conflict (from_crawler_id, to_crawler_id) do update
       set rtt_ms = excluded.rtt_ms, method = excluded.method, measured_at = excluded.measured_at`,
    [
      latest.map((one) => one.from),
      latest.map((one) => one.to),
      latest.map((one) => one.rttMs),
      latest.map((one) => one.method),
      now,
    ],
  );
}

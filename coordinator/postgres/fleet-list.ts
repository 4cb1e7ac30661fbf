/** The fleet for operators: who is there, what each has against what it may, and how far a hand-over is. */
import type { Pool } from "pg";
import { type FleetIdentity, fleetIdentities, noIdentity } from "./fleet-identities.ts";
import { standingOf, type TrustStanding } from "./trust-report.ts";

export interface FleetEntry {
  readonly crawlerId: number;
  readonly name: string;
  readonly place: string | null;
  readonly state: "online" | "offline" | "draining";
  readonly offlineReason: string | null;
  readonly lastSeenAt: Date | null;
  readonly revoked: boolean;
  readonly subnets: number;
  readonly openLeases: number;
  /** Fetches since midnight (UTC), and their bytes, beside the limits of a day. */
  readonly pagesToday: number;
  readonly bytesToday: number;
  /** The bodies of these fetches, decoded, and what their results took on the wire to here, compressed. */
  readonly bodyBytesToday: number;
  readonly shippedBytesToday: number;
  readonly pagesPerDay: number;
  readonly bytesPerDay: number;
  /** Null: it is not draining. */
  readonly draining: {
    readonly since: Date;
    /** `trust`: it is not trusted. */
    readonly askedBy: "operator" | "crawler" | "trust";
    /** That it had when the draining began. */
    readonly subnets: number;
  } | null;
  /** Since when it waits to be given what is nearest to it; null: it has it. */
  readonly joiningSince: Date | null;
  /** Whether its pages and probe reports are believed. */
  readonly trust: TrustStanding;
  /** What its dock runs, and its partner's policy on releases, in words; null: no dock runs it. */
  readonly release: {
    readonly version: string;
    readonly dockVersion: string;
    readonly policy: string;
  } | null;
  readonly identity: FleetIdentity;
}

/** By name. Counts delegations and today's fetches, so it takes a moment on a large frontier. */
export async function fleetList(pool: Pool, now: Date): Promise<FleetEntry[]> {
  const { rows } = await pool.query<FleetRow>(
    `select c.crawler_id, c.name, c.place, c.state, c.offline_reason, c.last_seen_at,
       c.revoked_at is not null as revoked, c.pages_per_day, c.bytes_per_day::float8 as bytes_per_day,
       c.draining_since, c.drain_asked_by, c.drain_subnets, c.joining_since,
       t.distrusted_at, t.probes_doubted_at, coalesce(t.watched_until_page > t.pages, false) as watched,
       (select count(*)::int from check_outcome o where o.crawler_id = c.crawler_id) as comparisons,
       c.release_version, c.dock_version, c.release_policy,
       coalesce(d.subnets, 0)::int as subnets, coalesce(l.leases, 0)::int as open_leases,
       coalesce(f.pages, 0)::int as pages_today, coalesce(f.bytes, 0)::float8 as bytes_today,
       coalesce(f.body_bytes, 0)::float8 as body_bytes_today,
       coalesce(f.shipped_bytes, 0)::float8 as shipped_bytes_today
     from crawler c
     left join crawler_trust t using (crawler_id)
     left join (select crawler_id, count(*) as subnets from delegation group by crawler_id) d using (crawler_id)
     left join (
       select crawler_id, count(*) as leases from lease where closed_at is null group by crawler_id
     ) l using (crawler_id)
     left join (
       select crawler_id, count(*) as pages, sum(wire_bytes) as bytes, sum(body_bytes) as body_bytes,
         sum(shipped_bytes) as shipped_bytes
       from page_fetch
       where fetched_at >= date_trunc('day', $1::timestamptz, 'UTC')
       group by crawler_id
     ) f using (crawler_id)
     order by c.name`,
    [now],
  );
  const identities = await fleetIdentities(pool, now);
  return rows.map((row) => ({ ...entryOf(row), identity: identities.get(row.crawler_id) ?? noIdentity }));
}

interface FleetRow {
  crawler_id: number;
  name: string;
  place: string | null;
  state: FleetEntry["state"];
  offline_reason: string | null;
  last_seen_at: Date | null;
  revoked: boolean;
  pages_per_day: number;
  bytes_per_day: number;
  draining_since: Date | null;
  drain_asked_by: "operator" | "crawler" | "trust" | null;
  drain_subnets: number;
  joining_since: Date | null;
  distrusted_at: Date | null;
  probes_doubted_at: Date | null;
  watched: boolean;
  comparisons: number;
  release_version: string | null;
  dock_version: string | null;
  release_policy: string | null;
  subnets: number;
  open_leases: number;
  pages_today: number;
  bytes_today: number;
  body_bytes_today: number;
  shipped_bytes_today: number;
}

function entryOf(row: FleetRow): Omit<FleetEntry, "identity"> {
  return {
    crawlerId: row.crawler_id,
    name: row.name,
    place: row.place,
    state: row.state,
    offlineReason: row.offline_reason,
    lastSeenAt: row.last_seen_at,
    revoked: row.revoked,
    subnets: row.subnets,
    openLeases: row.open_leases,
    pagesToday: row.pages_today,
    bytesToday: row.bytes_today,
    bodyBytesToday: row.body_bytes_today,
    shippedBytesToday: row.shipped_bytes_today,
    pagesPerDay: row.pages_per_day,
    bytesPerDay: row.bytes_per_day,
    draining:
      row.draining_since === null
        ? null
        : {
            since: row.draining_since,
            askedBy: row.drain_asked_by ?? "operator",
            subnets: row.drain_subnets,
          },
    joiningSince: row.joining_since,
    trust: standingOf({
      distrustedAt: row.distrusted_at,
      probesDoubtedAt: row.probes_doubted_at,
      watched: row.watched,
      comparisons: row.comparisons,
    }),
    release:
      row.release_version === null
        ? null
        : {
            version: row.release_version,
            dockVersion: row.dock_version ?? "",
            policy: row.release_policy ?? "",
          },
  };
}

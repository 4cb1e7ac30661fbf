/** The fleet for operators: who is there, what each has against what it may, and how far a hand-over is. */
import type { Pool } from "pg";
import { standingOf } from "../trust/reads.ts";
import { type FleetFigures, fleetFigures, noFigures } from "./fleet-figures.ts";
import { fleetIdentities, noIdentity } from "./fleet-identities.ts";
import type { FleetEntry } from "./fleet-ports.ts";

export type { FleetEntry };

/** Where figures come from that take a moment on a large frontier; left out: they are counted now. */
export type FiguresNow = () => Promise<ReadonlyMap<number, FleetFigures>>;

/** By name. */
export async function fleetList(
  pool: Pool,
  now: Date,
  figures: FiguresNow = () => fleetFigures(pool, now),
): Promise<FleetEntry[]> {
  return await entries(pool, { name: null, now, figures });
}

/** Null: there is no crawler of that name. */
export async function fleetEntry(
  pool: Pool,
  name: string,
  now: Date,
  figures: FiguresNow = () => fleetFigures(pool, now),
): Promise<FleetEntry | null> {
  return (await entries(pool, { name, now, figures }))[0] ?? null;
}

async function entries(
  pool: Pool,
  asked: { readonly name: string | null; readonly now: Date; readonly figures: FiguresNow },
): Promise<FleetEntry[]> {
  const { rows } = await pool.query<FleetRow>(
    `select c.crawler_id, c.name, c.place, c.country, c.state, c.offline_reason, c.last_seen_at, c.connected_at,
       c.revoked_at is not null as revoked, c.software_version, c.pages_per_day,
       c.bytes_per_day::float8 as bytes_per_day, c.granted_pages_per_day,
       c.granted_bytes_per_day::float8 as granted_bytes_per_day, c.partner_pages_per_day,
       c.partner_bytes_per_day::float8 as partner_bytes_per_day,
       c.draining_since, c.drain_asked_by, c.drain_subnets, c.joining_since,
       t.distrusted_at, t.probes_doubted_at, coalesce(t.watched_until_page > t.pages, false) as watched,
       c.release_version, c.dock_version, c.release_policy, coalesce(i.incidents, 0)::float8 as incidents
     from crawler c
     left join crawler_trust t using (crawler_id)
     left join (
       select crawler_id, sum(incidents) as incidents
       from incident
       where last_at > $1::timestamptz - interval '7 days'
       group by crawler_id
     ) i using (crawler_id)
     where $2::text is null or c.name = $2
     order by c.name`,
    [asked.now, asked.name],
  );
  if (rows.length === 0) return [];
  const ids = rows.map(({ crawler_id }) => crawler_id);
  const [identities, figures] = await Promise.all([fleetIdentities(pool, asked.now, ids), asked.figures()]);
  return rows.map((row) => ({
    ...entryOf(row, figures.get(row.crawler_id) ?? noFigures),
    identity: identities.get(row.crawler_id) ?? noIdentity,
  }));
}

interface FleetRow {
  crawler_id: number;
  name: string;
  place: string | null;
  country: string | null;
  state: FleetEntry["state"];
  offline_reason: string | null;
  last_seen_at: Date | null;
  connected_at: Date | null;
  revoked: boolean;
  software_version: string | null;
  pages_per_day: number;
  bytes_per_day: number;
  granted_pages_per_day: number | null;
  granted_bytes_per_day: number | null;
  partner_pages_per_day: number | null;
  partner_bytes_per_day: number | null;
  draining_since: Date | null;
  drain_asked_by: NonNullable<FleetEntry["draining"]>["askedBy"] | null;
  drain_subnets: number;
  joining_since: Date | null;
  distrusted_at: Date | null;
  probes_doubted_at: Date | null;
  watched: boolean;
  release_version: string | null;
  dock_version: string | null;
  release_policy: string | null;
  incidents: number;
}

function entryOf(
  row: FleetRow,
  { comparisons, untold, ...figures }: FleetFigures,
): Omit<FleetEntry, "identity"> {
  const { distrusted_at: distrustedAt, probes_doubted_at: probesDoubtedAt, watched } = row;
  return {
    crawlerId: row.crawler_id,
    name: row.name,
    place: row.place,
    country: row.country,
    state: row.state,
    offlineReason: row.offline_reason,
    lastSeenAt: row.last_seen_at,
    connectedAt: row.connected_at,
    revoked: row.revoked,
    softwareVersion: row.software_version,
    ...figuresOf(figures),
    pagesPerDay: row.pages_per_day,
    bytesPerDay: row.bytes_per_day,
    granted: { pagesPerDay: row.granted_pages_per_day, bytesPerDay: row.granted_bytes_per_day },
    partnerAllows: { pagesPerDay: row.partner_pages_per_day, bytesPerDay: row.partner_bytes_per_day },
    draining: drainingOf(row),
    joiningSince: row.joining_since,
    trust: standingOf({ distrustedAt, probesDoubtedAt, watched, told: comparisons, untold }),
    incidents: row.incidents,
    release: releaseOf(row),
  };
}

const figuresOf = (figures: Omit<FleetFigures, "comparisons" | "untold">) => ({
  subnets: figures.subnets,
  meanRttMs: figures.meanRttMs,
  openLeases: figures.openLeases,
  pagesToday: figures.pagesToday,
  bytesToday: figures.bytesToday,
  bodyBytesToday: figures.bodyBytesToday,
  shippedBytesToday: figures.shippedBytesToday,
});

function drainingOf(row: FleetRow): FleetEntry["draining"] {
  if (row.draining_since === null) return null;
  return { since: row.draining_since, askedBy: row.drain_asked_by ?? "operator", subnets: row.drain_subnets };
}

function releaseOf(row: FleetRow): FleetEntry["release"] {
  if (row.release_version === null) return null;
  return {
    version: row.release_version,
    dockVersion: row.dock_version ?? "",
    policy: row.release_policy ?? "",
  };
}

/** The fleet for operators: who is there, what each has against what it may, and how far a hand-over is. */
import type { Pool } from "pg";
import { type KeyScope, keyThumbprint } from "#protocol/identity";
import { roundMs } from "../database/cached-read.ts";
import type { WorkPace } from "../frontier/pace.ts";
import { standingOf, untoldByCrawler } from "../trust/reads.ts";
import type { FleetEntry, FleetIdentity } from "./fleet-entry.ts";

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
  unmeasured: figures.unmeasured,
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

// What a crawler may have by its domain sets, and the pace that it was told (table crawler).

interface WorkRow {
  operator: string[];
  partner: string[];
  pace: NonNullable<CrawlerWork["pace"]>["pace"] | null;
  pace_due_slices: number;
  pace_since: Date;
}

/** Of a crawler that is not there, nothing. */
export async function crawlerWork(pool: Pool, name: string): Promise<CrawlerWork> {
  const { rows } = await pool.query<WorkRow>(
    `select domain_sets as operator, partner_domain_sets as partner, pace, pace_due_slices, pace_since
     from crawler
     where name = $1`,
    [name],
  );
  const [row] = rows;
  if (row === undefined) return { domainSets: { operator: [], partner: [] }, pace: null };
  const { operator, partner, pace, pace_due_slices: dueSlices, pace_since: since } = row;
  return { domainSets: { operator, partner }, pace: pace === null ? null : { pace, dueSlices, since } };
}

// What each crawler has and did today. Counts delegations and the day's fetches, so it takes a moment on a large
// frontier: pages keep the answer a while.

interface FleetFigures {
  readonly subnets: number;
  readonly unmeasured: number;
  readonly meanRttMs: number | null;
  readonly openLeases: number;
  readonly pagesToday: number;
  readonly bytesToday: number;
  readonly bodyBytesToday: number;
  readonly shippedBytesToday: number;
  /** Comparisons of its pages with others', ever. */
  readonly comparisons: number;
  /** Those that came to nothing that can be concluded. */
  readonly untold: number;
}

const noFigures: FleetFigures = {
  subnets: 0,
  unmeasured: 0,
  meanRttMs: null,
  openLeases: 0,
  pagesToday: 0,
  bytesToday: 0,
  bodyBytesToday: 0,
  shippedBytesToday: 0,
  comparisons: 0,
  untold: 0,
};

interface FiguresRow extends FleetFigures {
  readonly crawlerId: number;
}

/** By the crawler's number. */
export async function fleetFigures(pool: Pool, now: Date): Promise<ReadonlyMap<number, FleetFigures>> {
  const rows = await figureRows(pool, now);
  return new Map(rows.map((row) => [row.crawlerId, { ...row, meanRttMs: roundMs(row.meanRttMs) }]));
}

async function figureRows(pool: Pool, now: Date): Promise<FiguresRow[]> {
  const { rows } = await pool.query<FiguresRow>(
    `select c.crawler_id as "crawlerId", coalesce(d.subnets, 0)::int as subnets,
       coalesce(d.unmeasured, 0)::int as unmeasured,
       d.mean_rtt_ms::float8 as "meanRttMs", coalesce(l.leases, 0)::int as "openLeases",
       coalesce(f.pages, 0)::int as "pagesToday", coalesce(f.bytes, 0)::float8 as "bytesToday",
       coalesce(f.body_bytes, 0)::float8 as "bodyBytesToday",
       coalesce(f.shipped_bytes, 0)::float8 as "shippedBytesToday", coalesce(o.comparisons, 0)::int as comparisons,
       coalesce(u.untold, 0)::int as untold
     from crawler c
     left join (
       select crawler_id, count(*) as subnets, count(*) filter (where not measured) as unmeasured, avg(rtt_ms) as mean_rtt_ms
       from delegation
       group by crawler_id
     ) d using (crawler_id)
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
     left join (
       select crawler_id, count(*) as comparisons from check_outcome group by crawler_id
     ) o using (crawler_id)
     left join (${untoldByCrawler}) u using (crawler_id)`,
    [now],
  );
  return rows;
}

// Who each crawler is, for operators: its identity and key, where it was seen, why it was away, its last words.

/** Of a crawler that was never connected. */
export const noIdentity: FleetIdentity = {
  publicKey: null,
  keySince: null,
  scopes: [],
  signingKey: null,
  seenAddress: null,
  addressBefore: null,
  addressChangedAt: null,
  lastAway: null,
  lastEnd: null,
  copiedAt: null,
  contact: null,
  isListed: true,
};

/** By the crawler's number. */
export async function fleetIdentities(
  pool: Pool,
  now: Date,
  crawlerIds: readonly number[],
): Promise<ReadonlyMap<number, FleetIdentity>> {
  const { rows } = await pool.query<IdentityRow>(
    `select c.crawler_id, c.public_key, k.created_at as key_since, coalesce(k.scopes, '{}') as scopes,
       host(c.seen_address) as seen_address, host(c.expected_address) as address_before, c.address_changed_at,
       c.was_offline_since, c.was_offline_reason, c.last_end_at, c.last_words, i.copied_at,
       c.partner_contact, not c.unlisted as is_listed,
       s.public_key as signing_key, s.announced_at as signing_since, s.expires_at as signing_until
     from crawler c
     left join lateral (
       select public_key, announced_at, expires_at
       from crawler_signing_key
       where crawler_id = c.crawler_id and identity_key = c.public_key and expires_at > $1 and c.revoked_at is null
       order by announced_at desc
       limit 1
     ) s on true
     left join lateral (
       select created_at, scopes
       from crawler_key
       where crawler_id = c.crawler_id and revoked_at is null and kept_at is not null
         and (expires_at is null or expires_at > $1)
       order by key_id desc
       limit 1
     ) k on true
     left join (
       select i.crawler_id, max(i.last_at) as copied_at
       from incident i
       left join (
         select crawler_id, max(redeemed_at) as renewed_at from invitation group by crawler_id
       ) r using (crawler_id)
       where i.kind = 'copied-folder' and i.hour > $1::timestamptz - interval '7 days'
         -- A new identity has put an end to it.
         and i.last_at > coalesce(r.renewed_at, '-infinity')
       group by i.crawler_id
     ) i on i.crawler_id = c.crawler_id
     where c.crawler_id = any($2)`,
    [now, crawlerIds],
  );
  return new Map(rows.map((row) => [row.crawler_id, identityOf(row)]));
}

interface IdentityRow {
  crawler_id: number;
  public_key: string | null;
  key_since: Date | null;
  scopes: KeyScope[];
  seen_address: string | null;
  address_before: string | null;
  address_changed_at: Date | null;
  was_offline_since: Date | null;
  was_offline_reason: string | null;
  last_end_at: Date | null;
  last_words: string | null;
  copied_at: Date | null;
  partner_contact: string | null;
  is_listed: boolean;
  signing_key: string | null;
  signing_since: Date | null;
  signing_until: Date | null;
}

function identityOf(row: IdentityRow): FleetIdentity {
  const { was_offline_since: since, was_offline_reason: reason, last_end_at: at, last_words: words } = row;
  return {
    publicKey: row.public_key,
    keySince: row.key_since,
    scopes: row.scopes,
    signingKey: signingKeyOf(row),
    seenAddress: row.seen_address,
    addressBefore: row.address_before,
    addressChangedAt: row.address_changed_at,
    lastAway: since === null || reason === null ? null : { since, reason },
    lastEnd: at === null || words === null ? null : { at, reason: words },
    copiedAt: row.copied_at,
    contact: row.partner_contact,
    isListed: row.is_listed,
  };
}

function signingKeyOf({ signing_key: publicKey, signing_since: since, signing_until: until }: IdentityRow) {
  if (publicKey === null || since === null || until === null) return null;
  return { publicKey, keyId: keyThumbprint(publicKey), since, until };
}

/** What it may have by its domain sets, and at what pace it was told to work. */
export interface CrawlerWork {
  /** As text, each one set; without any, every host. A host must be in one of both parties'. */
  readonly domainSets: { readonly operator: readonly string[]; readonly partner: readonly string[] };
  /** Null: nothing in this session. */
  readonly pace: {
    readonly pace: WorkPace;
    /** Due or in hand; of many, no more than it took to tell. */
    readonly dueSlices: number;
    readonly since: Date;
  } | null;
}

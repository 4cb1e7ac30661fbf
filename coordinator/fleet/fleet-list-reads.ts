/** The fleet for operators: who is there, what each has against what it may, and how far a hand-over is. */
import type { Pool } from "pg";
import { keyThumbprint } from "#protocol/identity";
import { roundMs } from "../database/cached-read.ts";
import { standingOf, untoldByCrawler } from "../trust/reads.ts";
import type { CrawlerWork } from "./crawler-api.ts";
import type { FleetEntry, FleetIdentity } from "./fleet-entry.ts";

/** Where figures come from that take a moment on a large frontier; left out: they are counted now. */
type FiguresNow = () => Promise<ReadonlyMap<number, FleetFigures>>;

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
    `select c.crawler_id as "crawlerId", c.name, c.place, c.country, c.state, c.offline_reason as "offlineReason",
       c.last_seen_at as "lastSeenAt", c.connected_at as "connectedAt", c.revoked_at is not null as revoked,
       c.software_version as "softwareVersion", c.pages_per_day as "pagesPerDay",
       c.bytes_per_day::float8 as "bytesPerDay", c.joining_since as "joiningSince",
       coalesce(i.incidents, 0)::float8 as incidents,
       jsonb_build_object('pagesPerDay', c.granted_pages_per_day, 'bytesPerDay', c.granted_bytes_per_day) as granted,
       jsonb_build_object('pagesPerDay', c.partner_pages_per_day, 'bytesPerDay', c.partner_bytes_per_day)
         as "partnerAllows",
       case when c.release_version is not null then jsonb_build_object('version', c.release_version,
         'dockVersion', coalesce(c.dock_version, ''), 'policy', coalesce(c.release_policy, '')) end as release,
       c.draining_since as "drainingSince", c.drain_asked_by as "askedBy", c.drain_subnets as "drainSubnets",
       t.distrusted_at as "distrustedAt", t.probes_doubted_at as "probesDoubtedAt",
       coalesce(t.watched_until_page > t.pages, false) as watched
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
  const ids = rows.map(({ crawlerId }) => crawlerId);
  const [identities, figures] = await Promise.all([fleetIdentities(pool, asked.now, ids), asked.figures()]);
  return rows.map((row) => ({
    ...entryOf(row, figures.get(row.crawlerId) ?? noFigures),
    identity: identities.get(row.crawlerId) ?? noIdentity,
  }));
}

interface FleetRow extends Omit<FleetEntry, Figure | "draining" | "trust" | "identity"> {
  readonly drainingSince: Date | null;
  readonly askedBy: NonNullable<FleetEntry["draining"]>["askedBy"] | null;
  readonly drainSubnets: number;
  readonly distrustedAt: Date | null;
  readonly probesDoubtedAt: Date | null;
  readonly watched: boolean;
}

function entryOf(
  { drainingSince, askedBy, drainSubnets, distrustedAt, probesDoubtedAt, watched, ...entry }: FleetRow,
  { comparisons: told, untold, ...figures }: FleetFigures,
): Omit<FleetEntry, "identity"> {
  return {
    ...entry,
    ...figures,
    draining:
      drainingSince === null
        ? null
        : { since: drainingSince, askedBy: askedBy ?? "operator", subnets: drainSubnets },
    trust: standingOf({ distrustedAt, probesDoubtedAt, watched, told, untold }),
  };
}

// What a crawler may have by its domain sets, and the pace that it was told (table crawler).

/** Of a crawler that is not there, nothing. */
export async function crawlerWork(pool: Pool, name: string): Promise<CrawlerWork> {
  type Pace = NonNullable<CrawlerWork["pace"]>;
  type WorkRow = CrawlerWork["domainSets"] & Omit<Pace, "pace"> & { readonly pace: Pace["pace"] | null };
  const { rows } = await pool.query<WorkRow>(
    `select domain_sets as operator, partner_domain_sets as partner, pace, pace_due_slices as "dueSlices",
       pace_since as since
     from crawler
     where name = $1`,
    [name],
  );
  const [row] = rows;
  if (row === undefined) return { domainSets: { operator: [], partner: [] }, pace: null };
  const { operator, partner, pace, ...sent } = row;
  return { domainSets: { operator, partner }, pace: pace === null ? null : { pace, ...sent } };
}

// What each crawler has and did today. Counts delegations and the day's fetches, so it takes a moment on a large
// frontier: pages keep the answer a while.

type Figure =
  | "subnets"
  | "unmeasured"
  | "meanRttMs"
  | "openLeases"
  | "pagesToday"
  | "bytesToday"
  | "bodyBytesToday"
  | "shippedBytesToday";

interface FleetFigures extends Pick<FleetEntry, Figure> {
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

/** By the crawler's number. */
export async function fleetFigures(pool: Pool, now: Date): Promise<ReadonlyMap<number, FleetFigures>> {
  const { rows } = await pool.query<FleetFigures & { readonly crawlerId: number }>(
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
  return new Map(
    rows.map(({ crawlerId, ...row }) => [crawlerId, { ...row, meanRttMs: roundMs(row.meanRttMs) }]),
  );
}

// Who each crawler is, for operators: its identity and key, where it was seen, why it was away, its last words.

/** Of a crawler that was never connected. */
const noIdentity: FleetIdentity = {
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
  const { rows } = await pool.query<IdentityRow & { readonly crawlerId: number }>(
    `select c.crawler_id as "crawlerId", c.public_key as "publicKey", k.created_at as "keySince",
       coalesce(k.scopes, '{}') as scopes, host(c.seen_address) as "seenAddress",
       host(c.expected_address) as "addressBefore", c.address_changed_at as "addressChangedAt",
       c.was_offline_since as "awaySince", c.was_offline_reason as "awayReason", c.last_end_at as "endAt",
       c.last_words as "lastWords", i.copied_at as "copiedAt", c.partner_contact as contact,
       not c.unlisted as "isListed", s.public_key as "signingKey", s.announced_at as "signingSince",
       s.expires_at as "signingUntil"
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
  return new Map(rows.map(({ crawlerId, ...row }) => [crawlerId, identityOf(row)]));
}

interface IdentityRow extends Omit<FleetIdentity, "signingKey" | "lastAway" | "lastEnd"> {
  readonly awaySince: Date | null;
  readonly awayReason: string | null;
  readonly endAt: Date | null;
  readonly lastWords: string | null;
  readonly signingKey: string | null;
  readonly signingSince: Date | null;
  readonly signingUntil: Date | null;
}

function identityOf({
  awaySince: since,
  awayReason,
  endAt: at,
  lastWords,
  signingKey,
  signingSince,
  signingUntil,
  ...row
}: IdentityRow): FleetIdentity {
  return {
    ...row,
    lastAway: since === null || awayReason === null ? null : { since, reason: awayReason },
    lastEnd: at === null || lastWords === null ? null : { at, reason: lastWords },
    signingKey:
      signingKey === null || signingSince === null || signingUntil === null
        ? null
        : {
            publicKey: signingKey,
            keyId: keyThumbprint(signingKey),
            since: signingSince,
            until: signingUntil,
          },
  };
}

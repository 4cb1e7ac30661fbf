/** The fleet for operators: who is there, what each has against what it may, and how far a hand-over is. */
import type { Pool } from "pg";
import { keyThumbprint } from "#protocol/identity";
import { standingOf, untoldByCrawler } from "../../crawl/trust/reads.ts";
import { readRows, roundedMs } from "../../database/cached-read.ts";
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
  const rows = await readRows<FleetRow>(
    pool,
    `select c.crawler_id as "crawlerId", c.name, c.place, c.country, c.state, c.offline_reason as "offlineReason", c.offline_code as "offlineCode",
       c.last_seen_at as "lastSeenAt", c.connected_at as "connectedAt", c.revoked_at is not null as revoked,
       c.software_version as "softwareVersion", c.pages_per_day as "pagesPerDay",
       c.bytes_per_day::float8 as "bytesPerDay", c.joining_since as "joiningSince",
       coalesce(i.incidents, 0)::float8 as incidents,
       jsonb_build_object('pagesPerDay', c.granted_pages_per_day, 'bytesPerDay', c.granted_bytes_per_day) as granted,
       jsonb_build_object('pagesPerDay', c.partner_pages_per_day, 'bytesPerDay', c.partner_bytes_per_day)
         as "partnerAllows",
       case when c.release_version is not null then jsonb_build_object('version', c.release_version,
         'dockVersion', coalesce(c.dock_version, ''), 'policy', coalesce(c.release_policy, '')) end as release,
       c.draining_since as "draining.since", coalesce(c.drain_asked_by, 'operator') as "draining.askedBy",
       c.drain_subnets as "draining.subnets",
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
  return rows.flatMap(({ distrustedAt, probesDoubtedAt, watched, ...entry }) => {
    const { comparisons: told, untold, ...had } = figures.get(entry.crawlerId) ?? noFigures;
    const identity = identities.get(entry.crawlerId);
    const trust = standingOf({ distrustedAt, probesDoubtedAt, watched, told, untold });
    return identity === undefined ? [] : [{ ...entry, ...had, trust, identity }];
  });
}

interface FleetRow extends Omit<FleetEntry, Figure | "trust" | "identity"> {
  readonly distrustedAt: Date | null;
  readonly probesDoubtedAt: Date | null;
  readonly watched: boolean;
}

// What a crawler may have by its domain sets, and the pace that it was told (table crawler).

/** Of a crawler that is not there, nothing. */
export async function crawlerWork(pool: Pool, name: string): Promise<CrawlerWork> {
  const rows = await readRows<CrawlerWork>(
    pool,
    `select domain_sets as "domainSets.operator", partner_domain_sets as "domainSets.partner", pace as "pace.pace",
       pace_due_slices as "pace.dueSlices", pace_since as "pace.since"
     from crawler
     where name = $1`,
    [name],
  );
  return rows[0] ?? { domainSets: { operator: [], partner: [] }, pace: null };
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
       ${roundedMs("d.mean_rtt_ms")} as "meanRttMs", coalesce(l.leases, 0)::int as "openLeases",
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
  return new Map(rows.map(({ crawlerId, ...row }) => [crawlerId, row]));
}

// Who each crawler is, for operators: its identity and key, where it was seen, why it was away, its last words.

/** By the crawler's number. */
export async function fleetIdentities(
  pool: Pool,
  now: Date,
  crawlerIds: readonly number[],
): Promise<ReadonlyMap<number, FleetIdentity>> {
  const rows = await readRows<FleetIdentity & { readonly crawlerId: number }>(
    pool,
    `select c.crawler_id as "crawlerId", c.public_key as "publicKey", k.created_at as "keySince",
       coalesce(k.scopes, '{}') as scopes, host(c.seen_address) as "seenAddress",
       host(c.expected_address) as "addressBefore", c.address_changed_at as "addressChangedAt",
       case when c.was_offline_reason is not null then c.was_offline_since end as "lastAway.since",
       c.was_offline_reason as "lastAway.reason",
       case when c.last_words is not null then c.last_end_at end as "lastEnd.at", c.last_words as "lastEnd.reason",
       i.copied_at as "copiedAt", c.partner_contact as contact,
       not c.unlisted as "isListed", s.public_key as "signingKey.publicKey",
       s.announced_at as "signingKey.since", s.expires_at as "signingKey.until"
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
  return new Map(
    rows.map(({ crawlerId, signingKey: key, ...row }) => {
      return [crawlerId, { ...row, signingKey: key && { ...key, keyId: keyThumbprint(key.publicKey) } }];
    }),
  );
}

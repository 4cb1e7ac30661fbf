/**
 * Handles a result under a lease for a comparison: adds the opinion and writes what follows from it, in one
 * transaction. If the result is a duplicate, its lease is closed or its URL is no longer expected.
 */
import type { Pool, PoolClient } from "pg";
import type { CrawlerId, HostHash } from "#core/ids";
import type { UrlKey } from "#core/url-key";
import { columnsOf, inTransaction } from "../../database/transaction.ts";
import { type LeaseOfTurn, turnColumns, writingLeases } from "../frontier/address-turn-store.ts";
import { lockHosts } from "../frontier/admission-writes.ts";
import { isLeaseNumber, settleHosts } from "../frontier/lease-end-writes.ts";
import type { Verdict } from "./arbitration.ts";
import {
  type ArrivedOpinion,
  type CheckStep,
  type HostRecord,
  isSilent,
  type NextOfCheck,
  newHost,
  type OpenCheck,
  outcomesOf,
  type StoredOpinion,
  type TakenCheck,
  withVerdict,
} from "./evidence.ts";
import { readsAs, saysNothing } from "./page-sketch.ts";

interface Taking {
  readonly opinion: ArrivedOpinion;
  readonly step: NextOfCheck;
  readonly now: Date;
}

export async function takeOpinion(pool: Pool, taking: Taking): Promise<TakenCheck | null> {
  const { leaseId, crawlerId } = taking.opinion;
  if (!isLeaseNumber(leaseId)) return null;
  const software = await softwareOf(pool, crawlerId);
  if (software === null) return null;
  return await writingLeases(pool, async ({ client, turns }) => {
    const lease = await countLeaseDown(client, taking);
    if (lease === null) return null;
    if (lease.is_closed) turns.end([lease], { closedAt: taking.now, ranOut: false });
    const check = await lockCheck(client, taking.opinion, software);
    await freeHost(client, taking.opinion);
    if (check === null) return null;
    return await writeStep(client, { check, step: taking.step(check) }, taking.now);
  });
}

async function writeStep(client: PoolClient, taken: TakenCheck, now: Date): Promise<TakenCheck> {
  const { check, step } = taken;
  if (step.type === "ask") await askNext(client, check, step);
  else await decide(client, { check, verdict: step.verdict, now });
  return taken;
}

/** Returns null if the lease is not this crawler's or the URL already has its result. */
async function countLeaseDown(
  client: PoolClient,
  { opinion, now }: Taking,
): Promise<(LeaseOfTurn & { readonly is_closed: boolean }) | null> {
  const { leaseId, crawlerId, key } = opinion;
  const { rows } = await client.query<LeaseOfTurn & { readonly is_closed: boolean }>(
    `update lease l
     set open_urls = l.open_urls - 1,
         closed_at = case when l.open_urls <= 1 then $5::timestamptz end,
         ending = case when l.open_urls <= 1 then 'done' end
     where l.lease_id = $1 and l.crawler_id = $2 and l.closed_at is null and l.is_check
       and exists (
         select
         from double_check c
         where c.lease_id = l.lease_id and c.host_hash = $3 and c.url_hash = $4 and c.verdict is null
       )
     returning l.closed_at is not null as is_closed, ${turnColumns("l")}`,
    [leaseId, crawlerId, key.hostHash, key.urlHash, now],
  );
  return rows[0] ?? null;
}

async function freeHost(client: PoolClient, { key, hostNotBefore }: ArrivedOpinion): Promise<void> {
  await client.query("update frontier_host set not_before = greatest(not_before, $2) where host_hash = $1", [
    key.hostHash,
    hostNotBefore,
  ]);
  await settleHosts(client, [key.hostHash]);
}

/** SQL: what `isOfferedTo` takes, for crawler row `c`. */
const ofCrawler = {
  crawlerId: "c.crawler_id",
  release: "c.release_version",
  digest: "c.release_digest",
  software: "c.software_version",
};

/**
 * SQL: whether this version is ours (with its bundle's digest if a supervisor runs it): it was offered to this
 * crawler, was ever staged (a supervisor's first release), or was run here by a coordinator.
 */
export const isOfferedTo = (of: {
  crawlerId: string;
  release: string;
  digest: string;
  software: string;
}): string =>
  `case when ${of.release} is null then exists (
       select from coordinator_version v where v.version = ${of.software})
     else exists (
       select from release r
       where r.version = ${of.release} and r.digest = ${of.digest}
         and (r.stage_since is not null
           or exists (select from release_offer o where o.version = r.version and o.crawler_id = ${of.crawlerId})))
     end`;

interface CrawlerSoftware {
  readonly version: string;
  readonly isOffered: boolean;
}

/** Returns null if there is no such crawler. */
export async function softwareOf(pool: Pool, crawlerId: CrawlerId): Promise<CrawlerSoftware | null> {
  const { rows } = await pool.query<CrawlerSoftware>(
    `select coalesce(c.release_version, c.software_version, '') as version, ${isOfferedTo(ofCrawler)} as "isOffered"
     from crawler c
     where c.crawler_id = $1`,
    [crawlerId],
  );
  return rows[0] ?? null;
}

type CheckRow = Pick<OpenCheck, "checkId" | "crawlerId" | "cause"> &
  OpenCheck["target"] & { readonly opinions: readonly StoredOpinion[] };

/** Locks the host first, as everywhere. Returns the check with the new opinion; null if it is decided or now asks others. */
async function lockCheck(
  client: PoolClient,
  opinion: ArrivedOpinion,
  { version, isOffered }: CrawlerSoftware,
): Promise<OpenCheck | null> {
  const { key, leaseId, crawlerId, sketch, fetchedAt } = opinion;
  await lockHosts(client, [key.hostHash]);
  const { rows } = await client.query<CheckRow>(
    `select c.check_id as "checkId", c.crawler_id as "crawlerId", c.cause, c.opinions,
       coalesce(host(h.addresses[1]), '') as address, coalesce(h.subnet_id, 0) as "subnetId"
     from double_check c
     join frontier_host h on h.host_hash = c.host_hash
     where c.host_hash = $1 and c.url_hash = $2 and c.lease_id = $3 and c.verdict is null
     for update of c`,
    [key.hostHash, key.urlHash, leaseId],
  );
  if (rows[0] === undefined) return null;
  const { address, subnetId, ...row } = rows[0];
  const added: StoredOpinion = { crawlerId, at: fetchedAt.toISOString(), version, isOffered, sketch };
  const opinions = [...row.opinions, added];
  return {
    ...row,
    key,
    opinions,
    host: await hostRecord(client, key.hostHash),
    isErrorPage: await isErrorPage(client, key, opinions),
    target: { address, subnetId },
  };
}

/** Maximum pages of a host that are searched for the text of its error page. */
const mostPagesRead = 2000;

/** Requires the same text at another URL of the host, because the crawler's word alone is not enough. */
async function isErrorPage(
  client: PoolClient,
  key: UrlKey,
  opinions: readonly StoredOpinion[],
): Promise<boolean> {
  const claim = opinions.find(({ sketch }) => sketch.kind === "missing" && sketch.simhash !== null);
  if (claim === undefined) return false;
  const { rows } = await client.query<{ digest: string; simhash: string; title: string; words: number }>(
    `select digest, simhash, title, words
     from page
     where host_hash = $1 and url_hash <> $2
     limit ${mostPagesRead}`,
    [key.hostHash, key.urlHash],
  );
  return rows.some((page) => readsAs(claim.sketch, page));
}

async function askNext(
  client: PoolClient,
  check: OpenCheck,
  step: Extract<CheckStep, { type: "ask" }>,
): Promise<void> {
  await client.query(
    `update double_check
     set opinions = $2, wanted = $3, next_by = $4, lease_id = null
     where check_id = $1`,
    [check.checkId, JSON.stringify(check.opinions), step.wanted, step.nextBy],
  );
}

/** Keeps the opinions if they count against somebody or prove nothing, because operators may want to see them. */
async function decide(
  client: PoolClient,
  { check, verdict, now }: { readonly check: OpenCheck; readonly verdict: Verdict; readonly now: Date },
): Promise<void> {
  const isAgreed = verdict.type === "agree";
  await client.query(
    `update double_check
     set opinions = $2, verdict = $3, suspect_id = $4, words = $5, decided_at = $6, wanted = '{}', lease_id = null
     where check_id = $1`,
    [
      check.checkId,
      JSON.stringify(
        isAgreed ? check.opinions.map((one) => ({ ...one, sketch: undefined })) : check.opinions,
      ),
      verdict.type,
      "suspect" in verdict ? verdict.suspect : null,
      "words" in verdict ? verdict.words : "",
      now,
    ],
  );
  const outcomes = outcomesOf(verdict, check.opinions);
  await client.query(
    `insert into check_outcome (crawler_id, check_id, host_hash, outcome, decided_at)
     select given.crawler_id, $1, $2, given.outcome, $5
     from unnest($3::int[], $4::text[]) as given (crawler_id, outcome)
     on conflict (crawler_id, check_id) do nothing`,
    [check.checkId, check.key.hostHash, ...columnsOf(outcomes, ["crawlerId", "outcome"]), now],
  );
  await saveHost(client, check.key.hostHash, withVerdict(check.host, verdict), now);
}

async function hostRecord(client: PoolClient, hostHash: HostHash): Promise<HostRecord> {
  const { rows } = await client.query<HostRecord>(
    `select agreed, by_visit as "byVisit", by_place as "byPlace", suspects,
       json_build_object('bits', bits, 'links', links, 'title', title) as volatility
     from host_disagreement
     where host_hash = $1`,
    [hostHash],
  );
  return rows[0] ?? newHost;
}

async function saveHost(client: PoolClient, hostHash: HostHash, host: HostRecord, now: Date): Promise<void> {
  const { agreed, byVisit, byPlace, suspects, volatility } = host;
  const { bits, links, title } = volatility;
  await client.query(
    `insert into host_disagreement
       (host_hash, agreed, by_visit, by_place, suspects, bits, links, title, silent, changed_at)
     values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
     on conflict (host_hash) do update
       set agreed = excluded.agreed, by_visit = excluded.by_visit, by_place = excluded.by_place,
           suspects = excluded.suspects, bits = excluded.bits, links = excluded.links, title = excluded.title,
           silent = excluded.silent, changed_at = excluded.changed_at`,
    [hostHash, agreed, byVisit, byPlace, suspects, bits, links, title, isSilent(host), now],
  );
}

// A crawler that was asked for a page again, had the lease, stayed connected and sent nothing has given an empty
// opinion. Otherwise a crawler that alters pages could just let such leases expire. If its session ended meanwhile,
// the host opted out, or nothing was leased, the comparison expires like any other.

/** Delay after the lease's end. A connected crawler sends a heartbeat within this time. */
export const settlingSeconds = 60;

/** Maximum comparisons decided at a time. Far fewer are open. */
const mostAtOnce = 1000;

export async function takeSilences(pool: Pool, step: NextOfCheck, now: Date): Promise<TakenCheck[]> {
  const taken: TakenCheck[] = [];
  for (const silence of await silences(pool, now)) {
    const software = await softwareOf(pool, silence.crawlerId);
    if (software === null) continue;
    const decided = await inTransaction(pool, async (client) => {
      const check = await lockCheck(client, silence, software);
      return check === null ? null : await writeStep(client, { check, step: step(check) }, now);
    });
    if (decided !== null) taken.push(decided);
  }
  return taken;
}

async function silences(pool: Pool, now: Date): Promise<ArrivedOpinion[]> {
  const { rows } = await pool.query<UrlKey & Pick<ArrivedOpinion, "crawlerId" | "leaseId">>(
    `select l.crawler_id as "crawlerId", c.lease_id as "leaseId", c.host, c.url, c.host_hash as "hostHash",
       c.url_hash as "urlHash"
     from double_check c
     join lease l on l.lease_id = c.lease_id
     join crawler w on w.crawler_id = l.crawler_id
     join frontier_host h on h.host_hash = c.host_hash
     where c.verdict is null
       and c.next_by <= $1
       and c.wanted = array[l.crawler_id]
       and c.opinions @> jsonb_build_array(jsonb_build_object('crawlerId', l.crawler_id))
       and l.closed_at <= $1::timestamptz - make_interval(secs => ${settlingSeconds})
       and w.connected_at <= l.granted_at
       and w.last_seen_at >= l.closed_at
       and w.revoked_at is null
       and h.opt_out_id is null
     order by c.next_by, c.check_id
     limit $2`,
    [now, mostAtOnce],
  );
  return rows.map(({ crawlerId, leaseId, ...key }) => ({
    ...{ crawlerId, leaseId, key, sketch: saysNothing },
    ...{ fetchedAt: now, hostNotBefore: now },
  }));
}

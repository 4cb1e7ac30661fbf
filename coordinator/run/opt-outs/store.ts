/** Table opt_out: who asked us to leave what alone, and the outcome. mark-writes.ts marks the hosts. */
import { randomBytes } from "node:crypto";
import type { Pool, PoolClient } from "pg";
import { isPublicSuffix, registrableDomain } from "#core/ip/registrable-domain";
import type { SitePart } from "#core/ip/url-host";
import { domainsAbove, hostHashOf } from "#core/url-key";
import { tell } from "#db/schema-channel";
import { isInPartSql, isOfSite, optOutLock } from "../../crawl/frontier/site-rule-writes.ts";
import { ChannelListener } from "../../database/channel-listener.ts";
import { clean, inTransaction } from "../../database/transaction.ts";
import {
  type Covered,
  hiddenDays,
  mostHostsUnconfirmed,
  mostPagesUnconfirmed,
  mostUnconfirmedADay,
  type OptOut,
  type OptOutPreview,
  type OptOutRequest,
  type OptOutTarget,
  type StoppedPart,
  scopeOf,
  targetText,
  type Unproven,
  unconfirmedDays,
  wideWords,
} from "./opt-out.ts";

const dayMs = 86_400_000;

/** Minimum minutes between checks of a site's proof, unless the requester asks again. */
const lookAgainMinutes = 10;

export type OptOutStore = ReturnType<typeof createOptOutStore>;

export function createOptOutStore(pool: Pool) {
  return {
    /**
     * Records the request, or returns the open opt-out of the same target, which a request by an operator confirms.
     * Notifies running coordinators.
     */
    async request(request: OptOutRequest, now: Date): Promise<OptOut> {
      // Counts what the target covers before taking the lock, so that no admission waits for the count.
      const isBelieved = request.source !== "form" || request.confirmed;
      const weight = isBelieved ? null : await weightOf(pool, request.target);
      const optOutId = await inTransaction(
        pool,
        async (client) => await record(client, { ...request, weight }, now),
      );
      return (await byNumber(pool, optOutId))!;
    },
    /** Counts what a target would cover, or what the opt-out of this number covers. Returns null if there is no such opt-out. */
    async preview(target: OptOutTarget | number, now: Date): Promise<OptOutPreview | null> {
      const known = typeof target === "number" ? await targetOf(pool, target) : target;
      return known === null ? null : await preview(pool, known, now);
    },
    /** `open` leaves out ended ones. The latest come first. */
    list: async ({ open, most }: { readonly open: boolean; readonly most: number }): Promise<OptOut[]> =>
      await read(pool, `${open ? "o.ended_at is null" : "true"} order by o.opt_out_id desc limit $1`, [most]),
    /** Returns null if there is no open request of that number. */
    async confirm(optOutId: number, by: "site" | "operator", now: Date): Promise<OptOut | null> {
      await change(pool, confirmSql, [optOutId, now, by]);
      const found = await byNumber(pool, optOutId);
      return found?.endedAt === null ? found : null;
    },
    /** Returns null if there is no open request of that number. */
    async lift(optOutId: number, words: string, now: Date): Promise<OptOut | null> {
      const lifted = await change(
        pool,
        `update opt_out set ended_at = $2, ending = 'lifted', ending_words = $3
         where opt_out_id = $1 and ended_at is null`,
        [optOutId, now, clean(words)],
      );
      return lifted === 0 ? null : await byNumber(pool, optOutId);
    },
    /** Ends unconfirmed opt-outs that have expired. Returns how many. */
    lapse: async (now: Date): Promise<number> =>
      await change(
        pool,
        `update opt_out set ended_at = $1, ending = 'lapsed', ending_words = 'nobody confirmed it'
         where ended_at is null and lapses_at <= $1`,
        [now],
      ),
    /**
     * Returns unconfirmed sites to check for proof and marks them as checked now. The longest unchecked come first,
     * in turns of the requesting networks, so that a flood from one network does not delay others.
     */
    async toConfirm(limit: number, now: Date): Promise<Unproven[]> {
      const { rows } = await pool.query<Unproven>(
        `with open as (
           select opt_out_id, coalesce(looked_at, ${withFile}) as at, looked_at = ${withFile} as has_file,
             row_number() over (
               partition by network(set_masklen(requester, case family(requester) when 4 then 24 else 48 end))
               order by looked_at nulls first, opt_out_id
             ) as turn
           from opt_out
           where ended_at is null and confirmed_at is null and site is not null
             and (looked_at is null or looked_at <= $2::timestamptz - interval '${lookAgainMinutes} minutes')
         ), next as (
           select opt_out_id, has_file
           from open join opt_out o using (opt_out_id)
           order by turn, at, opt_out_id
           limit $1
           for update of o skip locked
         )
         update opt_out o set looked_at = $2 from next where o.opt_out_id = next.opt_out_id
         returning o.opt_out_id as "optOutId", o.site, coalesce(o.scope, 'subdomains') as scope, o.token,
           coalesce(next.has_file, false) as "hasFile"`,
        [limit, now],
      );
      return rows;
    },
    /** Returns sites that have opted out after `since`, and hosts found in opted-out networks, latest first. */
    async sitesSince(since: Date, most: number): Promise<string[]> {
      const isRecent = "ended_at is null and in_force_at >= $1 and scope is null";
      const { rows } = await pool.query<{ site: string }>(
        `select site from (
           select site, in_force_at from opt_out where ${isRecent} and site is not null
           union all
           select h.host, o.in_force_at
           from (select opt_out_id, in_force_at from opt_out where ${isRecent} and site is null) o
           join frontier_host h using (opt_out_id)
         ) stopped
         order by in_force_at desc, site collate "C"
         limit $2`,
        [since, most],
      );
      return rows.map(({ site }) => site);
    },
    /**
     * Returns the parts of sites that opted out after `since`, for crawlers that work on them, and those erased after
     * `erasedSince`, of which offline crawlers may have results; latest first.
     */
    async partsSince(since: Date, erasedSince: Date, most: number): Promise<StoppedPart[]> {
      const { rows } = await pool.query<StoppedPart>(
        `select scope, coalesce(url, site) as of, erased_at is not null and erased_at >= $2 as erases
         from opt_out
         where ended_at is null and scope is not null and (in_force_at >= $1 or erased_at >= $2)
         order by greatest(in_force_at, erased_at) desc, opt_out_id
         limit $3`,
        [since, erasedSince, most],
      );
      return rows;
    },
    /** Returns the opt-out that covers this host, one of its addresses, or the canonical URL; null if there is none. */
    async covering(
      host: string | null,
      addresses: readonly string[],
      url: string | null = null,
    ): Promise<OptOut | null> {
      const found = await read(
        pool,
        `o.ended_at is null and o.in_force_at is not null and (
           (o.scope is null and o.site = any($1::text[]))
           or (o.scope = 'host' and o.site = $3)
           or (o.site = $3 and ${isInPartSql("$4::text", "o.scope", "o.url")})
           or exists (select from unnest($2::inet[]) a where a between o.first_address and o.last_address))
         order by o.confirmed_at is null, o.scope is not null, o.opt_out_id limit 1`,
        [host === null ? [] : domainsAbove(host), addresses, host, url],
      );
      return found[0] ?? null;
    },
    /** Calls back whenever an opt-out is recorded, confirmed or ended (Postgres NOTIFY `nearcrawl_opt_outs`). */
    async onChange(changed: () => void): Promise<{ stop(): Promise<void> }> {
      const listener = new ChannelListener(pool, "nearcrawl_opt_outs", changed);
      await listener.listen();
      return { stop: async () => await listener.stop() };
    },
  };
}

/** SQL: confirms the open opt-out of a number, from a time on and by whom, unless it is confirmed. */
const confirmSql = `update opt_out
  set confirmed_at = $2, confirmed_by = $3, lapses_at = null, in_force_at = coalesce(in_force_at, $2)
  where opt_out_id = $1 and ended_at is null and confirmed_at is null`;

/** SQL: whether the opt-out has exactly this target. Used with `targetValues`. */
const isTarget = `((o.site = $1 and o.scope is not distinct from $4 and o.url is not distinct from $5)
  or (o.site is null and o.first_address = $2::inet and o.last_address = $3::inet))`;

function targetValues({ site, network, part }: OptOutTarget): (string | null)[] {
  const url = part === undefined || part.scope === "host" ? null : part.of;
  return [site, network?.first ?? null, network?.last ?? null, part?.scope ?? null, url];
}

export async function targetOf(pool: Pool, optOutId: number): Promise<OptOutTarget | null> {
  const { rows } = await pool.query<TargetRow>(`select ${targetColumns} from opt_out where opt_out_id = $1`, [
    optOutId,
  ]);
  return rows[0] === undefined ? null : targetOfRow(rows[0]);
}

export interface TargetRow {
  readonly site: string | null;
  readonly part: SitePart["scope"] | null;
  readonly url: string | null;
  readonly first: string | null;
  readonly last: string | null;
}

/** SQL: the columns of a TargetRow. */
export const targetColumns = `site, scope as part, url, host(first_address) as first, host(last_address) as last`;

export function targetOfRow({ site, part, url, first, last }: TargetRow): OptOutTarget {
  if (site === null) return { site, network: { first: first ?? "", last: last ?? "" } };
  return { site, network: null, ...(part !== null && { part: { scope: part, of: url ?? site } }) };
}

interface WeighedRequest extends OptOutRequest {
  /** Null if limits of the form do not apply. */
  readonly weight: Weight | null;
}

/**
 * Takes the lock that admission shares: hosts added after the commit are checked against the opt-out, and those added
 * before are found when it is marked.
 */
async function record(client: PoolClient, request: WeighedRequest, now: Date): Promise<number> {
  await client.query(`select pg_advisory_xact_lock(${optOutLock})`);
  const { rows: open } = await client.query<{ opt_out_id: number }>(
    `select opt_out_id from opt_out o where ended_at is null and ${isTarget}`,
    targetValues(request.target),
  );
  const known = open[0]?.opt_out_id ?? null;
  const optOutId = known ?? (await insert(client, request, now));
  // A finished erasure is repeated with counts of its own, while an unfinished one continues.
  if (known !== null && request.erases === true)
    await client.query(
      `update opt_out
       set erased_at = $2, applied = 0, erased_rows = case when applied >= 2 then '{}' else erased_rows end
       where opt_out_id = $1`,
      [known, now],
    );
  if (known !== null && request.weight !== null)
    await askAgain(client, known, { ...request, weight: request.weight }, now);
  if (known !== null && request.confirmed) await client.query(confirmSql, [known, now, "operator"]);
  await tell(client, "nearcrawl_opt_outs", [String(optOutId)]);
  return optOutId;
}

/**
 * A requester who has published the proof and asks again need not wait for the next turn. A request that waits is
 * judged again by who asks now. Otherwise somebody who has used up their daily limit could block other people's
 * sites.
 */
async function askAgain(
  client: PoolClient,
  optOutId: number,
  request: BelievableRequest,
  now: Date,
): Promise<void> {
  await client.query(
    `update opt_out set looked_at = case when $3 then ${withFile} end
     where opt_out_id = $1 and looked_at <= $2::timestamptz - interval '1 minute'`,
    [optOutId, now, request.hasFile === true],
  );
  if (await needsProof(client, request, now)) return;
  await client.query(
    `update opt_out set in_force_at = $2, lapses_at = $3, deletes_at = $4, requester = $5::inet
     where opt_out_id = $1 and in_force_at is null`,
    [optOutId, now, daysAfter(now, unconfirmedDays), daysAfter(now, hiddenDays), request.requester],
  );
}

const daysAfter = (now: Date, days: number) => new Date(now.getTime() + days * dayMs);

async function insert(client: PoolClient, request: WeighedRequest, now: Date): Promise<number> {
  const { target, source, words, replyTo, requester, confirmed, weight } = request;
  const waits = weight !== null && (await needsProof(client, { ...request, weight }, now));
  const { rows } = await client.query<{ opt_out_id: number }>(
    `insert into opt_out (site, first_address, last_address, scope, url, source, token, words, reply_to, requester,
       created_at, in_force_at, lapses_at, confirmed_at, confirmed_by, erased_at, deletes_at)
     values ($1, $2::inet, $3::inet, $4, $5, $6, $7, $8, $9, $10::inet, $11, $12, $13, $14, $15, $16, $17)
     returning opt_out_id`,
    [
      ...targetValues(target),
      source,
      randomBytes(16).toString("base64url"),
      clean(words),
      replyTo === null ? null : clean(replyTo),
      requester,
      now,
      waits ? null : now,
      confirmed ? null : daysAfter(now, unconfirmedDays),
      confirmed ? now : null,
      confirmed ? "operator" : null,
      request.erases === true ? now : null,
      confirmed || waits ? null : daysAfter(now, hiddenDays),
    ],
  );
  return rows[0]!.opt_out_id;
}

/**
 * If an operator lifted an opt-out, the next one for the target, or for one above or below it, needs proof. Unproven
 * requests are limited per day: by origin, by domain and in total. Proven ones do not count.
 */
async function needsProof(
  client: PoolClient,
  { target: { site }, requester, weight }: BelievableRequest,
  now: Date,
): Promise<boolean> {
  if (weight.isWide || site === null) return true;
  const within = (v4: number, v6: number) =>
    `requester <<= network(set_masklen($2::inet, case family($2::inet) when 4 then ${v4} else ${v6} end))`;
  const { rows } = await client.query<Record<keyof typeof mostUnconfirmedADay | "lifted", number>>(
    `select count(*) filter (where ${within(32, 64)})::int as "ofAddress",
       count(*) filter (where ${within(24, 48)})::int as "ofNetwork",
       count(*) filter (where ${isOfSite("site", "$3::text")})::int as "ofDomain",
       count(*)::int as "ofAll",
       (select count(*)::int from opt_out
        where ending = 'lifted' and (site = any($4::text[]) or ${isOfSite("site", "$5::text")})) as lifted
     from opt_out
     where source = 'form' and in_force_at > $1 and confirmed_by is distinct from 'site'`,
    [daysAfter(now, -1), requester, registrableDomain(site), domainsAbove(site), site],
  );
  const { ofAddress, ofNetwork, ofDomain, ofAll, lifted } = rows[0]!;
  const most = mostUnconfirmedADay;
  return (
    lifted > 0 ||
    ofAddress >= most.ofAddress ||
    ofNetwork >= most.ofNetwork ||
    ofDomain >= most.ofDomain ||
    ofAll >= (weight.isCrawled ? most.ofAllCrawled : most.ofAll)
  );
}

type BelievableRequest = OptOutRequest & { readonly weight: Weight };

interface Weight {
  /**
   * Whether it would remove more than an unproven request may: a network, a name with much of the web below it, many
   * hosts or pages.
   */
  readonly isWide: boolean;
  /** Whether some of it has been fetched. */
  readonly isCrawled: boolean;
}

async function weightOf(pool: Pool, target: OptOutTarget): Promise<Weight> {
  const { site, part } = target;
  if (site === null || (part === undefined && isPublicSuffix(site)))
    return { isWide: true, isCrawled: false };
  const urls = urlsOf(target);
  const covered = hostsOf(target);
  const { rows } = await pool.query<{ hosts: number; isCrawled: boolean; pages: number }>(
    `with covered as (
         select host_hash, fetched_urls from frontier_host h where ${covered.sql} limit ${mostHostsUnconfirmed + 1}
       )
       select count(*)::int as hosts, coalesce(bool_or(fetched_urls > 0), false) as "isCrawled",
         (select count(*)::int from (
            select from page p join covered using (host_hash)
            where ${urls?.sql("p.url") ?? "true"} limit ${mostPagesUnconfirmed + 1}
          ) counted) as pages
       from covered`,
    [...(urls?.values ?? covered.values)],
  );
  const { hosts, pages, isCrawled } = rows[0]!;
  return { isWide: hosts > mostHostsUnconfirmed || pages > mostPagesUnconfirmed, isCrawled };
}

/** Returns how many rows changed. If any did, running coordinators are notified. */
async function change(pool: Pool, sql: string, values: readonly unknown[]): Promise<number> {
  return await inTransaction(pool, async (client) => {
    const changed = (await client.query(sql, [...values])).rowCount ?? 0;
    if (changed > 0) await tell(client, "nearcrawl_opt_outs", [""]);
    return changed;
  });
}

/** Value of `looked_at` that makes the next check include the file. */
const withFile = "'-infinity'::timestamptz";

async function byNumber(pool: Pool, optOutId: number): Promise<OptOut | null> {
  return (await read(pool, "o.opt_out_id = $1", [optOutId]))[0] ?? null;
}

async function read(pool: Pool, condition: string, values: readonly unknown[]): Promise<OptOut[]> {
  const { rows } = await pool.query<OptOutRow>(`select ${optOutColumns} from opt_out o where ${condition}`, [
    ...values,
  ]);
  const covered = await coveredOf(pool, rows);
  return rows.map((row, index) => optOutOf(row, covered[index]!));
}

const nothing: Covered = { hosts: 0, urls: 0, pages: 0 };

/** Counts hosts by their marks, where there are any. Ended opt-outs cover nothing. */
async function coveredOf(pool: Pool, rows: readonly OptOutRow[]): Promise<Covered[]> {
  const isMarked = ({ part, applied }: OptOutRow) => applied > 0 && (part === null || part === "host");
  const marked = rows.filter((row) => row.endedAt === null && isMarked(row)).map((row) => row.optOutId);
  const byId = await coveredByMarks(pool, marked);
  return await Promise.all(
    rows.map(async (row) => {
      if (row.endedAt !== null) return nothing;
      if (isMarked(row)) return byId.get(row.optOutId) ?? nothing;
      return await coveredIn(pool, targetOfRow(row));
    }),
  );
}

async function coveredByMarks(
  pool: Pool,
  optOutIds: readonly number[],
): Promise<ReadonlyMap<number, Covered>> {
  if (optOutIds.length === 0) return new Map();
  const { rows } = await pool.query<Covered & { opt_out_id: number }>(
    `select o.opt_out_id, c.hosts, c.urls, c.pages
     from unnest($1::int[]) as o (opt_out_id)
     cross join lateral (
       ${countsOfHosts("h.opt_out_id = o.opt_out_id")}
     ) c`,
    [optOutIds],
  );
  return new Map(rows.map(({ opt_out_id, ...covered }) => [opt_out_id, covered]));
}

const countsOfHosts = (condition: string) => `
  select count(*)::int as hosts, coalesce(sum(h.url_count), 0)::int as urls, coalesce(sum(p.pages), 0)::int as pages
  from frontier_host h
  cross join lateral (select count(*) as pages from page where host_hash = h.host_hash) p
  where ${condition}`;

/**
 * SQL, with its parameters, of the covered hosts `h`: for a site by the index of names; for a network, which only
 * operators opt out, by scanning all hosts.
 */
export function hostsOf({ site, network, part }: OptOutTarget): {
  readonly sql: string;
  readonly values: string[];
} {
  if (site === null)
    return {
      sql: "exists (select from unnest(h.addresses) a where a between $1::inet and $2::inet)",
      values: [network.first, network.last],
    };
  if (part !== undefined) return { sql: "h.host_hash = $1", values: [hostHashOf(site)] };
  return { sql: isOfSite("h.host", "$1::text"), values: [site] };
}

/** SQL that matches a column of URLs, after the parameter of the host's hash. Null if whole hosts are covered. */
export function urlsOf({ site, part }: OptOutTarget) {
  if (site === null || part === undefined || part.scope === "host") return null;
  return {
    sql: (url: string) => isInPartSql(url, "$2::text", "$3::text"),
    values: [hostHashOf(site), part.scope, part.of] as const,
  };
}

async function coveredIn(pool: Pool, target: OptOutTarget): Promise<Covered> {
  const urls = urlsOf(target);
  const hosts = hostsOf(target);
  const { rows } =
    urls === null
      ? await pool.query<Covered>(countsOfHosts(hosts.sql), hosts.values)
      : await pool.query<Covered>(
          `select (exists (select from frontier_host where host_hash = $1))::int as hosts,
             (select count(*)::int from frontier_url u where u.host_hash = $1 and ${urls.sql("u.url")}) as urls,
             (select count(*)::int from page p where p.host_hash = $1 and ${urls.sql("p.url")}) as pages`,
          [...urls.values],
        );
  return rows[0]!;
}

async function preview(pool: Pool, target: OptOutTarget, now: Date): Promise<OptOutPreview> {
  const urls = urlsOf(target);
  const { sql, values } = urls === null ? hostsOf(target) : { sql: urls.sql("u.url"), values: urls.values };
  const { rows } = await pool.query<{ due: number }>(
    `select count(*)::int as due
     from frontier_host h
     join frontier_url u on u.host_hash = h.host_hash and u.state = 'due' and u.next_fetch_at <= $${values.length + 1}
     where h.opt_out_id is null and ${urls === null ? "" : "h.host_hash = $1 and "}${sql}`,
    [...values, now],
  );
  const covered = await coveredIn(pool, target);
  const dueUrls = rows[0]!.due;
  const [known = null] = await read(pool, `o.ended_at is null and ${isTarget}`, targetValues(target));
  return {
    ...{ ...covered, dueUrls, wide: wideWords(target, covered) },
    known: known && { optOutId: known.optOutId, state: known.state, deletesAt: known.deletesAt },
  };
}

interface OptOutRow
  extends TargetRow,
    Omit<OptOut, "target" | "scope" | "kind" | "state" | "site" | keyof Covered> {
  readonly applied: number;
  readonly ending: "lifted" | "lapsed" | null;
}

const optOutColumns = `${targetColumns}, o.opt_out_id as "optOutId", o.applied, o.erased_at as "erasedAt",
  o.source, o.token, o.words, o.reply_to as "replyTo", host(o.requester) as requester, o.created_at as "createdAt",
  o.in_force_at as "inForceAt", o.lapses_at as "lapsesAt", o.deletes_at as "deletesAt",
  o.confirmed_at as "confirmedAt", o.confirmed_by as "confirmedBy", o.ended_at as "endedAt", o.ending,
  o.ending_words as "endingWords"`;

function optOutOf(row: OptOutRow, covered: Covered): OptOut {
  const { applied, part, url, first, last, ending, ...kept } = row;
  const target = targetOfRow(row);
  return {
    ...kept,
    target: targetText(target),
    scope: scopeOf(target),
    kind: row.site === null ? "network" : "site",
    state: stateOf(row),
    deletesAt: deletionOf(row),
    ...covered,
  };
}

/** Null if the opt-out ended before. */
function deletionOf({ confirmedAt, deletesAt, endedAt }: OptOutRow): Date | null {
  const times = [confirmedAt, deletesAt].filter((at) => at !== null).map((at) => at.getTime());
  const first = Math.min(...times);
  return times.length === 0 || (endedAt !== null && endedAt.getTime() < first) ? null : new Date(first);
}

function stateOf(row: OptOutRow): OptOut["state"] {
  if (row.ending !== null) return row.ending;
  if (row.confirmedAt !== null) return "confirmed";
  return row.inForceAt === null ? "waiting" : "unconfirmed";
}

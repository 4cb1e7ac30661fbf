/** Table complaint: who complained about what, what we had done, and the outcome. */
import type { Pool } from "pg";
import { domainsAbove } from "#core/url-key";
import { iso, isoOrNull } from "../../database/cached-read.ts";
import { clean } from "../../database/transaction.ts";
import {
  type Complaint,
  type ComplaintReport,
  type Deeds,
  deedsHours,
  mostReportsADay,
  mostReportsOfNetworkADay,
  type OptOutTarget,
  type SiteWishes,
} from "./opt-out.ts";
import { createOptOutStore, hostsOf } from "./store.ts";

const dayMs = 86_400_000;

export type ComplaintStore = ReturnType<typeof createComplaintStore>;

export function createComplaintStore(pool: Pool) {
  const find = async (complaintId: number): Promise<Complaint | null> =>
    (await read(pool, "complaint_id = $1", [complaintId]))[0] ?? null;
  return {
    find,
    /** Records the complaint with our requests to the target. Returns null if too many came through the form today. */
    async add(report: ComplaintReport, now: Date): Promise<Complaint | null> {
      if (report.source === "form" && (await isFlooded(pool, report.requester, now))) return null;
      const deeds = await deedsOf(pool, report.target, now);
      const { site, network } = report.target;
      const { rows } = await pool.query<{ complaint_id: number }>(
        `insert into complaint (site, target, first_address, last_address, source, reporter, words, requester,
           created_at, deeds)
         values ($1, $2, $3::inet, $4::inet, $5, $6, $7, $8::inet, $9, $10)
         returning complaint_id`,
        [
          site,
          clean(report.targetText),
          network?.first ?? null,
          network?.last ?? null,
          report.source,
          clean(report.reporter),
          clean(report.words),
          report.requester,
          now,
          JSON.stringify(deeds),
        ],
      );
      return await find(rows[0]!.complaint_id);
    },
    list: async ({ open, most }: { readonly open: boolean; readonly most: number }): Promise<Complaint[]> =>
      await read(pool, `${open ? "closed_at is null" : "true"} order by complaint_id desc limit $1`, [most]),
    /** Returns null if there is no such complaint or it is closed. */
    async close(complaintId: number, words: string, now: Date): Promise<Complaint | null> {
      const { rowCount } = await pool.query(
        `update complaint set closed_at = $2, closing_words = $3
         where complaint_id = $1 and closed_at is null`,
        [complaintId, now, clean(words)],
      );
      return rowCount === 0 ? null : await find(complaintId);
    },
    /** Returns complaints about this host or its addresses, latest first. */
    of: async (host: string | null, addresses: readonly string[], most: number): Promise<Complaint[]> =>
      await read(
        pool,
        `(site = any($1::text[])
          or exists (select from unnest($2::inet[]) a where a between first_address and last_address))
         order by complaint_id desc limit $3`,
        [host === null ? [] : domainsAbove(host), addresses, most],
      ),
  };
}

async function isFlooded(pool: Pool, requester: string | null, now: Date): Promise<boolean> {
  const { rows } = await pool.query<{ today: number; ofNetwork: number }>(
    `select count(*)::int as today, count(*) filter (
       where requester <<= network(set_masklen($2::inet, case family($2::inet) when 4 then 24 else 48 end))
     )::int as "ofNetwork"
     from complaint where source = 'form' and created_at > $1`,
    [new Date(now.getTime() - dayMs), requester],
  );
  return rows[0]!.today >= mostReportsADay || rows[0]!.ofNetwork >= mostReportsOfNetworkADay;
}

async function read(pool: Pool, condition: string, values: readonly unknown[]): Promise<Complaint[]> {
  const { rows } = await pool.query<Complaint>(
    `select complaint_id as "complaintId", target, source, reporter, words, host(requester) as requester,
       created_at as "createdAt", deeds, closed_at as "closedAt", closing_words as "closingWords"
     from complaint where ${condition}`,
    [...values],
  );
  return rows;
}

const mostHosts = 2000;
const crawlersShown = 20;
const answersShown = 12;

interface HostRow {
  host_hash: string;
  addresses: string[];
  robots_state: string | null;
  crawl_delay_ms: number | null;
  back_off_ms: number | null;
}

export async function deedsOf(pool: Pool, target: OptOutTarget, now: Date): Promise<Deeds> {
  const since = new Date(now.getTime() - deedsHours * 3_600_000);
  const lying = hostsOf(target);
  const { rows: hosts } = await pool.query<HostRow>(
    `select host_hash, array(select host(a) from unnest(addresses) a) as addresses, robots_state, crawl_delay_ms,
       back_off_ms
     from frontier_host h
     where ${lying.sql}
     limit ${mostHosts}`,
    lying.values,
  );
  const hashes = hosts.map((host) => host.host_hash);
  const { first, last } = target.network ?? { first: null, last: null };
  const given = [hashes, since, now, first, last];
  const addresses = [...new Set(hosts.flatMap((host) => host.addresses))];
  const [sums, crawlers, answers, atWork, measurements] = await Promise.all([
    pool.query<SumsRow>(sumsSql, given),
    pool.query<CrawlerRow>(crawlersSql, given),
    pool.query<Deeds["answers"][number]>(answersSql, given),
    pool.query<{ name: string }>(
      `select distinct c.name collate "C" as name from lease l join crawler c using (crawler_id)
       where l.host_hash = any($1::bigint[]) and l.closed_at is null
       order by 1`,
      [hashes],
    ),
    measurementsOf(pool, target, { since, now, addresses }),
  ]);
  const { firstAt, lastAt, ...counts } = sums.rows[0]!;
  return {
    since: iso(since),
    hosts: hosts.length,
    ...counts,
    firstAt: isoOrNull(firstAt),
    lastAt: isoOrNull(lastAt),
    measurements,
    crawlers: crawlers.rows.map((row) => ({ ...row, lastAt: iso(row.lastAt) })),
    answers: answers.rows,
    robots: countBy(hosts.map((host) => host.robots_state ?? "not asked for")),
    crawlDelayMs: longest(hosts.map((host) => host.crawl_delay_ms)),
    backOffMs: longest(hosts.map((host) => host.back_off_ms)),
    atWork: atWork.rows.map(({ name }) => name),
  };
}

/** SQL: fetches of the target, without those that we refused ourselves, which sent no request. */
const fetchesSql = `with fetched as (
    select crawler_id, fetched_at, outcome, status, wire_bytes
    from page_fetch
    where host_hash = any($1::bigint[]) and fetched_at > $2 and fetched_at <= $3
      and outcome not in ('refused-by-robots', 'refused-address')
      and ($4::inet is null or address between $4::inet and $5::inet)
  )`;

interface SumsRow extends Pick<Deeds, "requests" | "mostInAnHour" | "bytes"> {
  readonly firstAt: Date | null;
  readonly lastAt: Date | null;
}

const sumsSql = `${fetchesSql}
  select coalesce(sum(requests), 0)::int as requests, coalesce(max(requests), 0)::int as "mostInAnHour",
    coalesce(sum(bytes), 0)::float8 as bytes, min(first_at) as "firstAt", max(last_at) as "lastAt"
  from (
    select count(*) as requests, sum(wire_bytes) as bytes, min(fetched_at) as first_at, max(fetched_at) as last_at
    from fetched
    group by date_trunc('hour', fetched_at, 'UTC')
  ) hours`;

type CrawlerRow = Omit<Deeds["crawlers"][number], "lastAt"> & { readonly lastAt: Date };

const crawlersSql = `${fetchesSql}
  select c.name, host(c.address) as address, c.place, c.partner_contact as contact, count(*)::int as requests,
    max(f.fetched_at) as "lastAt"
  from fetched f join crawler c using (crawler_id)
  group by c.crawler_id
  order by count(*) desc, c.name collate "C"
  limit ${crawlersShown}`;

const answersSql = `${fetchesSql}
  select outcome, status, count(*)::int as requests from fetched
  group by outcome, status
  order by count(*) desc, outcome collate "C", status
  limit ${answersShown}`;

async function measurementsOf(
  pool: Pool,
  { network }: OptOutTarget,
  at: { readonly since: Date; readonly now: Date; readonly addresses: readonly string[] },
): Promise<number> {
  const { rows } = await pool.query<{ probes: number }>(
    `select count(*)::int as probes
     from probe_round r join probe p using (round_id)
     where r.started_at > $1 and r.started_at <= $2 and p.how = 'probe'
       and (r.target_address = any($3::inet[]) or r.target_address between $4::inet and $5::inet)`,
    [at.since, at.now, at.addresses, network?.first ?? null, network?.last ?? null],
  );
  return rows[0]!.probes;
}

function countBy(states: readonly string[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const state of states) counts[state] = (counts[state] ?? 0) + 1;
  return counts;
}

function longest(times: readonly (number | null)[]): number | null {
  const given = times.filter((ms): ms is number => ms !== null && ms > 0);
  return given.length === 0 ? null : Math.max(...given);
}

const complaintsShown = 10;

export async function wishesOf(
  pool: Pool,
  host: string | null,
  addresses: readonly string[],
  url: string | null = null,
): Promise<SiteWishes> {
  const [optOut, complaints] = await Promise.all([
    createOptOutStore(pool).covering(host, addresses, url),
    createComplaintStore(pool).of(host, addresses, complaintsShown),
  ]);
  return {
    optOut: optOut && {
      target: optOut.target,
      kind: optOut.kind,
      scope: optOut.scope,
      state: optOut.state === "confirmed" ? "confirmed" : "unconfirmed",
      since: iso(optOut.inForceAt ?? optOut.createdAt),
      lapsesAt: isoOrNull(optOut.lapsesAt),
    },
    complaints: complaints.map(({ complaintId, target, createdAt, closedAt }) => ({
      complaintId,
      target,
      at: iso(createdAt),
      open: closedAt === null,
    })),
  };
}

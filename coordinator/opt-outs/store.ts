/** Table opt_out: who asked that we leave what alone, and what became of it. Marks on hosts: opt-out-marks.ts. */
import { randomBytes } from "node:crypto";
import type { Pool, PoolClient } from "pg";
import { domainsAbove } from "#core/url-key";
import { tell } from "#db/schema-channel";
import { ChannelListener } from "../database/channel-listener.ts";
import { ofAll, type Slices, slicesOf } from "../database/slices.ts";
import { clean, columnsOf, inTransaction } from "../database/transaction.ts";
import { isOfSite, optOutLock } from "../frontier/back-link-writes.ts";
import {
  isPublicSuffix,
  mostHostsUnconfirmed,
  mostPagesUnconfirmed,
  mostUnconfirmedADay,
  type OptOut,
  type OptOutRequest,
  type OptOutState,
  type OptOutStore,
  type OptOutTarget,
  targetText,
  unconfirmedDays,
} from "./opt-out.ts";

const dayMs = 86_400_000;

/** DNS is asked for the same confirmation no more often. */
const lookAgainMinutes = 10;

export function createOptOutStore(from: Pool | Slices): OptOutStore {
  const slices = slicesOf(from);
  const pool = slices.shared;
  return {
    request: async (request, now) => {
      // Before the lock, so that no admission waits for the count.
      const isWide =
        request.source === "form" && !request.confirmed && (await isWideOf(slices, request.target));
      const optOutId = await inTransaction(
        pool,
        async (client) => await record(client, { ...request, isWide }, now),
      );
      return (await byNumber(slices, optOutId))!;
    },
    list: async ({ open, most }) =>
      await read(slices, `${open ? "o.ended_at is null" : "true"} order by o.opt_out_id desc limit $1`, [
        most,
      ]),
    find: async (target) => {
      if (typeof target === "number") return await byNumber(slices, target);
      const [found] = await read(slices, `o.ended_at is null and ${isTarget}`, targetValues(target));
      return found ?? null;
    },
    confirm: async (optOutId, by, now) => {
      await change(
        pool,
        `update opt_out
         set confirmed_at = $2, confirmed_by = $3, lapses_at = null, in_force_at = coalesce(in_force_at, $2)
         where opt_out_id = $1 and ended_at is null and confirmed_at is null`,
        [optOutId, now, by],
      );
      const found = await byNumber(slices, optOutId);
      return found?.endedAt === null ? found : null;
    },
    lift: async (optOutId, words, now) => {
      const lifted = await change(
        pool,
        `update opt_out set ended_at = $2, ending = 'lifted', ending_words = $3
         where opt_out_id = $1 and ended_at is null`,
        [optOutId, now, clean(words)],
      );
      return lifted === 0 ? null : await byNumber(slices, optOutId);
    },
    lapse: async (now) =>
      await change(
        pool,
        `update opt_out set ended_at = $1, ending = 'lapsed', ending_words = 'nobody confirmed it'
         where ended_at is null and lapses_at <= $1`,
        [now],
      ),
    toConfirm: async (limit, now) => await toConfirm(pool, limit, now),
    sitesSince: async (since, most) => await sitesSince(slices, since, most),
    covering: async (host, addresses) => await covering(slices, host, addresses),
    onChange: async (changed) => {
      const listener = new ChannelListener(pool, "nearcrawl_opt_outs", changed);
      await listener.listen();
      return { stop: async () => await listener.stop() };
    },
  };
}

/** Of hosts whose names are `any($1)`: the domains above a host, or of addresses. Used with `targetValues`. */
const isTarget =
  "(o.site = $1 or (o.site is null and o.first_address = $2::inet and o.last_address = $3::inet))";

function targetValues({ site, network }: OptOutTarget): (string | null)[] {
  return [site, network?.first ?? null, network?.last ?? null];
}

interface WeighedRequest extends OptOutRequest {
  /** It would take out more than one site's word should. */
  readonly isWide: boolean;
}

/**
 * Under the lock that admission shares: whatever host is added after this is committed sees the opt-out, and
 * whatever was added before is seen by the marking.
 */
async function record(client: PoolClient, request: WeighedRequest, now: Date): Promise<number> {
  await client.query(`select pg_advisory_xact_lock(${optOutLock})`);
  const { rows: open } = await client.query<{ opt_out_id: number }>(
    `select opt_out_id from opt_out o where ended_at is null and ${isTarget}`,
    targetValues(request.target),
  );
  const known = open[0]?.opt_out_id ?? null;
  const optOutId = known ?? (await insert(client, request, now));
  if (known !== null && request.confirmed) {
    await client.query(
      `update opt_out
       set confirmed_at = coalesce(confirmed_at, $2), confirmed_by = coalesce(confirmed_by, 'operator'),
           lapses_at = null, in_force_at = coalesce(in_force_at, $2)
       where opt_out_id = $1`,
      [known, now],
    );
  }
  await tell(client, "nearcrawl_opt_outs", [String(optOutId)]);
  return optOutId;
}

async function insert(client: PoolClient, request: WeighedRequest, now: Date): Promise<number> {
  const { target, source, words, replyTo, requester, confirmed, isWide } = request;
  const waits = source === "form" && !confirmed && (isWide || (await isFlood(client, now)));
  const { rows } = await client.query<{ opt_out_id: number }>(
    `insert into opt_out (site, first_address, last_address, source, token, words, reply_to, requester, created_at,
       in_force_at, lapses_at, confirmed_at, confirmed_by)
     values ($1, $2::inet, $3::inet, $4, $5, $6, $7, $8::inet, $9, $10, $11, $12, $13)
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
      confirmed ? null : new Date(now.getTime() + unconfirmedDays * dayMs),
      confirmed ? now : null,
      confirmed ? "operator" : null,
    ],
  );
  return rows[0]!.opt_out_id;
}

/** So many came by the form in a day that this one is not believed before it is confirmed. */
async function isFlood(client: PoolClient, now: Date): Promise<boolean> {
  const { rows } = await client.query<{ today: number }>(
    `select count(*)::int as today from opt_out
     where source = 'form' and in_force_at is not null and created_at > $1`,
    [new Date(now.getTime() - dayMs)],
  );
  return rows[0]!.today >= mostUnconfirmedADay;
}

/** Nor is a name that half of the web lies below, or several hosts that we have many pages of, nor a network. */
async function isWideOf(slices: Slices, { site }: OptOutTarget): Promise<boolean> {
  if (site === null || isPublicSuffix(site)) return true;
  const found = await ofAll(slices, async ({ pool }) => {
    const { rows } = await pool.query<{ hosts: number; others: number; pages: number }>(
      `with covered as (
         select host_hash, host
         from frontier_host
         where ${isOfSite("host", "$1::text")}
         limit ${mostHostsUnconfirmed + 1}
       )
       select count(*)::int as hosts,
         (count(*) filter (where host <> 'www.' || $1::text))::int as others,
         (select count(*)::int from (
            select from page p join covered using (host_hash) limit ${mostPagesUnconfirmed + 1}) counted) as pages
       from covered`,
      [site],
    );
    return rows[0]!;
  });
  const { hosts, others, pages } = found.reduce((sum, one) => ({
    hosts: sum.hosts + one.hosts,
    others: sum.others + one.others,
    pages: sum.pages + one.pages,
  }));
  return hosts > mostHostsUnconfirmed || (others > 1 && pages > mostPagesUnconfirmed);
}

/** The number of rows that the statement changed; running coordinators are told of any. */
async function change(pool: Pool, sql: string, values: readonly unknown[]): Promise<number> {
  return await inTransaction(pool, async (client) => {
    const changed = (await client.query(sql, [...values])).rowCount ?? 0;
    if (changed > 0) await tell(client, "nearcrawl_opt_outs", [""]);
    return changed;
  });
}

async function toConfirm(pool: Pool, limit: number, now: Date): ReturnType<OptOutStore["toConfirm"]> {
  const { rows } = await pool.query<{ opt_out_id: number; site: string; token: string }>(
    `with next as (
       select opt_out_id from opt_out
       where ended_at is null and confirmed_at is null and site is not null
         and (looked_at is null or looked_at <= $2::timestamptz - interval '${lookAgainMinutes} minutes')
       order by looked_at nulls first, opt_out_id
       limit $1
       for update skip locked
     )
     update opt_out o set looked_at = $2 from next where o.opt_out_id = next.opt_out_id
     returning o.opt_out_id, o.site, o.token`,
    [limit, now],
  );
  return rows.map((row) => ({ optOutId: row.opt_out_id, site: row.site, token: row.token }));
}

interface StoppedSite {
  readonly site: string;
  readonly in_force_at: Date;
}

/** A network counts by the hosts that were found to lie in it. */
async function sitesSince(slices: Slices, since: Date, most: number): Promise<string[]> {
  const { rows } = await slices.shared.query<StoppedSite & { site: string | null; opt_out_id: number }>(
    `select site, in_force_at, opt_out_id
     from opt_out
     where ended_at is null and in_force_at >= $1
     order by in_force_at desc, site
     limit $2`,
    [since, most],
  );
  const sites = rows.filter((row) => row.site !== null);
  const networks = rows.filter((row) => row.site === null);
  const found =
    networks.length === 0
      ? []
      : await ofAll(slices, async ({ pool }) => {
          const { rows: hosts } = await pool.query<StoppedSite>(
            `select h.host as site, o.in_force_at
       from unnest($1::int[], $2::timestamptz[]) as o (opt_out_id, in_force_at)
       join frontier_host h on h.opt_out_id = o.opt_out_id
       order by o.in_force_at desc, h.host
       limit $3`,
            [...columnsOf(networks, ["opt_out_id", "in_force_at"]), most],
          );
          return hosts;
        });
  return [...sites, ...found.flat()]
    .sort((a, b) => b.in_force_at.getTime() - a.in_force_at.getTime() || (a.site < b.site ? -1 : 1))
    .slice(0, most)
    .map((row) => row.site);
}

async function covering(
  slices: Slices,
  host: string | null,
  addresses: readonly string[],
): Promise<OptOut | null> {
  const found = await read(
    slices,
    `o.ended_at is null and o.in_force_at is not null and (
       o.site = any($1::text[])
       or exists (select from unnest($2::inet[]) a where a between o.first_address and o.last_address))
     order by o.confirmed_at is null, o.opt_out_id limit 1`,
    [host === null ? [] : domainsAbove(host), addresses],
  );
  return found[0] ?? null;
}

async function byNumber(slices: Slices, optOutId: number): Promise<OptOut | null> {
  return (await read(slices, "o.opt_out_id = $1", [optOutId]))[0] ?? null;
}

async function read(slices: Slices, condition: string, values: readonly unknown[]): Promise<OptOut[]> {
  const { rows } = await slices.shared.query<OptOutRow>(
    `select ${optOutColumns} from opt_out o where ${condition}`,
    [...values],
  );
  const covered = await coveredOf(
    slices,
    rows.map((row) => row.opt_out_id),
  );
  return rows.map((row) => optOutOf(row, covered.get(row.opt_out_id) ?? nothing));
}

/** What an opt-out covers in the frontier and the index. */
type Covered = Pick<OptOut, "hosts" | "pages">;

const nothing: Covered = { hosts: 0, pages: 0 };

async function coveredOf(
  slices: Slices,
  optOutIds: readonly number[],
): Promise<ReadonlyMap<number, Covered>> {
  if (optOutIds.length === 0) return new Map();
  const found = await ofAll(slices, async ({ pool }) => {
    const { rows } = await pool.query<Covered & { opt_out_id: number }>(
      `select o.opt_out_id, c.hosts, c.pages
       from unnest($1::int[]) as o (opt_out_id)
       cross join lateral (
         select count(*)::int as hosts, coalesce(sum(p.pages), 0)::int as pages
         from frontier_host h
         cross join lateral (select count(*) as pages from page where host_hash = h.host_hash) p
         where h.opt_out_id = o.opt_out_id
       ) c`,
      [optOutIds],
    );
    return rows;
  });
  const sums = new Map<number, Covered>();
  for (const { opt_out_id, hosts, pages } of found.flat()) {
    const sum = sums.get(opt_out_id) ?? nothing;
    sums.set(opt_out_id, { hosts: sum.hosts + hosts, pages: sum.pages + pages });
  }
  return sums;
}

// A row of table opt_out as the flows know it.

interface OptOutRow {
  opt_out_id: number;
  site: string | null;
  first_address: string | null;
  last_address: string | null;
  source: OptOut["source"];
  token: string;
  words: string;
  reply_to: string | null;
  requester: string | null;
  created_at: Date;
  in_force_at: Date | null;
  lapses_at: Date | null;
  confirmed_at: Date | null;
  confirmed_by: OptOut["confirmedBy"];
  ended_at: Date | null;
  ending: "lifted" | "lapsed" | null;
  ending_words: string;
}

/** SQL: the columns of an OptOutRow. */
const optOutColumns = `o.opt_out_id, o.site, host(o.first_address) as first_address,
  host(o.last_address) as last_address, o.source, o.token, o.words, o.reply_to, host(o.requester) as requester,
  o.created_at, o.in_force_at, o.lapses_at, o.confirmed_at, o.confirmed_by, o.ended_at, o.ending, o.ending_words`;

function optOutOf(row: OptOutRow, covered: Covered): OptOut {
  const network = { first: row.first_address ?? "", last: row.last_address ?? "" };
  return {
    optOutId: row.opt_out_id,
    target: targetText(row.site === null ? { site: null, network } : { site: row.site, network: null }),
    kind: row.site === null ? "network" : "site",
    state: stateOf(row),
    source: row.source,
    token: row.token,
    words: row.words,
    replyTo: row.reply_to,
    requester: row.requester,
    createdAt: row.created_at,
    inForceAt: row.in_force_at,
    lapsesAt: row.lapses_at,
    confirmedAt: row.confirmed_at,
    confirmedBy: row.confirmed_by,
    endedAt: row.ended_at,
    endingWords: row.ending_words,
    ...covered,
  };
}

function stateOf(row: OptOutRow): OptOutState {
  if (row.ending !== null) return row.ending;
  if (row.confirmed_at !== null) return "confirmed";
  return row.in_force_at === null ? "waiting" : "unconfirmed";
}

/** Tables frontier_host, frontier_url and lease: what is to be fetched, when, and who has it in hand. */
import type { Pool } from "pg";
import { deleteOldest, inTurns, type TurnClock } from "../database/bounded-work.ts";
import { inTransaction } from "../database/transaction.ts";
import { noteForeign, splitByOwner } from "../federation/foreign-url-store.ts";
import { addHosts, addUrls, distinctUrls, lockHosts } from "./admission-writes.ts";
import type {
  AdmittedUrl,
  CrawlScope,
  FrontierProgress,
  FrontierStore,
  RejectedUrlStore,
} from "./frontier.ts";
import { leaseHosts } from "./host-lease-writes.ts";
import { reopenRefused, returnExpired, returnLease, returnLeasesOf } from "./lease-end-writes.ts";
import { hostsToResolve, reassignSubnets, saveResolutions } from "./resolution-store.ts";
import { SubnetTurns } from "./turn-store.ts";

export function createFrontierStore(pool: Pool): FrontierStore {
  const turns = new SubnetTurns();
  return {
    admit: async (urls, scope, now) => await admit(pool, urls, { scope, now }),
    hostsToResolve: async (limit, now) => await hostsToResolve(pool, limit, now),
    saveResolutions: async (resolutions, now) => await saveResolutions(pool, resolutions, now),
    leaseHosts: async (request) => await leaseHosts(pool, request, turns),
    returnLease: async (lease, now) => await returnLease(pool, lease, now),
    returnExpired: async (now) => await returnExpired(pool, now),
    reopenRefused: async (now) => await reopenRefused(pool, now),
    returnLeasesOf: async (crawlerId, now, held = []) => await returnLeasesOf(pool, { crawlerId, held }, now),
    reassignSubnets: async (subnetOf) => await reassignSubnets(pool, subnetOf),
    progress: async () => await progress(pool),
  };
}

/** Depth 0 is a seed, which a person gave; every other depth is a link, and counts as one. */
async function admit(
  pool: Pool,
  given: readonly AdmittedUrl[],
  at: { readonly scope: CrawlScope; readonly now: Date },
): Promise<{ newUrls: number; newHosts: number }> {
  const urls = distinctUrls(given, at.scope.maxDepth);
  if (urls.length === 0) return { newUrls: 0, newHosts: 0 };
  const links = given.filter((url) => url.depth > 0).map((url) => url.key);
  return await inTransaction(pool, async (client) => {
    const found = await splitByOwner(client, given, at.scope.maxDepth);
    const keys = found.own.map((url) => url.key);
    const newHosts = at.scope.admitNewHosts ? await addHosts(client, keys, at.now) : 0;
    await lockHosts(
      client,
      [...keys, ...links].map((key) => key.hostHash),
    );
    const newUrls = await addUrls(client, found.own, {
      pagesPerHost: at.scope.pagesPerHost,
      budgeted: false,
      links,
      now: at.now,
    });
    await noteForeign(client, found, { links: { added: links, removed: [] }, now: at.now });
    return { newUrls, newHosts };
  });
}

// Table rejected_url: what was given to the crawler and has no place in the frontier.

export function createRejectedUrlStore(pool: Pool): RejectedUrlStore {
  return {
    async record(rejected, source, now) {
      await pool.query(
        `insert into rejected_url (url, reason, source, first_seen_at, last_seen_at)
         select distinct on (url) url, reason, $3, $4, $4
         from unnest($1::text[], $2::text[]) as given (url, reason)
         on conflict (url) do update
           set times = rejected_url.times + 1,
               reason = excluded.reason,
               last_seen_at = greatest(rejected_url.last_seen_at, excluded.last_seen_at)`,
        [rejected.map((one) => one.url.replaceAll("\0", "")), rejected.map((one) => one.reason), source, now],
      );
    },
  };
}

const rejectedAtOnce = 5000;

/** Those that nobody named again since then. */
export async function forgetRejectedUrls(pool: Pool, before: Date, turn: TurnClock): Promise<number> {
  const aged = { table: "rejected_url", column: "last_seen_at" };
  return await inTurns(turn, async () => await deleteOldest(pool, aged, before, rejectedAtOnce));
}

// How far the crawl is, counted afresh: exact, and some ten milliseconds for tens of thousands of URLs.

/**
 * A host counts as fetched with its first result of any kind. URLs of hosts that are refused or that DNS does
 * not know are not pending: nothing is to be fetched there.
 */
async function progress(pool: Pool): Promise<FrontierProgress> {
  const { rows } = await pool.query<FrontierProgress>(
    `select
       hosts.hosts as "hosts",
       hosts.unresolved as "hostsUnresolved",
       hosts.refused as "hostsRefused",
       hosts.delegated as "hostsDelegated",
       hosts.urls as "urls",
       hosts.subnets_waiting as "subnetsWaiting",
       urls.hosts_fetched as "hostsFetched",
       urls.pending as "urlsPending",
       (select count(*)::int from delegation) as "subnetsDelegated",
       (select count(*)::int from page) as "pages",
       (select count(*)::int from probe where how = 'probe') as "probes",
       (select count(*)::int from probe_round) as "rounds"
     from (
       select count(*)::int as hosts,
         count(*) filter (where h.state = 'unresolved')::int as unresolved,
         count(*) filter (where h.state = 'refused')::int as refused,
         count(d.subnet_id)::int as delegated,
         coalesce(sum(h.url_count), 0)::int as urls,
         count(distinct h.subnet_id) filter (
           where h.state = 'resolved' and h.due_at is not null and d.subnet_id is null
         )::int as subnets_waiting
       from frontier_host h
       left join delegation d on d.subnet_id = h.subnet_id
     ) hosts, (
       select count(distinct u.host_hash) filter (where u.visits > 0)::int as hosts_fetched,
         count(*) filter (
           where u.visits = 0 and u.state = 'due' and h.state not in ('refused', 'unresolvable')
             and h.opt_out_id is null
         )::int as pending
       from frontier_url u
       join frontier_host h on h.host_hash = u.host_hash
     ) urls`,
  );
  return rows[0]!;
}

/** Tables frontier_host, frontier_url and lease: what is to be fetched, when, and who has leased it. */
import type { Pool } from "pg";
import { arrivalLingerMs, Gathered } from "#core/coalesce";
import type { CrawlerId, HostHash, LeaseId, SubnetId } from "#core/ids";
import { hostHashOf } from "#core/url-key";
import type { Lease } from "#protocol/lease";
import { deleteOldest, inTurns, type TurnClock } from "../../database/bounded-work.ts";
import { inTransaction, sqlStateOf } from "../../database/transaction.ts";
import type { AdmittedUrl } from "../batch/found-urls.ts";
import { addHosts, addUrls, distinctUrls, lockHosts } from "./admission-writes.ts";
import { sumLinks } from "./back-link-writes.ts";
import { SubnetTurns } from "./due-host-reads.ts";
import { noteForeign, splitByOwner } from "./foreign-url-store.ts";
import type { CrawlScope, FrontierProgress, LeaseRequest, Resolution, ReturnedLease } from "./frontier.ts";
import { type LeaseTerms, leaseHosts } from "./host-lease-writes.ts";
import {
  haveOpenLeases,
  type LeaseEnd,
  type LetGo,
  reopenRefused,
  returnExpired,
  returnLeases,
  returnLeasesOf,
} from "./lease-end-writes.ts";
import { hostsToResolve, reassignSubnets, saveResolutions } from "./resolution-store.ts";

/** Arriving crawlers or returned leases handled by one statement. */
const mostArriving = 200;

export type FrontierStore = ReturnType<typeof createFrontierStore>;

/** `onOpened` is called after commit with hosts that may now be leased when due. */
export function createFrontierStore(pool: Pool, onOpened: (hosts: readonly HostHash[]) => void = () => {}) {
  const ofSubnets = new SubnetTurns();
  const ends = new Gathered(
    async (given: readonly LeaseEnd[]) => await returnLeases(pool, given),
    mostArriving,
  );
  const withLeases = new Gathered(
    async (given: readonly LetGo[]) => await haveOpenLeases(pool, given),
    mostArriving,
    arrivalLingerMs,
  );
  const opened = async (ending: Promise<HostHash[]>): Promise<number> => {
    const hosts = await ending;
    onOpened(hosts);
    return hosts.length;
  };
  const together = new RequestsTogether(
    async (requests, terms) => await leaseHosts(pool, requests, terms, ofSubnets),
  );
  return {
    /**
     * Adds unknown URLs and hosts, and counts a back-link for known ones. Returns how many were new. The URLs come from
     * people, so the operator's limit applies but the host's budget does not.
     */
    async admit(
      urls: readonly AdmittedUrl[],
      scope: CrawlScope,
      now: Date,
    ): Promise<{ newUrls: number; newHosts: number }> {
      const admitted = await admit(pool, urls, { scope, now });
      if (admitted.newUrls > 0) onOpened(urls.map(({ key }) => key.hostHash));
      return admitted;
    },
    /** Claims, for two minutes, hosts whose addresses must be looked up. */
    hostsToResolve: async (limit: number, now: Date) => await hostsToResolve(pool, limit, now),
    async saveResolutions(resolutions: readonly Resolution[], now: Date): Promise<void> {
      await saveResolutions(pool, resolutions, now);
      onOpened(resolutions.map(({ host }) => hostHashOf(host)));
    },
    /** Leases host slices that the crawler's delegations cover and politeness allows, longest due first. */
    leaseHosts: async (request: LeaseRequest) => await together.ask(request),
    async returnLease(lease: ReturnedLease, now: Date): Promise<boolean> {
      const host = await ends.ask({ lease, now });
      if (host !== null) onOpened([host]);
      return host !== null;
    },
    returnExpired: async (now: Date) => await opened(returnExpired(pool, now)),
    /**
     * Makes URLs due again that were given up and whose wait is over (robots.txt, RFC 9309 section 2.4; no public address;
     * gone). Returns their number.
     */
    reopenRefused: async (now: Date) => await reopenRefused(pool, now),
    /** Returns a crawler's open leases to the frontier, except those it still holds. Returns their number. */
    async returnLeasesOf(crawlerId: CrawlerId, now: Date, held: readonly LeaseId[] = []): Promise<number> {
      const owner = { crawlerId, held };
      return (await withLeases.ask(owner)) ? await opened(returnLeasesOf(pool, owner, now)) : 0;
    },
    reassignSubnets: async (subnetOf: (address: string) => SubnetId | null) =>
      await reassignSubnets(pool, subnetOf),
    progress: async () => await progress(pool),
  };
}

// Requests for work that arrive while others are being answered are answered together next: the more crawlers ask, the
// less each request costs.

const mostTogether = 128;

/** Concurrent batches: one computes while another waits for the database. */
const mostBatches = 2;

/** Class of Postgres errors caused by values. */
const dataException = "22";

interface Waiting {
  readonly request: LeaseRequest;
  readonly resolve: (leases: Lease[]) => void;
  readonly reject: (error: unknown) => void;
}

class RequestsTogether {
  readonly #answer: (requests: readonly LeaseRequest[], terms: LeaseTerms) => Promise<Lease[][]>;
  #waiting: Waiting[] = [];
  /** One request per crawler at a time, since two would find the same hosts. */
  readonly #crawlers = new Set<CrawlerId>();
  #batches = 0;

  constructor(answer: (requests: readonly LeaseRequest[], terms: LeaseTerms) => Promise<Lease[][]>) {
    this.#answer = answer;
  }

  async ask(request: LeaseRequest): Promise<Lease[]> {
    return await new Promise((resolve, reject) => {
      this.#waiting.push({ request, resolve, reject });
      this.#begin();
    });
  }

  #begin(): void {
    if (this.#batches === mostBatches) return;
    const batch = this.#nextBatch();
    if (batch.length === 0) return;
    this.#batches += 1;
    for (const { request } of batch) this.#crawlers.add(request.crawlerId);
    void this.#serve(batch).finally(() => {
      this.#batches -= 1;
      for (const { request } of batch) this.#crawlers.delete(request.crawlerId);
      this.#begin();
    });
  }

  /** Returns the requests that have waited longest and have the same terms as the first. */
  #nextBatch(): Waiting[] {
    const batch: Waiting[] = [];
    const others: Waiting[] = [];
    const crawlers = new Set(this.#crawlers);
    let terms: string | null = null;
    for (const one of this.#waiting) {
      const { crawlerId } = one.request;
      const isOpen = batch.length < mostTogether && !crawlers.has(crawlerId);
      if (isOpen && (terms === null || terms === termsKey(one.request))) {
        terms ??= termsKey(one.request);
        batch.push(one);
        crawlers.add(crawlerId);
      } else others.push(one);
    }
    this.#waiting = others;
    return batch;
  }

  /** After a data error, tries each request alone, so that none fails because of another. */
  async #serve(batch: readonly Waiting[]): Promise<void> {
    const requests = batch.map(({ request }) => request);
    try {
      const now = new Date(Math.max(...requests.map((request) => request.now.getTime())));
      const leases = await this.#answer(requests, { ...requests[0]!, now });
      for (const [index, { resolve }] of batch.entries()) resolve(leases[index]!);
    } catch (error) {
      const isOfOne = batch.length > 1 && sqlStateOf(error).startsWith(dataException);
      if (isOfOne) for (const one of batch) await this.#serve([one]);
      else for (const { reject } of batch) reject(error);
    }
  }
}

const termsKey = ({ leaseSeconds, addressRestSeconds, order }: LeaseRequest) =>
  JSON.stringify([leaseSeconds, addressRestSeconds, order]);

/** A URL at depth 0 is a seed that a person entered. Any other was found as a link and is added to the link counts. */
async function admit(
  pool: Pool,
  given: readonly AdmittedUrl[],
  at: { readonly scope: CrawlScope; readonly now: Date },
): Promise<{ newUrls: number; newHosts: number }> {
  if (distinctUrls(given, at.scope.maxDepth).length === 0) return { newUrls: 0, newHosts: 0 };
  const links = sumLinks(given.filter((url) => url.depth > 0).map((url) => url.key));
  return await inTransaction(pool, async (client) => {
    const found = await splitByOwner(client, given, at.scope.maxDepth);
    const keys = found.own.map((url) => url.key);
    const newHosts = at.scope.admitNewHosts ? (await addHosts(client, keys, at.now)).length : 0;
    await lockHosts(
      client,
      [...keys, ...links].map(({ hostHash }) => hostHash),
    );
    const { newUrls } = await addUrls(client, found.own, {
      pagesPerHost: at.scope.pagesPerHost,
      budgeted: false,
      links,
      now: at.now,
    });
    await noteForeign(client, found, { links, now: at.now });
    return { newUrls, newHosts };
  });
}

export type RejectedUrlStore = ReturnType<typeof createRejectedUrlStore>;

export function createRejectedUrlStore(pool: Pool) {
  return {
    /** Records a rejected text without a key. Repetitions are only counted. */
    async record(
      rejected: readonly { readonly url: string; readonly reason: string }[],
      source: string,
      now: Date,
    ): Promise<void> {
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

export async function forgetRejectedUrls(pool: Pool, before: Date, turn: TurnClock): Promise<number> {
  const aged = { table: "rejected_url", column: "last_seen_at" };
  return await inTurns(turn, async () => await deleteOldest(pool, aged, before, rejectedAtOnce));
}

// Counts the crawl's progress exactly, which takes some ten milliseconds for tens of thousands of URLs.

/** A host counts as fetched with its first result of any kind. URLs of refused or unresolvable hosts are not pending. */
async function progress(pool: Pool): Promise<FrontierProgress> {
  const { rows } = await pool.query<FrontierProgress>(
    `select hosts.*, urls.*,
       (select coalesce(sum(effects), 0)::int from link_outbox) as "linksWaiting",
       (select count(*)::int from page) as pages,
       (select count(*)::int from delegation) as "subnetsDelegated",
       (select count(*)::int from probe where how = 'probe') as probes,
       (select count(*)::int from probe_round) as rounds
     from (
       select count(*)::int as hosts,
         count(*) filter (where h.state = 'unresolved')::int as "hostsUnresolved",
         count(*) filter (where h.state = 'refused')::int as "hostsRefused",
         count(d.subnet_id)::int as "hostsDelegated",
         coalesce(sum(h.url_count), 0)::int as urls,
         count(distinct h.subnet_id) filter (
           where h.state = 'resolved' and h.due_at is not null and d.subnet_id is null
         )::int as "subnetsWaiting"
       from frontier_host h
       left join delegation d on d.subnet_id = h.subnet_id
     ) hosts, (
       select count(distinct u.host_hash) filter (where u.visits > 0)::int as "hostsFetched",
         count(*) filter (
           where u.visits = 0 and u.state = 'due' and h.state not in ('refused', 'unresolvable')
             and h.opt_out_id is null
         )::int as "urlsPending"
       from frontier_url u
       join frontier_host h on h.host_hash = u.host_hash
     ) urls`,
  );
  return rows[0]!;
}

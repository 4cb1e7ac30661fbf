/** Crawlers that lease due URLs and ship given results, through the flow and the real stores. */

import { fixedPlan, type PlanInForce } from "#coordinator/crawl/recrawl/recrawl-plan";
import { defaultRecrawlSettings } from "#coordinator/crawl/recrawl/visit-findings";
import { takeResults } from "#coordinator/crawl/results/take-results";
import { asLeaseId, type CrawlerId } from "#core/ids";
import type { Lease } from "#protocol/lease";
import type { FetchOutcome, FetchResult, PageExtract } from "#protocol/result";
import { type FlowWorld, newFlowWorld } from "../support/flow-world.ts";
import { arrivedResult, scope, spoolOf } from "../support/store-world.ts";

/** The outcome of one URL; a page of `words` different words unless told otherwise. */
export interface Shipped {
  readonly outcome?: FetchOutcome;
  readonly page?: Partial<PageExtract>;
  readonly links?: readonly string[];
  readonly result?: Partial<FetchResult>;
}

/** `plan`: how often pages are fetched again; by default a fixed interval. */
export async function newShippingWorld(plan: () => PlanInForce = () => fixedPlan) {
  const world = await newFlowWorld();
  let sequence = 0;

  /** Leases everything due for the crawler, ships these results, and returns the rest of the leases. */
  const ship = async (
    crawlerId: CrawlerId,
    given: Readonly<Record<string, Shipped>>,
    at: Date,
    differences: Partial<typeof scope> & { readonly followNofollow?: boolean } = {},
  ): Promise<Lease[]> => {
    const request = { crawlerId, hosts: 1000, urlsPerHost: 1000, leaseSeconds: 60, now: at };
    const leases = await world.frontier.leaseHosts(request);
    // Many pages of one host at once would exceed the host's rate.
    await world.pool.query(
      "update lease set granted_at = granted_at - interval '1 hour' where closed_at is null",
    );
    const results = Object.entries(given).map(([url, shipped]) => {
      const lease = leases.find(({ urls }) => urls.some((one) => one.url === url));
      if (!lease) throw new Error(`${url} is not under a lease`);
      sequence += 1;
      const wire = { sequence, leaseId: asLeaseId(lease.leaseId), wireBytes: 100 };
      return { ...wire, result: resultOf(url, shipped, at) };
    });
    const settings = { scope: { ...scope, ...differences }, recrawl: defaultRecrawlSettings, plan: plan() };
    const batch = { crawlerId, spoolId: spoolOf(crawlerId), results };
    await takeResults(batch, world.results, settings, at);
    await world.applyOutbox(at, { scope: settings.scope });
    await world.frontier.returnLeasesOf(crawlerId, at);
    return leases;
  };

  const urlRow = async (url: string) =>
    (await world.pool.query<Record<string, unknown>>("select * from frontier_url where url = $1", [url]))
      .rows[0];
  const hostRow = async (host: string) =>
    (await world.pool.query<Record<string, unknown>>("select * from frontier_host where host = $1", [host]))
      .rows[0];
  /** The frontier's URLs in these states (by default all but held), in alphabetical order. */
  const urls = async (...states: string[]): Promise<string[]> => {
    const wanted = states.length > 0 ? states : ["due", "leased", "refused", "gone"];
    const { rows } = await world.pool.query<{ url: string }>(
      `select url from frontier_url where state = any($1)
       union all
       select url from held_url where 'held' = any($1)
       order by url`,
      [wanted],
    );
    return rows.map(({ url }) => url);
  };

  return { ...world, ship, urlRow, hostRow, urls };
}

export type ShippingWorld = FlowWorld & Awaited<ReturnType<typeof newShippingWorld>>;

/** A result for this URL, fetched at that time. */
export function resultOf(url: string, shipped: Shipped, at: Date): FetchResult {
  const links = (shipped.links ?? []).map((link) => ({ url: link, anchor: "", nofollow: false }));
  const { result } = arrivedResult({
    sequence: 1,
    leaseId: "1",
    url,
    ...(shipped.outcome ? { outcome: shipped.outcome } : {}),
    page: { links, ...shipped.page },
    result: { fetchedAt: at.toISOString(), hostDelayMs: 0, ...shipped.result },
  });
  return result;
}

/** A page with a text of `words` words; texts of different seeds have simhashes far apart. */
export function text(seed: number, words = 300): Partial<PageExtract> {
  return { words, simhash: spread(seed), digest: seed.toString(16).padStart(64, "0") };
}

/** This simhash with these of its 64 bits flipped. */
export function turned(simhash: string | undefined, ...bits: readonly number[]): string {
  const mask = bits.reduce((all, bit) => all | (1n << BigInt(bit)), 0n);
  return (BigInt(`0x${simhash}`) ^ mask).toString(16).padStart(16, "0");
}

/** splitmix64: turns consecutive numbers into unrelated ones. */
function spread(seed: number): string {
  let z = BigInt.asUintN(64, BigInt(seed + 1) * 0x9e3779b97f4a7c15n);
  z = BigInt.asUintN(64, (z ^ (z >> 30n)) * 0xbf58476d1ce4e5b9n);
  z = BigInt.asUintN(64, (z ^ (z >> 27n)) * 0x94d049bb133111ebn);
  return (z ^ (z >> 31n)).toString(16).padStart(16, "0");
}

/**
 * Crawlers that own a subnet with hosts and pages from the start: for tests of what follows delegation.
 */
import type { Pool } from "pg";
import { createFrontierStore } from "#coordinator/crawl/frontier/frontier-store";
import { createDelegationStore } from "#coordinator/place/delegation/store";
import { asSubnetId, type CrawlerId, type SubnetId } from "#core/ids";
import { urlKeyOf } from "#core/url-key";
import type { World, WorldSite } from "#ops/world/model";

export interface OwnedHosts {
  readonly sites: readonly Pick<WorldSite, "host" | "addresses">[];
  readonly pages: number;
}

/** Links are not followed, so that only these pages are crawled; the operator can still add others. */
export const ownedScope = { pagesPerHost: 100, maxDepth: 0, admitNewHosts: false } as const;

/** Sites with one IPv4 address, the same for every crawler. */
export const plainSites = ({ sites }: World): WorldSite[] =>
  sites.filter(({ addresses, address }) => addresses.length === 1 && address.includes("."));

/** Makes the crawler owner of 198.51.INDEX.0/24 and places the sites in it, whatever their addresses. */
export async function giveSubnet(
  pool: Pool,
  { crawlerId, index }: { readonly crawlerId: CrawlerId; readonly index: number },
  { sites, pages }: OwnedHosts,
): Promise<SubnetId> {
  const now = new Date();
  const frontier = createFrontierStore(pool);
  const subnetId = await newSubnet(pool, index);
  await createDelegationStore(pool).delegateOwnSubnet(subnetId, crawlerId, now);
  for (const { host, addresses } of sites) {
    const urls = Array.from({ length: pages }, (_, page) => `http://${host}/${page === 0 ? "" : page}`);
    await frontier.admit(urls.map(seedOf), { ...ownedScope, admitNewHosts: true }, now);
    await frontier.saveResolutions(
      [{ type: "resolved", host, addresses, subnetId, ttlSeconds: 86_400 }],
      now,
    );
  }
  return subnetId;
}

async function newSubnet(pool: Pool, index: number): Promise<SubnetId> {
  const { rows } = await pool.query<{ subnet_id: number }>(
    `insert into subnet (first_address, last_address, registry, name, added_in)
     values ($1::inet, $2::inet, 'ripencc', '', 1)
     returning subnet_id`,
    [`198.51.${index}.0`, `198.51.${index}.255`],
  );
  return asSubnetId(rows[0]!.subnet_id);
}

function seedOf(url: string) {
  const key = urlKeyOf(url);
  if (typeof key === "string") throw new Error(`${url}: ${key}`);
  return { key, depth: 0 };
}

/** The shortest time between two requests to one host. */
export function shortestPauseMs(
  requests: readonly { readonly host: string; readonly atMs: number }[],
): number {
  const lastAt = new Map<string, number>();
  return requests.reduce((shortest, { host, atMs }) => {
    const pauseMs = atMs - (lastAt.get(host) ?? Number.NEGATIVE_INFINITY);
    lastAt.set(host, atMs);
    return Math.min(shortest, pauseMs);
  }, Number.POSITIVE_INFINITY);
}

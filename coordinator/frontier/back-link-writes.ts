/** Column back_links of frontier_url: how many links lead to a URL, kept by what pages gain and lose. */
import type { PoolClient } from "pg";
import { mostLinks } from "#protocol/exchange";
import { columnsOf, prepared } from "../database/transaction.ts";
import { nameOf } from "../results/page-texts.ts";
import type { UrlAddress } from "./admission-writes.ts";

/** Links to URLs that the frontier holds and that went away. The hosts are locked. */
export async function removeBackLinks(client: PoolClient, targets: readonly UrlAddress[]): Promise<void> {
  await addBackLinks(
    client,
    [...countByUrl(targets).values()].map((target) => ({ ...target, links: -target.links })),
  );
}

export interface LinkedUrl extends UrlAddress {
  links: number;
}

/**
 * In SQL: a sum (bigint) of links as one message can say it. A coordinator that invents links, or is away for years,
 * must not bring a sum beyond its column, which would end everybody's transactions that add to it.
 */
export const linksWithin = (sum: string) => `greatest(-${mostLinks}, least(${mostLinks}, ${sum}))::int`;

/** The hosts are locked. */
export async function addBackLinks(client: PoolClient, targets: readonly LinkedUrl[]): Promise<void> {
  if (targets.length === 0) return;
  await prepared(
    client,
    `update frontier_url u
     set back_links = greatest(0, u.back_links + t.links)
     from unnest($1::bigint[], $2::bigint[], $3::int[]) as t (host_hash, url_hash, links)
     where u.host_hash = t.host_hash and u.url_hash = t.url_hash`,
    columnsOf(targets, ["hostHash", "urlHash", "links"]),
  );
}

export function countByUrl(targets: readonly UrlAddress[]): Map<string, LinkedUrl> {
  const counts = new Map<string, LinkedUrl>();
  for (const { hostHash, urlHash } of targets) {
    const name = nameOf({ hostHash, urlHash });
    const known = counts.get(name);
    if (known === undefined) counts.set(name, { hostHash, urlHash, links: 1 });
    else known.links += 1;
  }
  return counts;
}

/** The links to a URL, which are no longer among the others. */
export function takeCount(counts: Map<string, LinkedUrl>, url: UrlAddress): number {
  const links = counts.get(nameOf(url))?.links ?? 0;
  counts.delete(nameOf(url));
  return links;
}

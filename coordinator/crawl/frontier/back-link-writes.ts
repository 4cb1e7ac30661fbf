/** Column back_links of frontier_url: how many links lead to a URL, updated as pages gain and lose links. */
import type { PoolClient } from "pg";
import { nameOf, type UrlAddress } from "#core/url-key";
import { mostLinks } from "#protocol/exchange";
import { listOf, prepared } from "../../database/transaction.ts";

export interface LinkedUrl extends UrlAddress {
  links: number;
}

/**
 * SQL: clamps a sum (bigint) of links to the range of one message, so that a faulty coordinator cannot overflow the column
 * and abort the transactions of others.
 */
export const linksWithin = (sum: string) => `greatest(-${mostLinks}, least(${mostLinks}, ${sum}))::int`;

/** The hosts must be locked. */
export async function addBackLinks(client: PoolClient, targets: readonly LinkedUrl[]): Promise<void> {
  if (targets.length === 0) return;
  await prepared(
    client,
    `update frontier_url u
     set back_links = greatest(0, ${linksWithin("u.back_links::bigint + t.links")})
     from unnest($1::bigint[], $2::bigint[], $3::int[]) as t (host_hash, url_hash, links)
     where u.host_hash = t.host_hash and u.url_hash = t.url_hash`,
    [
      listOf(targets.map(({ hostHash }) => hostHash)),
      listOf(targets.map(({ urlHash }) => urlHash)),
      listOf(targets.map(({ links }) => links)),
    ],
  );
}

/** Sums the changes per URL and drops URLs whose changes cancel out. */
export function sumLinks(
  added: readonly UrlAddress[],
  removed: readonly UrlAddress[] = [],
): readonly LinkedUrl[] {
  const sums = new Map<string, LinkedUrl>();
  const count = ({ hostHash, urlHash }: UrlAddress, by: number) => {
    const name = nameOf({ hostHash, urlHash });
    const known = sums.get(name);
    if (known === undefined) sums.set(name, { hostHash, urlHash, links: by });
    else known.links += by;
  };
  for (const one of added) count(one, 1);
  for (const one of removed) count(one, -1);
  return [...sums.values()].filter(({ links }) => links !== 0);
}

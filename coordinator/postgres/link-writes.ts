/** Table link: what pages link to, which is the web graph. */
import type { PoolClient } from "pg";
import type { HostHash } from "#core/ids";
import type { ArrivedResult } from "../flows/ports.ts";
import { clean } from "./database-text.ts";
import type { UrlAddress } from "./frontier-admission.ts";
import { replacesPage } from "./result-rows.ts";
import { columnsOf } from "./transaction.ts";

export interface ChangedLink {
  /** The host of the page that has, or had, the link. */
  readonly from: HostHash;
  readonly to: UrlAddress;
}

/**
 * The links of a page in place of those it had; gives those that came and those that went. The page's URL is
 * under a lease of this crawler, so nobody else touches its links.
 */
export async function replaceLinks(
  client: PoolClient,
  results: readonly ArrivedResult[],
): Promise<{ added: ChangedLink[]; removed: ChangedLink[] }> {
  const replaced = results.filter(({ result }) => replacesPage(result.outcome));
  const values = [
    replaced.map(({ key }) => key.hostHash),
    replaced.map(({ key }) => key.urlHash),
    ...columnsOf(replaced.flatMap(linkRows), [
      "hostHash",
      "urlHash",
      "toHostHash",
      "toUrlHash",
      "anchor",
      "nofollow",
    ]),
  ];
  const removed = await client.query<LinkKey>(
    `delete from link l
     using unnest($1::bigint[], $2::bigint[]) as page (host_hash, url_hash)
     where l.host_hash = page.host_hash
       and l.url_hash = page.url_hash
       and (l.host_hash, l.url_hash, l.to_host_hash, l.to_url_hash) not in (
         select * from unnest($3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[])
       )
     returning l.host_hash as "from", l.to_host_hash as "hostHash", l.to_url_hash as "urlHash"`,
    values.slice(0, 6),
  );
  const gone = removed.rows.map(changedLink);
  if (replaced.every((one) => one.links.length === 0)) return { added: [], removed: gone };
  await client.query(
    `update link l
     set anchor = given.anchor, nofollow = given.nofollow
     from unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::text[], $6::boolean[])
       as given (host_hash, url_hash, to_host_hash, to_url_hash, anchor, nofollow)
     where l.host_hash = given.host_hash
       and l.url_hash = given.url_hash
       and l.to_host_hash = given.to_host_hash
       and l.to_url_hash = given.to_url_hash
       and (l.anchor, l.nofollow) is distinct from (given.anchor, given.nofollow)`,
    values.slice(2),
  );
  const added = await client.query<LinkKey>(
    `insert into link (host_hash, url_hash, to_host_hash, to_url_hash, anchor, nofollow)
     select *
     from unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::text[], $6::boolean[])
     on conflict (host_hash, url_hash, to_host_hash, to_url_hash) do nothing
     returning host_hash as "from", to_host_hash as "hostHash", to_url_hash as "urlHash"`,
    values.slice(2),
  );
  return { added: added.rows.map(changedLink), removed: gone };
}

interface LinkKey extends UrlAddress {
  readonly from: HostHash;
}

function changedLink({ from, hostHash, urlHash }: LinkKey): ChangedLink {
  return { from, to: { hostHash, urlHash } };
}

function linkRows({ key, links }: ArrivedResult) {
  return links.map((link) => ({
    hostHash: key.hostHash,
    urlHash: key.urlHash,
    toHostHash: link.hostHash,
    toUrlHash: link.urlHash,
    anchor: clean(link.anchor),
    nofollow: link.nofollow,
  }));
}

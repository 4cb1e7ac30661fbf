/** Adds links to the web graph. */
import type { Pool } from "pg";
import { packOutLinks } from "#coordinator/crawl/results/link-writes";
import type { HostHash, UrlHash } from "#core/ids";
import { nameOf, type UrlAddress } from "#core/url-key";

export interface TestLink {
  readonly from: UrlAddress;
  readonly to: UrlAddress;
  readonly anchor?: string;
  readonly nofollow?: boolean;
}

export async function addLinks(pool: Pool, links: readonly TestLink[]): Promise<void> {
  const pages = new Map(links.map(({ from }) => [nameOf(from), from]));
  const client = await pool.connect();
  try {
    for (const [name, page] of pages) {
      const { rows: known } = await client.query<{
        hostHash: HostHash;
        urlHash: UrlHash;
        anchor: string;
        nofollow: boolean;
      }>(
        `select to_host_hash as "hostHash", to_url_hash as "urlHash", anchor, nofollow
         from link
         where host_hash = $1 and url_hash = $2`,
        [page.hostHash, page.urlHash],
      );
      const added = links
        .filter(({ from }) => nameOf(from) === name)
        .map(({ to, anchor = "", nofollow = false }) => ({ ...to, anchor, nofollow }));
      const packed = packOutLinks(page, [...known, ...added]);
      await client.query("delete from out_link where host_hash = $1 and url_hash = $2", [
        page.hostHash,
        page.urlHash,
      ]);
      // There is no key to conflict with.
      await client.query(
        `insert into out_link (host_hash, url_hash, visit, visited_at, digest, own_links, urls, hosts, places, nofollows,
           anchors)
         values ($1, $2, 1, now(), $3, $4, $5, $6, $7, $8, $9)`,
        [
          ...[page.hostHash, page.urlHash, packed.digest, packed.ownLinks, packed.urlList, packed.hosts],
          ...[packed.places, packed.nofollows, packed.anchors],
        ],
      );
    }
  } finally {
    client.release();
  }
}

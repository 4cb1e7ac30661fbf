/** Links in the web graph, beside those that their pages have already. */
import type { Pool } from "pg";
import { packOutLinks, writeOutLinks } from "#coordinator/results/link-writes";
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
      const { hostHash, urlHash } = page;
      await writeOutLinks(client, [
        { hostHash, urlHash, visit: 1, visitedAt: new Date(), ...packOutLinks(page, [...known, ...added]) },
      ]);
    }
  } finally {
    client.release();
  }
}

/** What becomes of texts once an engine keeps them, and of pages whose text is neither in the database nor there. */
import type { Pool } from "pg";
import type { UrlAddress } from "#core/url-key";
import type { FetchedPage } from "../../../crawl/changes/page-text-reads.ts";
import { lockHosts } from "../../../crawl/frontier/admission-writes.ts";
import { settleHosts } from "../../../crawl/frontier/lease-end-writes.ts";
import { columnsOf, inTransaction } from "../../../database/transaction.ts";

/**
 * Deletes texts that are kept elsewhere, except where the page was fetched again since it was read, or is being written:
 * it is locked first, since otherwise a text that is just being written would be taken for the one that was read.
 */
export async function dropTexts(pool: Pool, pages: readonly FetchedPage[]): Promise<void> {
  await pool.query(
    `with kept as materialized (
       select p.host_hash, p.url_hash
       from unnest($1::bigint[], $2::bigint[], $3::timestamptz[]) as given (host_hash, url_hash, fetched_at)
       join page p using (host_hash, url_hash)
       where p.fetched_at = given.fetched_at
       for share of p skip locked
     )
     delete from document d using kept where d.host_hash = kept.host_hash and d.url_hash = kept.url_hash`,
    columnsOf(pages, ["hostHash", "urlHash", "fetchedAt"]),
  );
}

/**
 * Pages whose text is lost are due now, without validators, so that they come in full. Returns how many were not yet: of a
 * URL without validators that failed, the usual pauses hold.
 */
async function fetchInFull(pool: Pool, pages: readonly UrlAddress[], now: Date): Promise<number> {
  const hosts = [...new Set(pages.map(({ hostHash }) => hostHash))];
  return await inTransaction(pool, async (client) => {
    await lockHosts(client, hosts);
    const { rowCount } = await client.query(
      `update frontier_url u
       set next_fetch_at = least(next_fetch_at, $3), etag = null, last_modified = null, digest = null
       from unnest($1::bigint[], $2::bigint[]) as given (host_hash, url_hash)
       where u.host_hash = given.host_hash and u.url_hash = given.url_hash
         and (u.etag is not null or u.last_modified is not null or u.digest is not null)`,
      [...columnsOf(pages, ["hostHash", "urlHash"]), now],
    );
    await settleHosts(client, hosts);
    return rowCount ?? 0;
  });
}

/** In one round; the others stay left out until a later one. */
const mostDue = 100_000;

type FetchAgain = (pages: readonly UrlAddress[]) => Promise<void>;

/** `onLost` is called at the end, if pages had to be made due. */
export async function refetching<T>(
  { pool, onLost }: { readonly pool: Pool; readonly onLost: (pages: number) => void },
  work: (fetchAgain: FetchAgain) => Promise<T>,
): Promise<T> {
  let due = 0;
  try {
    return await work(async (pages) => {
      if (due < mostDue) due += await fetchInFull(pool, pages, new Date());
    });
  } finally {
    if (due > 0) onLost(due);
  }
}

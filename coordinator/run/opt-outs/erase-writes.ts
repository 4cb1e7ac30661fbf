/**
 * Erases one page: its texts, links, visits, history, link texts on other pages, and pending results. The URL has
 * opted out before, so nothing of it returns, and late results are dropped. Two things stay: the opt-out, and a
 * deletion in the feed of changes, by which exports delete the page.
 */
import type { Pool, PoolClient } from "pg";
import type { HostHash, UrlHash } from "#core/ids";
import { urlKeyOf } from "#core/url-key";
import { linksBeyond } from "../../crawl/batch/link-sql.ts";
import { lockHosts } from "../../crawl/frontier/admission-writes.ts";
import { takeNamed } from "../../crawl/frontier/held-url-store.ts";
import { enterHeirs, isComparable, removeTexts, type Text } from "../../crawl/results/page-writes.ts";
import { columnsOf, inTransaction } from "../../database/transaction.ts";

/** Number of rows by table, without zeros. */
export type ErasedRows = Readonly<Record<string, number>>;

/** Reason given for a change that no visit found. */
export const reasonOfOptOut = "its site has opted out";

/** Tables whose rows of the page are deleted. */
const deletedTables = ["page", "page_fetch", "out_link", "url_rank", "foreign_url"] as const;

const columnsOfChange = (
  "status language digest_before digest_after simhash_distance title_before title_after words_before words_after " +
  "location difference"
).split(" ");

/** Tables whose rows stay, but with these columns emptied. */
const clearedTables: Readonly<Record<string, readonly string[]>> = {
  frontier_url:
    "etag last_modified digest last_status last_fetched_at out_links change_ratio changes_per_day".split(" "),
  page_change: columnsOfChange,
  page_change_inbox: columnsOfChange,
};

/** Comparisons stay, as evidence of who gave which opinion, but without the content compared. */
const clearedComparison = `url = '', words = '',
  opinions = (select coalesce(jsonb_agg(one - 'sketch'), '[]') from jsonb_array_elements(opinions) one)`;

/** `url` is canonical and has no scheme. */
export async function erasePage(pool: Pool, url: string, now: Date): Promise<ErasedRows> {
  const keys = keysOf(url);
  const columns = columnsOf(keys, ["hostHash", "urlHash"]);
  const isIts = "(t.host_hash, t.url_hash) in (select * from unnest($1::bigint[], $2::bigint[]))";
  const rows: Record<string, number> = {};
  await inTransaction(pool, async (client) => {
    const count = async (table: string, sql: string) => {
      const { rowCount } = await client.query(sql, [...columns]);
      if (rowCount) rows[table] = (rows[table] ?? 0) + rowCount;
    };
    await lockHosts(client, [keys[0]!.hostHash]);
    const held = await takeNamed(client, keys);
    if (held.length > 0) rows.held_urls = held.length;
    await client.query(
      "update frontier_host set held_urls = greatest(0, held_urls - $2) where host_hash = $1",
      [keys[0]!.hostHash, held.length],
    );
    for (const [table, cleared] of Object.entries(clearedTables)) {
      const empty = cleared.map((column) => `${column} = null`).join(", ");
      await count(
        table,
        `update ${table} t set ${empty} where ${isIts} and num_nonnulls(${cleared.join(", ")}) > 0`,
      );
    }
    await count(
      "double_check",
      `update double_check t set ${clearedComparison} where ${isIts} and url <> ''`,
    );
    await client.query(
      `insert into page_change_inbox (host_hash, url_hash, url, kind, seen_at, reason)
       select host_hash, url_hash, url, 'gone', $3, '${reasonOfOptOut}' from page t where ${isIts} and not noindex`,
      [...columns, now],
    );
    const ownerless = await removeTextsOf(client, columns);
    for (const table of deletedTables) await count(table, `delete from ${table} t where ${isIts}`);
    await enterHeirs(client, ownerless);
  });
  return rows;
}

async function removeTextsOf(client: PoolClient, columns: readonly unknown[]): Promise<string[]> {
  const { rows } = await client.query<Text>(
    `select host_hash as "hostHash", url_hash as "urlHash", simhash, words
     from page join unnest($1::bigint[], $2::bigint[]) as given (host_hash, url_hash) using (host_hash, url_hash)`,
    [...columns],
  );
  return await removeTexts(client, rows.filter(isComparable));
}

/**
 * Erases link texts on pages of all hosts, and submissions and rejections of that URL. A page that links to it brings
 * its link text back when its links change, unless that page is erased, too.
 */
export async function eraseMentions(pool: Pool, url: string): Promise<ErasedRows> {
  const keys = keysOf(url);
  const anchors = await inTransaction(pool, async (client) => {
    let count = 0;
    for (const { hostHash, urlHash } of keys) {
      const { rowCount } = await client.query(
        `update out_link o
         set anchors = array_to_string(parts[:at - 1] || ''::text || parts[at + 1:], e'\\n'), digest = o.digest # 1
         from (
           select host_hash, url_hash, array_position(urls, $2) as at, string_to_array(anchors, e'\\n') as parts
           from out_link o
           where ${linksBeyond("o", "$2::bigint")} or (host_hash = $1 and $2 = any (urls[:own_links]))
         ) calling
         where o.host_hash = calling.host_hash and o.url_hash = calling.url_hash and coalesce(parts[at], '') <> ''`,
        [hostHash, urlHash],
      );
      count += rowCount ?? 0;
    }
    return count;
  });
  const urls = keys.map((key) => key.url);
  const { rowCount: handedIn } = await pool.query(
    `update submission_url set url = '(erased)', host_hash = null, url_hash = null, reason = null
     where url_hash = any ($1::bigint[]) or url = any ($2)`,
    [keys.map(({ urlHash }) => urlHash), urls],
  );
  const { rowCount: refused } = await pool.query(
    "delete from rejected_url where url = any ($1) or source = any ($1)",
    [urls],
  );
  const counts = { anchors, submission_url: handedIn ?? 0, rejected_url: refused ?? 0 };
  return Object.fromEntries(Object.entries(counts).filter(([, count]) => count > 0));
}

interface Key {
  readonly hostHash: HostHash;
  readonly urlHash: UrlHash;
  readonly url: string;
}

/** Returns the keys for both schemes, unless the port fits only one. */
function keysOf(url: string): readonly Key[] {
  return ["https:", "http:"].flatMap((scheme) => {
    const key = urlKeyOf(scheme + url);
    return typeof key === "string" ? [] : [key];
  });
}

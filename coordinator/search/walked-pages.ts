/** The next pages of the upkeep's walk, with who links to them and the words that stand first on them. */
import type { PoolClient } from "pg";
import type { HostHash, UrlHash } from "#core/ids";
import { pageWords } from "./page-words.ts";
import type { Standing } from "./ranking.ts";

export interface WalkedPage extends Standing {
  readonly hostHash: HostHash;
  readonly urlHash: UrlHash;
  readonly language: string;
  /** As the row has them. */
  readonly popularity: number;
  readonly tier: number;
  /** Empty where the page asks not to be indexed. */
  readonly words: readonly string[];
}

/** Links that are looked at to count the hosts they come from. */
const linksCounted = 1000;
const firstCharacters = 400;

interface Row {
  host_hash: HostHash;
  url_hash: UrlHash;
  url: string;
  language: string | null;
  title: string;
  headings: readonly { readonly text: string }[];
  beginning: string;
  silent: boolean;
  popularity: number;
  tier: number;
  is_copy: boolean;
  linking_hosts: number;
}

export async function readBatch(
  client: PoolClient,
  after: { readonly host_hash: string | null; readonly url_hash: string | null },
  limit: number,
): Promise<WalkedPage[]> {
  const { rows } = await client.query<Row>(batchSql(after.host_hash !== null, limit), [
    ...(after.host_hash === null ? [] : [after.host_hash, after.url_hash]),
  ]);
  return rows.map((row) => ({
    hostHash: row.host_hash,
    urlHash: row.url_hash,
    language: row.language ?? "",
    popularity: row.popularity,
    tier: row.tier,
    linkingHosts: row.linking_hosts,
    isFrontPage: new URL(row.url).pathname === "/",
    isLaterCopy: row.is_copy,
    words: row.silent ? [] : pageWords([row.title, ...row.headings.map(({ text }) => text), row.beginning]),
  }));
}

/** Nofollow links are no recommendation, and links of the page's own host none either. */
const batchSql = (hasPlace: boolean, limit: number) => `
  select p.*, (
      select count(distinct linking.host_hash)::int
      from (
        select l.host_hash
        from link l
        where l.to_host_hash = p.host_hash and l.to_url_hash = p.url_hash
          and l.host_hash <> p.host_hash and not l.nofollow
        limit ${linksCounted}
      ) linking
    ) as linking_hosts
  from (
    select host_hash, url_hash, url, language, title, headings, left(excerpt, ${firstCharacters}) as beginning,
      popularity, tier, duplicate_url_hash is not null as is_copy,
      noindex or exists (
        select from frontier_host h where h.host_hash = page.host_hash and h.opt_out_id is not null
      ) as silent
    from page
    ${hasPlace ? "where (host_hash, url_hash) > ($1::bigint, $2::bigint)" : ""}
    order by host_hash, url_hash
    limit ${limit}
  ) p
  order by host_hash, url_hash`;

/** Table link: what pages link to, which is the web graph. */
import type { PoolClient } from "pg";
import type { HostHash, UrlHash } from "#core/ids";
import { type LinkTarget, nameOf } from "#core/link-set";
import type { UrlAddress } from "#core/url-key";
import { clean, columnsOf } from "../database/transaction.ts";
import type { CountedResult } from "./accepted-result.ts";
import { replacesPage } from "./result-rows.ts";

/** Where the link leads, and the page that has, or had, it. */
export interface ChangedLink extends UrlAddress {
  readonly from: HostHash;
  readonly fromUrl: UrlHash;
}

/**
 * The links of a page in place of those it had; gives those that came and those that went. The page's URL is
 * under a lease of this crawler, so nobody else touches its links. A page has none before its first visit.
 */
export async function replaceLinks(
  client: PoolClient,
  results: readonly CountedResult[],
): Promise<{ added: ChangedLink[]; removed: ChangedLink[] }> {
  const replaced = results.filter(({ result }) => replacesPage(result.outcome));
  const known = replaced.filter(({ before }) => before.visits > 0);
  const removed = known.length === 0 ? [] : await removeOthers(client, known);
  const changed = known.flatMap(linkRows);
  if (changed.length > 0) await updateTexts(client, changed);
  const rows = replaced.flatMap(linkRows);
  if (rows.length === 0) return { added: [], removed };
  const added = await client.query<ChangedLink>(
    `insert into link (host_hash, url_hash, to_host_hash, to_url_hash, anchor, nofollow)
     select *
     from unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::text[], $6::boolean[])
     on conflict (host_hash, url_hash, to_host_hash, to_url_hash) do nothing
     returning host_hash as "from", url_hash as "fromUrl", to_host_hash as "hostHash", to_url_hash as "urlHash"`,
    columnsOf(rows, ["hostHash", "urlHash", "toHostHash", "toUrlHash", "anchor", "nofollow"]),
  );
  return { added: added.rows, removed };
}

/** Links that these pages do not have any more. */
async function removeOthers(client: PoolClient, known: readonly CountedResult[]): Promise<ChangedLink[]> {
  const { rows } = await client.query<ChangedLink>(
    `delete from link l
     using unnest($1::bigint[], $2::bigint[]) as page (host_hash, url_hash)
     where l.host_hash = page.host_hash
       and l.url_hash = page.url_hash
       and (l.host_hash, l.url_hash, l.to_host_hash, l.to_url_hash) not in (
         select * from unnest($3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[])
       )
     returning l.host_hash as "from", l.url_hash as "fromUrl", l.to_host_hash as "hostHash", l.to_url_hash as "urlHash"`,
    [
      known.map(({ key }) => key.hostHash),
      known.map(({ key }) => key.urlHash),
      ...columnsOf(known.flatMap(linkRows), ["hostHash", "urlHash", "toHostHash", "toUrlHash"]),
    ],
  );
  return rows;
}

async function updateTexts(client: PoolClient, rows: readonly LinkRow[]): Promise<void> {
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
    columnsOf(rows, ["hostHash", "urlHash", "toHostHash", "toUrlHash", "anchor", "nofollow"]),
  );
}

type LinkRow = ReturnType<typeof linkRows>[number];

function linkRows({ key, links }: CountedResult) {
  return links.map((link) => ({
    hostHash: key.hostHash,
    urlHash: key.urlHash,
    toHostHash: link.hostHash,
    toUrlHash: link.urlHash,
    anchor: clean(link.anchor),
    nofollow: link.nofollow,
  }));
}

// How much of a page's links changed between two visits: C of the Anansi thesis (section 4.3.3). Its text calls C "the
// ratio of changed links between two continuous visits" and gives pages with a larger ratio of change a higher priority;
// equation 4.2 prints |previous ∩ latest| / |previous ∪ latest|, which is the ratio of links that did not change and
// would put the pages that never change first. The text is followed here: 1 - |∩| / |∪|. Both give 1 for a page without
// links on either visit, since the thesis says so.

/** `changed`: as the thesis' text says; `in-common`: as its equation is printed. */
type ChangeReading = "changed" | "in-common";

/** 0 to 1. Links count once however often a page repeats them. */
export function changeRatio(
  previous: readonly LinkTarget[],
  latest: readonly LinkTarget[],
  reading: ChangeReading = "changed",
): number {
  const before = new Set(previous.map(nameOf));
  const now = new Set(latest.map(nameOf));
  if (before.size === 0 && now.size === 0) return 1;
  let inCommon = 0;
  for (const name of now) if (before.has(name)) inCommon += 1;
  const share = inCommon / (before.size + now.size - inCommon);
  return reading === "changed" ? 1 - share : share;
}

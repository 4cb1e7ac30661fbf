/**
 * Table foreign_url: URLs that other coordinators own, written in the transaction that finds them. Later changes of their
 * links are summed in the row until they are sent.
 */

import { LRUCache } from "lru-cache";
import type { Pool, PoolClient } from "pg";
import type { UrlKey } from "#core/url-key";
import { columnsOf, prepared, rowsGiven } from "../../database/transaction.ts";
import type { AdmittedUrl } from "../batch/found-urls.ts";
import { distinctUrls } from "./admission-writes.ts";
import { type LinkedUrl, linksWithin } from "./back-link-writes.ts";
import { type Claims, ownerOf, parentId, type Relatives, readClaims } from "./claims.ts";

interface ForeignUrl {
  readonly key: UrlKey;
  readonly peerId: number;
  readonly depth: number;
  readonly redirects: number;
  readonly lists: number;
  readonly hops: number;
  readonly links: number;
}

interface SplitUrls {
  readonly own: readonly AdmittedUrl[];
  /** Null if this coordinator has neither parent nor children. */
  readonly foreign: readonly ForeignUrl[] | null;
}

/**
 * Splits found URLs by owner, each once. URLs of other coordinators go to their owner even if too deep here, because the
 * owner may know them and count the links.
 */
export async function splitByOwner(
  client: PoolClient,
  given: readonly AdmittedUrl[],
  maxDepth: number,
): Promise<SplitUrls> {
  const relatives = await holdRelatives(client);
  if (relatives === null) return { own: distinctUrls(given, maxDepth), foreign: null };
  const urls = distinctUrls(given, Number.POSITIVE_INFINITY);
  const own: AdmittedUrl[] = [];
  const foreign: ForeignUrl[] = [];
  for (const url of urls) {
    const owner = ownerOf(url.key.host, relatives);
    if (owner !== "here") foreign.push({ key: url.key, peerId: owner, ...hopsOf(url), hops: 0, links: 0 });
    else if (url.depth <= maxDepth) own.push(url);
  }
  return { own, foreign };
}

const hopsOf = ({ depth, redirects = 0, lists = 0 }: AdmittedUrl) => ({ depth, redirects, lists });

const given = rowsGiven(
  `host_hash bigint, url_hash bigint, url text, peer_id int, depth smallint, redirects smallint, lists smallint,
   hops smallint, links int`,
);

/**
 * Stores unknown URLs to be sent, and for known URLs only changes of their links. Runs after the host locks and in key order
 * to avoid deadlocks.
 */
export async function keepForeign(client: PoolClient, urls: readonly ForeignUrl[], now: Date): Promise<void> {
  if (urls.length === 0) return;
  await client.query(
    `insert into foreign_url as f (host_hash, url_hash, url, peer_id, depth, redirects, lists, hops, links, waits_since)
     select host_hash, url_hash, min(url), min(peer_id), min(depth), min(redirects), min(lists), max(hops),
       ${linksWithin("sum(links)")}, $10
     from ${given.sql()}
     group by host_hash, url_hash
     order by host_hash, url_hash
     on conflict (host_hash, url_hash) do update
     set links = ${linksWithin("f.links::bigint + excluded.links")},
         hops = least(f.hops, excluded.hops),
         waits_since = coalesce(f.waits_since, $10)
     where excluded.links <> 0`,
    [...given.valuesOf(urls.map(({ key, ...rest }) => ({ ...rest, ...key }))), now],
  );
}

/** Must run last in the transaction that found the URLs, after the host locks, to avoid deadlocks. */
export async function noteForeign(
  client: PoolClient,
  { foreign }: SplitUrls,
  { links, now }: { readonly links: readonly LinkedUrl[]; readonly now: Date },
): Promise<void> {
  if (foreign === null) return;
  await keepForeign(client, foreign, now);
  await countForeignLinks(client, links, now);
}

/** Does what `countBackLinks` does, for known URLs of other coordinators. */
export async function countForeignLinks(
  client: PoolClient,
  changed: readonly LinkedUrl[],
  now: Date,
): Promise<void> {
  if (changed.length === 0) return;
  await client.query(
    `with changed as (
       select host_hash, url_hash, sum(by) as by
       from unnest($1::bigint[], $2::bigint[], $3::int[]) as given (host_hash, url_hash, by)
       group by host_hash, url_hash
       having sum(by) <> 0
     ), locked as (
       select f.host_hash, f.url_hash, c.by
       from foreign_url f
       join changed c using (host_hash, url_hash)
       order by f.host_hash, f.url_hash
       for update of f
     )
     update foreign_url f
     set links = ${linksWithin("f.links + locked.by")}, waits_since = coalesce(f.waits_since, $4)
     from locked
     where f.host_hash = locked.host_hash and f.url_hash = locked.url_hash`,
    [...columnsOf(changed, ["hostHash", "urlHash", "links"]), now],
  );
}

/** Parsed claims by text, since every batch of results needs them. */
const known = new LRUCache<string, Claims>({ max: 200 });

export interface KnownRelatives extends Relatives {
  /** Changes whenever a claim changes or a coordinator joins or leaves. */
  readonly text: string;
  /** The parent and all children, including those without claims yet. */
  readonly peers: ReadonlySet<number>;
}

export const withoutRelatives = "[]";

const lockName = "nearcrawl-claims";

/**
 * Holds the relatives unchanged until the transaction ends, so that settle-claims sees all URLs placed under the old claims.
 * It may wait for a change of claims, so it must come before host locks.
 */
export async function holdRelatives(client: PoolClient): Promise<KnownRelatives | null> {
  await prepared(client, `select pg_advisory_xact_lock_shared(${lockKeys})`, [lockName]);
  return await readRelatives(client);
}

/** Announces a change of claims in this transaction. The relative's row must be locked. */
export async function holdClaims(client: PoolClient): Promise<void> {
  await client.query(`select pg_advisory_xact_lock(${lockKeys})`, [lockName]);
}

const lockKeys = "hashtext($1), hashtext(current_schema())";

/** Null for a coordinator without relatives, which owns everything. */
export async function readRelatives(client: Pool | PoolClient): Promise<KnownRelatives | null> {
  const { rows } = await prepared<{ peer_id: number; name: string; claims: string[] }>(
    client,
    "select peer_id, name, claims from related_coordinator order by peer_id",
    [],
  );
  if (rows.length === 0) return null;
  const [parent] = rows.filter(({ peer_id }) => peer_id === parentId);
  const children = rows.flatMap(({ peer_id, name, claims: texts }) => {
    const claims = claimsOf(texts);
    return peer_id === parentId || claims === null ? [] : [{ peerId: peer_id, name, claims }];
  });
  const text = JSON.stringify(rows.map(({ peer_id, claims }) => [peer_id, claims]));
  const peers = new Set(rows.map(({ peer_id }) => peer_id));
  return { own: parent ? claimsOf(parent.claims) : null, children, text, peers };
}

/** Null for a child that has not connected yet. Stored claims have already been validated. */
function claimsOf(texts: readonly string[]): Claims | null {
  const name = texts.join("\n");
  const before = known.get(name);
  if (before) return before;
  const claims = readClaims(texts);
  if (typeof claims === "string") return null;
  known.set(name, claims);
  return claims;
}

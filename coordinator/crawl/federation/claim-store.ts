/**
 * When a coordinator joins, leaves or changes its claims, walks through the frontier and the foreign URLs once, in
 * pieces, and sends what belongs to others. The position is stored, so that the walk continues after a restart.
 */
import type { Pool, PoolClient } from "pg";
import type { HostHash, UrlHash } from "#core/ids";
import { urlKeyOf } from "#core/url-key";
import { columnsOf, inTransaction } from "../../database/transaction.ts";
import { lockHosts } from "../frontier/admission-writes.ts";
import { addBackLinks, type LinkedUrl, linksWithin } from "../frontier/back-link-writes.ts";
import { ownerOf } from "../frontier/claims.ts";
import {
  countForeignLinks,
  holdClaims,
  holdRelatives,
  type KnownRelatives,
  readRelatives,
  withoutRelatives,
} from "../frontier/foreign-url-store.ts";
import { addOutsideLinks } from "../results/host-writes.ts";
import { admitGiven, type TakingSettings } from "./exchange-store.ts";

const hostsAtOnce = 100;

const urlsAtOnce = 2000;

/** One before the first hash, since hashes are signed 64-bit numbers. */
const beforeFirst = "-9223372036854775808";

interface Cursor {
  readonly settled_claims: string | null;
  /** Something had to wait for a lease or an exchange, so the walk starts over after its end. */
  readonly settling_waits: boolean;
  readonly host_cursor: string | null;
  readonly url_cursor_host: string | null;
  readonly url_cursor_url: string | null;
}

interface SettledPiece {
  readonly handedOver: number;
  /** Number of foreign URLs that got a new destination. */
  readonly moved: number;
  readonly more: boolean;
}

export async function settleClaims(pool: Pool, settings: TakingSettings): Promise<SettledPiece> {
  return await inTransaction(pool, async (client) => {
    // Exchanges take this lock, too, so none runs during a piece.
    await client.query("select from related_coordinator order by peer_id for update");
    const { rows } = await client.query<Cursor>(
      "select settled_claims, settling_waits, host_cursor, url_cursor_host, url_cursor_url from claims_settling for update",
    );
    const cursor = rows[0]!;
    const { settled_claims: settled } = cursor;
    const relatives = (await readRelatives(client)) ?? alone;
    const isKnown =
      settled === relatives.text ||
      // There never were related coordinators, or all left before any claims were settled.
      (settled === null && relatives === alone && !(await hasForeign(client)));
    const from = isKnown ? cursor : firstCursor;
    if (from.host_cursor === null && from.url_cursor_host === null)
      return { handedOver: 0, moved: 0, more: false };
    // Waits for transactions that still place URLs by older claims.
    if (isKnown) await holdRelatives(client);
    else await holdClaims(client);
    const hosts = await settleHosts(client, from.host_cursor, { relatives, now: settings.now });
    const urls = await settleUrls(client, from, { ...settings, relatives });
    const more = hosts.cursor !== null || urls.cursor !== null;
    const waits = (isKnown && cursor.settling_waits) || hosts.waits || urls.waits;
    await client.query(
      `update claims_settling
       set settled_claims = $1, settling_waits = $2, host_cursor = $3, url_cursor_host = $4, url_cursor_url = $5`,
      [
        waits && !more ? "" : relatives.text,
        waits && more,
        hosts.cursor,
        urls.cursor?.hostHash ?? null,
        urls.cursor?.urlHash ?? null,
      ],
    );
    return { handedOver: hosts.handedOver, moved: urls.moved, more };
  });
}

const alone: KnownRelatives = { own: null, children: [], text: withoutRelatives, peers: new Set() };

async function hasForeign(client: PoolClient): Promise<boolean> {
  const { rowCount } = await client.query("select from foreign_url limit 1");
  return rowCount === 1;
}

const firstCursor = { host_cursor: beforeFirst, url_cursor_host: beforeFirst, url_cursor_url: beforeFirst };

interface Settling {
  readonly relatives: KnownRelatives;
  readonly now: Date;
}

/**
 * Hands over the hosts of the frontier that belong to another coordinator, with all their URLs and links. Fetched
 * pages stay in this index, and a leased host stays until its lease ends.
 */
async function settleHosts(
  client: PoolClient,
  after: string | null,
  { relatives, now }: Settling,
): Promise<{ cursor: string | null; handedOver: number; waits: boolean }> {
  if (after === null) return { cursor: null, handedOver: 0, waits: false };
  const { rows } = await client.query<{ host_hash: HostHash; host: string; leased: boolean }>(
    `select host_hash, host, lease_id is not null as leased
     from frontier_host
     where host_hash > $1
     order by host_hash
     limit $2
     for update`,
    [after, hostsAtOnce],
  );
  const others = rows.flatMap((row) => {
    const peerId = ownerOf(row.host, relatives);
    return peerId === "here" ? [] : [{ ...row, peerId }];
  });
  const free = others.filter(({ leased }) => !leased);
  if (free.length > 0) {
    const hashes = free.map(({ host_hash }) => host_hash);
    await withdrawLinks(client, hashes, now);
    await move(client, free, now);
  }
  const cursor = rows.length < hostsAtOnce ? null : rows.at(-1)!.host_hash;
  return { cursor, handedOver: free.length, waits: free.length < others.length };
}

interface UrlRow {
  readonly host_hash: HostHash;
  readonly url_hash: UrlHash;
  readonly url: string;
  readonly peer_id: number;
  readonly depth: number;
  readonly redirects: number;
  readonly lists: number;
  readonly links: number;
  readonly has_left: boolean;
}

/** Links that were sent to the former owner are counted there. It passes them on with the host. */
async function settleUrls(
  client: PoolClient,
  after: Pick<Cursor, "url_cursor_host" | "url_cursor_url">,
  settling: Settling & TakingSettings,
): Promise<{ cursor: { hostHash: string; urlHash: string } | null; moved: number; waits: boolean }> {
  if (after.url_cursor_host === null) return { cursor: null, moved: 0, waits: false };
  const { rows } = await client.query<UrlRow>(
    `select host_hash, url_hash, url, peer_id, depth, redirects, lists,
       ${linksWithin("links::bigint + sent_links")} as links, number is not null as has_left
     from foreign_url
     where (host_hash, url_hash) > ($1, $2)
     order by host_hash, url_hash
     limit $3
     for update`,
    [after.url_cursor_host, after.url_cursor_url, urlsAtOnce],
  );
  const { moved, waits } = await replace(client, rows, settling);
  const last = rows.at(-1);
  const isEnd = last === undefined || rows.length < urlsAtOnce;
  const cursor = isEnd ? null : { hostHash: last.host_hash, urlHash: last.url_hash };
  return { cursor, moved, waits };
}

async function replace(
  client: PoolClient,
  rows: readonly UrlRow[],
  settling: Settling & TakingSettings,
): Promise<{ moved: number; waits: boolean }> {
  const { relatives } = settling;
  const urls = rows.flatMap((row) => {
    const key = urlKeyOf(row.url);
    return typeof key === "string" ? [] : [{ ...row, key }];
  });
  const misplaced = urls
    .map((url) => ({ ...url, owner: ownerOf(url.key.host, relatives) }))
    .filter(({ owner, peer_id }) => owner !== peer_id);
  // URLs on their way may have arrived already, so they stay until the other side answers, unless it has left.
  const others = misplaced.filter(({ has_left, peer_id }) => !has_left || !relatives.peers.has(peer_id));
  const own = others.filter(({ owner }) => owner === "here");
  const elsewhere = others.flatMap(({ owner, ...url }) => (owner === "here" ? [] : [{ ...url, owner }]));
  if (own.length > 0) {
    await admitGiven(client, own, settling);
    await client.query(
      `delete from foreign_url f
       using unnest($1::bigint[], $2::bigint[]) as given (host_hash, url_hash)
       where f.host_hash = given.host_hash and f.url_hash = given.url_hash`,
      columnsOf(own, ["host_hash", "url_hash"]),
    );
  }
  if (elsewhere.length > 0) {
    await client.query(
      `update foreign_url f
       set peer_id = given.peer_id, links = ${linksWithin("f.links::bigint + f.sent_links")}, sent_links = 0, number = null, sent_at = null,
           waits_since = coalesce(f.waits_since, $4)
       from unnest($1::bigint[], $2::bigint[], $3::int[]) as given (host_hash, url_hash, peer_id)
       where f.host_hash = given.host_hash and f.url_hash = given.url_hash`,
      [...columnsOf(elsewhere, ["host_hash", "url_hash", "owner"]), settling.now],
    );
  }
  return { moved: others.length, waits: others.length < misplaced.length };
}

/** The pages' links are counted by the new owner. Visits are removed, so that a host that returns starts over. */
async function withdrawLinks(client: PoolClient, hosts: readonly HostHash[], now: Date): Promise<void> {
  const { rows } = await client.query<LinkedUrl & { readonly outside: number }>(
    `select to_host_hash as "hostHash", to_url_hash as "urlHash", -count(*)::int as links,
       -(count(*) filter (where host_hash <> to_host_hash))::int as outside
     from link
     where host_hash = any($1::bigint[])
     group by to_host_hash, to_url_hash`,
    [hosts],
  );
  await client.query("delete from out_link where host_hash = any($1::bigint[])", [hosts]);
  if (rows.length === 0) return;
  await lockHosts(
    client,
    rows.map(({ hostHash }) => hostHash),
  );
  await addBackLinks(client, rows);
  await addOutsideLinks(
    client,
    rows.map(({ hostHash, outside }) => ({ hostHash, links: outside })),
  );
  await countForeignLinks(client, rows, now);
}

/** From now on the new owner counts links to the URLs, so all links counted here are passed on. */
async function move(
  client: PoolClient,
  hosts: readonly { readonly host_hash: HostHash; readonly peerId: number }[],
  now: Date,
): Promise<void> {
  await client.query(
    `with given as (
       select * from unnest($1::bigint[], $2::int[]) as given (host_hash, peer_id)
     ), moved as (
       delete from frontier_url u
       using given
       where u.host_hash = given.host_hash
       returning u.*, given.peer_id
     ), unpacked as (
       delete from held_urls b using given where b.host_hash = given.host_hash
     ), kept as (
       insert into foreign_url as f
         (host_hash, url_hash, url, peer_id, depth, redirects, lists, links, waits_since)
       select host_hash, url_hash, url, peer_id, depth, redirects, lists, ${linksWithin("back_links")}, $3
       from (
         select host_hash, url_hash, url, peer_id, depth, redirects, lists, back_links from moved where state <> 'gone'
         union all
         select host_hash, url_hash, url, peer_id, depth, redirects, lists, back_links
         from held_url join given using (host_hash)
       ) known
       order by host_hash, url_hash
       on conflict (host_hash, url_hash) do update
       set links = ${linksWithin("f.links::bigint + excluded.links")}, waits_since = coalesce(f.waits_since, $3)
     )
     delete from frontier_host h using given where h.host_hash = given.host_hash`,
    [...columnsOf(hosts, ["host_hash", "peerId"]), now],
  );
}

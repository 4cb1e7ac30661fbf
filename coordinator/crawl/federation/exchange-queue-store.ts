/**
 * Queues URLs for related coordinators. A batch is numbered once and sent unchanged until it is acknowledged; only
 * then is the next one sent. All functions run under the lock on the related coordinator's row.
 */
import type { Pool, PoolClient } from "pg";
import { type ExchangedUrl, maxExchangedUrlBytes, maxExchangedUrls } from "#protocol/exchange";
import { inTransaction } from "../../database/transaction.ts";
import { linksWithin } from "../frontier/back-link-writes.ts";
import { lockPeer, waitingFor } from "./related-store.ts";

const columns = "number::float8 as number, url, depth, redirects, lists, hops, sent_links as links";

/** Returns the batch on its way or else the next one, longest waiting first; empty if nothing waits. */
export async function nextBatch(
  client: PoolClient,
  peerId: number,
  most = maxExchangedUrls,
): Promise<ExchangedUrl[]> {
  const { rows: underWay } = await client.query<ExchangedUrl>(
    `select ${columns} from foreign_url where peer_id = $1 and number is not null order by foreign_url.number`,
    [peerId],
  );
  const urls = underWay.length > 0 ? underWay : await numberNext(client, peerId, most);
  const last = urls.at(-1)?.number;
  if (last !== undefined) await noteSent(client, peerId, last);
  return urls;
}

async function noteSent(client: PoolClient, peerId: number, last: number): Promise<void> {
  await client.query(
    "update related_coordinator set sent_number = $2 where peer_id = $1 and sent_number < $2",
    [peerId, last],
  );
}

async function sentTo(client: PoolClient, peerId: number): Promise<number> {
  const { rows } = await client.query<{ sent_number: string }>(
    "select sent_number from related_coordinator where peer_id = $1",
    [peerId],
  );
  return Number(rows[0]!.sent_number);
}

async function numberNext(client: PoolClient, peerId: number, most: number): Promise<ExchangedUrl[]> {
  if (most === 0) return [];
  const { rows } = await client.query<ExchangedUrl>(
    `with first as (
       select host_hash, url_hash, url, waits_since
       from foreign_url
       where peer_id = $1 and waits_since is not null and number is null
       order by waits_since, host_hash, url_hash
       limit $2
       for update
     ), measured as (
       select host_hash, url_hash,
         row_number() over longest as place,
         sum(octet_length(url)) over longest as bytes
       from first
       window longest as (order by waits_since, host_hash, url_hash)
     ), numbered as (
       update foreign_url f
       set number = $4::bigint + m.place, sent_links = f.links, links = 0, waits_since = null
       from measured m
       where f.host_hash = m.host_hash and f.url_hash = m.url_hash
         and (m.bytes <= $3 or m.place = 1)
       returning f.*
     )
     select ${columns} from numbered order by numbered.number`,
    [peerId, most, maxExchangedUrlBytes, await sentTo(client, peerId)],
  );
  return rows;
}

/**
 * Records that the other side has committed everything up to `received`, and returns how many URLs that was. If it
 * acknowledges unknown numbers, this database was restored, so URLs on their way get numbers beyond them.
 */
export async function acknowledge(
  client: PoolClient,
  peerId: number,
  received: number,
  now: Date,
): Promise<number> {
  if (received > (await sentTo(client, peerId))) {
    await waitAgain(client, peerId, now);
    await noteSent(client, peerId, received);
    return 0;
  }
  const { rowCount } = await client.query(
    `with told as (
       select host_hash, url_hash
       from foreign_url
       where peer_id = $1 and number <= $2
       order by host_hash, url_hash
       for update
     )
     update foreign_url f
     set number = null, sent_links = 0, sent_at = $3
     from told
     where f.host_hash = told.host_hash and f.url_hash = told.url_hash`,
    [peerId, received, now],
  );
  return rowCount ?? 0;
}

async function waitAgain(client: PoolClient, peerId: number, now: Date): Promise<void> {
  await client.query(
    `update foreign_url
     set number = null, links = ${linksWithin("links::bigint + sent_links")}, sent_links = 0,
       waits_since = coalesce(waits_since, $2)
     where peer_id = $1 and number is not null`,
    [peerId, now],
  );
}

export async function waitsFor(client: PoolClient, peerId: number): Promise<boolean> {
  const { rowCount } = await client.query(
    "select from foreign_url where peer_id = $1 and waits_since is not null and number is null limit 1",
    [peerId],
  );
  return rowCount === 1;
}

// Limits table foreign_url: removes what has waited too long for an absent coordinator, and what was sent long ago.

/** Maximum number of sent URLs to remember, latest first, so that they are not sent again. */
const mostTold = 5_000_000;

const toldDays = 90;

const atOnce = 20_000;

interface WaitingUrls {
  readonly peerId: number;
  readonly name: string;
  readonly urls: number;
}

/** Counts waiting URLs, including those on their way, for metrics and limits. */
export async function countWaiting(pool: Pool): Promise<WaitingUrls[]> {
  const { rows } = await pool.query<WaitingUrls>(
    `select r.peer_id as "peerId", r.name, ${waitingFor("r")} as urls from related_coordinator r order by r.peer_id`,
  );
  return rows;
}

/**
 * Where more than `most` URLs wait for a coordinator, drops those with the fewest links, oldest first, and counts
 * them. A dropped URL returns when it is found again. Returns how many were dropped.
 */
export async function dropWaiting(pool: Pool, most: number, now: Date): Promise<number> {
  let gone = 0;
  for (const { peerId, urls } of await countWaiting(pool)) {
    for (let excess = urls - most; excess > 0; ) {
      const count = await dropOf(pool, peerId, Math.min(excess, atOnce));
      if (count === 0) break;
      await pool.query(
        "update related_coordinator set urls_dropped = urls_dropped + $2, dropped_at = $3 where peer_id = $1",
        [peerId, count, now],
      );
      gone += count;
      excess -= count;
    }
  }
  return gone;
}

/** Locks in the same order as an exchange: first the coordinator, then the URLs. */
async function dropOf(pool: Pool, peerId: number, most: number): Promise<number> {
  return await inTransaction(pool, async (client) => {
    await lockPeer(client, peerId);
    const { rows } = await client.query<{ urls: number }>(
      `with least as (
         select host_hash, url_hash
         from foreign_url
         where peer_id = $1 and waits_since is not null and number is null
         order by links, waits_since
         limit $2
         for update skip locked
       ), gone as (
         delete from foreign_url f
         using least
         where f.host_hash = least.host_hash and f.url_hash = least.url_hash
         returning 1
       )
       select count(*)::int as urls from gone`,
      [peerId, most],
    );
    return rows[0]!.urls;
  });
}

/** Forgetting is harmless: if a URL is found again, it is sent again, and its owner knows it. Works in pieces. */
export async function forgetTold(pool: Pool, now: Date): Promise<void> {
  const isTold = "waits_since is null and number is null";
  const { rows } = await pool.query<{ sent_at: Date }>(
    `select sent_at from foreign_url where ${isTold} order by sent_at desc offset ${mostTold} limit 1`,
  );
  const before = new Date(Math.max(rows[0]?.sent_at.getTime() ?? 0, now.getTime() - toldDays * 86_400_000));
  for (let gone = atOnce; gone === atOnce; ) {
    const { rowCount } = await pool.query(
      `with oldest as (
         select host_hash, url_hash
         from foreign_url
         where ${isTold} and sent_at < $1
         order by sent_at
         limit ${atOnce}
         for update skip locked
       )
       delete from foreign_url f
       using oldest
       where f.host_hash = oldest.host_hash and f.url_hash = oldest.url_hash`,
      [before],
    );
    gone = rowCount ?? 0;
  }
}

/**
 * What waits for a related coordinator, and what is under way to it. A batch gets its numbers once and is sent again
 * as it is until the other side has acknowledged it; only then comes the next. All run under the lock on the related
 * coordinator's row.
 */
import type { Pool, PoolClient } from "pg";
import { type ExchangedUrl, maxExchangedUrlBytes, maxExchangedUrls } from "#protocol/exchange";
import { inTransaction } from "../../database/transaction.ts";
import { linksWithin } from "../frontier/back-link-writes.ts";
import { lockPeer, waitingFor } from "./related-store.ts";

/** Of an exchanged URL. */
const columns = "number::float8 as number, url, depth, redirects, lists, hops, sent_links as links";

/** The batch under way, or the next one; empty: nothing waits. The longest waiting first. */
export async function nextBatch(
  client: PoolClient,
  peerId: number,
  most = maxExchangedUrls,
): Promise<ExchangedUrl[]> {
  const underWay = await underWayTo(client, peerId);
  const rows = underWay.length > 0 ? underWay : await numberNext(client, peerId, most);
  await noteSent(client, peerId, rows.at(-1)?.number);
  return rows;
}

async function underWayTo(client: PoolClient, peerId: number): Promise<ExchangedUrl[]> {
  const { rows } = await client.query<ExchangedUrl>(
    `select ${columns} from foreign_url where peer_id = $1 and number is not null order by foreign_url.number`,
    [peerId],
  );
  return rows;
}

async function noteSent(client: PoolClient, peerId: number, last: number | undefined): Promise<void> {
  if (last === undefined) return;
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
 * The other side has committed everything up to `received`; gives how many URLs that was. One that has committed more
 * than was ever numbered here knows numbers that this database has forgotten (it was restored from a copy): then what
 * is under way is numbered anew, beyond them.
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

// Table foreign_url is bounded: what waits too long for somebody who is away, and what was told long ago, goes.

/** URLs that were told are remembered, so that they are not told again: so many, the latest, and for so long. */
const mostTold = 5_000_000;

const toldDays = 90;

/** Rows deleted by one statement. */
const atOnce = 20_000;

const dayMs = 86_400_000;

interface WaitingUrls {
  readonly peerId: number;
  readonly name: string;
  readonly urls: number;
}

/** What waits, under way included; for metrics and bounds. */
export async function countWaiting(pool: Pool): Promise<WaitingUrls[]> {
  const { rows } = await pool.query<WaitingUrls>(
    `select r.peer_id as "peerId", r.name, ${waitingFor("r")} as urls from related_coordinator r order by r.peer_id`,
  );
  return rows;
}

/**
 * Of each relative for which more than `most` wait: those with the fewest links go, of these the oldest, and are
 * counted. One that is named again comes again. Gives how many went.
 */
export async function dropWaiting(pool: Pool, most: number, now: Date): Promise<number> {
  let gone = 0;
  for (const { peerId, urls } of await countWaiting(pool)) {
    for (let excess = urls - most; excess > 0; ) {
      const count = await dropOf(pool, peerId, Math.min(excess, atOnce));
      if (count === 0) break;
      await noteDropped(pool, { peerId, urls: count, now });
      gone += count;
      excess -= count;
    }
  }
  return gone;
}

/** As an exchange has it: the relative first, and then the URLs. */
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

async function noteDropped(
  pool: Pool,
  { peerId, urls, now }: { readonly peerId: number; readonly urls: number; readonly now: Date },
): Promise<void> {
  await pool.query(
    "update related_coordinator set urls_dropped = urls_dropped + $2, dropped_at = $3 where peer_id = $1",
    [peerId, urls, now],
  );
}

/** Without harm: what is found once more is told once more, and its owner knows it. A piece at a time. */
export async function forgetTold(pool: Pool, now: Date): Promise<void> {
  const isTold = "waits_since is null and number is null";
  const { rows } = await pool.query<{ sent_at: Date }>(
    `select sent_at from foreign_url where ${isTold} order by sent_at desc offset ${mostTold} limit 1`,
  );
  const before = new Date(Math.max(rows[0]?.sent_at.getTime() ?? 0, now.getTime() - toldDays * dayMs));
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

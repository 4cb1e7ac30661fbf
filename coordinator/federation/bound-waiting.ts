/** Table foreign_url is bounded: what waits too long for somebody who is away, and what was told long ago, goes. */
import type { Pool } from "pg";
import { inTransaction } from "../database/transaction.ts";
import { lockPeer } from "./peer-row.ts";

/** URLs that were told are remembered, so that they are not told again: so many, the latest, and for so long. */
const mostTold = 5_000_000;
const toldDays = 90;
/** Rows deleted by one statement. */
const atOnce = 20_000;
const dayMs = 86_400_000;

export interface WaitingUrls {
  readonly peerId: number;
  readonly name: string;
  readonly urls: number;
}

/** What waits, under way included; for metrics and bounds. */
export async function countWaiting(pool: Pool): Promise<WaitingUrls[]> {
  const { rows } = await pool.query<{ peer_id: number; name: string; urls: number }>(
    `select r.peer_id, r.name, (
         select count(*) from foreign_url f where f.peer_id = r.peer_id and waits_since is not null and number is null
       )::float8 + (
         select count(*) from foreign_url f where f.peer_id = r.peer_id and number is not null
       )::float8 as urls
     from related_coordinator r
     order by r.peer_id`,
  );
  return rows.map(({ peer_id, name, urls }) => ({ peerId: peer_id, name, urls }));
}

/**
 * Of each relative for which more than `most` wait: those with the fewest links go, of these the oldest, and are
 * counted. One that is named again comes again. Gives how many went.
 */
export async function dropWaiting(pool: Pool, most: number, now: Date): Promise<number> {
  let dropped = 0;
  for (const { peerId, urls } of await countWaiting(pool)) {
    let excess = urls - most;
    while (excess > 0) {
      const gone = await dropOf(pool, peerId, { most: Math.min(excess, atOnce), now });
      if (gone === 0) break;
      dropped += gone;
      excess -= gone;
    }
  }
  return dropped;
}

async function dropOf(
  pool: Pool,
  peerId: number,
  { most, now }: { most: number; now: Date },
): Promise<number> {
  return await inTransaction(pool, async (client) => {
    // As an exchange has it: the relative first, and then the URLs.
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
     ), counted as (
       update related_coordinator
       set urls_dropped = urls_dropped + (select count(*) from gone), dropped_at = $3
       where peer_id = $1
     )
     select count(*)::int as urls from gone`,
      [peerId, most, now],
    );
    return rows[0]!.urls;
  });
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

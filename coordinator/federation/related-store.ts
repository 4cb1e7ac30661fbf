/** Tables related_coordinator and foreign_url, as operators see and change them. */

import { randomUUID } from "node:crypto";
import type { Pool, PoolClient } from "pg";
import { iso, isoOrNull } from "../database/cached-read.ts";
import { inTransaction } from "../database/transaction.ts";
import { parentId } from "./claims.ts";
import type { CoordinatorStore, RelatedCoordinator } from "./exchange-ports.ts";
import { holdClaims, type KnownRelatives, readRelatives, withoutRelatives } from "./foreign-url-store.ts";

/** A relative that was not heard of for so long is silent; children ask every few seconds. */
const silentMinutes = 10;

/** Waiting URLs are counted so far. */
const mostCounted = 10_000_000;

interface Row {
  peer_id: number;
  name: string;
  coordinator_id: string | null;
  claims: string[];
  chain: string[];
  contacted_at: Date | null;
  failing_since: Date | null;
  failure: string | null;
  waiting: number;
  exchanges: number;
  urls_sent: number;
  urls_received: number;
  urls_dropped: number;
  created_at: Date;
  created_by: string;
}

export function createCoordinatorStore(pool: Pool): CoordinatorStore {
  return {
    async list(now) {
      const [coordinatorId, relatives, waiting] = await Promise.all([
        knownId(pool),
        readRows(pool),
        readWaiting(pool),
      ]);
      const waitsFor = new Map(waiting.map((one) => [one.peer_id, one.waiting]));
      const rows = relatives.map((row) => ({ ...row, waiting: waitsFor.get(row.peer_id) ?? 0 }));
      const claims = await readRelatives(pool);
      const parent = rows.find(({ peer_id }) => peer_id === parentId);
      return {
        coordinatorId,
        parent: parent ? relatedOf(parent, now) : null,
        above: parent?.chain.slice(1) ?? [],
        children: rows.filter(({ peer_id }) => peer_id !== parentId).map((row) => relatedOf(row, now)),
        settling: await isSettling(pool, claims),
      };
    },

    async invite({ name, keyHash, createdBy, now }) {
      const { rowCount } = await pool.query(
        `insert into related_coordinator (peer_id, name, key_hash, created_at, created_by)
         values (nextval('related_coordinator_number'), $1, $2, $3, $4)
         on conflict (name) do nothing`,
        [name, keyHash, now, createdBy],
      );
      return rowCount === 1;
    },

    async remove(name) {
      return await inTransaction(pool, async (client) => {
        await client.query("select from related_coordinator where name = $1 for update", [name]);
        await holdClaims(client);
        const { rows } = await client.query<{ peer_id: number }>(
          "delete from related_coordinator where name = $1 and peer_id <> $2 returning peer_id",
          [name, parentId],
        );
        return rows.length === 1;
      });
    },

    async childOf(keyHash) {
      const { rows } = await pool.query<{ peer_id: number; name: string }>(
        "select peer_id, name from related_coordinator where key_hash = $1",
        [keyHash],
      );
      return rows[0] ? { childId: rows[0].peer_id, name: rows[0].name } : null;
    },
  };
}

async function readRows(pool: Pool): Promise<Omit<Row, "waiting">[]> {
  const { rows } = await pool.query<Omit<Row, "waiting">>(
    `select peer_id, name, coordinator_id, claims, chain, contacted_at, failing_since, failure,
       exchanges::float8 as exchanges, urls_sent::float8 as urls_sent, urls_received::float8 as urls_received,
       urls_dropped::float8 as urls_dropped, created_at, created_by
     from related_coordinator
     order by peer_id = ${parentId} desc, name`,
  );
  return rows;
}

/** Of each relative. */
async function readWaiting(pool: Pool): Promise<{ peer_id: number; waiting: number }[]> {
  const { rows } = await pool.query<{ peer_id: number; waiting: number }>(
    `select r.peer_id, w.waiting
     from related_coordinator r
     cross join lateral (
       select count(*)::float8 as waiting
       from (
         select from foreign_url
         where peer_id = r.peer_id and waits_since is not null and number is null
         union all
         select from foreign_url where peer_id = r.peer_id and number is not null
         limit ${mostCounted}
       ) one
     ) w`,
  );
  return rows;
}

/** By the claims of now, not everything was gone through yet. */
async function isSettling(pool: Pool, relatives: KnownRelatives | null): Promise<boolean> {
  const { rows } = await pool.query<{ settled_claims: string | null; under_way: boolean }>(
    "select settled_claims, host_cursor is not null or url_cursor_host is not null as under_way from claims_settling",
  );
  const { settled_claims: settled, under_way: isUnderWay } = rows[0]!;
  return isUnderWay || (settled ?? withoutRelatives) !== (relatives?.text ?? withoutRelatives);
}

function relatedOf(row: Row, now: Date): RelatedCoordinator {
  return {
    name: row.name,
    coordinatorId: row.coordinator_id,
    owns: row.claims,
    state: stateOf(row, now),
    contactedAt: isoOrNull(row.contacted_at),
    failingSince: isoOrNull(row.failing_since),
    failure: row.failure,
    waiting: row.waiting,
    exchanges: row.exchanges,
    urlsSent: row.urls_sent,
    urlsReceived: row.urls_received,
    urlsDropped: row.urls_dropped,
    createdAt: iso(row.created_at),
    createdBy: row.created_by,
  };
}

function stateOf({ peer_id, failure, contacted_at }: Row, now: Date): RelatedCoordinator["state"] {
  if (failure !== null) return peer_id === parentId && contacted_at === null ? "never" : "refused";
  if (contacted_at === null) return "never";
  return now.getTime() - contacted_at.getTime() > silentMinutes * 60_000 ? "silent" : "connected";
}

/** Made at the first call, and the same for all coordinators that share the database. */
export async function ownId(client: Pool | PoolClient): Promise<string> {
  const before = await knownId(client);
  if (before !== null) return before;
  await client.query(
    "insert into coordinator_self (coordinator_id) values ($1) on conflict (only_one) do nothing",
    [randomUUID()],
  );
  return (await knownId(client))!;
}

/** Null: no coordinator has started here yet. */
async function knownId(client: Pool | PoolClient): Promise<string | null> {
  const { rows } = await client.query<{ coordinator_id: string }>(
    "select coordinator_id from coordinator_self",
  );
  return rows[0]?.coordinator_id ?? null;
}

/**
 * The parent as the settings have it; null: there is none any more. With another address the link starts over; what
 * waits for the parent waits for the new one.
 */
export async function stateParent(
  pool: Pool,
  parent: { readonly url: string; readonly owns: readonly string[] } | null,
  now: Date,
): Promise<void> {
  await ownId(pool);
  if (parent === null) {
    await inTransaction(pool, async (client) => {
      await lockPeer(client, parentId);
      await holdClaims(client);
      await client.query("delete from related_coordinator where peer_id = $1", [parentId]);
    });
    return;
  }
  await inTransaction(pool, async (client) => {
    await lockPeer(client, parentId);
    await holdClaims(client);
    await client.query("delete from related_coordinator where peer_id = $1 and name <> $2", [
      parentId,
      parent.url,
    ]);
    await client.query(
      `insert into related_coordinator (peer_id, name, created_at, created_by, claims)
       values ($1, $2, $3, 'settings', $4)
       on conflict (peer_id) do update set claims = excluded.claims, failing_since = null, failure = null`,
      [parentId, parent.url, now, parent.owns],
    );
  });
}

export interface PeerRow {
  readonly peer_id: number;
  readonly name: string;
  readonly coordinator_id: string | null;
  readonly claims: string[];
  readonly chain: string[];
  readonly link_id: string | null;
  readonly sent_number: string;
  readonly received_number: string;
}

/** Null: it is no relative (any more). */
export async function lockPeer(client: PoolClient, peerId: number): Promise<PeerRow | null> {
  const { rows } = await client.query<PeerRow>(
    `select peer_id, name, coordinator_id, claims, chain, link_id, sent_number, received_number
     from related_coordinator
     where peer_id = $1
     for update`,
    [peerId],
  );
  return rows[0] ?? null;
}

interface Exchanged {
  readonly peerId: number;
  readonly highest: number;
  readonly received: number;
  readonly told: number;
  readonly faulty: number;
  readonly now: Date;
}

export async function noteExchange(client: PoolClient, exchanged: Exchanged): Promise<void> {
  const { peerId, highest, received, told, faulty, now } = exchanged;
  await client.query(
    `update related_coordinator
     set received_number = greatest(received_number, $2),
         urls_received = urls_received + $3,
         urls_sent = urls_sent + $4,
         urls_dropped = urls_dropped + $5,
         exchanges = exchanges + 1, contacted_at = $6, failing_since = null, failure = null
     where peer_id = $1`,
    [peerId, highest, received, told, faulty, now],
  );
}

/** What is wrong, and since when; it holds until an exchange succeeds. */
export async function noteFailure(
  client: Pick<PoolClient, "query">,
  peerId: number,
  { words, now }: { readonly words: string; readonly now: Date },
): Promise<void> {
  await client.query(
    `update related_coordinator
     set failure = $2, failing_since = coalesce(failing_since, $3)
     where peer_id = $1`,
    [peerId, words.slice(0, 500), now],
  );
}

/** Tables related_coordinator and foreign_url, as operators see and change them. */
import type { Pool } from "pg";
import { iso, isoOrNull } from "../database/cached-read.ts";
import { inTransaction } from "../database/transaction.ts";
import type { CoordinatorStore, LinkState, RelatedCoordinator } from "./exchange-ports.ts";
import { knownId, settleAnew } from "./own-identity.ts";
import { parentId } from "./owner.ts";
import { holdClaims } from "./relatives.ts";

/** A relative that was not heard of for so long is silent; children ask every few seconds. */
export const silentMinutes = 10;
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
      const [coordinatorId, rows, settling] = await Promise.all([
        knownId(pool),
        readRows(pool),
        isSettling(pool),
      ]);
      const parent = rows.find(({ peer_id }) => peer_id === parentId);
      return {
        coordinatorId,
        parent: parent ? relatedOf(parent, now) : null,
        above: parent?.chain.slice(1) ?? [],
        children: rows.filter(({ peer_id }) => peer_id !== parentId).map((row) => relatedOf(row, now)),
        settling,
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
        if (rows.length === 1) await settleAnew(client);
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

async function readRows(pool: Pool): Promise<Row[]> {
  const { rows } = await pool.query<Row>(
    `select r.peer_id, r.name, r.coordinator_id, r.claims, r.chain, r.contacted_at, r.failing_since, r.failure,
       r.exchanges::float8 as exchanges, r.urls_sent::float8 as urls_sent, r.urls_received::float8 as urls_received,
       r.urls_dropped::float8 as urls_dropped, r.created_at, r.created_by, w.waiting
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
     ) w
     order by r.peer_id = ${parentId} desc, r.name`,
  );
  return rows;
}

/** By the claims of now, not everything here was gone through yet. */
async function isSettling(pool: Pool): Promise<boolean> {
  const { rowCount } = await pool.query(
    "select from coordinator_self where host_cursor is not null or url_cursor_host is not null or settled_claims = ''",
  );
  return rowCount === 1;
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

function stateOf({ peer_id, failure, contacted_at }: Row, now: Date): LinkState {
  if (failure !== null) return peer_id === parentId && contacted_at === null ? "never" : "refused";
  if (contacted_at === null) return "never";
  return now.getTime() - contacted_at.getTime() > silentMinutes * 60_000 ? "silent" : "connected";
}

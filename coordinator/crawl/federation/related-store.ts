/** Tables related_coordinator and foreign_url, as operators see and change them. */

import { randomUUID } from "node:crypto";
import type { Pool, PoolClient } from "pg";
import { iso, isoOrNull } from "../../database/cached-read.ts";
import { inTransaction } from "../../database/transaction.ts";
import type { ToldOf } from "../../web/api-operation.ts";
import { parentId } from "../frontier/claims.ts";
import {
  holdClaims,
  type KnownRelatives,
  readRelatives,
  withoutRelatives,
} from "../frontier/foreign-url-store.ts";
import type { coordinators, relatedCoordinator } from "./federation-api.ts";

export type RelatedCoordinator = ToldOf<typeof relatedCoordinator>;

export type Coordinators = ToldOf<typeof coordinators>;

export type CoordinatorStore = ReturnType<typeof createCoordinatorStore>;

interface Invited {
  readonly name: string;
  readonly keyHash: string;
  readonly createdBy: string;
  readonly now: Date;
}

/** A coordinator that has not made contact for this long is shown as silent. Children ask every few seconds. */
const silentMinutes = 10;

/** Waiting URLs are counted only up to this number, which is more than `mostWaitingUrls` can be set to. */
const mostCounted = 100_000_001;

interface Row extends Omit<RelatedCoordinator, "state" | "contactedAt" | "failingSince" | "createdAt"> {
  peerId: number;
  chain: string[];
  contactedAt: Date | null;
  failingSince: Date | null;
  createdAt: Date;
}

export function createCoordinatorStore(pool: Pool) {
  return {
    async list(now: Date): Promise<Coordinators> {
      const [coordinatorId, relatives, claims] = await Promise.all([
        knownId(pool),
        readRows(pool),
        readRelatives(pool),
      ]);
      const related = (row: Row) => relatedOf(row, now);
      const parent = relatives.find(({ peerId }) => peerId === parentId);
      return {
        coordinatorId,
        parent: parent ? related(parent) : null,
        above: parent?.chain.slice(1) ?? [],
        children: relatives.filter(({ peerId }) => peerId !== parentId).map(related),
        settling: await isSettling(pool, claims),
      };
    },

    /** Returns false if the name is taken. */
    async invite({ name, keyHash, createdBy, now }: Invited): Promise<boolean> {
      const { rowCount } = await pool.query(
        `insert into related_coordinator (peer_id, name, key_hash, created_at, created_by)
         values (nextval('related_coordinator_number'), $1, $2, $3, $4)
         on conflict (name) do nothing`,
        [name, keyHash, now, createdBy],
      );
      return rowCount === 1;
    },

    /** Returns false if there is no such child. URLs that wait for it are rerouted. */
    async remove(name: string): Promise<boolean> {
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

    async childOf(keyHash: string): Promise<{ readonly childId: number; readonly name: string } | null> {
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
    `select peer_id as "peerId", name, coordinator_id as "coordinatorId", claims as owns, chain,
       contacted_at as "contactedAt", failing_since as "failingSince", failure, exchanges::float8 as exchanges,
       urls_sent::float8 as "urlsSent", urls_received::float8 as "urlsReceived",
       urls_dropped::float8 as "urlsDropped", created_at as "createdAt", created_by as "createdBy",
       ${waitingFor("related_coordinator")} as waiting
     from related_coordinator
     order by peer_id = ${parentId} desc, name`,
  );
  return rows;
}

/** SQL: how many URLs wait for the coordinator of this row, including those on their way. */
export const waitingFor = (relative: string): string => `(
         select count(*)::float8
         from (
           select from foreign_url
           where peer_id = ${relative}.peer_id and waits_since is not null and number is null
           union all
           select from foreign_url where peer_id = ${relative}.peer_id and number is not null
           limit ${mostCounted}
         ) one
       )`;

/** Whether the walk for the current claims has yet to finish. */
async function isSettling(pool: Pool, relatives: KnownRelatives | null): Promise<boolean> {
  const { rows } = await pool.query<{ settled_claims: string | null; under_way: boolean }>(
    "select settled_claims, host_cursor is not null or url_cursor_host is not null as under_way from claims_settling",
  );
  const { settled_claims: settled, under_way: isUnderWay } = rows[0]!;
  return isUnderWay || (settled ?? withoutRelatives) !== (relatives?.text ?? withoutRelatives);
}

function relatedOf({ peerId, chain, ...row }: Row, now: Date): RelatedCoordinator {
  return {
    ...row,
    state: stateOf({ ...row, peerId }, now),
    contactedAt: isoOrNull(row.contactedAt),
    failingSince: isoOrNull(row.failingSince),
    createdAt: iso(row.createdAt),
  };
}

type Heard = Pick<Row, "peerId" | "failure" | "contactedAt">;

function stateOf({ peerId, failure, contactedAt }: Heard, now: Date): RelatedCoordinator["state"] {
  if (failure !== null) return peerId === parentId && contactedAt === null ? "never" : "refused";
  if (contactedAt === null) return "never";
  return now.getTime() - contactedAt.getTime() > silentMinutes * 60_000 ? "silent" : "connected";
}

/** Creates the id at the first call. Coordinators on one database share it. */
export async function ownId(client: Pool | PoolClient): Promise<string> {
  const before = await knownId(client);
  if (before !== null) return before;
  await client.query(
    "insert into coordinator_self (coordinator_id) values ($1) on conflict (only_one) do nothing",
    [randomUUID()],
  );
  return (await knownId(client))!;
}

/** Returns null if no coordinator has started here yet. */
async function knownId(client: Pool | PoolClient): Promise<string | null> {
  const { rows } = await client.query<{ coordinator_id: string }>(
    "select coordinator_id from coordinator_self",
  );
  return rows[0]?.coordinator_id ?? null;
}

/**
 * Records the parent from the settings; null removes it. If the address changes, the link starts over, and URLs that
 * wait for the old parent wait for the new one.
 */
export async function stateParent(
  pool: Pool,
  parent: { readonly url: string; readonly owns: readonly string[] } | null,
  now: Date,
): Promise<void> {
  await ownId(pool);
  await inTransaction(pool, async (client) => {
    await lockPeer(client, parentId);
    await holdClaims(client);
    await client.query("delete from related_coordinator where peer_id = $1 and name is distinct from $2", [
      parentId,
      parent?.url,
    ]);
    if (parent === null) return;
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

/** Returns null if the coordinator is not, or no longer, related. */
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

/** The failure is shown until an exchange succeeds. */
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

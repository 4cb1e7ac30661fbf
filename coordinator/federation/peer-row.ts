/** One row of related_coordinator, locked for as long as an exchange takes, and what every exchange writes into it. */
import type { PoolClient } from "pg";
import type { Placed } from "./given-url-store.ts";

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

export interface Exchanged {
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

export const nothingPlaced: Placed = { admitted: 0, passedOn: 0, newHosts: 0 };

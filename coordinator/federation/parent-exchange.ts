/** The child's side of an exchange: what to send, and what the parent's answer comes to, each in one transaction. */
import type { Pool, PoolClient } from "pg";
import { exchangeVersion, maxChain } from "#protocol/exchange";
import { inTransaction } from "../database/transaction.ts";
import type { ParentExchangeStore } from "./exchange-ports.ts";
import { acknowledge, nextBatch, waitsFor } from "./exchange-queue-store.ts";
import { placeGiven } from "./given-url-store.ts";
import { ownId } from "./own-identity.ts";
import { cycleFault, parentId } from "./owner.ts";
import { lockPeer, noteExchange, noteFailure, type PeerRow } from "./peer-row.ts";
import { holdRelatives } from "./relatives.ts";

type Answer = Parameters<ParentExchangeStore["take"]>[0];

export function createParentExchangeStore(pool: Pool): ParentExchangeStore {
  return {
    message: async (onlyUnderWay) =>
      await inTransaction(pool, async (client) => {
        const parent = await lockPeer(client, parentId);
        if (parent === null) return null;
        return {
          version: exchangeVersion,
          coordinatorId: await ownId(client),
          owns: parent.claims,
          linkId: parent.link_id,
          received: Number(parent.received_number),
          urls: await nextBatch(client, parentId, onlyUnderWay ? 0 : undefined),
        };
      }),

    take: async (answer, settings) =>
      await inTransaction(pool, async (client) => {
        const parent = await lockPeer(client, parentId);
        if (parent === null) return { refused: "the settings name no parent any more" };
        const cycle = await cycleIn(client, answer);
        if (cycle !== null) {
          await client.query("update related_coordinator set chain = '{}' where peer_id = $1", [parentId]);
          return { refused: cycle };
        }
        const before = await begin(client, parent, answer);
        const told = await acknowledge(client, parentId, answer.received, settings.now);
        const fresh = answer.given.urls.filter(({ number }) => number > before);
        const relatives = (await holdRelatives(client))!;
        const { newHosts: _, ...counts } = await placeGiven(client, fresh, {
          ...settings,
          relatives,
          from: parentId,
        });
        const { highest, faulty } = answer.given;
        const dropped = highest > before ? faulty : 0;
        await noteExchange(client, {
          peerId: parentId,
          highest,
          received: fresh.length,
          told,
          faulty: dropped,
          now: settings.now,
        });
        return {
          taken: { ...counts, repeated: answer.given.urls.length - fresh.length },
          told,
          waiting: answer.given.urls.length > 0 || (await waitsFor(client, parentId)),
        };
      }),

    fail: async (words, now) => await noteFailure(pool, parentId, { words, now }),
  };
}

/** Why the parent cannot be one, in words for whoever set it; null: it can. */
async function cycleIn(client: PoolClient, { chain, coordinatorId }: Answer): Promise<string | null> {
  if (chain.length >= maxChain) return `there are ${maxChain} coordinators above one another; no more may be`;
  const id = await ownId(client);
  if (coordinatorId === id) return `a cycle of coordinators: the parent ${cycleFault(id, [id])}`;
  const { rows } = await client.query<{ name: string }>(
    "select name from related_coordinator where coordinator_id = $1 and peer_id <> $2",
    [coordinatorId, parentId],
  );
  if (rows[0])
    return `a cycle of coordinators: the parent is "${rows[0].name}", a child of this one; one of them must have no parent`;
  return chain.includes(id)
    ? "a cycle of coordinators: this one is above its parent; one of them must have no parent"
    : null;
}

/** The highest number that counts as taken: of another link, none. */
async function begin(client: PoolClient, parent: PeerRow, answer: Answer): Promise<number> {
  const isSame = parent.link_id === answer.linkId;
  await client.query(
    `update related_coordinator
     set coordinator_id = $2, chain = $3, link_id = $4, received_number = case when $5 then received_number else 0 end
     where peer_id = $1`,
    [parentId, answer.coordinatorId, answer.chain, answer.linkId, isSame],
  );
  return isSame ? Number(parent.received_number) : 0;
}

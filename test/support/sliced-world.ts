/** The stores of the crawl over slices on two servers, with the sliced world's own small clockwork: outboxes, shipments, moves. */
import { createCrawlerStore } from "#coordinator/crawlers/crawler-store";
import type { OpenSlice } from "#coordinator/database/slices";
import { createDelegationStore } from "#coordinator/delegation/store";
import { createFrontierStore } from "#coordinator/frontier/frontier-store";
import { applyLinks, defaultOutboxBounds } from "#coordinator/frontier/link-outbox-store";
import { createResultStore } from "#coordinator/results/result-store";
import { advanceMove } from "#coordinator/slices/move-writes";
import { OpenSlices } from "#coordinator/slices/open-slices-store";
import { lookAgain, ship, waitingFor } from "#coordinator/slices/shipment-store";
import { addSlice, balanceSlices } from "#coordinator/slices/slice-writes";
import { slicedFrontier } from "#coordinator/slices/sliced-frontier-store";
import { slicedResults } from "#coordinator/slices/sliced-result-store";
import type { Database } from "#db/server-database";
import type { SliceServers } from "./slice-servers.ts";
import { noon, scope } from "./store-world.ts";

export async function slicedWorld(shared: Database) {
  const slices = await OpenSlices.open(shared);
  const frontier = slicedFrontier(slices, (pool) =>
    createFrontierStore(pool, () => {}, { turns: shared.pool }),
  );
  const results = slicedResults(slices, (pool) => createResultStore(pool, null, { turns: shared.pool }));
  const settings = {
    ...defaultOutboxBounds,
    scope,
    ownerOf: (hostHash: Parameters<typeof slices.ownerOf>[0]) => slices.ownerOf(hostHash),
  };
  /** Bites, shipments and what waits for its owner, of all slices, until nothing is left; null: of those that are up. */
  const carryAll = async (at = noon): Promise<void> => {
    for (let round = 0; round < 1000; round++) {
      let done = 0;
      for (const slice of slices.open) {
        if (slices.down.includes(slice.number)) continue;
        while ((await applyLinks(slice.pool, settings, at)) !== null) done += 1;
        done += await carry(slice);
      }
      if (done === 0) return;
    }
    throw new Error("the outboxes are never empty");
  };
  const carry = async (from: OpenSlice): Promise<number> => {
    let done = 0;
    for (const number of await waitingFor(from.pool)) {
      const to = slices.open.find((one) => one.number === number)!;
      if (to === from) {
        await slices.refresh();
        if (slices.catalogue.moves.length === 0) done += await lookAgain(from.pool, number);
      } else done += (await ship(from, to)).rows;
    }
    return done;
  };
  const ports = {
    shared: shared.pool,
    slice: (number: number) => slices.open.find((one) => one.number === number)!,
  };
  return {
    ...{ shared, slices, frontier, results, settings, carryAll },
    crawlers: createCrawlerStore(shared.pool),
    delegations: createDelegationStore(shared.pool),
    /** A stage of the first move that is planned; null: none is. */
    advance: async () => {
      const [move] = (await slices.refresh()).moves;
      return move === undefined ? null : await advanceMove(move, ports);
    },
    /** All moves, to their end. Leases must end by themselves. */
    moveAll: async () => {
      for (;;) {
        const [move] = (await slices.refresh()).moves;
        if (move === undefined) return;
        const done = await advanceMove(move, ports);
        if (done.type !== "advanced") throw new Error(JSON.stringify(done));
      }
    },
    /** Rows of a table of all slices. */
    rows: async <Row extends object>(sql: string): Promise<(Row & { slice: number })[]> =>
      (
        await Promise.all(
          slices.open.map(async ({ number, pool }) =>
            (await pool.query<Row>(sql)).rows.map((row) => ({ ...row, slice: number })),
          ),
        )
      ).flat(),
    close: async () => await slices.close(),
  };
}

export type SlicedWorld = Awaited<ReturnType<typeof slicedWorld>>;

/** Slices 1 to `count` - 1: the odd ones on the second server. What is to move to them is planned. */
export async function addSlices(servers: SliceServers, count: number): Promise<void> {
  for (let number = 1; number < count; number++)
    await addSlice(servers.shared, {
      serverUrl: number % 2 === 1 ? servers.url(1) : null,
      schema: null,
      sharedUrl: servers.url(0),
      by: "test",
      balance: false,
    });
  await balanceSlices(servers.shared, "test");
}

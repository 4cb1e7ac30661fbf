/** The stores of the crawl over slices on two servers, with the sliced world's own small clockwork: outboxes, shipments, moves. */
import { createCrawlerStore } from "#coordinator/crawlers/crawler-store";
import type { OpenSlice } from "#coordinator/database/slices";
import { createDelegationStore } from "#coordinator/delegation/store";
import {
  applyLinks,
  defaultOutboxBounds,
  type OutboxSettings,
} from "#coordinator/frontier/link-outbox-store";
import { frontierOver } from "#coordinator/frontier/sliced-frontier-store";
import { createResultStore } from "#coordinator/results/result-store";
import { slicedResults } from "#coordinator/results/sliced-result-store";
import { advanceMove } from "#coordinator/slices/move-writes";
import { OpenSlices } from "#coordinator/slices/open-slices-store";
import {
  lookAgain,
  nothingShipped,
  type Shipped,
  ship,
  sumOfShipped,
  waitingFor,
} from "#coordinator/slices/shipment-store";
import { addSlice, balanceSlices } from "#coordinator/slices/slice-writes";
import type { Database } from "#db/server-database";
import type { SliceServers } from "./slice-servers.ts";
import { noon, scope } from "./store-world.ts";

export async function slicedWorld(shared: Database, differences: Partial<OutboxSettings> = {}) {
  const slices = await OpenSlices.open(shared);
  const frontier = frontierOver(slices);
  const results = slicedResults(slices, (pool) =>
    createResultStore(pool, differences.known ?? null, { turns: shared.pool }),
  );
  const settings = {
    ...defaultOutboxBounds,
    scope,
    ownerOf: (hostHash: Parameters<typeof slices.ownerOf>[0]) => slices.ownerOf(hostHash),
    ...differences,
  };
  /** Bites, shipments and what waits for its owner, of all slices that are up, until nothing is left; gives what was shipped. */
  const carryAll = async (at = noon): Promise<Shipped> => {
    let shipped = nothingShipped;
    for (let round = 0; round < 1000; round++) {
      let done = 0;
      for (const slice of slices.open) {
        if (slices.down.includes(slice.number)) continue;
        while ((await applyLinks(slice.pool, settings, at)) !== null) done += 1;
        const carried = await carry(slice);
        done += carried.looked + carried.shipped.rows;
        shipped = sumOfShipped(shipped, carried.shipped);
      }
      if (done === 0) return shipped;
    }
    throw new Error("the outboxes are never empty");
  };
  const carry = async (from: OpenSlice) => {
    let looked = 0;
    let shipped = nothingShipped;
    for (const number of await waitingFor(from.pool)) {
      const to = slices.open.find((one) => one.number === number)!;
      if (to === from) {
        await slices.refresh();
        if (slices.catalogue.moves.length === 0) looked += await lookAgain(from.pool, number);
      } else shipped = sumOfShipped(shipped, await ship(from, to));
    }
    return { looked, shipped };
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

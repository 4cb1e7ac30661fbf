/**
 * Hosts that turned slow, over real fetches: five at 20 ms are the past; above 30 ms (1.5 times, and 10 ms
 * more) twice in a row, the subnet is probed anew.
 */
import { afterAll, beforeAll, beforeEach, expect, it } from "vitest";
import { RecalibrationQueue } from "#coordinator/flows/recalibrate-delegations";
import type { CrawlerId, SubnetId } from "#core/ids";
import { arrivedResult, keyOf, roundOf, secondsAfterNoon, spoolId } from "../contract/world.ts";
import { type FlowWorld, newFlowWorld } from "./flow-world.ts";

let world: FlowWorld;
let north: CrawlerId;
let south: CrawlerId;
let subnetId: SubnetId;
let clock: { seconds: number };
let fetches = 0;

beforeAll(async () => {
  world = await newFlowWorld();
});
beforeEach(async () => {
  await world.reset();
  north = await world.arrived("north");
  south = await world.arrived("south");
  subnetId = await world.site(1);
  await world.delegations.saveRound(
    roundOf(subnetId, [
      [north, 10],
      [south, 20],
    ]),
  );
  clock = { seconds: 0 };
  fetches = 0;
});
afterAll(async () => await world.close());

const url = "http://s1.example/";

async function queue(): Promise<RecalibrationQueue> {
  const state = await world.state();
  return new RecalibrationQueue(
    { ...world, state, now: () => secondsAfterNoon(clock.seconds) },
    { factor: 1.5, inARow: 2, leastHistory: 5, spreads: 6, floorMs: 10 },
  );
}

/** Fetches one after the other, with these times to the first byte (and to connect, where the connection was new). */
async function fetched(crawlerId: CrawlerId, times: readonly number[], connectTimes: readonly number[] = []) {
  const key = keyOf(url);
  for (const [index, firstByteMs] of times.entries()) {
    fetches += 1;
    await world.pool.query(
      `insert into page_fetch (host_hash, url_hash, crawler_id, fetched_at, outcome, connect_ms, first_byte_ms,
         total_ms, wire_bytes, body_bytes, shipped_bytes)
       values ($1, $2, $3, $4, 'fetched', $5, $6, $6, 1, 1, 1)`,
      [
        key.hostHash,
        key.urlHash,
        crawlerId,
        secondsAfterNoon(fetches),
        connectTimes[index] ?? null,
        firstByteMs,
      ],
    );
  }
}

const batch = (...urls: string[]) => ({
  crawlerId: north,
  spoolId,
  results: urls.map((one, index) => ({
    ...arrivedResult({ sequence: index + 1, leaseId: "1", url }),
    result: { ...arrivedResult({ sequence: 1, leaseId: "1", url }).result, url: one },
    wireBytes: 1,
  })),
});

async function slowAfter(recalibration: RecalibrationQueue): Promise<readonly SubnetId[]> {
  recalibration.note(batch(url));
  return await recalibration.findSlow();
}

const usual = [20, 20, 20, 20, 20];

it("wants a round for a host that was slow twice in a row", async () => {
  await fetched(north, [...usual, 90, 95]);

  expect(await slowAfter(await queue())).toEqual([subnetId]);
});

it("lets one slow fetch pass, and one that is only a little slower", async () => {
  await fetched(north, [...usual, 90, 20, 90]);
  expect(await slowAfter(await queue())).toEqual([]);

  await fetched(north, [...usual, ...usual, 29, 29]);
  expect(await slowAfter(await queue())).toEqual([]);
});

it("sees a longer path in the connect times alone", async () => {
  const steady = [200, 200, 200, 200, 200, 200, 200];
  await fetched(north, steady, [...usual, 60, 60]);

  expect(await slowAfter(await queue())).toEqual([subnetId]);
});

it("looks only at hosts that were fetched since the last pass", async () => {
  await fetched(north, [...usual, 90, 95]);
  const recalibration = await queue();

  expect(await recalibration.findSlow()).toEqual([]);
  recalibration.note(batch("not a url", "http://other.example/"));
  expect(await recalibration.findSlow()).toEqual([]);
  expect(await slowAfter(recalibration)).toEqual([subnetId]);
  clock.seconds = 7200;
  expect(await recalibration.findSlow()).toEqual([]);
});

it("wants no second round within the cool-down of an hour, and one after it", async () => {
  await fetched(north, [...usual, 90, 95]);
  const recalibration = await queue();

  expect(await slowAfter(recalibration)).toEqual([subnetId]);
  clock.seconds = 3600;
  expect(await slowAfter(recalibration)).toEqual([]);
  clock.seconds = 3601;
  expect(await slowAfter(recalibration)).toEqual([subnetId]);
});

it("starts anew after a move: what the former crawler measured is no past of the new one", async () => {
  await fetched(north, usual);
  await fetched(south, [90, 90, 90]);
  await world.delegations.saveRound(roundOf(subnetId, [[south, 20]], { cause: "slow-fetches" }));

  expect(await slowAfter(await queue())).toEqual([]);
});

it("starts anew when a subnet comes back to a crawler that had it before", async () => {
  await fetched(north, usual);
  await fetched(south, [50]);
  await fetched(north, [90, 90]);

  expect(await slowAfter(await queue())).toEqual([]);
  await fetched(north, [90, 90, 90, 200, 200]);
  expect(await slowAfter(await queue())).toEqual([subnetId]);
});

it("leaves a host alone that lies in no subnet, or in one that nobody has", async () => {
  await fetched(north, [...usual, 90, 95]);
  await world.pool.query("delete from delegation");
  expect(await slowAfter(await queue())).toEqual([]);

  await world.pool.query("update frontier_host set subnet_id = null");
  expect(await slowAfter(await queue())).toEqual([]);
});

it("wants one round for a subnet in which several hosts turned slow", async () => {
  await fetched(north, [...usual, 90, 95]);
  const recalibration = await queue();
  recalibration.note(batch(url, "http://s1.example/other", url));

  expect(await recalibration.findSlow()).toEqual([subnetId]);
});

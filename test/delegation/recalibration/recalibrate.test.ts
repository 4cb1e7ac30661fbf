/**
 * Hosts that turned slow, with real fetches: after eight at 20 ms, four in a row above 30 ms (1.5 times, and 10 ms
 * more) have the subnet probed again.
 */
import { beforeEach, expect, it } from "vitest";
import { RecalibrationQueue } from "#coordinator/place/delegation/recalibration/recalibrate";
import { defaultRecalibrationRule } from "#coordinator/place/delegation/recalibration/rule";
import type { CrawlerId, SubnetId } from "#core/ids";
import { flowWorld } from "../../support/flow-world.ts";
import {
  arrivedResult,
  eachMs,
  keyOf,
  roundOf,
  secondsAfterNoon,
  spoolId,
} from "../../support/store-world.ts";

const world = flowWorld();
let north: CrawlerId;
let south: CrawlerId;
let subnetId: SubnetId;
let clock: { seconds: number };
let fetches = 0;

beforeEach(async () => {
  north = await world.arrived("north");
  south = await world.arrived("south");
  subnetId = await world.site(1);
  await world.delegations.saveRound(roundOf(subnetId, eachMs([north, 10], [south, 20])));
  clock = { seconds: 0 };
  fetches = 0;
});

const url = "http://s1.example/";

async function queue(): Promise<RecalibrationQueue> {
  const state = await world.state();
  const now = () => secondsAfterNoon(clock.seconds);
  return new RecalibrationQueue({ ...world, state, now }, defaultRecalibrationRule);
}

/** Stores fetches in sequence, with these times to the first byte. */
async function fetched(crawlerId: CrawlerId, times: readonly number[]) {
  const { hostHash, urlHash } = keyOf(url);
  for (const firstByteMs of times) {
    fetches += 1;
    await world.pool.query(
      `insert into page_fetch (host_hash, url_hash, crawler_id, fetched_at, outcome, connect_ms, first_byte_ms,
         total_ms, wire_bytes, body_bytes, shipped_bytes)
       values ($1, $2, $3, $4, 'fetched', null, $5, $5, 1, 1, 1)`,
      [hostHash, urlHash, crawlerId, secondsAfterNoon(fetches), firstByteMs],
    );
  }
}

/** A batch of results for these URLs, fetched now with this time to the first byte. */
const batch = (urls: readonly string[], firstByteMs = 20, crawlerId = north) => ({
  crawlerId,
  spoolId,
  results: urls.map((one, index) => ({
    ...arrivedResult({ sequence: index + 1, leaseId: "1", url }),
    result: {
      ...arrivedResult({ sequence: 1, leaseId: "1", url }).result,
      url: one,
      fetchedAt: secondsAfterNoon(fetches).toISOString(),
      timing: { dnsMs: null, connectMs: null, tlsMs: null, firstByteMs, totalMs: firstByteMs },
    },
    wireBytes: 1,
  })),
});

function arrive(recalibration: RecalibrationQueue, times: readonly number[]): void {
  for (const firstByteMs of times) {
    fetches += 1;
    clock.seconds = fetches;
    recalibration.note(batch([url], firstByteMs));
  }
}

async function slowAfter(recalibration: RecalibrationQueue): Promise<readonly SubnetId[]> {
  recalibration.note(batch([url]));
  return await recalibration.findSlow();
}

const usual = [20, 20, 20, 20, 20, 20, 20, 20];
const slow = [90, 95, 92, 94];

it("judges arriving results without reading the history again, once it knows the host", async () => {
  await fetched(north, usual);
  const recalibration = await queue();
  expect(await slowAfter(recalibration)).toEqual([]);
  await world.pool.query("delete from page_fetch where first_byte_ms <> 20");

  arrive(recalibration, slow);

  expect(await recalibration.findSlow()).toEqual([subnetId]);
});

it("counts a result that arrives twice once", async () => {
  await fetched(north, usual);
  const recalibration = await queue();
  await slowAfter(recalibration);
  fetches += 1;
  clock.seconds = fetches;

  for (let again = 0; again < 10; again++) recalibration.note(batch([url], 90));

  expect(await recalibration.findSlow()).toEqual([]);
});

it("requests a round for a host that was slow four times in a row, if it was fetched since the last pass", async () => {
  await fetched(north, [...usual, ...slow]);
  const recalibration = await queue();

  expect(await recalibration.findSlow()).toEqual([]);
  recalibration.note(batch(["not a url", "http://other.example/"]));
  expect(await recalibration.findSlow()).toEqual([]);
  // Several hosts of a subnet make one round.
  recalibration.note(batch([url, "http://s1.example/other", url]));
  expect(await recalibration.findSlow()).toEqual([subnetId]);
  expect(await recalibration.findSlow()).toEqual([]);
  clock.seconds = 3700;
  expect(await slowAfter(await queue())).toEqual([]);
});

it("delays an alarm during the cool-down of an hour", async () => {
  await fetched(north, [...usual, ...slow]);
  const recalibration = await queue();
  expect(await slowAfter(recalibration)).toEqual([subnetId]);
  const level = [90, 95, 92, 94, 93, 91, 94, 300, 310, 320, 305];
  arrive(recalibration, level);

  clock.seconds = 3600;
  expect(await recalibration.findSlow()).toEqual([]);
  clock.seconds = 3601;
  expect(await recalibration.findSlow()).toEqual([subnetId]);
});

it("starts over after a move, without the former crawler's times", async () => {
  await fetched(north, usual);
  await fetched(south, slow);
  await world.delegations.saveRound(roundOf(subnetId, [[south, 20]], { cause: "slow-fetches" }));

  expect(await slowAfter(await queue())).toEqual([]);
});

it("starts over when a subnet comes back to a crawler that had it before", async () => {
  await fetched(north, usual);
  await fetched(south, [50]);
  await fetched(north, slow);

  expect(await slowAfter(await queue())).toEqual([]);
  await fetched(north, [90, 90, 90, 90, 200, 200, 200, 200]);
  expect(await slowAfter(await queue())).toEqual([subnetId]);
});

it("leaves a host alone that lies in no subnet, or in one that nobody has", async () => {
  await fetched(north, [...usual, ...slow]);
  await world.pool.query("delete from delegation");
  expect(await slowAfter(await queue())).toEqual([]);

  await world.pool.query("update frontier_host set subnet_id = null");
  expect(await slowAfter(await queue())).toEqual([]);
});

it("drops an alarm when the subnet has gone to another crawler meanwhile", async () => {
  await fetched(north, usual);
  const state = await world.state();
  const now = () => secondsAfterNoon(clock.seconds);
  const recalibration = new RecalibrationQueue({ ...world, state, now }, defaultRecalibrationRule);
  await slowAfter(recalibration);
  arrive(recalibration, slow);

  state.moveDelegation({ subnetId, from: north, to: south, cause: "overload", reason: "", rttMs: 20 });

  expect(await recalibration.findSlow()).toEqual([]);
});

it("writes into the round, and into the history, what the fetches showed", async () => {
  await fetched(north, [...usual, ...slow]);
  const recalibration = await queue();
  await slowAfter(recalibration);
  const round = roundOf(subnetId, [[south, 20]], {
    cause: "slow-fetches",
    reason: { type: "only-candidate", runnerUp: null },
  });

  await recalibration.explaining(world.delegations).saveRound(round);

  const evidence = { type: "slow-fetches", host: "s1.example", rule: "slow-in-a-row", kind: "firstByte" };
  const rounds = await world.rows("select parameters from probe_round where cause = 'slow-fetches'");
  expect(rounds).toEqual([
    { parameters: { lambdaMs: 0.1, evidence: { ...evidence, usualMs: 20, nowMs: 93, fetches: 4 } } },
  ]);
  expect(
    await world.rows("select reason from delegation_history order by changed_at, round_id desc limit 1"),
  ).toEqual([
    { reason: "s1.example slower: 20 ms → 93 ms over 4 fetches; the only crawler that could take it" },
  ]);
});

/** get-first: the subnet is crawled while it is decided, and the first fetch counts as the first measurement. */
import { beforeEach, describe, expect, it } from "vitest";
import { FirstFetches } from "#coordinator/place/delegation/probe-round";
import type { CoordinatorState } from "#coordinator/place/delegation/state";
import { delegationCauseWords } from "#core/explanation";
import { asLeaseId, type CrawlerId, type SubnetId } from "#core/ids";
import type { FetchResult } from "#protocol/result";
import { flowWorld, TableFleet } from "../support/flow-world.ts";
import { ManualClock, settled } from "../support/manual-clock.ts";
import { arrivedResult, eachMs, secondsAfterNoon } from "../support/store-world.ts";
import { learnDistance, nearestRound, queueOver, runRound } from "./round-world.ts";

const world = flowWorld();
let north: CrawlerId;
let south: CrawlerId;
let subnetId: SubnetId;
let state: CoordinatorState;
let clock: ManualClock;
let firstFetches: FirstFetches;

const waitMs = 30_000;
const settings = { ...nearestRound, getFirstFromUrls: 20 };
const much = { dueUrls: 20 };

beforeEach(async () => {
  north = await world.arrived("north");
  south = await world.arrived("south");
  subnetId = await world.site(1);
  state = await world.state();
  learnDistance(state, north, south, 60);
  clock = new ManualClock();
  firstFetches = new FirstFetches({ clock, subnetOf: (address) => state.subnetOf(address) }, waitMs);
});

const fleetOf = (northMs: number, southMs: number) =>
  new TableFleet([north, south], { "5.1.1.7": new Map(eachMs([north, northMs], [south, southMs])) });
const running = (fleet: TableFleet, differences: Partial<Parameters<typeof runRound>[2]> = {}) =>
  runRound(world, subnetId, { state, fleet, settings, firstFetches, target: much, ...differences });

const fetchOf = (result: Partial<FetchResult>) => {
  const { result: made } = arrivedResult({ sequence: 1, leaseId: "1", url: "http://s1.example/", result });
  return { sequence: 1, leaseId: asLeaseId("1"), wireBytes: 100, result: made };
};
const timing = { dnsMs: 1, connectMs: 40, tlsMs: null, firstByteMs: 20, totalMs: 30 };
const comes = (crawlerId: CrawlerId, result: Partial<FetchResult> = {}) =>
  firstFetches.note({ crawlerId, results: [fetchOf({ address: "5.1.1.7", timing, ...result })] });

/** Until the round waits for the fetch. */
async function waitsForFetch(): Promise<void> {
  while (firstFetches.waiting === 0) await new Promise((resolve) => setImmediate(resolve));
}

describe("a round of a subnet with many URLs", () => {
  it("gives it provisionally to the likeliest crawler, and counts its first fetch as a connect probe", async () => {
    const fleet = fleetOf(35, 5);

    const decided = running(fleet);
    await waitsForFetch();
    const meanwhile = await world.rows("select crawler_id, cause, measured from delegation");
    expect((await world.lease(north)).map(({ host }) => host)).toEqual(["s1.example"]);
    comes(north);
    const round = await decided;

    expect(meanwhile).toEqual([{ crawler_id: north, cause: "first-fetch", measured: false }]);
    // North is 40 ms away, and 60 ms from south: south may be much nearer, so it is asked. North's fetch was one
    // try only, so it is probed as well before the subnet goes to south.
    expect(fleet.asked.map(({ crawlerId }) => crawlerId)).toEqual([south, north]);
    expect(round).toMatchObject({ crawlerId: south, rttMs: 5, runnerUpId: north, runnerUpRttMs: 35 });
    expect(
      await world.rows("select crawler_id, method, how, outcome, rtt_ms, detail from probe order by ordinal"),
    ).toEqual([
      {
        crawler_id: north,
        method: "connect",
        how: "get",
        outcome: "measured",
        rtt_ms: 40,
        detail: "the crawl's own first fetch, no probe",
      },
      { crawler_id: south, method: "connect", how: "probe", outcome: "measured", rtt_ms: 5, detail: "" },
      { crawler_id: north, method: "connect", how: "probe", outcome: "measured", rtt_ms: 35, detail: "" },
    ]);
    expect(await world.rows("select crawler_id, cause, measured from delegation")).toEqual([
      { crawler_id: south, cause: "probe-round", measured: true },
    ]);
    expect(
      await world.rows(
        "select to_crawler_id, cause from delegation_history order by changed_at, to_crawler_id",
      ),
    ).toEqual([
      { to_crawler_id: north, cause: "first-fetch" },
      { to_crawler_id: south, cause: "new-subnet" },
    ]);
  });

  it("keeps its crawler when only the fetch was slow, not the route", async () => {
    const decided = running(fleetOf(6, 55));
    await waitsForFetch();
    comes(north, { timing: { ...timing, connectMs: 1300 } });

    expect(await decided).toMatchObject({ crawlerId: north, rttMs: 6, runnerUpId: south });
  });

  it("costs no probe where the fetch leaves nobody else to ask", async () => {
    const fleet = fleetOf(2, 61);
    const decided = running(fleet);
    await waitsForFetch();
    comes(north, { timing: { ...timing, connectMs: 2 } });

    expect(await decided).toMatchObject({ crawlerId: north, rttMs: 2 });
    expect(fleet.asked).toEqual([]);
  });

  it.each([
    ["no fetch comes in time", () => clock.turnTo(waitMs)],
    ["its connection was reused", async () => comes(north, { timing: { ...timing, connectMs: null } })],
  ])("probes the crawler when %s", async (_, happens) => {
    const fleet = fleetOf(12, 5);

    const decided = running(fleet);
    await waitsForFetch();
    await happens();
    await settled();
    await decided;

    expect(fleet.asked[0]?.crawlerId).toBe(north);
    expect((await world.rows("select from probe where how = 'get'")).length).toBe(0);
  });

  it("ignores other crawlers' fetches and addresses in other subnets", async () => {
    await world.site(2);
    state.setTree((await world.state()).tree, 1);
    const decided = running(fleetOf(35, 50));
    await waitsForFetch();

    comes(south, { timing: { ...timing, connectMs: 1 } });
    comes(north, { address: "5.1.2.7", timing: { ...timing, connectMs: 2 } });
    comes(north, { address: null });
    expect(firstFetches.waiting).toBe(1);
    comes(north);
    const round = await decided;

    expect(round?.probes[0]?.outcome).toMatchObject({ rttMs: 40 });
  });

  it.each([
    ["few URLs wait", {}, { dueUrls: 19 }, "new-subnet"],
    ["it is switched off", { getFirstFromUrls: 0 }, much, "new-subnet"],
    [
      "the fleet measures by HEAD",
      { probe: { method: "head", tries: 3, deadlineMs: 3000 } },
      much,
      "new-subnet",
    ],
    ["it was delegated before", {}, much, "operator"],
  ] as const)("begins with a probe where %s", async (_, differences, target, cause) => {
    const fleet = fleetOf(35, 50);

    await running(fleet, { target, cause, settings: { ...settings, ...differences } });

    expect(fleet.asked[0]?.crawlerId).toBe(north);
    expect(await world.rows("select from delegation_history where cause = 'first-fetch'")).toEqual([]);
  });
});

describe("the queue", () => {
  const queueOf = (fleet: TableFleet) =>
    queueOver(
      world,
      { state, fleet, firstFetches },
      { round: { ...settings, getFirstFromUrls: 2 }, concurrentRounds: 1, retryMs: 1000 },
    );

  it("lets other rounds run while one waits for its fetch", async () => {
    await world.site(2, "a");
    const later = await world.site(3);
    state.setTree((await world.state()).tree, 1);
    const { queue, decided } = queueOf(fleetOf(12, 5));

    await queue.fill();
    await waitsForFetch();
    while (decided.length < 2) {
      await queue.fill();
      await new Promise((resolve) => setImmediate(resolve));
    }
    expect(queue.running).toBe(1);
    await queue.stop();

    expect(decided.map((round) => round.subnetId)).toContain(later);
  });

  it("decides a subnet by probes after a restart that lost its fetch", async () => {
    await world.site(1, "a");
    const { queue: before } = queueOf(fleetOf(12, 5));
    await before.fill();
    await waitsForFetch();
    await before.stop();
    expect(await world.rows("select from probe_round")).toEqual([]);
    state = await world.state();
    const { queue: after, decided } = queueOf(fleetOf(12, 5));

    expect(state.delegationOf(subnetId)).toMatchObject({ crawlerId: north, measured: false });
    after.request(await world.delegations.unmeasuredBy(secondsAfterNoon(0)), "retry");
    await after.fill();
    await after.idle();

    expect(decided).toMatchObject([{ subnetId, cause: "retry", measured: true }]);
    expect(await world.rows("select cause, measured from delegation")).toEqual([
      { cause: "probe-round", measured: true },
    ]);
  });
});

it("is explained as a cause", () => {
  expect(delegationCauseWords["first-fetch"]).toMatch(/for the time being/);
});

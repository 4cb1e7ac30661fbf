/**
 * A crawler joins a fleet at work, over real stores. Old has every subnet, at 60 ms, and is 58 ms from the
 * newcomer, which may thus stand next to any of them: it measures 3 ms to those with an even number, 90 to the
 * others.
 */
import { beforeEach, expect, it } from "vitest";
import { NewcomerSettling } from "#coordinator/place/balance/join";
import { AnycastRanges } from "#coordinator/place/delegation/anycast";
import { DeniedTargets } from "#coordinator/place/delegation/denied-targets";
import type { CoordinatorState } from "#coordinator/place/delegation/state";
import type { CrawlerId, SubnetId } from "#core/ids";
import { silentLog } from "#core/log";
import { flowWorld, TableFleet } from "../support/flow-world.ts";
import { noon, roundOf, secondsAfterNoon } from "../support/store-world.ts";

const world = flowWorld();
let old: CrawlerId;
let newcomer: CrawlerId;
let subnets: SubnetId[];
let state: CoordinatorState;
let fleet: TableFleet;
let seconds: number;
let moved: number;
let denied: DeniedTargets;
let anycast: AnycastRanges;

beforeEach(async () => {
  old = await world.arrived("old");
  await world.crawlers.hasJoined(old);
  [subnets, seconds, moved] = [[], 0, 0];
  [denied, anycast] = [new DeniedTargets(), new AnycastRanges()];
});

async function join(count: number, settings: { pagesPerDay?: number; distanceMs?: number | null } = {}) {
  const { pagesPerDay = 1000, distanceMs = 58 } = settings;
  for (let number = 0; number < count; number += 1) {
    const subnetId = await world.site(number);
    subnets.push(subnetId);
    await world.delegations.saveRound(roundOf(subnetId, [[old, 60]]));
  }
  newcomer = await world.arrived("newcomer", pagesPerDay);
  if (distanceMs !== null) {
    await world.crawlers.saveRtts([{ from: newcomer, to: old, rttMs: distanceMs, method: "connect" }], noon);
  }
  const answers = subnets.map(
    (_, number) => [`5.1.${number}.7`, new Map([[newcomer, number % 2 === 0 ? 3 : 90]])] as const,
  );
  fleet = new TableFleet([old, newcomer], Object.fromEntries(answers));
  state = await world.state();
  state.setCrawlers(state.crawlers.map((crawler) => ({ ...crawler, state: "online" })));
  return new NewcomerSettling({
    ...world,
    state,
    fleet,
    denied,
    anycast,
    probe: () => ({ method: "connect", tries: 3, deadlineMs: 3000 }),
    recrawlDays: () => 7,
    onMoved: (count) => {
      moved += count;
    },
    rounds: { request: () => {}, isUnderWay: () => false },
    log: silentLog,
    now: () => secondsAfterNoon(seconds),
  });
}

const isJoining = async () =>
  (await world.crawlers.list()).find(({ name }) => name === "newcomer")?.joiningSince !== null;

const history = async () =>
  await world.rows("select distinct cause, reason from delegation_history where cause = 'joined'");

async function untilJoined(settling: NewcomerSettling): Promise<number> {
  for (let passes = 1; passes <= 100; passes += 1) {
    await settling.pass();
    if (!(await isJoining())) return passes;
  }
  throw new Error("it has not joined within 100 passes");
}

it("gets exactly the subnets that it measures nearer to, and leaves the former crawler as runner-up", async () => {
  const settling = await join(12);

  await untilJoined(settling);

  const even = subnets.filter((_, number) => number % 2 === 0);
  expect(state.subnetsOf(newcomer).toSorted((a, b) => a - b)).toEqual(even);
  expect(state.subnetsOf(old)).toHaveLength(6);
  expect([fleet.asked.length, moved]).toEqual([12, 6]);
  const restarted = await world.state();
  for (const subnetId of subnets)
    expect(state.delegationOf(subnetId)).toEqual(restarted.delegationOf(subnetId));
  const owned = { crawlerId: newcomer, measured: true, rttMs: 3 };
  expect(state.delegationOf(subnets[0]!)).toEqual({
    ...{ subnetId: subnets[0], ...owned, runnerUpId: old, runnerUpRttMs: 60 },
  });
  expect(await history()).toEqual([
    { cause: "joined", reason: "it joined and is nearer: 3.0 ms against 60.0 ms of the crawler before" },
  ]);
});

it("is asked about nothing that its partner denies, and about no anycast range", async () => {
  const settling = await join(8);
  denied.noteRefusal(newcomer, subnets[0]!, noon.getTime());
  anycast.mark(subnets[2]!, null);

  await untilJoined(settling);

  expect(state.subnetsOf(newcomer)).toEqual([subnets[4], subnets[6]]);
  expect(fleet.asked.map(({ address }) => address)).not.toContain("5.1.0.7");
  expect(fleet.asked.map(({ address }) => address)).not.toContain("5.1.2.7");
});

it("asks about ten subnets a pass at most, and about none twice", async () => {
  const settling = await join(25);

  await settling.pass();
  const asked: number[] = [];
  for (let pass = 0; pass < 4; pass += 1) {
    const before = fleet.asked.length;
    await settling.pass();
    asked.push(fleet.asked.length - before);
  }

  expect(asked).toEqual([10, 10, 5, 0]);
  expect(new Set(fleet.asked.map(({ address }) => address)).size).toBe(25);
});

it("gives up when it finds almost nothing", async () => {
  const settling = await join(50);
  const silent = new TableFleet([old, newcomer]);
  fleet.probe = async (crawlerId, target) => await silent.probe(crawlerId, target);

  await untilJoined(settling);

  expect(silent.asked).toHaveLength(40);
  expect(state.subnetsOf(newcomer)).toEqual([]);
});

it("takes no more than its partner allows", async () => {
  // A page each: room for three.
  const settling = await join(12, { pagesPerDay: 3 });

  await untilJoined(settling);

  expect(state.subnetsOf(newcomer)).toHaveLength(3);
});

it("waits until it knows how far it is from the others, but no longer than a minute", async () => {
  const settling = await join(4, { distanceMs: null });

  await settling.pass();
  seconds = 59;
  await settling.pass();
  await settling.pass();
  expect(await isJoining()).toBe(true);
  seconds = 60;

  expect(await untilJoined(settling)).toBeLessThan(10);
});

it("has nothing to search while nothing is delegated: rounds will ask it", async () => {
  const settling = await join(0, { distanceMs: null });

  await settling.pass();

  expect(await isJoining()).toBe(false);
});

it("is not searched for while it drains", async () => {
  const settling = await join(4);
  state.setCrawlers(state.crawlers.map((crawler) => ({ ...crawler, drainingSince: noon })));

  await settling.pass();
  await settling.pass();

  expect(fleet.asked).toEqual([]);
});

it("gets former subnets back without a probe where it was nearer than the heir", async () => {
  const settling = await join(0);
  const measured = async (number: number, own: number, heirs: number): Promise<SubnetId> => {
    const subnetId = await world.site(number);
    await world.delegations.saveRound(
      roundOf(subnetId, [
        [newcomer, own],
        [old, heirs],
      ]),
    );
    const left = { from: newcomer, to: old, cause: "crawler-left", reason: "", rttMs: heirs } as const;
    await world.delegations.move([{ subnetId, ...left }], noon);
    return subnetId;
  };
  const nearer = await measured(1, 4, 9);
  const asNear = await measured(2, 8.5, 9);
  await measured(3, 30, 9);
  denied.noteRefusal(newcomer, await measured(4, 4, 9), noon.getTime());
  anycast.mark(await measured(5, 4, 9), null);
  for (const delegation of await world.delegations.readAll()) state.setDelegation(delegation);

  await untilJoined(settling);

  expect(state.subnetsOf(newcomer)).toEqual([nearer]);
  expect(state.delegationOf(asNear)?.crawlerId).toBe(old);
  expect(fleet.asked).toEqual([]);
  expect(await history()).toEqual([
    { cause: "joined", reason: "the crawler that had it is back: 4.0 ms against 9.0 ms" },
  ]);
});

async function standsIn(subnetId: SubnetId): Promise<void> {
  state.setCrawlers(
    state.crawlers.map((crawler) => (crawler.crawlerId === newcomer ? { ...crawler, subnetId } : crawler)),
  );
  for (const delegation of await world.delegations.readAll()) state.setDelegation(delegation);
}

it.each([
  ["among measured subnets", 2],
  ["while nothing of the others was measured", 0],
])("gets the subnet back that it stands in, %s", async (_, count) => {
  const settling = await join(count, { pagesPerDay: 1 });
  const own = await world.subnet("6.1.0.0", "6.1.0.255");
  await world.delegations.delegateOwnSubnet(own, newcomer, noon);
  const rttMs = count === 0 ? null : 2;
  const drained = { from: newcomer, to: old, cause: "drained", reason: "", rttMs } as const;
  await world.delegations.move([{ subnetId: own, ...drained }], noon);
  await standsIn(own);

  await untilJoined(settling);

  expect(state.delegationOf(own)).toMatchObject({ crawlerId: newcomer });
  expect((await world.state()).delegationOf(own)).toEqual(state.delegationOf(own));
  expect(await history()).toContainEqual({
    ...{ cause: "joined", reason: "the crawler that stands in it is back" },
  });
});

it("a subnet that it is in but never had stays with its crawler", async () => {
  const settling = await join(0);
  const own = await world.subnet("6.1.0.0", "6.1.0.255");
  await world.delegations.delegateOwnSubnet(own, old, noon);
  await standsIn(own);

  await untilJoined(settling);

  expect(state.delegationOf(own)?.crawlerId).toBe(old);
});

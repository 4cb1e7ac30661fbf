/**
 * Rounds that meet an anycast range. Five crawlers: athens and rome, seoul and tokyo, boston. 5.1.1.7 answers
 * beside each group; 5.1.2.7 is one machine in Athens, 5.1.3.7 one in Athens registered in America.
 */
import { afterAll, beforeAll, beforeEach, expect, it } from "vitest";
import { AnycastRanges, watchedFleet } from "#coordinator/delegation/anycast";
import { explainReason } from "#coordinator/delegation/policies/reason";
import type { CoordinatorState } from "#coordinator/delegation/state";
import type { CrawlerId, SubnetId } from "#core/ids";
import { type Answer, type FlowWorld, newFlowWorld, TableFleet } from "../support/flow-world.ts";
import { noon, secondsAfterNoon } from "../support/store-world.ts";
import { crawlerIn, holds, learnDistances, registeredIn, runRound } from "./round-world.ts";

let world: FlowWorld;
let crawlers: CrawlerId[];
let athens: CrawlerId;
let tokyo: CrawlerId;
let state: CoordinatorState;
let fleet: TableFleet;
let anycast: AnycastRanges;
const sites: SubnetId[] = [];

beforeAll(async () => {
  world = await newFlowWorld();
});
beforeEach(async () => {
  await world.reset();
  crawlers = [];
  for (const [name, country] of places) crawlers.push(await crawlerIn(world, name, country));
  athens = crawlers[0]!;
  tokyo = crawlers[3]!;
  sites.length = 0;
  for (const number of [1, 2, 3, 4]) sites.push(await world.site(number));
  await registeredIn(world, "US", sites[0]!);
  await registeredIn(world, "GR", sites[1]!);
  await registeredIn(world, "US", sites[2]!);
  await registeredIn(world, "US", sites[3]!);
  await holds(world, "everywhere", sites[0]!, sites[3]!);
  await holds(world, "abroad", sites[2]!);
  await restart();
  fleet = new TableFleet(crawlers, {
    "5.1.1.7": answers(3, 9, 7, 4, 5),
    "5.1.2.7": answers(3, 27, 280, 270, 121),
    "5.1.3.7": answers(3, 27, 280, 270, 121),
    "5.1.4.7": answers(3, 9, 7, 4, 5),
  });
  anycast = new AnycastRanges();
});
afterAll(async () => await world.close());

const places = [
  ["athens", "GR"],
  ["rome", "IT"],
  ["seoul", "KR"],
  ["tokyo", "JP"],
  ["boston", "US"],
] as const;
const distances = [
  [0, 25, 280, 270, 120],
  [25, 0, 270, 260, 100],
  [280, 270, 0, 30, 180],
  [270, 260, 30, 0, 160],
  [120, 100, 180, 160, 0],
];

const answers = (...rttsMs: number[]): ReadonlyMap<CrawlerId, Answer> =>
  new Map(rttsMs.map((rttMs, index) => [crawlers[index]!, rttMs]));

/** What a coordinator knows that is started now. */
async function restart(): Promise<void> {
  state = await world.state();
  learnDistances(state, crawlers, distances);
}

const round = async (subnetId: SubnetId) => await runRound(world, subnetId, { state, fleet, anycast });

it("asks no more than the policy does where a fast answer comes from the country of the registration", async () => {
  const found = await round(sites[1]!);

  expect(found).toMatchObject({ crawlerId: athens, rttMs: 3 });
  expect(fleet.asked).toHaveLength(1);
});

it("finds an anycast range with two probes more: one to check, one to confirm", async () => {
  const found = await round(sites[0]!);

  expect(found?.reason).toMatchObject({
    type: "anycast",
    by: "peer-rtt",
    confirmed: { rttMs: expect.any(Number) },
  });
  expect(found?.anycast).toBe(true);
  expect(fleet.asked).toHaveLength(3);
  expect(explainReason(found?.reason, (crawlerId) => places[crawlers.indexOf(crawlerId)]![0])).toMatch(
    /^The range is anycast: .* confirmed it\. .* the one with the most room took it\. Runner-up: /,
  );
});

it("gives it to the crawler with the most room of those that answered fast", async () => {
  // Athens and Boston have ten subnets each already, of the thousand pages a day that each may fetch.
  for (let number = 10; number < 30; number++) {
    const subnetId = await world.subnet(`5.1.${number}.0`, `5.1.${number}.255`);
    await world.delegations.delegateOwnSubnet(subnetId, number < 20 ? athens : crawlers[4]!, noon);
  }
  await restart();

  const found = await round(sites[0]!);

  expect([athens, crawlers[4]]).not.toContain(found?.crawlerId);
  expect(found?.runnerUpId).not.toBeNull();
});

it("is marked in the database, teaches nothing about its holder's place, and is known after a restart", async () => {
  await round(sites[0]!);

  expect(await world.rows("select anycast, measured, retry_at from delegation")).toEqual([
    { anycast: true, measured: true, retry_at: null },
  ]);
  expect(await world.delegations.unmeasuredBy(secondsAfterNoon(1e7))).toEqual([]);
  expect(state.knowledge.owners({ kind: "root", key: 0 })).toEqual([]);
  const known = state.delegationOf(sites[0]!);
  await restart();
  expect(state.delegationOf(sites[0]!)).toEqual(known);
  expect(state.knowledge.owners({ kind: "root", key: 0 })).toEqual([]);
  const restored = new AnycastRanges();
  restored.restore(await world.delegations.anycastSubnets(), (subnetId) => state.placementOf(subnetId));
  expect(restored.has(sites[0]!)).toBe(true);
  expect(restored.ofHolder(state.placementOf(sites[3]!)?.holderKey ?? null, 0)).toBe(true);
});

it("checks a range at once whose holder has another that is anycast, wherever it is registered", async () => {
  await round(sites[0]!);
  await registeredIn(world, "GR", sites[3]!);
  await restart();

  const found = await round(sites[3]!);

  expect(found?.anycast).toBe(true);
});

it("checks a range of one machine that is registered abroad once, and its holder not again for a day", async () => {
  const first = await round(sites[2]!);
  const askedFirst = fleet.asked.length;
  const again = await round(sites[2]!);

  expect(first).toMatchObject({ crawlerId: athens, rttMs: 3 });
  expect(first?.anycast).toBeUndefined();
  expect(askedFirst).toBe(2);
  expect(again).toMatchObject({ crawlerId: athens });
  expect(fleet.asked.length - askedFirst).toBe(1);
});

it.each([
  ["far from everybody else", ["seoul", "boston"]],
  ["with a neighbour", ["boston"]],
])(
  "does not believe one crawler alone, %s: something beside it may answer for everybody",
  async (_, absent) => {
    // Tokyo sits behind a box that accepts every connection; the machine is in Athens.
    fleet = new TableFleet(crawlers, { "5.1.3.7": answers(3, 27, 280, 1, 121) });
    await registeredIn(world, "JP", sites[2]!);
    await restart();
    const excluded = new Set(crawlers.filter((_crawler, index) => absent.includes(places[index]![0])));

    const found = await runRound(world, sites[2]!, { state, fleet, anycast, excluded: () => excluded });

    expect(fleet.asked.map(({ crawlerId }) => crawlerId)).toContain(tokyo);
    expect(found?.reason).not.toMatchObject({ type: "anycast" });
  },
);

it("finds a range that answers in two regions alone, by neighbours of both", async () => {
  fleet = new TableFleet(crawlers, { "5.1.1.7": answers(3, 26, 33, 4, 110) });
  const excluded = () => new Set([crawlers[4]!]);
  await registeredIn(world, "JP", sites[0]!);
  await restart();

  const found = await runRound(world, sites[0]!, { state, fleet, anycast, excluded });

  expect(found?.anycast).toBe(true);
  expect(fleet.asked).toHaveLength(4);
});

it("takes the mark away when a later round finds one machine", async () => {
  await round(sites[0]!);
  fleet = new TableFleet(crawlers, { "5.1.1.7": answers(3, 27, 280, 270, 121) });

  await runRound(world, sites[0]!, { state, fleet, anycast, cause: "operator" });

  expect(anycast.has(sites[0]!)).toBe(false);
  expect(await world.delegations.anycastSubnets()).toEqual([]);
  expect(state.delegationOf(sites[0]!)).toMatchObject({ crawlerId: athens, measured: true });
});

it("asks nothing extra without a memory of anycast ranges", async () => {
  await runRound(world, sites[0]!, { state, fleet });

  expect(fleet.asked).toHaveLength(1);
});

it("is suspected when a probe for anything else contradicts, and the round asks that crawler again", async () => {
  // Registered at home and never checked: Athens has it, as an ordinary range.
  await registeredIn(world, "GR", sites[0]!);
  await restart();
  await round(sites[0]!);
  expect(anycast.has(sites[0]!)).toBe(false);
  const requested: SubnetId[] = [];
  const watched = watchedFleet(fleet, {
    state,
    ranges: anycast,
    nowMs: () => noon.getTime(),
    request: (subnetId) => requested.push(subnetId),
  });

  const asked = { host: "s1.example", address: "5.1.1.7", port: 80, secure: false } as const;
  for (let times = 0; times < 3; times++) {
    await watched.probe(tokyo, { ...asked, method: "connect", tries: 3, deadlineMs: 3000 });
  }
  const found = await runRound(world, sites[0]!, { state, fleet, anycast, cause: "review" });

  expect(requested).toEqual([sites[0]]);
  expect(found?.probes[1]?.crawlerId).toBe(tokyo);
  expect(found?.anycast).toBe(true);
});

it("is not suspected for answers that one machine gives", async () => {
  await round(sites[1]!);
  const requested: SubnetId[] = [];
  const watched = watchedFleet(fleet, {
    state,
    ranges: anycast,
    nowMs: () => noon.getTime(),
    request: (subnetId) => requested.push(subnetId),
  });

  for (const crawlerId of crawlers) {
    const asked = { host: "s2.example", address: "5.1.2.7", port: 80, secure: false } as const;
    await watched.probe(crawlerId, { ...asked, method: "connect", tries: 3, deadlineMs: 3000 });
  }

  expect(requested).toEqual([]);
});

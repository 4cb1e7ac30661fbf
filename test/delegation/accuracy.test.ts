/** Samples of how near the delegations are: who is measured, who is left alone, and what changes (nothing). */
import { afterAll, beforeAll, beforeEach, expect, it } from "vitest";
import { isSampleDue, sampleAccuracy } from "#coordinator/place/delegation/accuracy";
import { createAccuracyStore } from "#coordinator/place/delegation/accuracy-store";
import { AnycastRanges } from "#coordinator/place/delegation/anycast";
import { DeniedTargets } from "#coordinator/place/delegation/denied-targets";
import type { RoundCause } from "#core/explanation";
import type { CrawlerId, SubnetId } from "#core/ids";
import { heldBackWords } from "#protocol/messages";
import { type Answer, type FlowWorld, newFlowWorld, TableFleet } from "../support/flow-world.ts";
import { eachMs, noon, roundOf } from "../support/store-world.ts";

let world: FlowWorld;
let [athens, berlin, tokyo] = [0, 0, 0] as unknown as [CrawlerId, CrawlerId, CrawlerId];
let subnetId: SubnetId;
beforeAll(async () => {
  world = await newFlowWorld();
});
/** One subnet at 5.1.1.0/24, athens' by a round at 12 ms. */
beforeEach(async () => {
  await world.pool.query("truncate accuracy_sample");
  await world.reset();
  athens = await world.arrived("athens");
  berlin = await world.arrived("berlin");
  tokyo = await world.arrived("tokyo");
  subnetId = await world.site(1);
  await world.delegations.saveRound(roundOf(subnetId, [[athens, 12]]));
});
afterAll(async () => {
  await world.pool.query("truncate accuracy_sample");
  await world.close();
});

const settings = {
  probe: { method: "connect", tries: 3, deadlineMs: 100 },
  allowSpecialPurpose: false,
} as const;

async function sampling(
  answers: readonly (readonly [CrawlerId, Answer])[],
  online = [athens, berlin, tokyo],
) {
  const fleet = new TableFleet(online, { "5.1.1.7": new Map(answers) });
  const requested: [readonly SubnetId[], RoundCause][] = [];
  const accuracy = createAccuracyStore(world.pool);
  const clock = { ms: noon.getTime() };
  const ports = {
    state: await world.state(),
    fleet,
    delegations: world.delegations,
    accuracy,
    denied: new DeniedTargets(),
    anycast: new AnycastRanges(),
    withoutRoom: () => new Set<CrawlerId>(),
    request: (subnetIds: readonly SubnetId[], cause: RoundCause) => void requested.push([subnetIds, cause]),
    random: () => 0.5,
    now: () => new Date(clock.ms),
  };
  return {
    ports,
    fleet,
    requested,
    accuracy,
    clock,
    take: async () => await sampleAccuracy(ports, settings),
  };
}

it("everybody measures one subnet of the fleet, and what came out is kept", async () => {
  const { take, fleet, accuracy, requested, ports } = await sampling(eachMs([athens, 14], [berlin, 11]));

  const sample = await take();

  expect(sample).toMatchObject({
    ...{ subnetId, targetAddress: "5.1.1.7", method: "connect", ownerId: athens, ownerRttMs: 14 },
    ...{ bestId: berlin, bestRttMs: 11, asked: 3, answered: 2 },
  });
  expect(fleet.asked.map(({ crawlerId }) => crawlerId).sort()).toEqual([athens, berlin, tokyo].sort());
  expect(await accuracy.counts(new Date(noon.getTime() - 1))).toEqual({ samples: 1, nearlyBest: 1 });
  expect(requested).toEqual([]);
  expect(ports.state.delegationOf(subnetId)).toMatchObject({ crawlerId: athens, rttMs: 12 });
});

it("a crawler that is far off is counted, and its subnet gets a round", async () => {
  const { take, requested, accuracy } = await sampling(eachMs([athens, 31.5], [berlin, 11]));

  await take();

  expect(requested).toEqual([[[subnetId], "sampled"]]);
  expect(await accuracy.counts(new Date(0))).toEqual({ samples: 1, nearlyBest: 0 });
  expect(await accuracy.list({ after: new Date(0), most: 10, farOnly: true })).toMatchObject([
    { range: "5.1.1.0/24", owner: "athens", ownerRttMs: 31.5, best: "berlin", bestRttMs: 11 },
  ]);
});

it("no answer by the owner alone counts against it; no answer at all says nothing", async () => {
  const alone = await sampling([[berlin, 11]]);
  await alone.take();
  expect(await alone.accuracy.counts(new Date(0))).toEqual({ samples: 1, nearlyBest: 0 });

  await world.pool.query("truncate accuracy_sample");
  const nobody = await sampling([]);
  expect(await nobody.take()).toMatchObject({ bestId: null, answered: 0 });
  expect(await nobody.accuracy.counts(new Date(0))).toEqual({ samples: 0, nearlyBest: 0 });
});

it.each([
  [
    "its own limits held back",
    { type: "failed", code: "held-back", method: "connect", reason: "no turn in time" },
  ],
  [
    "its own limits held back, by the words of 0.2.0",
    { type: "failed", method: "connect", reason: `${heldBackWords}: no turn in time` },
  ],
  ["a busy machine noticed late", { type: "measured", method: "connect", rttMs: 300, tries: 3, lateMs: 290 }],
] as const)("an answer of the owner's that %s says nothing, and asks for no round", async (_, own) => {
  const { take, accuracy, requested } = await sampling([
    [athens, own],
    [berlin, 11],
  ]);

  expect(await take()).toBeNull();

  expect(await accuracy.counts(new Date(0))).toEqual({ samples: 0, nearlyBest: 0 });
  expect(requested).toEqual([]);
});

it("an address is left alone for a month, whatever came of it", async () => {
  const { take, fleet, clock } = await sampling([]);
  await take();

  clock.ms += 29 * 86_400_000;
  expect(await take()).toBeNull();
  expect(fleet.asked).toHaveLength(3);
  clock.ms += 2 * 86_400_000;
  expect(await take()).not.toBeNull();
});

it("the pace is one for all coordinators, and outlives them", async () => {
  const { take, ports, clock } = await sampling([[athens, 12]]);
  const isDue = async (subnetsPerHour: number) => await isSampleDue(ports, subnetsPerHour);

  expect([await isDue(4), await isDue(0)]).toEqual([true, false]);
  await take();
  clock.ms += 15 * 60_000 - 1;
  expect(await isDue(4)).toBe(false);
  clock.ms += 1;
  expect(await isDue(4)).toBe(true);
});

it("who denies the target, is full or not believed is not asked", async () => {
  const { take, ports, fleet } = await sampling([[athens, 12]]);
  ports.denied.setList(berlin, { networks: ["5.1.0.0/16"], domains: [] });
  ports.withoutRoom = () => new Set([tokyo]);

  expect(await take()).toMatchObject({ asked: 1 });
  expect(fleet.asked.map(({ crawlerId }) => crawlerId)).toEqual([athens]);
});

it("nothing is measured that rounds may not probe, that its own crawler cannot, or that is anycast", async () => {
  const offline = await sampling([[athens, 12]], [berlin, tokyo]);
  const anycast = await sampling([[athens, 12]]);
  anycast.ports.anycast.restore([subnetId], (id) => anycast.ports.state.placementOf(id));
  const denied = await sampling([[athens, 12]]);
  denied.ports.denied.setList(athens, { networks: [], domains: ["example"] });

  for (const { take, fleet } of [offline, anycast, denied]) {
    expect(await take()).toBeNull();
    expect(fleet.asked).toEqual([]);
  }
  await world.pool.query("update frontier_host set opt_out_id = 1");
  expect(await (await sampling([[athens, 12]])).take()).toBeNull();
});

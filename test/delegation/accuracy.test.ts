/** Samples of how near the delegations are: who is measured, who is not asked, and what a sample changes. */
import { afterAll, beforeAll, beforeEach, expect, it } from "vitest";
import { accuracyEstimate, isSampleDue, sampleAccuracy } from "#coordinator/place/delegation/accuracy";
import { createAccuracyStore } from "#coordinator/place/delegation/accuracy-store";
import { AnycastRanges } from "#coordinator/place/delegation/anycast";
import { DeniedTargets } from "#coordinator/place/delegation/denied-targets";
import type { RoundCause } from "#core/explanation";
import { wilsonInterval } from "#core/format";
import type { CrawlerId, SubnetId } from "#core/ids";
import { heldBackWords } from "#protocol/messages";
import { type Answer, type FlowWorld, newFlowWorld, TableFleet } from "../support/flow-world.ts";
import { eachMs, noon, roundOf } from "../support/store-world.ts";

/** From Newcombe 1998, "Two-sided confidence intervals for the single proportion", table I, method 3; and the edges. */
it.each([
  [81, 263, 0.2553, 0.3662],
  [15, 148, 0.0624, 0.1605],
  [0, 20, 0, 0.1611],
  [1, 29, 0.0061, 0.1718],
  [0, 0, 0, 1],
  [5, 5, 0.5655, 1],
])("the Wilson interval of %i in %i is as published", (hits, samples, low, high) => {
  const interval = wilsonInterval(hits, samples);

  expect([interval.low, interval.high].map((bound) => Number(bound.toFixed(4)))).toEqual([low, high]);
});

it("an estimate without samples has no share", () => {
  const [none, some] = [
    accuracyEstimate({ samples: 0, nearlyBest: 0 }),
    accuracyEstimate({ samples: 20, nearlyBest: 19 }),
  ];

  expect(none).toMatchObject({ share: null, low: 0, high: 1 });
  expect(some).toMatchObject({ share: 0.95, withinMs: 5, days: 30 });
});

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

async function sampling(
  answers: readonly (readonly [CrawlerId, Answer])[],
  online = [athens, berlin, tokyo],
) {
  const fleet = new TableFleet(online, { "5.1.1.7": new Map(answers) });
  const requested: [readonly SubnetId[], RoundCause][] = [];
  const clock = { ms: noon.getTime() };
  const accuracy = createAccuracyStore(world.pool);
  const ports = {
    ...{ state: await world.state(), fleet, delegations: world.delegations, accuracy },
    ...{ denied: new DeniedTargets(), anycast: new AnycastRanges(), random: () => 0.5 },
    withoutRoom: () => new Set<CrawlerId>(),
    request: (subnetIds: readonly SubnetId[], cause: RoundCause) => void requested.push([subnetIds, cause]),
    now: () => new Date(clock.ms),
  };
  const probe = { method: "connect", tries: 3, deadlineMs: 100 } as const;
  const take = async () => await sampleAccuracy(ports, { probe, allowSpecialPurpose: false });
  const counts = async () => Object.values(await accuracy.counts(new Date(0)));
  return { ports, fleet, requested, accuracy, counts, clock, take };
}

it("lets everybody measure one subnet of the fleet, stores the result, and changes no delegation", async () => {
  const { take, fleet, counts, requested, ports } = await sampling(eachMs([athens, 14], [berlin, 11]));

  expect(await take()).toMatchObject({
    ...{ subnetId, targetAddress: "5.1.1.7", method: "connect", ownerId: athens, ownerRttMs: 14 },
    ...{ bestId: berlin, bestRttMs: 11, asked: 3, answered: 2 },
  });
  expect(fleet.asked.map(({ crawlerId }) => crawlerId).sort()).toEqual([athens, berlin, tokyo].sort());
  expect([await counts(), requested]).toEqual([[1, 1], []]);
  expect(ports.state.delegationOf(subnetId)).toMatchObject({ crawlerId: athens, rttMs: 12 });
});

it("counts an owner that is far off, and requests a round of its subnet", async () => {
  const { take, requested, counts, accuracy } = await sampling(eachMs([athens, 31.5], [berlin, 11]));

  await take();

  expect([requested, await counts()]).toEqual([[[[subnetId], "sampled"]], [1, 0]]);
  expect(await accuracy.list({ after: new Date(0), most: 10, farOnly: true })).toMatchObject([
    { range: "5.1.1.0/24", owner: "athens", ownerRttMs: 31.5, best: "berlin", bestRttMs: 11 },
  ]);
});

const heldBack = { type: "failed", method: "connect", reason: "no turn in time" } as const;
it.each<[string, () => (readonly [CrawlerId, Answer])[], object | null, number[]]>([
  ["the owner alone did not answer: far off", () => [[berlin, 11]], { ownerRttMs: null }, [1, 0]],
  ["nobody answered: not counted", () => [], { bestId: null, answered: 0 }, [0, 0]],
  [
    "the owner's limits held it back: nothing",
    () => [
      [athens, { ...heldBack, code: "held-back" }],
      [berlin, 11],
    ],
    null,
    [0, 0],
  ],
  [
    "the owner's limits held it back, as crawlers of version 0.2.0 word it: nothing",
    () => [
      [athens, { ...heldBack, reason: `${heldBackWords}: no turn in time` }],
      [berlin, 11],
    ],
    null,
    [0, 0],
  ],
  [
    "the owner's machine was busy: nothing",
    () => [
      [athens, { type: "measured", method: "connect", rttMs: 300, tries: 3, lateMs: 290 }],
      [berlin, 11],
    ],
    null,
    [0, 0],
  ],
])("says when %s", async (_, answers, sample, expected) => {
  const { take, counts, requested } = await sampling(answers());

  const taken = await take();

  if (sample === null) expect(taken).toBeNull();
  else expect(taken).toMatchObject(sample);
  expect([await counts(), requested]).toEqual([expected, []]);
});

it("samples an address once a month, and at one pace for all coordinators, also after a restart", async () => {
  const { take, ports, fleet, clock } = await sampling([]);
  const isDue = async (subnetsPerHour: number) => await isSampleDue(ports, subnetsPerHour);
  expect([await isDue(4), await isDue(0)]).toEqual([true, false]);
  await take();

  clock.ms += 15 * 60_000 - 1;
  expect(await isDue(4)).toBe(false);
  clock.ms += 1;
  expect(await isDue(4)).toBe(true);
  clock.ms += 29 * 86_400_000;
  expect(await take()).toBeNull();
  expect(fleet.asked).toHaveLength(3);
  clock.ms += 2 * 86_400_000;
  expect(await take()).not.toBeNull();
});

it("does not ask crawlers that are full or whose partner denies the target", async () => {
  const { take, ports, fleet } = await sampling([[athens, 12]]);
  ports.denied.setList(berlin, { networks: ["5.1.0.0/16"], domains: [] });
  ports.withoutRoom = () => new Set([tokyo]);

  expect(await take()).toMatchObject({ asked: 1 });
  expect(fleet.asked.map(({ crawlerId }) => crawlerId)).toEqual([athens]);
});

it("measures nothing that rounds may not probe, that its owner cannot, or that is anycast", async () => {
  const offline = await sampling([[athens, 12]], [berlin, tokyo]);
  const anycast = await sampling([[athens, 12]]);
  anycast.ports.anycast.restore([subnetId], (id) => anycast.ports.state.placementOf(id));
  const denied = await sampling([[athens, 12]]);
  denied.ports.denied.setList(athens, { networks: [], domains: ["example"] });

  for (const { take, fleet } of [offline, anycast, denied])
    expect([await take(), fleet.asked]).toEqual([null, []]);
  await world.pool.query("update frontier_host set opt_out_id = 1");
  expect(await (await sampling([[athens, 12]])).take()).toBeNull();
});

/** Leaves that measure apart: suspected by fetches, probed, split, and joined again. */
import { beforeEach, describe, expect, it } from "vitest";
import { reviewFiner } from "#coordinator/place/delegation/overrides/review";
import { LeafWatch, splitLeaves } from "#coordinator/place/delegation/overrides/split-leaves";
import type { CrawlerId, SubnetId } from "#core/ids";
import { type Answer, flowWorld, TableFleet } from "../../support/flow-world.ts";
import { eachMs } from "../../support/store-world.ts";
import { fetchesBy, finerWorld } from "./override-world.ts";

const world = flowWorld();
let leaves: Awaited<ReturnType<typeof finerWorld>>;
let watch: LeafWatch;
let owner: CrawlerId;
let near: CrawlerId;
let leaf: SubnetId;

beforeEach(async () => {
  leaves = await finerWorld(world);
  watch = new LeafWatch();
  owner = await world.arrived("owner");
  near = await world.arrived("near");
  leaf = await leaves.host("low.example", "5.1.1.7");
  await leaves.host("high.example", "5.1.1.200");
  await leaves.delegated(leaf, owner, 20);
});

const table = (answers: Record<string, readonly [owner: Answer, near: Answer]>) =>
  new TableFleet(
    [owner, near],
    Object.fromEntries(
      Object.entries(answers).map(([address, [ofOwner, ofNear]]) => [
        address,
        new Map([owner, near].map((crawlerId, at) => [crawlerId, at === 0 ? ofOwner : ofNear])),
      ]),
    ),
  );

/** Three fetches of each host by its owner. */
const fetchedBy = async (crawlerId: CrawlerId, ...times: Parameters<typeof fetchesBy>[1][]) => {
  const state = await world.state();
  for (let again = 0; again < 3; again++)
    watch.note(fetchesBy(crawlerId, ...times), (address) => state.subnetOf(address));
};
const fetched = async (...times: Parameters<typeof fetchesBy>[1][]) => await fetchedBy(owner, ...times);

const pass = async (fleet: TableFleet) =>
  await splitLeaves({ ...(await leaves.ports(fleet)), leaves: watch });
const parts = async () =>
  (await leaves.finer.partsOf(leaf)).map(({ place, crawlerId }) =>
    place.type === "part" ? [place.first, place.last, crawlerId] : [],
  );
const apart = [
  ["low.example", "5.1.1.7", 21],
  ["high.example", "5.1.1.200", 95],
] as const;

describe("a leaf whose addresses measure apart", () => {
  it("is split where another crawler is nearer, and the part's hosts go to that one", async () => {
    await fetched(...apart);
    const fleet = table({ "5.1.1.200": [94, 12] });

    expect(await pass(fleet)).toEqual([leaf]);
    expect(await parts()).toEqual([["5.1.1.128", "5.1.1.255", near]]);
    expect(await leaves.leased(near)).toEqual(["high.example"]);
    expect(await leaves.leased(owner)).toEqual(["low.example"]);
    // The subnet's crawler is asked first, whatever the policy would do.
    expect(fleet.asked.map(({ crawlerId }) => crawlerId)).toEqual([owner, near]);
    expect(leaves.rounds).toMatchObject([
      { withinSubnetId: leaf, cause: "measures-apart", targetAddress: "5.1.1.200", crawlerId: near },
    ]);
  });

  it("stays whole when nobody is nearer by more than 5 ms", async () => {
    await fetched(...apart);

    expect(await pass(table({ "5.1.1.200": [94, 89.5] }))).toEqual([]);
    expect(await parts()).toEqual([]);
    expect(await leaves.leased(owner)).toEqual(["high.example", "low.example"]);
  });

  it("stays whole when the subnet's crawler does not answer, because nothing can be compared", async () => {
    await fetched(...apart);
    const silent = { type: "timed-out", method: "connect", reason: "3000 ms" } as const;

    expect(await pass(table({ "5.1.1.200": [silent, 12] }))).toEqual([]);
  });

  it("is left alone for an hour after it was probed, whatever it measures", async () => {
    await fetched(...apart);
    await pass(table({ "5.1.1.200": [94, 94] }));
    const fleet = table({ "5.1.1.200": [94, 12] });

    await fetched(...apart);
    const atOnce = await pass(fleet);
    leaves.clock.seconds = 3601;
    await fetched(...apart);
    const later = await pass(fleet);

    expect([atOnce, later]).toEqual([[], [leaf]]);
  });

  it("includes addresses that measure like a probed one, and probes four at most", async () => {
    const others = Array.from({ length: 8 }, (_, index) => `5.1.1.${220 + index}`);
    for (const [index, address] of others.entries()) await leaves.host(`h${index}.example`, address);
    await fetched(...apart, ...others.map((address, index) => [`h${index}.example`, address, 96] as const));
    const fleet = table(Object.fromEntries(["5.1.1.200", ...others].map((one) => [one, [94, 12]])));

    await pass(fleet);

    expect(await parts()).toEqual([["5.1.1.128", "5.1.1.255", near]]);
    expect(new Set(fleet.asked.map(({ address }) => address)).size).toBe(4);
  });
});

describe("what raises no suspicion", () => {
  it.each([
    [
      "a leaf in one place",
      async () => await fetched(["low.example", "5.1.1.7", 21], ["high.example", "5.1.1.200", 27]),
    ],
    [
      "a leaf that turned slow as a whole, which is left to recalibration",
      async () => await fetched(["low.example", "5.1.1.7", 90], ["high.example", "5.1.1.200", 95]),
    ],
    ["what a crawler measures that does not own the leaf", async () => await fetchedBy(near, ...apart)],
    [
      "an unmeasured leaf, such as anycast",
      async () => {
        await world.pool.query("update delegation set measured = false");
        await fetched(...apart);
      },
    ],
  ])("is %s", async (_, happens) => {
    await happens();
    const fleet = table({ "5.1.1.200": [94, 12] });

    expect(await pass(fleet)).toEqual([]);
    expect(fleet.asked).toEqual([]);
  });

  it("is anything under the policy random", async () => {
    await fetched(...apart);
    const ports = await leaves.ports(table({ "5.1.1.200": [94, 12] }));

    const settings = { ...ports.settings, policy: "random" as const };
    expect(await splitLeaves({ ...ports, settings, leaves: watch })).toEqual([]);
  });
});

describe("a part", () => {
  beforeEach(async () => {
    await fetched(...apart);
    await pass(table({ "5.1.1.200": [94, 12] }));
  });

  it("is made smaller when an address in it measures apart", async () => {
    await leaves.host("odd.example", "5.1.1.130");
    await fetchedBy(
      near,
      ["high.example", "5.1.1.200", 12],
      ["more.example", "5.1.1.201", 12],
      ["odd.example", "5.1.1.130", 90],
    );
    leaves.clock.seconds = 3601;

    await pass(table({ "5.1.1.130": [21, 90] }));

    expect(await parts()).toEqual([["5.1.1.192", "5.1.1.255", near]]);
    expect(await leaves.leased(owner)).toEqual(["low.example", "odd.example"]);
  });

  const review = async (fleet: TableFleet, afterSeconds = 6 * 3600) => {
    leaves.clock.seconds = afterSeconds;
    const ports = await leaves.ports(fleet);
    const resolver = { resolve: async () => ({ failed: "not asked" }) };
    return await reviewFiner({ ...ports, resolver });
  };

  it("is reviewed after six hours, and kept while it still measures apart", async () => {
    const fleet = table({ "5.1.1.200": [94, 12] });

    expect(await review(fleet, 6 * 3600 - 1)).toEqual({ reviewed: 0, ended: 0 });
    expect(await review(fleet)).toEqual({ reviewed: 1, ended: 0 });
    expect(await review(fleet)).toEqual({ reviewed: 0, ended: 0 });
    expect(await parts()).toHaveLength(1);
  });

  it("is joined again when the subnet's crawler is as near", async () => {
    expect(await review(table({ "5.1.1.200": [13, 12] }))).toEqual({ reviewed: 1, ended: 1 });
    expect(await parts()).toEqual([]);
    expect(await leaves.leased(owner)).toEqual(["high.example", "low.example"]);
  });

  it("is not joined for a gain between 2.5 and 5 ms, which avoids flapping", async () => {
    expect(await review(table({ "5.1.1.200": [16, 12] }))).toEqual({ reviewed: 1, ended: 0 });
  });

  it("is joined again without a probe when its crawler has the whole subnet", async () => {
    await leaves.delegated(leaf, near, 12);
    const fleet = table({});

    expect(await review(fleet)).toEqual({ reviewed: 1, ended: 1 });
    expect(fleet.asked).toEqual([]);
  });

  it("goes to a crawler that has become nearer", async () => {
    const third = await world.arrived("third");
    const nearer = new TableFleet([owner, near, third], {
      "5.1.1.200": new Map(eachMs([owner, 94], [near, 40], [third, 8])),
    });

    await review(nearer);

    expect(await parts()).toEqual([["5.1.1.128", "5.1.1.255", third]]);
  });

  it("is kept for an hour when nobody answers", async () => {
    const fleet = table({});

    await review(fleet);

    expect(await parts()).toEqual([["5.1.1.128", "5.1.1.255", near]]);
    expect(await review(fleet, 7 * 3600 - 1)).toMatchObject({ reviewed: 0 });
    expect(await review(fleet, 7 * 3600)).toMatchObject({ reviewed: 1 });
  });
});

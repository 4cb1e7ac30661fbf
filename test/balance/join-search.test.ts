/** Which subnets are worth a probe by a crawler that joined, and what the search finds on measured matrices. */
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import {
  NewcomerFindings,
  type PossibleGain,
  UnmeasuredSearch,
} from "#coordinator/place/balance/newcomer-search";
import type { Placement } from "#coordinator/place/delegation/placement";
import { CoordinatorState } from "#coordinator/place/delegation/state";
import { buildSubnetTree } from "#coordinator/place/subnets/subnet-tree";
import type { CrawlerId, SubnetId } from "#core/ids";
import { parseRange } from "#core/ip/range";
import { worldInstance } from "#ops/world/compare";
import { generateWorld } from "#ops/world/generate-world";
import { type JoinFigures, joinAgain } from "../delegation/joining-crawler-world.ts";
import { parseFixture } from "../lab/simulate/measured.ts";
import { sharedData } from "../support/shared-data.ts";

const place = (subnetKey: number, holderKey: string | null = null, country = "GR"): Placement => ({
  subnetKey,
  holderKey,
  ancestorKeys: [],
  country,
  slash8Key: 5,
});

/** 60 ms from its owner, which is as far from the newcomer: they may well stand side by side. */
const gain = (differences: Partial<PossibleGain> = {}): PossibleGain => ({
  placement: place(2),
  ownerRttMs: 60,
  measured: [{ rttMs: 60, peerRttMs: 60 }],
  ...differences,
});

describe("what a subnet promises a newcomer", () => {
  const findings = () => new NewcomerFindings(place(1, "own holder"));

  it("is nothing when the triangle leaves no room for the margin", () => {
    expect(findings().promiseMs(gain({ ownerRttMs: 5, measured: [{ rttMs: 5, peerRttMs: 5 }] }))).toBe(0);
    // 60 % of |90 − 10| is 48 ms at least, against 52 at its owner.
    const farFromOther = [
      { rttMs: 52, peerRttMs: 52 },
      { rttMs: 90, peerRttMs: 10 },
    ];
    expect(findings().promiseMs(gain({ ownerRttMs: 52, measured: farFromOther }))).toBe(0);
  });

  it("grows with the triangle's fit, the possible saving, and nearness to its own subnet", () => {
    const promised = (differences: Partial<PossibleGain> = {}) => findings().promiseMs(gain(differences));
    const fitsLess = promised({ measured: [{ rttMs: 60, peerRttMs: 90 }] });
    const larger = promised({ ownerRttMs: 120, measured: [{ rttMs: 120, peerRttMs: 120 }] });
    const abroad = promised({ placement: place(2, "other", "JP") });
    const sameCountry = promised({ placement: place(2, "other") });
    const sameHolder = promised({ placement: place(2, "own holder") });

    expect(promised()).toBeGreaterThan(fitsLess);
    expect(larger).toBeGreaterThan(promised());
    expect(promised()).toBeLessThan(30);
    expect(sameCountry).toBeGreaterThan(abroad);
    expect(sameHolder).toBeGreaterThan(sameCountry);
  });

  it("rises with each success in the neighbourhood and falls with each failure", () => {
    const known = findings();
    const before = known.promiseMs(gain());
    for (let subnet = 10; subnet < 15; subnet += 1) known.note(place(subnet), false);
    const disappointed = known.promiseMs(gain());
    for (let subnet = 20; subnet < 40; subnet += 1) known.note(place(subnet), true);

    expect(disappointed).toBeLessThan(before);
    expect(known.promiseMs(gain())).toBeGreaterThan(disappointed);
  });

  it("is something even when distances and the place are unknown", () => {
    const unknown = new NewcomerFindings(null).promiseMs(
      gain({ measured: [{ rttMs: 60, peerRttMs: null }] }),
    );

    expect(unknown).toBeGreaterThan(0);
    expect(unknown).toBeLessThan(findings().promiseMs(gain()));
  });
});

describe("a fleet with 30,000 unmeasured subnets", () => {
  const [old, newcomer] = [1, 2] as CrawlerId[] as [CrawlerId, CrawlerId];
  const subnetIds = Array.from({ length: 30_000 }, (_, at) => (at + 1) as SubnetId);
  /** One of four is in Japan, where the newcomer is. */
  const countryOf = (subnetId: SubnetId) => (subnetId % 4 === 0 ? "JP" : "NL");
  const pagesOf = (subnetId: SubnetId) => (subnetId * 7919) % 1009;
  const subnets = subnetIds.map((subnetId) => ({ subnetId, pagesPerDay: pagesOf(subnetId) }));
  const rounds = {
    asked: [] as SubnetId[],
    underWay: new Set<SubnetId>(),
    request: (asked: readonly SubnetId[]) => {
      for (const subnetId of asked) rounds.underWay.add(subnetId);
      rounds.asked.push(...asked);
    },
    isUnderWay: (subnetId: SubnetId) => rounds.underWay.has(subnetId),
  };

  function search() {
    rounds.asked.length = 0;
    const state = new CoordinatorState();
    const none = { parentId: null, holderId: null, registry: "apnic", name: "" } as const;
    const ranges = subnetIds.map((id) => ({
      ...none,
      ...{ id, country: countryOf(id), range: rangeOf(id) },
    }));
    state.setTree(buildSubnetTree(ranges), 1);
    const unmeasured = { measured: false, rttMs: null, runnerUpId: null, runnerUpRttMs: null };
    for (const subnetId of subnetIds) state.setDelegation({ subnetId, crawlerId: old, ...unmeasured });
    const findings = new NewcomerFindings(place(0, null, "JP"));
    const fleet = { online: () => [old, newcomer] };
    return { state, found: new UnmeasuredSearch(newcomer, findings, { state, fleet, rounds }) };
  }

  /** The rounds under way end: each with whoever is near. */
  function decide(state: CoordinatorState, winnerOf: (subnetId: SubnetId) => CrawlerId): void {
    for (const subnetId of rounds.underWay) {
      const won = { crawlerId: winnerOf(subnetId), measured: true, rttMs: 1 };
      state.setDelegation({ ...state.delegationOf(subnetId)!, ...won });
    }
    rounds.underWay.clear();
  }

  it("asks about sixty at once, first in the newcomer's country those fetched most", async () => {
    const { state, found } = search();

    await found.step(subnets, { rounds: 60, room: Number.POSITIVE_INFINITY });
    expect(rounds.underWay.size).toBe(60);
    await found.step(subnets, { rounds: 60, room: Number.POSITIVE_INFINITY });
    expect(rounds.underWay.size).toBe(60);
    decide(state, (subnetId) => (countryOf(subnetId) === "JP" ? newcomer : old));
    await found.step(subnets, { rounds: 60, room: Number.POSITIVE_INFINITY });

    expect(rounds.asked).toHaveLength(120);
    expect(new Set(rounds.asked.map(countryOf))).toEqual(new Set(["JP"]));
    const inJapan = subnetIds.filter((subnetId) => countryOf(subnetId) === "JP").map(pagesOf);
    const most = inJapan.sort((a, b) => b - a)[119]!;
    expect(Math.min(...rounds.asked.map(pagesOf))).toBe(most);
    expect(found.figures).toEqual({ asked: 120, gained: 60 });
    decide(state, () => old);
  });

  it("ends when the newcomer is near to almost nothing, and leaves the rest for later", async () => {
    const { state, found } = search();

    while (await found.step(subnets, { rounds: 10, room: 1e9 })) decide(state, () => old);

    expect(rounds.asked.length).toBeLessThanOrEqual(50);
    expect(state.subnetCountOf(newcomer)).toBe(0);
  });
});

/** 20.0.0.0, 20.0.1.0, … */
const rangeOf = (number: number) =>
  parseRange(`${20 + (number >> 16)}.${(number >> 8) & 255}.${number & 255}.0/24`)!;

/** As the coordinator searches (balance/join.ts). */
const settings = { batch: 10, leastYield: 0.05, window: 40, leastPromiseMs: 0.5, mostShare: 0.5 };

function together(figures: readonly JoinFigures[]) {
  const sum = (of: (one: JoinFigures) => number) => figures.reduce((total, one) => total + of(one), 0);
  return {
    gotBack: sum((one) => one.gotBack) / sum((one) => one.itsOwn),
    probesPerOwn: sum((one) => one.probes) / sum((one) => one.itsOwn),
    probesPerLeaf: sum((one) => one.probes) / sum((one) => one.leaves),
  };
}

describe("a crawler that is removed and joins again", () => {
  it.each([
    ["PL12.json", 1, { gotBack: 0.9, probesPerOwn: 3, probesPerLeaf: 0.2 }],
    ["PL50.json", 3, { gotBack: 0.8, probesPerOwn: 6, probesPerLeaf: 0.09 }],
  ])(
    "of %s, each (or each third) in turn, gets most of what is its own back at a few probes",
    (name, every, bounds) => {
      const file = sharedData(`latency/${name}`);
      if (file === null) return;
      const instance = parseFixture(readFileSync(file, "utf8"), file);

      const each = instance.crawlers.map((_, crawler) => crawler).filter((crawler) => crawler % every === 0);
      const found = together(each.map((crawler) => joinAgain(instance, crawler, settings)));

      expect(found.gotBack).toBeGreaterThan(bounds.gotBack);
      expect(found.probesPerOwn).toBeLessThan(bounds.probesPerOwn);
      expect(found.probesPerLeaf).toBeLessThan(bounds.probesPerLeaf);
    },
  );

  it("of a generated world gets most of its own back, too", () => {
    const { targets, ...fleet } = worldInstance(generateWorld({ seed: 1, sites: 600, crawlers: 12 }));
    const instance = { ...fleet, targets: targets.map((target) => ({ ...target, rtt: target.rtt })) };

    const found = together(instance.crawlers.map((_, crawler) => joinAgain(instance, crawler, settings)));

    expect(found.gotBack).toBeGreaterThan(0.7);
    expect(found.probesPerLeaf).toBeLessThan(0.3);
  });
});

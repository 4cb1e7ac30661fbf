/** Which subnets are worth a probe of a crawler that joined, and what that finds on measured matrices. */
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { NewcomerFindings, type PossibleGain } from "#coordinator/balance/join-search";
import type { Placement } from "#coordinator/delegation/placement";
import { instanceOf } from "#ops/world/compare";
import { generateWorld } from "#ops/world/generate-world";
import { checkFixture } from "#ops/world/read-fixture";
import { type JoinFigures, joinAgain } from "../delegation/joining-crawler-world.ts";
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

  it("is nothing where the triangle leaves no room for the margin", () => {
    expect(findings().promiseMs(gain({ ownerRttMs: 5, measured: [{ rttMs: 5, peerRttMs: 5 }] }))).toBe(0);
    // 60 % of |90 − 10| is 48 ms at least, against 52 at its owner.
    const farFromOther = [
      { rttMs: 52, peerRttMs: 52 },
      { rttMs: 90, peerRttMs: 10 },
    ];
    expect(findings().promiseMs(gain({ ownerRttMs: 52, measured: farFromOther }))).toBe(0);
  });

  it("is more the better the triangle fits, and the more there is to save", () => {
    const fits = findings().promiseMs(gain());
    const fitsLess = findings().promiseMs(gain({ measured: [{ rttMs: 60, peerRttMs: 90 }] }));
    const larger = findings().promiseMs(
      gain({ ownerRttMs: 120, measured: [{ rttMs: 120, peerRttMs: 120 }] }),
    );

    expect(fits).toBeGreaterThan(fitsLess);
    expect(larger).toBeGreaterThan(fits);
    expect(fits).toBeLessThan(30);
  });

  it("is more with the holder, or in the country, of its own subnet", () => {
    const abroad = findings().promiseMs(gain({ placement: place(2, "other", "JP") }));
    const sameCountry = findings().promiseMs(gain({ placement: place(2, "other") }));
    const sameHolder = findings().promiseMs(gain({ placement: place(2, "own holder") }));

    expect(sameCountry).toBeGreaterThan(abroad);
    expect(sameHolder).toBeGreaterThan(sameCountry);
  });

  it("rises with each find in the neighbourhood and falls with each disappointment", () => {
    const known = findings();
    const before = known.promiseMs(gain());
    for (let subnet = 10; subnet < 15; subnet += 1) known.note(place(subnet), false);
    const disappointed = known.promiseMs(gain());
    for (let subnet = 20; subnet < 40; subnet += 1) known.note(place(subnet), true);

    expect(disappointed).toBeLessThan(before);
    expect(known.promiseMs(gain())).toBeGreaterThan(disappointed);
  });

  it("is something even where the crawlers have not measured each other and nothing is known of the place", () => {
    const unknown = new NewcomerFindings(null).promiseMs(
      gain({ measured: [{ rttMs: 60, peerRttMs: null }] }),
    );

    expect(unknown).toBeGreaterThan(0);
    expect(unknown).toBeLessThan(findings().promiseMs(gain()));
  });
});

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

describe("a crawler that was taken out, and joins again", () => {
  it.each([
    ["PL12.json", 1, { gotBack: 0.9, probesPerOwn: 3, probesPerLeaf: 0.2 }],
    ["PL50.json", 3, { gotBack: 0.8, probesPerOwn: 6, probesPerLeaf: 0.09 }],
  ])(
    "of %s, each (or each third) in turn, gets most of what is its own back at a few probes",
    (name, every, bounds) => {
      const file = sharedData(`latency/${name}`);
      if (file === null) return;
      const instance = checkFixture(JSON.parse(readFileSync(file, "utf8")), file);

      const each = instance.crawlers.map((_, crawler) => crawler).filter((crawler) => crawler % every === 0);
      const found = together(each.map((crawler) => joinAgain(instance, crawler, settings)));

      expect(found.gotBack).toBeGreaterThan(bounds.gotBack);
      expect(found.probesPerOwn).toBeLessThan(bounds.probesPerOwn);
      expect(found.probesPerLeaf).toBeLessThan(bounds.probesPerLeaf);
    },
  );

  it("of a generated world does so too", () => {
    const instance = instanceOf(generateWorld({ seed: 1, sites: 600, crawlers: 12 }));

    const found = together(instance.crawlers.map((_, crawler) => joinAgain(instance, crawler, settings)));

    expect(found.gotBack).toBeGreaterThan(0.7);
    expect(found.probesPerLeaf).toBeLessThan(0.3);
  });
});

import { describe, expect, it } from "vitest";
import { candidateFleet } from "#coordinator/place/delegation/fleet";
import { DelegationKnowledge, priorOf } from "#coordinator/place/delegation/knowledge";
import { id, peerTable, placement } from "./rounds.ts";

const fleetOf = (...candidates: number[]) => candidateFleet(candidates.map(id), peerTable([]));
const target = placement({ subnetKey: "t", holderKey: "h", ancestorKeys: ["p"], country: "GR" });

describe("the prior", () => {
  it("gives a key the weight s/(s+1) and leaves the rest to the next", () => {
    const knowledge = new DelegationKnowledge();
    // The holder: crawler 1 twice. The same country: crawler 2 once. All of them count at the root.
    knowledge.record(placement({ subnetKey: "a", holderKey: "h", slash8Key: "1" }), id(1));
    knowledge.record(placement({ subnetKey: "b", holderKey: "h", slash8Key: "2" }), id(1));
    knowledge.record(placement({ subnetKey: "c", country: "GR", slash8Key: "3" }), id(2));

    const { shares, unfamiliarity } = priorOf(target, fleetOf(1, 2), knowledge);

    // holder 2/3 to 1; of the rest 1/3, country half to 2; of the rest 1/6, root 3/4 as 2 to 1.
    expect(shares[0]).toBeCloseTo(2 / 3 + (1 / 6) * (2 / 4), 12);
    expect(shares[1]).toBeCloseTo(1 / 6 + (1 / 6) * (1 / 4), 12);
    expect(unfamiliarity).toBeCloseTo(1 / 3, 12);
  });

  it("counts candidates only", () => {
    const knowledge = new DelegationKnowledge();
    for (const crawler of [3, 3, 3, 1]) {
      knowledge.record(placement({ subnetKey: crawler, holderKey: "h" }), id(crawler));
    }

    const { shares, unfamiliarity } = priorOf(target, fleetOf(1, 2), knowledge);

    expect(unfamiliarity).toBe(1 / 2);
    expect(shares[0]).toBeGreaterThan(0.8);
    expect(shares[1]).toBe(0);
  });

  it("takes the next less specific subnet as a measure of familiarity where no holder is registered", () => {
    const knowledge = new DelegationKnowledge();
    knowledge.record(placement({ subnetKey: "a", ancestorKeys: ["p"] }), id(1));
    const holderless = { ...target, holderKey: null };

    expect(priorOf(holderless, fleetOf(1, 2), knowledge).unfamiliarity).toBe(1 / 2);
    expect(priorOf({ ...holderless, ancestorKeys: [] }, fleetOf(1, 2), knowledge).unfamiliarity).toBe(1);
  });

  it("knows nothing before anything was delegated", () => {
    const { shares, unfamiliarity } = priorOf(target, fleetOf(1, 2), new DelegationKnowledge());

    expect([...shares]).toEqual([0, 0]);
    expect(unfamiliarity).toBe(1);
  });
});

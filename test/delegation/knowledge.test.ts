/** What past delegations say: counts by key, against plain maps, and the prior that follows from them. */
import { describe, expect, it } from "vitest";
import { type CandidateFleet, candidateFleet } from "#coordinator/place/delegation/fleet";
import {
  backOffLevels,
  DelegationKnowledge,
  type Level,
  OwnerCounts,
  OwnerLists,
  priorOf,
} from "#coordinator/place/delegation/knowledge";
import type { Placement } from "#coordinator/place/delegation/placement";
import { seededRandom } from "#core/random";
import { id, peerTable, placement } from "./rounds.ts";

const root: Level = { kind: "root", key: 0 };
const fleetOf = (...candidates: number[]) => candidateFleet(candidates.map(id), peerTable([]));
const recorded = (...records: (readonly [Partial<Placement>, number])[]) => {
  const knowledge = new DelegationKnowledge();
  for (const [where, crawler] of records) knowledge.record(placement(where), id(crawler));
  return knowledge;
};
const leafA = { subnetKey: "a", holderKey: "acme", ancestorKeys: ["p"], country: "GR" };
const leafB = { ...leafA, subnetKey: "b" };

describe("delegation knowledge", () => {
  it("distinguishes a subnet's own crawler from its children's and from those of all within it", () => {
    const wide = { subnetKey: "p", widerKeys: ["w", "v"] };
    const knowledge = recorded(
      [{ subnetKey: "leaf", ancestorKeys: ["p"], widerKeys: ["w", "v"] }, 1],
      [wide, 2],
      [{ subnetKey: "w", widerKeys: ["v"] }, 3],
    );
    const owners = (kind: Level["kind"], key: string) =>
      knowledge.owners({ kind, key }).map(({ crawlerId }) => crawlerId);
    const of = (kind: Level["kind"]) => ["leaf", "p", "w", "v"].map((key) => owners(kind, key).join());

    expect(of("own")).toEqual(["1", "2", "3", ""]);
    expect(of("children")).toEqual(["", "1", "2", "3"]);
    expect(of("subnet")).toEqual(["1", "1,2", "1,2,3", "1,2,3"]);
    knowledge.forget(placement(wide), id(2));
    expect([owners("own", "p"), owners("children", "w"), owners("subnet", "v")]).toEqual([[], [], [1, 3]]);
  });

  it("ignores what was never recorded", () => {
    const knowledge = recorded([leafA, 1]);

    knowledge.forget(placement(leafA), id(2));
    knowledge.forget(placement(leafB), id(3));

    expect(knowledge.owners(root)).toEqual([{ crawlerId: 1, count: 1 }]);
  });

  it("keeps counting beyond the largest packed count and slot", () => {
    const knowledge = new DelegationKnowledge();
    for (let crawler = 1; crawler <= 4097; crawler++)
      knowledge.record(placement({ subnetKey: crawler }), id(crawler));
    for (let times = 0; times < 2 ** 19; times++) knowledge.record(placement(leafA), id(1));

    expect(knowledge.owners({ kind: "subnet", key: 4097 })).toEqual([{ crawlerId: 4097, count: 1 }]);
    expect(knowledge.owners({ kind: "subnet", key: "a" })).toEqual([{ crawlerId: 1, count: 2 ** 19 }]);
  });

  it.each([
    ["few crawlers that share every key", 5],
    ["many crawlers, so that lists grow and shrink", 60],
  ])("agrees with plain lists, in their order, on random records and their removal: %s", (_, crawlers) => {
    const seed = 20260305;
    const random = seededRandom(seed);
    const draw = (below: number) => Math.floor(random() * below);
    const knowledge = new DelegationKnowledge();
    const fleet = fleetOf(3, 1, 44, 999);
    const plain = new Map<string, { level: Level; owners: Map<number, number> }>();
    const held = new Map<string, number>();

    for (let times = 0; times < 20_000; times += 1) {
      const [leaf, crawler] = [draw(400), 1 + draw(crawlers)];
      const where = leafOf(leaf);
      const count = held.get(`${leaf} ${crawler}`) ?? 0;
      // Mostly removals towards the end, so that many lists become short again.
      const by = random() < (times < 12_000 ? 0.7 : 0.1) ? 1 : count > 0 ? -1 : 0;
      if (by !== 0) knowledge[by > 0 ? "record" : "forget"](where, id(crawler));
      held.set(`${leaf} ${crawler}`, count + by);
      for (const level of by === 0 ? [] : backOffLevels(where)) {
        const name = `${level.kind} ${level.key}`;
        const { owners } = plain.get(name) ?? { owners: new Map<number, number>() };
        plain.set(name, { level, owners });
        const after = (owners.get(crawler) ?? 0) + by;
        if (after === 0) owners.delete(crawler);
        else owners.set(crawler, after);
      }
      if (times % 4000 > 0) continue;
      for (const { level, owners } of plain.values()) {
        expect(knowledge.owners(level), `seed ${seed}, ${level.kind} ${level.key}`).toEqual(
          Array.from(owners, ([owner, its]) => ({ crawlerId: id(owner), count: its })),
        );
        expectAmong(fleet, knowledge, level);
      }
    }
  });

  it("counts crawlers that came after the fleet was first used", () => {
    const knowledge = recorded([leafA, 1]);
    const fleet = fleetOf(1, 2);
    expect(knowledge.totalAmong(fleet, root)).toBe(1);

    for (const crawler of [5, 2]) knowledge.record(placement(leafB), id(crawler));

    expect([fleet, fleetOf(5)].map((of) => knowledge.totalAmong(of, root))).toEqual([2, 1]);
  });

  it("reuses the list of a key that is no longer shared", () => {
    const lists = new OwnerLists();
    const counts = new OwnerCounts(lists);
    for (let key = 0; key < 40; key += 1) {
      for (const slot of [1, 2]) counts.raise(key, slot);
      counts.lower(key, 2);
    }

    expect(lists.make(3, 1)).toBe(1);
  });
});

/** The candidates' counts are those of the owners that are candidates. */
function expectAmong(fleet: CandidateFleet, knowledge: DelegationKnowledge, level: Level): void {
  const counts = fleet.candidates.map(
    (candidate) => knowledge.owners(level).find(({ crawlerId }) => crawlerId === candidate)?.count ?? 0,
  );
  const shares = Float64Array.of(1, 2, 3, 4);

  knowledge.addAmong(fleet, level, 0.5, shares);

  expect(knowledge.totalAmong(fleet, level)).toBe(counts.reduce((sum, count) => sum + count, 0));
  expect([...shares]).toEqual(counts.map((count, index) => index + 1 + 0.5 * count));
}

/** Leaves 0 to 399 in blocks of 4 and 40; holders are numbers, names or unknown, countries known or unknown. */
function leafOf(leaf: number): Placement {
  return placement({
    subnetKey: 2 ** 31 - 1 - leaf,
    holderKey: leaf % 3 === 0 ? null : leaf % 3 === 1 ? leaf % 7 : `holder ${leaf % 5}`,
    ancestorKeys: [1000 + (leaf >> 2), 2000 + Math.trunc(leaf / 40)],
    country: leaf % 4 === 0 ? null : ["CY", "GR", "US"][leaf % 3]!,
    slash8Key: leaf >> 7,
  });
}

describe("the prior", () => {
  const target = placement({ subnetKey: "t", holderKey: "h", ancestorKeys: ["p"], country: "GR" });
  const holderless = { ...target, holderKey: null };
  const ofParent = recorded([{ subnetKey: "a", ancestorKeys: ["p"] }, 1]);

  it.each<[string, DelegationKnowledge, Placement, number, readonly number[] | null]>([
    [
      "gives a key the weight s/(s+1) and leaves the rest to the next",
      recorded(
        [{ subnetKey: "a", holderKey: "h", slash8Key: "1" }, 1],
        [{ subnetKey: "b", holderKey: "h", slash8Key: "2" }, 1],
        [{ subnetKey: "c", country: "GR", slash8Key: "3" }, 2],
      ),
      target,
      1 / 3,
      // The holder's 2/3 to 1; of the rest 1/3, the country's half to 2; of the rest 1/6, the root's 3/4 as 2 to 1.
      [2 / 3 + (1 / 6) * (2 / 4), 1 / 6 + (1 / 6) * (1 / 4)],
    ],
    [
      "counts candidates only",
      recorded(...[3, 3, 3, 1].map((crawler) => [{ subnetKey: crawler, holderKey: "h" }, crawler] as const)),
      target,
      1 / 2,
      // Of the holder 1/2, of its /8 half of the rest, of the root half of that.
      [0.875, 0],
    ],
    ["measures familiarity by the parent without a holder", ofParent, holderless, 1 / 2, null],
    ["is unfamiliar without a parent", ofParent, { ...holderless, ancestorKeys: [] }, 1, null],
    ["knows nothing before anything was delegated", recorded(), target, 1, [0, 0]],
  ])("%s", (_, knowledge, where, unfamiliarity, shares) => {
    const prior = priorOf(where, fleetOf(1, 2), knowledge);

    expect(prior.unfamiliarity).toBeCloseTo(unfamiliarity, 12);
    shares?.forEach((share, index) => {
      expect(prior.shares[index]).toBeCloseTo(share, 12);
    });
  });
});

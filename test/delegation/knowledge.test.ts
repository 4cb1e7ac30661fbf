import { describe, expect, it } from "vitest";
import { type CandidateFleet, candidateFleet } from "#coordinator/place/delegation/fleet";
import {
  backOffLevels,
  type CrawlerCount,
  DelegationKnowledge,
  type Level,
  OwnerCounts,
  OwnerLists,
} from "#coordinator/place/delegation/knowledge";
import type { Placement } from "#coordinator/place/delegation/placement";
import { seededRandom } from "#core/random";
import { id, peerTable, placement } from "./rounds.ts";

const holder: Level = { kind: "holder", key: "acme" };
const root: Level = { kind: "root", key: 0 };
const leafA = placement({ subnetKey: "a", holderKey: "acme", ancestorKeys: ["p"], country: "GR" });
const leafB = placement({ subnetKey: "b", holderKey: "acme", ancestorKeys: ["p"], country: "GR" });

describe("delegation knowledge", () => {
  it("counts a delegation at the subnet, its ancestors, holder, country, /8 and the root", () => {
    const knowledge = new DelegationKnowledge();

    knowledge.record(leafA, id(7));

    const levels: Level[] = [
      { kind: "subnet", key: "a" },
      { kind: "subnet", key: "p" },
      holder,
      { kind: "country", key: "GR" },
      { kind: "slash8", key: "10/8" },
      root,
    ];
    for (const level of levels) expect(knowledge.owners(level)).toEqual([{ crawlerId: 7, count: 1 }]);
  });

  it("tells a subnet's own crawler from those of its children and of all within it", () => {
    const knowledge = new DelegationKnowledge();
    const wide = { ancestorKeys: [], widerKeys: ["w", "v"] };

    knowledge.record(placement({ subnetKey: "leaf", ancestorKeys: ["p"], widerKeys: ["w", "v"] }), id(1));
    knowledge.record(placement({ subnetKey: "p", ...wide }), id(2));
    knowledge.record(placement({ subnetKey: "w", widerKeys: ["v"] }), id(3));

    const owners = (kind: Level["kind"], key: string) =>
      knowledge.owners({ kind, key }).map(({ crawlerId }) => crawlerId);
    expect(["leaf", "p", "w", "v"].map((key) => owners("own", key))).toEqual([[1], [2], [3], []]);
    expect(["leaf", "p", "w", "v"].map((key) => owners("children", key))).toEqual([[], [1], [2], [3]]);
    expect(["leaf", "p", "w", "v"].map((key) => owners("subnet", key))).toEqual([
      [1],
      [1, 2],
      [1, 2, 3],
      [1, 2, 3],
    ]);
    knowledge.forget(placement({ subnetKey: "p", ...wide }), id(2));
    expect([owners("own", "p"), owners("children", "w"), owners("subnet", "v")]).toEqual([[], [], [1, 3]]);
  });

  it("lists the crawlers of a key in the order in which they came, with their counts", () => {
    const knowledge = new DelegationKnowledge();

    knowledge.record(leafA, id(9));
    knowledge.record(leafB, id(2));
    knowledge.record(leafA, id(9));

    expect(knowledge.owners(holder)).toEqual([
      { crawlerId: 9, count: 2 },
      { crawlerId: 2, count: 1 },
    ]);
  });

  it("forgets exactly what was recorded and leaves no trace", () => {
    const knowledge = new DelegationKnowledge();
    knowledge.record(leafA, id(1));
    knowledge.record(leafB, id(2));

    knowledge.forget(leafA, id(1));

    expect(knowledge.owners({ kind: "subnet", key: "a" })).toEqual([]);
    expect(knowledge.owners(holder)).toEqual([{ crawlerId: 2, count: 1 }]);
    knowledge.forget(leafB, id(2));
    expect(knowledge.owners(root)).toEqual([]);
  });

  it("leaves alone what was never recorded", () => {
    const knowledge = new DelegationKnowledge();
    knowledge.record(leafA, id(1));

    knowledge.forget(leafA, id(2));
    knowledge.forget(leafB, id(3));

    expect(knowledge.owners(root)).toEqual([{ crawlerId: 1, count: 1 }]);
  });

  it("keeps counting where a packed count or slot ends", () => {
    const knowledge = new DelegationKnowledge();
    for (let crawler = 1; crawler <= 4097; crawler++) {
      knowledge.record(placement({ subnetKey: crawler }), id(crawler));
    }
    for (let times = 0; times < 2 ** 19; times++) knowledge.record(leafA, id(1));

    expect(knowledge.owners({ kind: "subnet", key: 4097 })).toEqual([{ crawlerId: 4097, count: 1 }]);
    expect(knowledge.owners({ kind: "subnet", key: "a" })).toEqual([{ crawlerId: 1, count: 2 ** 19 }]);
  });

  it.each([
    ["few crawlers that share every key", 5],
    ["many crawlers, so that lists grow and shrink", 60],
  ])("agrees with plain lists, in their order, on random records and takings-back: %s", (_, crawlers) => {
    const seed = 20260305;
    const random = seededRandom(seed);
    const draw = (below: number) => Math.floor(random() * below);
    const knowledge = new DelegationKnowledge();
    const fleet = candidateFleet([3, 1, 44, 999].map(id), peerTable([]));
    const [lists, recorded] = [new PlainLists(), new Map<string, number>()];

    for (let times = 0; times < 20_000; times += 1) {
      const leaf = draw(400);
      const crawler = 1 + draw(crawlers);
      const held = recorded.get(`${leaf} ${crawler}`) ?? 0;
      // Mostly takings-back towards the end, so that many lists become short again.
      if (random() < (times < 12_000 ? 0.7 : 0.1)) {
        knowledge.record(leafOf(leaf), id(crawler));
        lists.add(leafOf(leaf), crawler, 1);
        recorded.set(`${leaf} ${crawler}`, held + 1);
      } else if (held > 0) {
        knowledge.forget(leafOf(leaf), id(crawler));
        lists.add(leafOf(leaf), crawler, -1);
        recorded.set(`${leaf} ${crawler}`, held - 1);
      }
      if (times % 4000 > 0) continue;
      for (const level of lists.levels()) {
        expect(knowledge.owners(level), `seed ${seed}, ${level.kind} ${level.key}`).toEqual(
          lists.owners(level),
        );
        expectAmong(fleet, knowledge, level);
      }
    }
  });

  it("counts crawlers that came after the fleet was first asked about", () => {
    const knowledge = new DelegationKnowledge();
    const fleet = candidateFleet([id(1), id(2)], peerTable([]));
    knowledge.record(leafA, id(1));
    expect(knowledge.totalAmong(fleet, root)).toBe(1);

    knowledge.record(leafB, id(5));
    knowledge.record(leafB, id(2));

    expect(knowledge.totalAmong(fleet, root)).toBe(2);
    expect(knowledge.totalAmong(candidateFleet([id(5)], peerTable([])), root)).toBe(1);
  });

  it("uses the list of a key that is no longer shared for another key", () => {
    const lists = new OwnerLists();
    const counts = new OwnerCounts(lists);
    for (let key = 0; key < 40; key += 1) {
      counts.raise(key, 1);
      counts.raise(key, 2);
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

/** Leaves 0 to 399 in blocks of 4 and 40, some with a holder of their own and some with one by name, or without country. */
function leafOf(leaf: number): Placement {
  return placement({
    subnetKey: 2 ** 31 - 1 - leaf,
    holderKey: leaf % 3 === 0 ? null : leaf % 3 === 1 ? leaf % 7 : `holder ${leaf % 5}`,
    ancestorKeys: [1000 + (leaf >> 2), 2000 + Math.trunc(leaf / 40)],
    country: leaf % 4 === 0 ? null : ["CY", "GR", "US"][leaf % 3]!,
    slash8Key: leaf >> 7,
  });
}

/** What the knowledge must say, in nested maps. */
class PlainLists {
  readonly #counts = new Map<string, { level: Level; owners: Map<number, number> }>();

  add(where: Placement, crawler: number, by: 1 | -1): void {
    for (const level of backOffLevels(where)) {
      const name = `${level.kind} ${level.key}`;
      const { owners } = this.#counts.get(name) ?? { owners: new Map<number, number>() };
      this.#counts.set(name, { level, owners });
      const count = (owners.get(crawler) ?? 0) + by;
      if (count === 0) owners.delete(crawler);
      else owners.set(crawler, count);
    }
  }

  levels(): Level[] {
    return [...this.#counts.values()].map(({ level }) => level);
  }

  owners({ kind, key }: Level): CrawlerCount[] {
    const { owners } = this.#counts.get(`${kind} ${key}`)!;
    return Array.from(owners, ([crawler, count]) => ({ crawlerId: id(crawler), count }));
  }
}

import { describe, expect, it } from "vitest";
import { DelegationKnowledge, type Level } from "#core/delegation/knowledge";
import { id, placement } from "./rounds.ts";

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

  it("agrees with a plain table on random records and takings-back", () => {
    const knowledge = new DelegationKnowledge();
    const table = new Map<string, number>();
    let state = 12345;
    const draw = (below: number) => {
      state = (Math.imul(state, 1103515245) + 12345) >>> 0;
      return Math.floor((state / 2 ** 32) * below);
    };

    for (let times = 0; times < 5000; times++) {
      const leaf = `s${draw(20)}`;
      const crawler = draw(5) + 1;
      const known = table.get(`${leaf} ${crawler}`) ?? 0;
      if (draw(2) === 0) {
        knowledge.record(placement({ subnetKey: leaf }), id(crawler));
        table.set(`${leaf} ${crawler}`, known + 1);
      } else if (known > 0) {
        knowledge.forget(placement({ subnetKey: leaf }), id(crawler));
        table.set(`${leaf} ${crawler}`, known - 1);
      }
    }

    for (let leaf = 0; leaf < 20; leaf++) {
      const owners = knowledge.owners({ kind: "subnet", key: `s${leaf}` });
      for (let crawler = 1; crawler <= 5; crawler++) {
        const count = owners.find((owner) => owner.crawlerId === crawler)?.count ?? 0;
        expect(count, `s${leaf} ${crawler}`).toBe(table.get(`s${leaf} ${crawler}`) ?? 0);
      }
    }
  });
});

/** Hosts by what their best new URL is worth, and by how long they are due: none waits for ever. */
import { describe, expect, it } from "vitest";
import { hostsByTurns, hostWorth, mostWorthShare, shareOf } from "#coordinator/crawl/frontier/order/mix";
import { orderStrategy, type UrlFacts, worthShareOf } from "#coordinator/crawl/frontier/order/strategies";
import { seededRandom } from "#core/random";

const url = (backLinks: number, ageSeconds: number | null = null): UrlFacts => ({
  backLinks,
  outLinks: null,
  changeRatio: null,
  pageRank: null,
  ageSeconds,
  dueSeconds: 1,
  depth: 1,
});
const host = (host_hash: string, worth: number | null = null) => ({ host_hash, worth });
const namesOf = (hosts: readonly { host_hash: string }[]) => hosts.map(({ host_hash }) => host_hash);

describe("what a host is worth", () => {
  const worth = (...urls: UrlFacts[]) => hostWorth(orderStrategy("back-links"), urls);

  it("is what its best new URL is worth, however good the old ones are", () => {
    expect(worth(url(3), url(7), url(90, 3600))).toBe(7);
  });

  it("is nothing at all where no URL is new", () => {
    expect([worth(url(90, 3600)), worth()]).toEqual([null, null]);
  });
});

describe("the turns of hosts", () => {
  const lists = {
    worthiest: [host("w1", 9), host("w2", 8), host("w3", 5), host("w4", 4)],
    longestDue: [host("d1"), host("d2"), host("w1", 9), host("d3"), host("d4")],
  };

  it("are spread: three by worth to one that has been due the longest", () => {
    expect(namesOf(hostsByTurns(lists, { wanted: 4, byWorth: 3 })).slice(0, 4)).toEqual([
      ...["w1", "w2", "w3"],
      "d1",
    ]);
  });

  it("have a host once, and its worth does not cost those their turn that wait", () => {
    const turns = hostsByTurns(lists, { wanted: 4, byWorth: 2 });

    expect(namesOf(turns)).toEqual(["w1", "d1", "w2", "d2", "d3", "d4"]);
  });

  it("tell of those that go by worth what the next is worth, which its URLs have to be", () => {
    const turns = hostsByTurns(lists, { wanted: 4, byWorth: 3 });
    const last = hostsByTurns(
      { ...lists, worthiest: lists.worthiest.slice(0, 3) },
      { wanted: 4, byWorth: 3 },
    );

    expect(turns.map(({ leastWorth: least }) => least).slice(0, 4)).toEqual([4, 4, 4, undefined]);
    expect(last[0]?.leastWorth).toBeNull();
  });

  it("fill up with those that are due where nothing is known of worth", () => {
    expect(namesOf(hostsByTurns({ ...lists, worthiest: [] }, { wanted: 4, byWorth: 3 }))).toEqual([
      ...["d1", "d2", "w1", "d3", "d4"],
    ]);
  });
});

it.each([0.5, 0.75, mostWorthShare])(
  "a worthless host comes after what has been due for longer, however much worth arrives (share %d)",
  (share) => {
    const random = seededRandom(5);
    const longer = 7;
    let waiting = [...Array.from({ length: longer }, (_, index) => `d${index}`), "poor"].map((name) =>
      host(name),
    );
    let [carry, handed] = [0, 0];

    for (let request = 0; waiting.some(({ host_hash }) => host_hash === "poor"); request++) {
      expect(request).toBeLessThan(1000);
      const wanted = 1 + Math.floor(random() * 4);
      const byWorth = shareOf(wanted, share, carry);
      carry = byWorth.carry;
      const worthiest = Array.from({ length: 10 }, (_, index) => host(`${request}-${index}`, 1e6 - index));
      const turns = namesOf(
        hostsByTurns({ worthiest, longestDue: waiting }, { wanted, byWorth: byWorth.slots }),
      );
      const taken = new Set(turns.slice(0, wanted));
      waiting = waiting.filter(({ host_hash }) => !taken.has(host_hash));
      handed += wanted;
    }

    expect(handed).toBeLessThanOrEqual(Math.ceil((longer + 1) / (1 - share)) + 4);
  },
);

it("breadth-first, and whoever says nothing of it, lets hosts take turns alone", () => {
  expect(worthShareOf({ name: "breadth-first", newShare: 0.9, worthShare: 0.75 })).toBe(0);
  expect(worthShareOf({ name: "anansi", newShare: 0.9 })).toBe(0);
  expect(worthShareOf(undefined)).toBe(0);
  expect(worthShareOf({ name: "anansi", newShare: 0.9, worthShare: 0.75 })).toBe(0.75);
});

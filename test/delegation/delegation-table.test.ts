import { describe, expect, it } from "vitest";
import type { Delegation } from "#coordinator/place/delegation/delegation";
import { DelegationTable } from "#coordinator/place/delegation/delegation-table";
import { asCrawlerId, asSubnetId } from "#core/ids";
import { seededRandom } from "#core/random";

const subnet = asSubnetId;
const crawler = asCrawlerId;

function delegation(subnetId: number, crawlerId: number, changes: Partial<Delegation> = {}): Delegation {
  return {
    subnetId: subnet(subnetId),
    crawlerId: crawler(crawlerId),
    measured: true,
    rttMs: 10,
    runnerUpId: null,
    runnerUpRttMs: null,
    ...changes,
  };
}

describe("the table of delegations", () => {
  it("gives back what it was given, with RTTs as the database's real holds them", () => {
    const table = new DelegationTable();
    const whole = { measured: false, rttMs: 0.1, runnerUpId: crawler(2 ** 31 - 1), runnerUpRttMs: 0 };

    table.set(delegation(2 ** 31 - 1, 1, whole));
    table.set(delegation(0, 2 ** 31 - 1, { rttMs: null }));

    expect(table.get(subnet(2 ** 31 - 1))).toEqual(
      delegation(2 ** 31 - 1, 1, { ...whole, rttMs: Math.fround(0.1) }),
    );
    expect(table.get(subnet(0))).toEqual(delegation(0, 2 ** 31 - 1, { rttMs: null }));
    expect([table.get(subnet(1)), table.ownerOf(subnet(1)), table.ownerOf(subnet(0))]).toEqual([
      null,
      null,
      2 ** 31 - 1,
    ]);
  });

  it("lists a crawler's subnets in the order in which they came to it", () => {
    const table = new DelegationTable();
    for (const [subnetId, crawlerId] of [
      [5, 1],
      [3, 1],
      [9, 2],
      [4, 1],
    ] as const)
      table.set(delegation(subnetId, crawlerId));

    table.set(delegation(5, 2));
    table.set(delegation(3, 1, { rttMs: 99 }));
    table.set(delegation(5, 1));

    expect(table.subnetsOf(crawler(1))).toEqual([3, 4, 5]);
    expect(table.subnetsOf(crawler(2))).toEqual([9]);
    expect(table.subnetsOf(crawler(3))).toEqual([]);
  });

  it("agrees with a plain Map on random delegations, moves and returns of crawlers", () => {
    const seed = 20260306;
    const random = seededRandom(seed);
    const [table, plain] = [new DelegationTable(), new Map<number, Delegation>()];
    const subnets = Array.from({ length: 500 }, () => Math.floor(random() * 2 ** 31));
    const perhaps = <Value>(value: Value) => (random() < 0.3 ? null : value);

    for (let times = 0; times < 20_000; times += 1) {
      // Crawlers come in waves: ids that had lost every subnet return.
      const crawlerId = 1 + Math.floor(random() * 12) + 6 * (Math.floor(times / 2500) % 3);
      const one = delegation(subnets[Math.floor(random() * subnets.length)]!, crawlerId, {
        measured: random() < 0.8,
        rttMs: perhaps(Math.fround(random() * 300)),
        runnerUpId: perhaps(crawler(1 + Math.floor(random() * 30))),
        runnerUpRttMs: perhaps(Math.fround(random() * 300)),
      });
      table.set(one);
      plain.set(one.subnetId, one);
      if (times % 1000 === 0) expectSame(table, plain, `seed ${seed}, ${times}`);
    }

    expectSame(table, plain, `seed ${seed}`);
  });
});

function expectSame(table: DelegationTable, plain: ReadonlyMap<number, Delegation>, message: string): void {
  expect([...table], message).toEqual([...plain.values()]);
  expect(table.size, message).toBe(plain.size);
  const measured: [number, number][] = [];
  table.eachMeasured((subnetId, crawlerId) => measured.push([subnetId, crawlerId]));
  expect(measured, message).toEqual(
    [...plain.values()].filter((one) => one.measured).map((one) => [one.subnetId, one.crawlerId]),
  );
  for (let crawlerId = 1; crawlerId <= 30; crawlerId += 1) {
    const owned = [...plain.values()].filter((one) => one.crawlerId === crawlerId).map((one) => one.subnetId);
    const sorted = table.subnetsOf(crawler(crawlerId)).toSorted((a, b) => a - b);
    expect(sorted, message).toEqual(owned.toSorted((a, b) => a - b));
    expect(table.countOf(crawler(crawlerId)), message).toBe(owned.length);
  }
}

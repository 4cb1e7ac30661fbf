import { expect, it } from "vitest";
import type { Delegation } from "#coordinator/place/delegation/delegation";
import { DelegationTable } from "#coordinator/place/delegation/delegation-table";
import { asCrawlerId, asSubnetId } from "#core/ids";
import { seededRandom } from "#core/random";

it("the table of delegations agrees with a plain Map, in its order, over random delegations, moves and returning crawlers", () => {
  const seed = 20260306;
  const random = seededRandom(seed);
  const [table, plain] = [new DelegationTable(), new Map<number, Delegation>()];
  /** Subnets in the order in which they came to their present crawlers. */
  const arrived = new Map<number, number>();
  const subnets = [0, 2 ** 31 - 1, ...Array.from({ length: 500 }, () => Math.floor(random() * 2 ** 31))];
  const perhaps = <Value>(value: Value) => (random() < 0.3 ? null : value);

  for (let times = 0; times <= 20_000; times += 1) {
    // Crawlers come in waves: ids that had lost every subnet return.
    const crawlerId = 1 + Math.floor(random() * 12) + 6 * (Math.floor(times / 2500) % 3);
    const one: Delegation = {
      subnetId: asSubnetId(subnets[Math.floor(random() * subnets.length)]!),
      crawlerId: asCrawlerId(crawlerId),
      measured: random() < 0.8,
      rttMs: perhaps(random() * 300),
      runnerUpId: perhaps(asCrawlerId(random() < 0.1 ? 2 ** 31 - 1 : 1 + Math.floor(random() * 30))),
      runnerUpRttMs: perhaps(random() * 300),
    };
    if (plain.get(one.subnetId)?.crawlerId !== crawlerId) arrived.delete(one.subnetId);
    arrived.set(one.subnetId, crawlerId);
    table.set(one);
    // RTTs are stored as the database's `real`.
    const [rttMs, runnerUpRttMs] = [one.rttMs, one.runnerUpRttMs].map((ms) => ms && Math.fround(ms));
    plain.set(one.subnetId, { ...one, rttMs: rttMs ?? null, runnerUpRttMs: runnerUpRttMs ?? null });
    if (times % 2000 > 0) continue;
    const message = `seed ${seed}, ${times}`;
    const all = [...plain.values()];
    const measured: number[] = [];
    table.eachMeasured((subnetId, owner) => measured.push(subnetId, owner));
    expect([...table], message).toEqual(all);
    expect(table.size, message).toBe(all.length);
    expect(measured, message).toEqual(
      all.filter((each) => each.measured).flatMap((each) => [each.subnetId, each.crawlerId]),
    );
    for (const each of all) expect(table.get(each.subnetId), message).toEqual(each);
    for (let id = 1; id <= 30; id += 1) {
      const owned = [...arrived].filter(([, owner]) => owner === id).map(([subnetId]) => subnetId);
      expect([...table.subnetsOf(asCrawlerId(id))], message).toEqual(owned);
      expect(table.countOf(asCrawlerId(id)), message).toBe(owned.length);
    }
  }
  expect([table.get(asSubnetId(1)), table.ownerOf(asSubnetId(1)), table.at(plain.size)]).toEqual([
    null,
    null,
    null,
  ]);
});

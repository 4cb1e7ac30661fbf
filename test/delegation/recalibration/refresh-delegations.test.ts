/** Decisions that are probed again, the oldest first, a few in each turn. */
import { expect, it } from "vitest";
import type { Placement } from "#coordinator/place/delegation/placement";
import { DelegationRefresh } from "#coordinator/place/delegation/recalibration/ageing";
import type { SubnetId } from "#core/ids";
import { flowWorld } from "../../support/flow-world.ts";
import { eachMs, noon, roundOf } from "../../support/store-world.ts";

const world = flowWorld();

const dayMs = 86_400_000;
const days = (count: number) => new Date(noon.getTime() + count * dayMs);

/** Subnets decided on day 1, 2, 3 …, in the order of the list. */
async function decidedDaily(count: number): Promise<SubnetId[]> {
  const north = await world.arrived("north");
  const subnets: SubnetId[] = [];
  for (let day = 1; day <= count; day++) {
    const subnetId = await world.site(day);
    await world.delegations.saveRound(roundOf(subnetId, [[north, 5]], { decidedAt: days(day) }));
    subnets.push(subnetId);
  }
  return subnets;
}

const refresh = (roundsPerTurn = 2) =>
  new DelegationRefresh(
    { delegations: world.delegations, state: { placementOf } },
    { days: 30, roundsPerTurn },
  );

/** Each subnet's holder has the subnet's number. */
const placementOf = (subnetId: SubnetId): Placement => ({
  subnetKey: subnetId,
  holderKey: subnetId,
  ancestorKeys: [],
  country: "NL",
  slash8Key: 5,
});

it("takes the oldest first, so many in a turn, and starts over at the end", async () => {
  const [first, second, third] = await decidedDaily(4);
  const turns = refresh();
  const day33 = new Date(days(33).getTime() + 1);

  expect(await turns.next(day33)).toEqual([first, second]);
  expect(await turns.next(day33)).toEqual([third]);
  expect(await turns.next(day33)).toEqual([first, second]);
});

it("leaves a decision alone that is younger than a month, and one that was probed again", async () => {
  const [first, second] = await decidedDaily(2);
  const day40 = days(40);
  const north = (await world.crawlers.list())[0]!.crawlerId;
  expect(await refresh().next(days(31))).toEqual([]);

  await world.delegations.saveRound(roundOf(first!, [[north, 5]], { cause: "refresh", decidedAt: days(39) }));

  expect(await refresh().next(day40)).toEqual([second]);
});

it("leaves out what was given away by load, taken over, or never measured", async () => {
  const [moved, unmeasured] = await decidedDaily(2);
  const [north, south] = [(await world.crawlers.list())[0]!.crawlerId, await world.arrived("south")];
  await world.delegations.move(
    [{ subnetId: moved!, from: north, to: south, cause: "overload", reason: "", rttMs: 9 }],
    days(3),
  );
  await world.delegations.saveRound(
    roundOf(unmeasured!, [], { crawlerId: north, measured: false, decidedAt: days(3) }),
  );
  const own = await world.subnet("5.1.99.0", "5.1.99.255");
  await world.delegations.delegateOwnSubnet(own, north, days(1));

  expect(await refresh(10).next(days(90))).toEqual([]);
});

it("spends the rounds where more is fetched, and as many as before in all", async () => {
  const subnets = await decidedDaily(4);
  await world.pool.query(
    `insert into site (host_hash, host, standing, subnet_id, channels, pages, urls, due_urls, counted_day, failed_days,
       fetched_days, failures, fetches, added_at, bytes)
     select n, 'busy' || n, 'ready', $1, 0, 0, 0, 0, 0, '{}', '{}', 0, 7000, now(), 0 from generate_series(1, 3) n`,
    [subnets[3]],
  );
  const turns = refresh(10);
  await turns.next(days(5));

  const due = new Map<SubnetId, number>();
  for (let day = 5; day < 200; day += 1)
    for (const subnetId of await turns.next(days(day))) if (!due.has(subnetId)) due.set(subnetId, day);

  // 3000 pages a day: as soon as the interval may be, a day or some; the others wait, though three months at most.
  expect(due.get(subnets[3]!)).toBeLessThan(20);
  for (const quiet of subnets.slice(0, 3)) {
    expect(due.get(quiet)).toBeGreaterThan(31);
    expect(due.get(quiet)).toBeLessThanOrEqual(4 + 90 + 1);
  }
});

it("learns moves from rounds: another crawler is nearer by more than a few ms", async () => {
  const [north, south] = [await world.arrived("north"), await world.arrived("south")];
  const [moved, stayed, level] = [await world.site(1), await world.site(2), await world.site(3)];
  const round = async (
    subnetId: SubnetId,
    day: number,
    probes: Parameters<typeof roundOf>[1],
    cause: "new-subnet" | "refresh" = "refresh",
  ) =>
    await world.delegations.saveRound(
      roundOf(subnetId, probes, { cause, method: "connect", decidedAt: days(day) }),
    );
  for (const one of [moved, stayed, level]) await round(one, 0, [[north, 10]], "new-subnet");
  await round(moved, 10, eachMs([south, 8], [north, 50]));
  await round(stayed, 20, eachMs([north, 10], [south, 30]));
  await round(level, 20, eachMs([south, 9], [north, 11]));
  // Assigned by load, which is neither a move nor a measurement.
  const reason = {
    type: "anycast",
    ...{ near: { crawlerId: south, rttMs: 1 }, far: { crawlerId: north, rttMs: 2 } },
    ...{ leastSumMs: 60, by: "light", confirmed: null, fast: 1, runnerUp: null },
  } as const;
  const anycast = { cause: "refresh", method: "connect", decidedAt: days(25), reason } as const;
  await world.delegations.saveRound(roundOf(stayed, [[south, 1]], anycast));
  expect(await world.delegations.latestRounds(100)).toHaveLength(6);

  const outcomes = await world.delegations.checkOutcomes(1000);
  await refresh().next(days(21));

  expect(outcomes.sort((a, b) => a.subnetId - b.subnetId)).toEqual([
    { subnetId: moved, days: 10, moved: true, lostMs: 42 },
    { subnetId: stayed, days: 20, moved: false, lostMs: 0 },
    { subnetId: level, days: 20, moved: false, lostMs: 0 },
  ]);
  expect(
    await world.rows(
      "select kind, key, moves, round(months::numeric * 30.4) as days, lost_ms from move_rate where kind <> 'country' order by kind, key::int",
    ),
  ).toEqual([
    { kind: "all", key: "0", moves: 1, days: "45", lost_ms: 42 },
    { kind: "holder", key: String(moved), moves: 1, days: "5", lost_ms: 42 },
    { kind: "holder", key: String(stayed), moves: 0, days: "20", lost_ms: 0 },
    { kind: "holder", key: String(level), moves: 0, days: "20", lost_ms: 0 },
  ]);
});

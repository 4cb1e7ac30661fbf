/** Which subnets get a round, when, in which order and how many at once; and what one holder's subnets cost. */
import { beforeEach, describe, expect, it } from "vitest";
import type { Fleet } from "#coordinator/place/crawlers/crawler";
import { AnycastRanges } from "#coordinator/place/delegation/anycast";
import { ProbeBudget, pacedFleet } from "#coordinator/place/delegation/probe-pacing";
import { HolderTurns, type QueuePorts, RestingSubnets } from "#coordinator/place/delegation/queue";
import { asSubnetId, type CrawlerId, type SubnetId } from "#core/ids";
import { silentLog } from "#core/log";
import type { ProbeOutcome } from "#protocol/messages";
import { flowWorld, TableFleet } from "../support/flow-world.ts";
import { makeGate } from "../support/gate.ts";
import { ManualClock, settled } from "../support/manual-clock.ts";
import { noon, roundOf, scope, seeds } from "../support/store-world.ts";
import { holds, learnDistances, nearestRound, queueOver } from "./round-world.ts";

const world = flowWorld();
let crawlers: CrawlerId[];
let [north, south] = [0, 0] as unknown as [CrawlerId, CrawlerId];

beforeEach(async () => {
  crawlers = [];
  for (const name of ["north", "south", "east", "west"]) crawlers.push(await world.arrived(name));
  [north, south] = crawlers as [CrawlerId, CrawlerId];
});

const retryMs = 30_000;

async function exhaustive(fleet: TableFleet, ports: Partial<QueuePorts> = {}, concurrentRounds = 16) {
  const clock = { ms: noon.getTime() };
  const state = await world.state();
  const round = { ...nearestRound, policy: "exhaustive" } as const;
  const { queue, decided } = queueOver(
    world,
    { state, fleet, now: () => new Date(clock.ms), ...ports },
    { round, concurrentRounds, retryMs },
  );
  /** Fills the queue, and returns how many rounds were started once all have ended. */
  const filled = async () => {
    const started = await queue.fill();
    await queue.idle();
    return started;
  };
  return { queue, decided, state, clock, filled };
}

const near = (crawlerId: CrawlerId) => new Map([[crawlerId, 5]]);
const roundsStored = async () =>
  (await world.rows<{ rounds: number }>("select count(*)::int as rounds from probe_round"))[0]!.rounds;

describe("a queue of rounds", () => {
  it("runs one round per subnet, however many URLs and hosts wait in it and however often it is filled", async () => {
    const subnetId = await world.site(1, "a", "b", "c");
    await world.frontier.admit(seeds("http://other.example/"), scope, noon);
    await world.resolve("other.example", "5.1.1.8", subnetId);
    const fleet = new TableFleet([north, south], { "5.1.1.7": near(north), "5.1.1.8": near(north) });
    const { queue, decided, filled } = await exhaustive(fleet);

    expect([await queue.fill(), await filled(), await filled()]).toEqual([1, 0, 0]);
    expect(await roundsStored()).toBe(1);
    expect(decided).toMatchObject([{ subnetId, crawlerId: north, cause: "new-subnet" }]);
  });

  it("does not start a subnet again that was decided, or that nobody could take, while another fill was reading", async () => {
    const [decided, refused] = [await world.site(1), await world.site(2)];
    const late = makeGate();
    let asked = 0;
    const { queue } = await exhaustive(new TableFleet([north], { "5.1.1.7": near(north) }), {
      excluded: ({ subnetId }) => new Set(subnetId === refused ? [north] : []),
      delegations: {
        ...world.delegations,
        // The second question is answered after the first round has ended.
        waiting: async (...input) => {
          asked += 1;
          const isLate = asked === 2;
          const found = await world.delegations.waiting(...input);
          if (isLate) await late.opened;
          return found;
        },
      },
    });

    const fills = [queue.fill(), queue.fill()];
    await fills[0];
    await queue.idle();
    late.open();
    await Promise.all(fills);
    await queue.idle();

    expect(await world.rows("select subnet_id, crawler_id from probe_round order by subnet_id")).toEqual([
      { subnet_id: decided, crawler_id: north },
      { subnet_id: refused, crawler_id: null },
    ]);
  });

  it("keeps to its number of concurrent rounds, and one per subnet, when it is filled twenty times at once", async () => {
    for (let number = 1; number <= 8; number++) await world.site(number);
    const fleet = new TableFleet([north, south]);
    const gate = makeGate();
    fleet.before = () => gate.opened;
    const { queue } = await exhaustive(fleet, {}, 3);
    const fillOften = async () => await Promise.all(Array.from({ length: 20 }, () => queue.fill()));

    await fillOften();
    expect(queue.running).toBe(3);
    gate.open();
    await queue.idle();
    for (let again = 0; again < 3; again += 1) {
      await fillOften();
      await queue.idle();
    }
    expect(await roundsStored()).toBe(8);
  });

  it("lets a subnet rest that nobody could take or whose round threw, continues with others, and retries after the rest", async () => {
    const [stuck, broken, other] = [await world.site(1), await world.site(2), await world.site(3)];
    const [errors, isBad] = [[] as object[], { now: true }];
    const table = Object.fromEntries([1, 2, 3].map((number) => [`5.1.${number}.7`, near(north)]));
    const { queue, decided, clock, filled } = await exhaustive(new TableFleet([north, south], table), {
      excluded: ({ subnetId }) => new Set(isBad.now && subnetId === stuck ? [north, south] : []),
      log: { ...silentLog, error: (fields) => errors.push(fields) },
      delegations: {
        ...world.delegations,
        saveRound: async (round) => {
          if (isBad.now && round.subnetId === broken) throw new Error("the database is away");
          return await world.delegations.saveRound(round);
        },
      },
    });

    await filled();
    clock.ms += retryMs - 1;
    expect(await queue.fill()).toBe(0);
    isBad.now = false;
    clock.ms += 1;
    await filled();

    expect(errors).toHaveLength(1);
    const outcomes = decided.map(({ subnetId, crawlerId }) => `${subnetId} ${crawlerId}`).toSorted();
    const expected = [`${stuck} null`, `${other} ${north}`, `${stuck} ${north}`, `${broken} ${north}`];
    expect(outcomes).toEqual(expected.toSorted());
  });

  it("runs requested rounds first, with their first cause, and they replace the delegation", async () => {
    const subnetId = await world.site(1);
    await world.site(2);
    await world.delegations.saveRound(roundOf(subnetId, [[north, 10]]));
    const fleet = new TableFleet([north, south], { "5.1.1.7": near(south), "5.1.2.7": near(north) });
    const { queue, decided, state, filled } = await exhaustive(fleet, {}, 1);

    queue.request([subnetId], "slow-fetches");
    queue.request([subnetId], "crawler-left");
    expect(await filled()).toBe(1);

    expect(decided).toMatchObject([{ subnetId, cause: "slow-fetches", crawlerId: south }]);
    expect(state.delegationOf(subnetId)?.crawlerId).toBe(south);
    const causes = await world.rows("select cause from delegation_history order by round_id");
    expect(causes).toEqual([{ cause: "new-subnet" }, { cause: "slow-fetches" }]);
  });

  it("accepts a request again as soon as the rest is over", async () => {
    const subnetId = await world.site(1);
    await world.delegations.saveRound(roundOf(subnetId, [[north, 10]]));
    const full = { now: true };
    const { queue, decided, clock, filled } = await exhaustive(
      new TableFleet([north, south], { "5.1.1.7": near(south) }),
      { excluded: () => new Set(full.now ? [north, south] : []) },
    );
    const requested = async () => {
      queue.request([subnetId], "crawler-left");
      return await filled();
    };

    expect([await requested(), await requested()]).toEqual([1, 0]);
    full.now = false;
    clock.ms += retryMs;
    expect(await requested()).toBe(1);
    expect(decided.map(({ crawlerId }) => crawlerId)).toEqual([null, south]);
  });

  it("starts nothing while no crawler is connected, and drops requests for subnets without anything to probe", async () => {
    const subnetId = await world.site(1);
    const empty = await world.subnet("5.1.9.0", "5.1.9.255");
    const fleet = new TableFleet([]);
    const { queue, decided, filled } = await exhaustive(fleet);
    queue.request([empty], "crawler-left");

    expect(await queue.fill()).toBe(0);
    fleet.goOnline(north);
    expect(await filled()).toBe(1);
    expect(decided.map((round) => round.subnetId)).toEqual([subnetId]);
  });
});

/** /24s with one host each, admitted in their order by one statement. */
async function sites(count: number): Promise<SubnetId[]> {
  const numbers = Array.from({ length: count }, (_, number) => number);
  const ranges = numbers.map((number) => `5.${1 + Math.floor(number / 256)}.${number % 256}`);
  const { rows } = await world.pool.query<{ subnet_id: number }>(
    `insert into subnet (first_address, last_address, registry, name, added_in)
     select (range || '.0')::inet, (range || '.255')::inet, 'ripencc', '', 1
     from unnest($1::text[]) with ordinality as given (range, place)
     order by place
     returning subnet_id`,
    [ranges],
  );
  await world.frontier.admit(seeds(...numbers.map((number) => `http://s${number}.example/`)), scope, noon);
  const subnetIds = rows.map((row) => asSubnetId(row.subnet_id));
  const resolved = numbers.map((number) => ({
    ...({ type: "resolved", host: `s${number}.example`, ttlSeconds: 3600 } as const),
    ...{ addresses: [`${ranges[number]}.7`], subnetId: subnetIds[number]! },
  }));
  await world.frontier.saveResolutions(resolved, noon);
  return subnetIds;
}

const distances = [
  [0, 60, 90, 80],
  [60, 0, 50, 70],
  [90, 50, 0, 40],
  [80, 70, 40, 0],
];

/** All targets are beside the last crawler. Counts the probes, and the concurrent ones. */
class CountingFleet implements Fleet {
  asked = 0;
  underWay = 0;
  mostUnderWay = 0;
  before: () => Promise<void> = async () => {};

  online(): readonly CrawlerId[] {
    return crawlers;
  }

  async probe(crawlerId: CrawlerId): Promise<ProbeOutcome> {
    this.asked += 1;
    this.underWay += 1;
    this.mostUnderWay = Math.max(this.mostUnderWay, this.underWay);
    await this.before();
    this.underWay -= 1;
    const rttMs = distances[3]![crawlers.indexOf(crawlerId)]! + 2;
    return { type: "measured", method: "connect", rttMs, tries: 2 };
  }
}

const turn = () => new Promise<void>((resolve) => setImmediate(resolve));

describe("hundreds of subnets at once", () => {
  async function nearest(fleet: Fleet, concurrentRounds = 256, ports: Partial<QueuePorts> = {}) {
    const state = await world.state();
    learnDistances(state, crawlers, distances);
    const { queue, decided } = queueOver(world, { state, fleet, ...ports }, { concurrentRounds });
    /** Fills the queue until this many rounds are decided; returns the most that ran at once. */
    const decidesAll = async (count: number) => {
      let most = 0;
      while (decided.length < count) {
        await queue.fill();
        most = Math.max(most, queue.running);
        await turn();
      }
      await queue.idle();
      return most;
    };
    return { queue, decided, decidesAll };
  }

  it("are decided once each, more of them concurrently the more is known", async () => {
    await sites(400);
    const fleet = new CountingFleet();
    fleet.before = turn;
    const { decided, decidesAll } = await nearest(fleet, 60);

    const most = await decidesAll(400);

    // How near it comes to the limit depends on how soon rounds end.
    expect(most).toBeGreaterThan(30);
    expect(most).toBeLessThanOrEqual(60);
    expect(new Set(decided.map(({ subnetId }) => subnetId)).size).toBe(400);
    // The first few dozen cost most: they teach where everything is.
    expect(fleet.asked).toBeLessThan(2 * 400);
  }, 60_000);

  it.each([
    ["few at a time while nothing is known", 0, 24],
    ["a holder's first ones in sequence, beside those of others", 85, 1 + 15],
  ])("run %s; stopping abandons them and stores nothing", async (_, held, running) => {
    const subnetIds = await sites(100);
    await holds(world, "one", ...subnetIds.slice(0, held));
    const fleet = new CountingFleet();
    const gate = makeGate();
    fleet.before = () => gate.opened;
    const { queue, decided } = await nearest(fleet);

    await queue.fill();
    expect(queue.running).toBe(running);
    const stopped = queue.stop();
    gate.open();
    await stopped;

    expect([await queue.fill(), decided, await world.rows("select from probe_round")]).toEqual([0, [], []]);
  });

  it("need fewer probes for a holder's subnets in sequence than together", async () => {
    const subnetIds = await sites(12);
    const [together, inTurn] = [new CountingFleet(), new CountingFleet()];
    await (await nearest(together)).decidesAll(12);
    await world.pool.query("delete from delegation_history; delete from delegation");
    await holds(world, "one", ...subnetIds);
    await (await nearest(inTurn)).decidesAll(12);

    expect(together.asked).toBe(2 * 12);
    // One for each, and one more until enough is known: a crawler's first answers about a place are worth more.
    expect(inTurn.asked).toBe(3 + 12);
  });

  it("are not kept waiting by a holder with hundreds in front of them", async () => {
    const subnetIds = await sites(600);
    await holds(world, "large", ...subnetIds.slice(0, 590));
    const { queue, decided } = await nearest(new CountingFleet(), 20);

    await queue.fill();
    await queue.idle();

    const others = new Set(subnetIds.slice(590));
    expect(decided.filter(({ subnetId }) => others.has(subnetId))).toHaveLength(10);
  });

  it("are not probed for slow fetches when they are anycast", async () => {
    const [subnetId] = await sites(1);
    const anycast = new AnycastRanges();
    anycast.mark(subnetId!, null);
    await world.delegations.delegateOwnSubnet(subnetId!, north, noon);
    const { queue } = await nearest(new CountingFleet(), 256, { anycast });

    queue.request([subnetId!], "slow-fetches");
    expect(await queue.fill()).toBe(0);
    queue.request([subnetId!], "crawler-left");
    expect(await queue.fill()).toBe(1);
    await queue.idle();
  });

  it("keep to the pace per crawler, however many rounds run", async () => {
    await sites(24);
    const fleet = new CountingFleet();
    fleet.before = turn;
    const clock = new ManualClock();
    const wide = { perCrawlerPerSecond: 1000, atOnce: 1000, perSecond: 1000 };
    const pace = { perCrawlerAtOnce: 2, perTargetPerSecond: 3, perNetworkPerSecond: 5, ...wide };
    const { queue, decided } = await nearest(pacedFleet(fleet, new ProbeBudget(pace, clock)));

    await queue.fill();
    while (decided.length < 24) {
      await turn();
      await clock.turnTo(clock.nowMs() + 100);
      await settled();
    }

    expect(fleet.mostUnderWay).toBeLessThanOrEqual(2 * crawlers.length);
    expect(fleet.asked).toBeGreaterThan(24);
  });
});

it("a holder may have more concurrent rounds the better it is known", () => {
  const turns = new HolderTurns();
  turns.start(1);

  expect([0, 7, 8].map((known) => turns.mayStart(1, known))).toEqual([false, false, true]);
  expect([turns.mayStart(2, 0), turns.mayStart(null, 0)]).toEqual([true, true]);
  turns.end(1);
  expect(turns.mayStart(1, 0)).toBe(true);
});

it("a subnet that fails again rests longer each time, up to 32 times as long", () => {
  const resting = new RestingSubnets(1000);
  const subnetId = asSubnetId(1);
  const waits: number[] = [];
  let nowMs = 0;
  for (let times = 0; times < 8; times++) {
    resting.rest(subnetId, nowMs);
    let waitMs = 0;
    while (resting.asleep(nowMs + waitMs).length > 0) waitMs += 500;
    waits.push(waitMs);
    nowMs += waitMs;
  }

  expect(waits).toEqual([1000, 2000, 4000, 8000, 16_000, 32_000, 32_000, 32_000]);
  resting.forget(subnetId);
  resting.rest(subnetId, nowMs);
  expect(resting.asleep(nowMs + 1000)).toEqual([]);
});

/** Hundreds of subnets at once: how many rounds run, in which order, and what one holder's subnets cost. */
import { beforeEach, expect, it } from "vitest";
import type { Fleet } from "#coordinator/place/crawlers/crawler";
import { AnycastRanges } from "#coordinator/place/delegation/anycast";
import { ProbeBudget, pacedFleet } from "#coordinator/place/delegation/probe-pacing";
import { HolderTurns, type QueuePorts, RestingSubnets } from "#coordinator/place/delegation/queue";
import { asSubnetId, type CrawlerId, type SubnetId } from "#core/ids";
import type { ProbeOutcome } from "#protocol/messages";
import { flowWorld } from "../support/flow-world.ts";
import { makeGate } from "../support/gate.ts";
import { ManualClock, settled } from "../support/manual-clock.ts";
import { noon, scope, seeds } from "../support/store-world.ts";
import { holds, learnDistances, queueOver } from "./round-world.ts";

const world = flowWorld();
let crawlers: CrawlerId[];

beforeEach(async () => {
  crawlers = [];
  for (const name of ["north", "south", "east", "west"]) crawlers.push(await world.arrived(name));
});

/** So many /24s with one host each, admitted in their order, in one go. */
async function sites(count: number): Promise<SubnetId[]> {
  const range = (number: number) => `5.${1 + Math.floor(number / 256)}.${number % 256}`;
  const numbers = Array.from({ length: count }, (_, number) => number);
  const { rows } = await world.pool.query<{ subnet_id: number }>(
    `insert into subnet (first_address, last_address, registry, name, added_in)
     select first::inet, last::inet, 'ripencc', '', 1
     from unnest($1::text[], $2::text[]) with ordinality as given (first, last, place)
     order by place
     returning subnet_id`,
    [numbers.map((number) => `${range(number)}.0`), numbers.map((number) => `${range(number)}.255`)],
  );
  const hosts = numbers.map((number) => `s${number}.example`);
  await world.frontier.admit(seeds(...hosts.map((host) => `http://${host}/`)), scope, noon);
  const subnetIds = rows.map((row) => asSubnetId(row.subnet_id));
  await world.frontier.saveResolutions(
    numbers.map((number) => ({
      type: "resolved",
      host: hosts[number]!,
      addresses: [`${range(number)}.7`],
      subnetId: subnetIds[number]!,
      ttlSeconds: 3600,
    })),
    noon,
  );
  return subnetIds;
}

/** All targets are beside the last crawler. Counts what is asked, and how much of it at once. */
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

const distances = [
  [0, 60, 90, 80],
  [60, 0, 50, 70],
  [90, 50, 0, 40],
  [80, 70, 40, 0],
];

async function newQueue(
  fleet: Fleet,
  settings: { concurrentRounds?: number; ports?: Partial<QueuePorts> } = {},
) {
  const state = await world.state();
  learnDistances(state, crawlers, distances);
  const { ports, ...others } = settings;
  return { ...queueOver(world, { state, fleet, ...ports }, others), state };
}

const turn = () => new Promise<void>((resolve) => setImmediate(resolve));

it("decides hundreds of subnets, each once, with more at once the more it knows", async () => {
  const subnetIds = await sites(400);
  const fleet = new CountingFleet();
  fleet.before = async () => await turn();
  const { queue, decided } = await newQueue(fleet, { concurrentRounds: 60 });
  let most = 0;

  while (decided.length < subnetIds.length) {
    await queue.fill();
    most = Math.max(most, queue.running);
    await turn();
  }
  await queue.idle();

  expect(new Set(decided.map(({ subnetId }) => subnetId)).size).toBe(400);
  expect(most).toBe(60);
  // The first few dozen are the dear ones: they learn where everything is.
  expect(fleet.asked).toBeLessThan(2 * 400);
}, 60_000);

it("begins with few rounds at once while it knows nothing", async () => {
  await sites(100);
  const fleet = new CountingFleet();
  const gate = makeGate();
  fleet.before = () => gate.opened;
  const { queue } = await newQueue(fleet);

  await queue.fill();
  const running = queue.running;
  gate.open();
  await queue.stop();

  expect(running).toBe(24);
});

it("runs the first rounds of a holder one after the other, and those of others meanwhile", async () => {
  const subnetIds = await sites(20);
  await holds(world, "one", ...subnetIds.slice(0, 12));
  const fleet = new CountingFleet();
  const gate = makeGate();
  fleet.before = () => gate.opened;
  const { queue, decided } = await newQueue(fleet);

  await queue.fill();
  const running = queue.running;
  gate.open();
  while (decided.length < 20) {
    await queue.fill();
    await turn();
  }

  expect(running).toBe(1 + 8);
});

it("needs fewer probes for a holder's subnets one after the other than together", async () => {
  const subnetIds = await sites(12);

  const together = new CountingFleet();
  const { queue: all, decided } = await newQueue(together);
  await all.fill();
  await all.idle();
  expect(decided).toHaveLength(12);
  await world.pool.query("delete from delegation_history; delete from delegation");
  await holds(world, "one", ...subnetIds);
  const inTurn = new CountingFleet();
  const { queue: oneByOne, decided: later } = await newQueue(inTurn);
  while (later.length < 12) {
    await oneByOne.fill();
    await turn();
  }

  expect(together.asked).toBe(2 * 12);
  // One for each, and one more until enough is known: a crawler's first answers about a place are worth more.
  expect(inTurn.asked).toBe(3 + 12);
});

it("is not kept from other holders' subnets by one with thousands in front of them", async () => {
  const subnetIds = await sites(600);
  await holds(world, "large", ...subnetIds.slice(0, 590));
  const { queue, decided } = await newQueue(new CountingFleet(), { concurrentRounds: 20 });

  await queue.fill();
  await queue.idle();

  const others = new Set(subnetIds.slice(590));
  expect(decided.filter(({ subnetId }) => others.has(subnetId))).toHaveLength(10);
});

it("gives up what is under way when it stops, stores nothing of it, and starts nothing more", async () => {
  await sites(50);
  const fleet = new CountingFleet();
  const gate = makeGate();
  fleet.before = () => gate.opened;
  const { queue, decided } = await newQueue(fleet);

  await queue.fill();
  const stopped = queue.stop();
  gate.open();
  await stopped;

  expect(await queue.fill()).toBe(0);
  expect(decided).toEqual([]);
  expect(await world.rows("select from probe_round")).toEqual([]);
});

it("does not probe an anycast range again because its fetches turned slow", async () => {
  const [subnetId] = await sites(1);
  const anycast = new AnycastRanges();
  anycast.mark(subnetId!, null);
  await world.delegations.delegateOwnSubnet(subnetId!, crawlers[0]!, noon);
  const { queue } = await newQueue(new CountingFleet(), { ports: { anycast } });

  queue.request([subnetId!], "slow-fetches");
  expect(await queue.fill()).toBe(0);
  queue.request([subnetId!], "crawler-left");

  expect(await queue.fill()).toBe(1);
  await queue.idle();
});

it("keeps to the pace for a crawler, however many rounds run", async () => {
  await sites(24);
  const fleet = new CountingFleet();
  fleet.before = async () => await turn();
  const clock = new ManualClock();
  const settings = {
    perCrawlerAtOnce: 2,
    perCrawlerPerSecond: 1000,
    perTargetPerSecond: 3,
    perNetworkPerSecond: 5,
    atOnce: 1000,
    perSecond: 1000,
  };
  const budget = new ProbeBudget(settings, clock);
  const { queue, decided } = await newQueue(pacedFleet(fleet, budget));

  await queue.fill();
  while (decided.length < 24) {
    await turn();
    await clock.turnTo(clock.nowMs() + 100);
    await settled();
  }

  expect(fleet.mostUnderWay).toBeLessThanOrEqual(2 * crawlers.length);
  expect(fleet.asked).toBeGreaterThan(24);
});

it("has more rounds of a holder at once the better it is known", () => {
  const turns = new HolderTurns();

  turns.start(1);
  expect([turns.mayStart(1, 0), turns.mayStart(1, 7), turns.mayStart(1, 8)]).toEqual([false, false, true]);
  expect([turns.mayStart(2, 0), turns.mayStart(null, 0)]).toEqual([true, true]);
  turns.end(1);

  expect(turns.mayStart(1, 0)).toBe(true);
});

it("leaves alone for longer each time what fails again, at most 32 times as long", () => {
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

/** Which subnets get a round, when, and how many at once. */
import { beforeEach, expect, it } from "vitest";
import type { QueuePorts } from "#coordinator/place/delegation/queue";
import type { CrawlerId } from "#core/ids";
import { silentLog } from "#core/log";
import { flowWorld, TableFleet } from "../support/flow-world.ts";
import { makeGate } from "../support/gate.ts";
import { noon, roundOf, scope, seeds } from "../support/store-world.ts";
import { nearestRound, queueOver } from "./round-world.ts";

const world = flowWorld();
let north: CrawlerId;
let south: CrawlerId;

beforeEach(async () => {
  north = await world.arrived("north");
  south = await world.arrived("south");
});

const retryMs = 30_000;

async function newQueue(
  fleet: TableFleet,
  differences: { concurrentRounds?: number; ports?: Partial<QueuePorts>; clock?: { ms: number } } = {},
) {
  const { concurrentRounds = 16, clock = { ms: noon.getTime() }, ports } = differences;
  const state = await world.state();
  const over = queueOver(
    world,
    { state, fleet, now: () => new Date(clock.ms), ...ports },
    { round: { ...nearestRound, policy: "exhaustive" }, concurrentRounds, retryMs },
  );
  return { ...over, state };
}

const near = (crawlerId: CrawlerId) => new Map([[crawlerId, 5]]);
const roundsStored = async () =>
  (await world.rows<{ rounds: number }>("select count(*)::int as rounds from probe_round"))[0]!.rounds;

it("runs one round for a subnet, however many URLs and hosts wait in it and however often it is filled", async () => {
  const subnetId = await world.site(1, "a", "b", "c");
  await world.frontier.admit(seeds("http://other.example/"), scope, noon);
  await world.resolve("other.example", "5.1.1.8", subnetId);
  const fleet = new TableFleet([north, south], { "5.1.1.7": near(north), "5.1.1.8": near(north) });
  const { queue, decided } = await newQueue(fleet);

  expect(await queue.fill()).toBe(1);
  expect(await queue.fill()).toBe(0);
  await queue.idle();
  expect(await queue.fill()).toBe(0);

  expect(await roundsStored()).toBe(1);
  expect(decided).toMatchObject([{ subnetId, crawlerId: north, cause: "new-subnet" }]);
});

it("does not start a subnet again that was decided, or that nobody could take, while another fill was asking", async () => {
  const [decided, refused] = [await world.site(1), await world.site(2)];
  const fleet = new TableFleet([north], { "5.1.1.7": near(north) });
  const late = makeGate();
  let asked = 0;
  const { queue } = await newQueue(fleet, {
    ports: {
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

it("keeps to its number of rounds at once, and one a subnet, also when it is filled twenty times at once", async () => {
  for (let number = 1; number <= 8; number++) await world.site(number);
  const fleet = new TableFleet([north, south]);
  const gate = makeGate();
  fleet.before = () => gate.opened;
  const { queue } = await newQueue(fleet, { concurrentRounds: 3 });

  const fillOften = async () => await Promise.all(Array.from({ length: 20 }, () => queue.fill()));
  await fillOften();
  const running = queue.running;
  gate.open();
  await queue.idle();
  for (let again = 0; again < 3; again += 1) {
    await fillOften();
    await queue.idle();
  }

  expect(running).toBe(3);
  expect(await roundsStored()).toBe(8);
});

it("lets a subnet rest that nobody could take, goes on with the others, and tries again after the rest", async () => {
  const stuck = await world.site(1);
  const other = await world.site(2);
  const fleet = new TableFleet([north, south], { "5.1.1.7": near(north), "5.1.2.7": near(north) });
  const clock = { ms: noon.getTime() };
  let full = true;
  const { queue, decided } = await newQueue(fleet, {
    clock,
    ports: {
      excluded: ({ subnetId }) => new Set(full && subnetId === stuck ? [north, south] : []),
    },
  });

  await queue.fill();
  await queue.idle();
  clock.ms += retryMs - 1;
  expect(await queue.fill()).toBe(0);
  full = false;
  clock.ms += 1;
  expect(await queue.fill()).toBe(1);
  await queue.idle();

  const outcomes = decided.map(({ subnetId, crawlerId }) => [subnetId, crawlerId]);
  expect(outcomes).toHaveLength(3);
  expect(outcomes).toEqual(
    expect.arrayContaining([
      [stuck, null],
      [other, north],
      [stuck, north],
    ]),
  );
});

it("lets a subnet rest whose round threw, and tries it again", async () => {
  await world.site(1);
  const fleet = new TableFleet([north], { "5.1.1.7": near(north) });
  const clock = { ms: noon.getTime() };
  const errors: object[] = [];
  let broken = true;
  const { queue, decided } = await newQueue(fleet, {
    clock,
    ports: {
      log: { ...silentLog, error: (fields) => errors.push(fields) },
      delegations: {
        ...world.delegations,
        saveRound: async (round) => {
          if (broken) throw new Error("the database is away");
          return await world.delegations.saveRound(round);
        },
      },
    },
  });

  await queue.fill();
  await queue.idle();
  expect(await queue.fill()).toBe(0);
  broken = false;
  clock.ms += retryMs;
  await queue.fill();
  await queue.idle();

  expect(errors).toHaveLength(1);
  expect(decided).toMatchObject([{ crawlerId: north }]);
});

it("runs requested rounds first, with their cause, and they replace the delegation", async () => {
  const subnetId = await world.site(1);
  await world.site(2);
  await world.delegations.saveRound(roundOf(subnetId, [[north, 10]]));
  const fleet = new TableFleet([north, south], { "5.1.1.7": near(south), "5.1.2.7": near(north) });
  const { queue, decided, state } = await newQueue(fleet, { concurrentRounds: 1 });

  queue.request([subnetId], "slow-fetches");
  queue.request([subnetId], "crawler-left");
  expect(await queue.fill()).toBe(1);
  await queue.idle();

  expect(decided).toMatchObject([{ subnetId, cause: "slow-fetches", crawlerId: south }]);
  expect(state.delegationOf(subnetId)?.crawlerId).toBe(south);
  expect(await world.rows("select cause from delegation_history order by round_id")).toEqual([
    { cause: "new-subnet" },
    { cause: "slow-fetches" },
  ]);
});

it("takes a request again as soon as the rest is over, whoever looks first", async () => {
  const subnetId = await world.site(1);
  await world.delegations.saveRound(roundOf(subnetId, [[north, 10]]));
  const fleet = new TableFleet([north, south], { "5.1.1.7": near(south) });
  const clock = { ms: noon.getTime() };
  let full = true;
  const { queue, decided } = await newQueue(fleet, {
    clock,
    ports: { excluded: () => new Set(full ? [north, south] : []) },
  });

  queue.request([subnetId], "crawler-left");
  await queue.fill();
  await queue.idle();
  queue.request([subnetId], "crawler-left");
  expect(await queue.fill()).toBe(0);
  full = false;
  clock.ms += retryMs;
  queue.request([subnetId], "crawler-left");
  expect(await queue.fill()).toBe(1);
  await queue.idle();

  expect(decided.map(({ crawlerId }) => crawlerId)).toEqual([null, south]);
});

it("starts nothing while no crawler is connected, and forgets a request for a subnet that holds nothing to probe", async () => {
  await world.site(1);
  const empty = await world.subnet("5.1.9.0", "5.1.9.255");
  const fleet = new TableFleet([]);
  const { queue, decided } = await newQueue(fleet);

  queue.request([empty], "crawler-left");
  expect(await queue.fill()).toBe(0);
  fleet.goOnline(north);
  expect(await queue.fill()).toBe(1);
  await queue.idle();

  expect(decided.map(({ subnetId }) => subnetId)).not.toContain(empty);
});

/** Which coordinator leads, over real locks and rows; an observer measures silence by its own clock. */
import type { Pool } from "pg";
import { afterEach, expect, it, vi } from "vitest";
import { coordinatorAddresses } from "#coordinator/place/crawlers/coordinator-place-store";
import { CoordinatorPresence, takeOverAtStart } from "#coordinator/place/crawlers/coordinator-presence-store";
import { createDelegationStore } from "#coordinator/place/delegation/store";
import { leaveRequests, takeRequests } from "#coordinator/run/sharing/request-store";
import { NoLongerLeads, Replaced } from "#core/errors";
import { createPool } from "#db/server-database";
import { withSessionName } from "#db/server-url";
import { newFlowWorld } from "../support/flow-world.ts";
import { forThisFile } from "../support/for-this-file.ts";
import { noon, roundOf } from "../support/store-world.ts";
import { until } from "../support/until.ts";

const world = await forThisFile(newFlowWorld());
const begun: CoordinatorPresence[] = [];
afterEach(async () => {
  await Promise.all(begun.splice(0).map((presence) => presence.end()));
  await world.reset();
});

async function begin(nowMs?: () => number, name?: string): Promise<CoordinatorPresence> {
  const presence = await CoordinatorPresence.begin(world.pool, {
    ...(nowMs && { nowMs }),
    name: name ?? null,
  });
  begun.push(presence);
  return presence;
}

/** Crawlers by name, connected to the coordinator with this number. */
const online = async (crawlers: Record<string, number>) =>
  await world.pool.query(
    `insert into crawler (name, state, coordinator_number)
     select name, 'online', number from unnest($1::text[], $2::int[]) as given (name, number)`,
    [Object.keys(crawlers), Object.values(crawlers)],
  );
const crawlers = async () =>
  await world.rows("select name, state, coordinator_number as number from crawler order by name");

it("of twenty that start at once, one leads", async () => {
  const all = await Promise.all(Array.from({ length: 20 }, async () => await begin()));

  expect(all.filter(({ leads }) => leads).length).toBe(1);
});

it("crawlers of coordinators that run stay theirs when another starts, those of others are its own", async () => {
  const [running, starting] = [await begin(), await begin()];
  await online({ kept: running.number, left: 999_999 });
  await takeOverAtStart(world.pool, starting.number, { reason: "started again", now: noon });

  expect(await crawlers()).toEqual([
    { name: "kept", state: "online", number: running.number },
    { name: "left", state: "offline", number: starting.number },
  ]);
});

it("the lead of one that ends goes to one of the others, once", async () => {
  const first = await begin();
  const others = [await begin(), await begin()];
  const before = [first, ...others].map(({ leads }) => leads);

  await first.end();
  await until(async () => {
    await Promise.all(others.map((one) => one.look()));
    return others.some(({ leads }) => leads);
  }, 5000);

  expect(before).toEqual([true, false, false]);
  expect(others.filter(({ leads }) => leads).length).toBe(1);
});

/** This many checks, a second apart. */
async function lookOn(observer: CoordinatorPresence, clock: { aheadMs: number }, times: number) {
  for (let look = 0; look < times; look += 1) {
    clock.aheadMs += 1000;
    await observer.look();
  }
}

it("one that is frozen is cut off within 8 s: its locks are released, its open work fails, and it writes nothing more", async () => {
  const clock = { aheadMs: 0 };
  let pool: Pool | null = null;
  const frozen = await CoordinatorPresence.begin(world.pool, {
    sessions: (name) => (pool = createPool(withSessionName(world.database.url, name), 3)),
  });
  const own = pool!;
  const observer = await begin(() => clock.aheadMs);
  await world.pool.query("insert into crawler (name) values ('olive')");
  const client = await own.connect();
  client.on("error", () => {});
  await client.query("begin");
  await client.query("update crawler set state = 'offline', pages_per_day = 7 where name = 'olive'");
  // A stopped process sends no heartbeat, but its sessions remain.
  vi.spyOn(frozen, "look").mockResolvedValue();

  await lookOn(observer, clock, 7);
  const held = await world.rows("select from crawler where name = 'olive' for update skip locked");
  await lookOn(observer, clock, 2);
  await until(
    async () =>
      (await world.rows("select from crawler where name = 'olive' for update skip locked")).length === 1,
    5000,
  );

  expect(held).toEqual([]);
  expect(observer.leads).toBe(true);
  await expect(client.query("commit")).rejects.toThrow();
  client.release(true);
  await expect(own.query("update crawler set pages_per_day = 8")).rejects.toBeInstanceOf(Replaced);
  expect(await frozen.replaced).toMatch(/have taken over from it$/);
  expect([frozen.leads, frozen.isPresent]).toEqual([false, false]);
  expect(await world.rows("select pages_per_day from crawler where pages_per_day in (7, 8)")).toEqual([]);
  await frozen.end();
});

it("one whose heartbeats are far slower than the checks is cut off as well, and one with every second heartbeat is not", async () => {
  const clock = { aheadMs: 0 };
  const slow = await begin();
  const steady = await begin();
  const observer = await begin(() => clock.aheadMs);
  for (let turn = 0; turn < 10; turn += 1) {
    if (turn % 5 === 0) await slow.look();
    if (turn % 2 === 0) await steady.look();
    await lookOn(observer, clock, 1);
  }

  await slow.look();
  await steady.look();
  expect([...observer.others]).toEqual([steady.number]);
  expect(await slow.replaced).toMatch(/took this one for frozen/);
});

it("one that is connected but silent for 8 s no longer counts, and its later decisions are not written", async () => {
  let aheadMs = 0;
  const silent = await begin();
  const observer = await begin(() => aheadMs);
  const olive = await world.arrived("olive");
  const subnetId = await world.site(1);
  const store = createDelegationStore(world.pool, () => [], silent.number);
  await store.saveRound(roundOf(subnetId, [[olive, 5]]));
  const led = [];
  for (let look = 0; look < 9; look += 1) {
    aheadMs += 1000;
    await observer.look();
    led.push(observer.leads);
  }

  await expect(store.saveRound(roundOf(subnetId, [[olive, 7]]))).rejects.toBeInstanceOf(NoLongerLeads);
  await expect(
    store.move([{ subnetId, from: olive, to: olive, cause: "home", reason: "", rttMs: 1 }], noon),
  ).rejects.toBeInstanceOf(NoLongerLeads);
  await silent.look();

  expect(led).toEqual([...Array.from({ length: 7 }, () => false), true, true]);
  expect([silent.leads, observer.leads]).toEqual([false, true]);
  expect(await world.rows("select count(*)::int as rounds from probe_round")).toEqual([{ rounds: 1 }]);
});

it("a database that stalls for all makes no coordinator count as silent", async () => {
  let aheadMs = 0;
  const first = await begin();
  const observer = await begin(() => aheadMs);

  aheadMs = 60_000;
  await observer.look();
  await first.look();
  aheadMs += 2000;
  await observer.look();

  expect([first.leads, observer.leads]).toEqual([true, false]);
});

it("one that goes silent is reported until it is back, and one that stops is not", async () => {
  let aheadMs = 0;
  const observer = await begin(() => aheadMs, "web-1:7411");
  const silent = await begin(undefined, "web-2:7411");
  const ended = await begin(undefined, "web-3:7411");
  await observer.look();
  await ended.end();
  const told = [];
  for (let look = 0; look < 9; look += 1) {
    aheadMs += 1000;
    await observer.look();
    told.push(observer.silentOthers.map(({ name }) => name));
  }
  aheadMs += 30_000;
  const later = observer.silentOthers;
  await silent.look();
  await observer.look();
  const again = observer.silentOthers.length;
  await begin(undefined, "web-2:7411");
  await observer.look();

  expect(told.map((names) => names.join())).toEqual([
    ...Array.from({ length: 7 }, () => ""),
    ...["web-2:7411", "web-2:7411"],
  ]);
  expect(later).toEqual([{ name: "web-2:7411", forMs: 31_000 }]);
  expect([again, observer.silentOthers]).toEqual([1, []]);
});

it("a new leader takes crawlers without a known coordinator, and leaves those of running ones", async () => {
  const [first, second, third] = [await begin(), await begin(), await begin()];
  await online({ own: second.number, kept: third.number, left: 999_999 });
  const taken: number[] = [];
  second.follow({
    ...{ onOthers: () => {}, onRegained: async () => {}, onLead: async () => {}, now: () => noon },
    onTakenOver: async (crawlers) => void taken.push(crawlers),
  });

  await first.end();
  await until(async () => second.look().then(() => second.leads), 5000);

  expect(taken).toEqual([1]);
  expect(await crawlers()).toEqual([
    { name: "kept", state: "online", number: third.number },
    { name: "left", state: "offline", number: second.number },
    { name: "own", state: "online", number: second.number },
  ]);
});

it("a lead that is acquired but cannot be started leaves no leader", async () => {
  let aheadMs = 0;
  let isBroken = true;
  const first = await begin();
  const second = await begin(() => aheadMs);
  const hooks = {
    ...{ onOthers: () => {}, onRegained: async () => {}, onTakenOver: async () => {} },
    now: () => noon,
    onLead: async () => {
      if (isBroken) throw new Error("memory cannot be read");
    },
  };
  second.follow(hooks);
  const ledMs = second.leaderlessMs;
  await first.end();
  await expect(until(async () => second.look().then(() => second.holdsLead), 5000)).rejects.toThrow("memory");
  aheadMs += 61_000;
  const leaderlessMs = second.leaderlessMs;
  isBroken = false;
  await second.look();

  expect([ledMs, second.holdsLead, second.leads]).toEqual([0, true, true]);
  expect(leaderlessMs).toBeGreaterThanOrEqual(61_000);
  expect(second.leaderlessMs).toBe(0);
});

it("a request at a coordinator that does not lead is taken once by the leader", async () => {
  const subnets = [await world.site(1), await world.site(2), await world.site(3)];

  await leaveRequests(world.pool, subnets.slice(0, 2), "slow-fetches");
  await leaveRequests(world.pool, subnets, "denied");
  const taken = await Promise.all([takeRequests(world.pool), takeRequests(world.pool)]);

  const causes = new Map(taken.flat().map(({ subnetId, cause }) => [subnetId, cause]));
  expect(taken.flat().length).toBe(3);
  expect(subnets.map((subnetId) => causes.get(subnetId))).toEqual(["slow-fetches", "slow-fetches", "denied"]);
});

it("addresses are those at which a crawler connected within a day", async () => {
  await (await begin()).stateAddress("wss://a.example/crawler");
  await world.pool.query("update coordinator_address set seen_at = now() - interval '25 hours'");
  await (await begin()).stateAddress("wss://b.example/crawler");

  expect(await coordinatorAddresses(world.pool)).toEqual(["wss://b.example/crawler"]);
});

/** Crawlers without work are answered from memory, and woken when work of theirs opens. Over real stores and a manual clock. */
import { expect, it } from "vitest";
import { createDueWorkReads } from "#coordinator/crawl/frontier/due-work-store";
import { createFrontierStore } from "#coordinator/crawl/frontier/frontier-store";
import { handOutTasks } from "#coordinator/crawl/frontier/hand-out-tasks";
import { IdleCrawlers } from "#coordinator/crawl/frontier/idle-crawlers";
import type { CrawlerId } from "#core/ids";
import { noon, scope, seeds, storeWorld } from "../support/store-world.ts";

const world = storeWorld();

const handOut = { leaseSeconds: 60, urlsPerHost: 10, hostsPerRequest: 10, addressRestSeconds: 0 };

/** North owns 198.51.100.0/24; nothing of its is due before `dueAfterSeconds`. */
async function northWithOneHost(dueAfterSeconds: number) {
  const north = await world.delegatedHost("north", "http://a.example/");
  await world.rows(
    `update frontier_host set due_at = due_at + interval '${dueAfterSeconds} s';
     update frontier_url set next_fetch_at = next_fetch_at + interval '${dueAfterSeconds} s'`,
  );
  const clock = { now: noon, passedMs: 0 };
  const pass = (seconds: number) => {
    clock.now = new Date(clock.now.getTime() + seconds * 1000);
    clock.passedMs += seconds * 1000;
  };
  const woken: CrawlerId[] = [];
  const owners = new Map((await world.delegations.readAll()).map((one) => [one.subnetId, one.crawlerId]));
  let handedOut = 0;
  const idle: IdleCrawlers = new IdleCrawlers({
    reads: createDueWorkReads(world.pool),
    ownerOf: (subnetId) => owners.get(subnetId) ?? null,
    wake: (crawlerId) => woken.push(crawlerId) > 0,
    onNews: () => {},
    now: () => clock.now,
    nowMs: () => clock.passedMs,
    random: () => 0,
  });
  const frontier = createFrontierStore(world.pool, (hosts) => idle.noteHosts(hosts));
  const ask = async (crawlerId = north) =>
    await idle.answer(crawlerId, async () => {
      handedOut += 1;
      const request = { crawlerId, freeHosts: 5, draining: false, pagesLeftToday: 1000 };
      return await handOutTasks(request, frontier, handOut, clock.now);
    });
  idle.arrived(north, true);
  return { north, idle, frontier, owners, ask, pass, clock, woken, handedOut: () => handedOut };
}

it("answers a crawler without work from memory, for minutes", async () => {
  const { ask, handedOut } = await northWithOneHost(600);

  const first = await ask();
  const again = await ask();

  expect(first).toMatchObject({ leases: [], reason: "no URL of its subnets is due", askAgainMs: 300_000 });
  expect(again).toEqual(first);
  expect(handedOut()).toBe(0);
});

it("lets a crawler that cannot be woken poll every two seconds, from memory too", async () => {
  const { ask, idle, north, handedOut } = await northWithOneHost(600);
  idle.arrived(north, false);

  expect([(await ask()).askAgainMs, (await ask()).askAgainMs, handedOut()]).toEqual([2000, 2000, 0]);
});

it("wakes a crawler in the second in which one of its hosts becomes due, and leases that", async () => {
  const { ask, idle, north, pass, woken } = await northWithOneHost(10);
  await ask();
  await idle.turn();

  pass(9);
  await idle.turn();
  expect(woken).toEqual([]);
  pass(2);
  await idle.turn();
  expect(woken).toEqual([north]);
  expect((await ask()).leases).toMatchObject([{ host: "a.example" }]);
});

it("wakes a crawler when another crawler's lease on one of its hosts ends", async () => {
  const { ask, idle, frontier, north, woken } = await northWithOneHost(0);
  const south = await world.crawler("south");
  const [lease] = (await ask()).leases;
  await world.rows(`update lease set crawler_id = ${south}`);
  await world.rows(`update address_turn set crawler_id = ${south}`);
  expect((await ask()).leases).toEqual([]);

  await frontier.returnLeasesOf(south, noon);
  await idle.turn();

  expect(lease?.host).toBe("a.example");
  expect(woken).toEqual([north]);
});

it("wakes a crawler when a host's rest is over", async () => {
  const { ask, frontier, idle, north, pass, woken } = await northWithOneHost(0);
  const [lease] = (await ask()).leases;
  expect((await ask()).leases).toEqual([]);
  const returned = { leaseId: lease!.leaseId as never, crawlerId: north, hostWaitMs: 20_000 };
  await frontier.returnLease(returned, noon);

  pass(15);
  await idle.turn();
  expect(woken).toEqual([]);
  pass(7);
  await idle.turn();
  expect(woken).toEqual([north]);
});

it("wakes the crawler to which a subnet with open work is delegated", async () => {
  const { ask, idle, owners, woken } = await northWithOneHost(0);
  const south = await world.crawler("south");
  idle.arrived(south, true);
  expect((await ask(south)).leases).toEqual([]);
  await world.rows(`update delegation set crawler_id = ${south}`);
  for (const subnetId of owners.keys()) owners.set(subnetId, south);

  idle.noteLater(south);
  await idle.turn();

  expect(woken).toEqual([south]);
  expect((await ask(south)).leases).toHaveLength(1);
});

it("finds unreported work by checking idle crawlers in turn", async () => {
  const { ask, idle, north, woken } = await northWithOneHost(600);
  await ask();
  await world.rows("update frontier_host set due_at = timestamptz '2029-12-31'");

  await idle.turn();

  expect(woken).toEqual([north]);
});

it("wakes a crawler less and less often for work that it cannot lease", async () => {
  const { ask, idle, pass, woken } = await northWithOneHost(0);
  await world.rows(
    `insert into address_turn (address, crawler_id, since, leases, expires_at, rest_seconds)
     select address_key(addresses[1]), 999999, '2030-01-01T12:00:00Z', 1, '2030-01-01T13:00:00Z', 0 from frontier_host`,
  );

  const wokenAfter: number[] = [];
  await ask();
  for (let second = 1; second <= 32; second++) {
    pass(1);
    await idle.turn();
    if (woken.length > wokenAfter.length) {
      wokenAfter.push(second);
      expect((await ask()).leases).toEqual([]);
    }
  }

  expect(wokenAfter).toEqual([1, 3, 7, 15, 31]);
});

it("has a crawler ask again soon when work opened while it was answered", async () => {
  const { idle, north } = await northWithOneHost(600);
  const answer = idle.answer(north, async () => {
    throw new Error("nothing was open when it was looked");
  });
  idle.note(north);

  expect(await answer).toMatchObject({ leases: [], askAgainMs: 500 });
});

it("survives clock jumps of a day, forward and back", async () => {
  const { ask, idle, clock, pass, north, woken } = await northWithOneHost(10);
  await ask();
  await idle.turn();

  clock.now = new Date(clock.now.getTime() + 86_400_000);
  await idle.turn();
  expect(woken).toEqual([north]);
  clock.now = noon;
  expect((await ask()).leases).toEqual([]);
  pass(30);
  await idle.turn();
  await idle.turn();
  expect(woken).toEqual([north, north]);
});

it("checks a share of a large fleet each turn", async () => {
  const looked: number[] = [];
  const idle = new IdleCrawlers({
    reads: {
      crawlersWithWork: async (crawlerIds) => {
        looked.push(crawlerIds.length);
        return [];
      },
      dueBetween: async (_from, until) => ({ work: [], until }),
      openOf: async () => [],
    },
    ownerOf: () => null,
    wake: () => true,
    onNews: () => {},
    now: () => noon,
    ...{ nowMs: () => 0, random: () => 0 },
  });
  const fleet = Array.from({ length: 12_000 }, (_, index) => (index + 1) as CrawlerId);
  await Promise.all(fleet.map(async (crawlerId) => await idle.answer(crawlerId, () => Promise.reject())));
  expect(idle.count).toBe(12_000);
  expect(looked.every((count) => count <= 500)).toBe(true);

  looked.length = 0;
  for (let turn = 0; turn < 120; turn++) await idle.turn();
  expect(looked).toEqual(Array(120).fill(100));
});

it("reports admissions: new URLs of a known host wake its crawler", async () => {
  const { ask, idle, frontier, north, woken } = await northWithOneHost(600);
  await ask();

  await frontier.admit(seeds("http://a.example/new"), scope, noon);
  await idle.turn();

  expect(woken).toEqual([north]);
});

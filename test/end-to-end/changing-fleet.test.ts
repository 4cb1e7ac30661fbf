/**
 * A fleet that changes under a crawl, over real sockets, real processes and a real Postgres: of four crawlers
 * one is killed, one is drained by command, and one joins late. Afterwards every subnet has an owner who is
 * there, nobody has more than it may, no URL was fetched by two at the same time, and the probes stayed few.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { generateWorld } from "#ops/world/generate-world";
import { nearcrawl } from "../support/built-command.ts";
import { until } from "../support/until.ts";
import { type EmulatedFleet, emulatedFleet, frontPages } from "./emulated-fleet.ts";

const world = generateWorld({ seed: 11, sites: 24, crawlers: 4 });
const [killed, drained, late] = [1, 2, 3];
const nameOf = (index: number) => world.crawlers[index]!.name;
const scope = { pagesPerHost: 5, maxDepth: 10, admitNewHosts: true };

let fleet: EmulatedFleet;

beforeAll(async () => {
  fleet = await emulatedFleet({
    world,
    settings: {
      delegation: { expectedCrawlers: 3, settleSeconds: 10 },
      scope: { ...scope, admitNewHosts: false },
      heartbeatSeconds: 1,
      departureSeconds: 2,
      balance: { everySeconds: 1 },
    },
    // So slowly that the fleet changes in the middle of it.
    crawlerSettings: { politenessFloorMs: 800, limits: { pagesPerDay: 400, priority: 0 } },
  });
  await fleet.addCoordinator();
}, 60_000);

afterAll(async () => await fleet?.close(), 60_000);

const ownedBy = async (index: number): Promise<number> =>
  (
    await fleet.one<{ subnets: number }>(
      "select count(*)::int as subnets from delegation join crawler using (crawler_id) where name = $1",
      [nameOf(index)],
    )
  ).subnets;

const fetches = async (): Promise<number> =>
  (await fleet.one<{ fetches: number }>("select count(*)::int as fetches from page_fetch")).fetches;

describe("a fleet that changes under a crawl", { timeout: 330_000 }, () => {
  it("loses one crawler, drains another and takes a third in, and goes on", async () => {
    await fleet.startOne(0);
    const child = await fleet.startApart(killed);
    await fleet.startOne(drained);
    await until(async () => {
      const online = await fleet.one<{ online: number }>(
        "select count(*)::int as online from crawler where state = 'online'",
      );
      return online.online === 3;
    }, 20_000);
    await fleet.admit(frontPages(world.sites), scope);
    await until(async () => (await fetches()) >= 20 && (await ownedBy(killed)) > 0, 60_000);

    const atChange = await fetches();
    child.kill("SIGKILL");
    expect((await nearcrawl(["fleet", "drain", nameOf(drained)], { database: fleet.database })).code).toBe(0);
    await fleet.startOne(late);
    const joining =
      "select count(*)::int as joining from crawler where name = $1 and joining_since is not null";
    await until(async () => (await ownedBy(killed)) === 0 && (await ownedBy(drained)) === 0, 90_000);
    await until(
      async () => (await fleet.one<{ joining: number }>(joining, [nameOf(late)])).joining === 0,
      90_000,
    );
    await until(async () => {
      const { urlsPending, linksWaiting } = await fleet.frontier.progress();
      return urlsPending + linksWaiting === 0;
    }, 90_000);

    expect(await fetches()).toBeGreaterThan(atChange);
    expect(await ownedBy(late)).toBeGreaterThan(0);
  });

  it("leaves every subnet with an owner who is there, and nobody with more than it may", async () => {
    const rows = await fleet.rows<{ name: string; state: string; pages: number }>(
      `select c.name, c.state, coalesce(sum(h.url_count), 0)::int as pages
       from delegation d
       join crawler c using (crawler_id)
       left join frontier_host h on h.subnet_id = d.subnet_id
       group by c.name, c.state`,
    );

    expect(rows.map(({ name }) => name).sort()).toEqual([nameOf(0), nameOf(late)].sort());
    for (const row of rows) {
      expect(row.state).toBe("online");
      expect(row.pages).toBeLessThanOrEqual(400);
    }
  });

  it("never has a URL fetched by two crawlers at the same time", async () => {
    // What was under way in the killed process is fetched again, by another, after it.
    const overlapping = await fleet.one<{ count: number }>(
      `select count(*)::int as count
       from page_fetch a
       join page_fetch b
         on b.host_hash = a.host_hash and b.url_hash = a.url_hash and b.crawler_id <> a.crawler_id
       where a.fetched_at <= b.fetched_at
         and b.fetched_at < a.fetched_at + make_interval(secs => a.total_ms / 1000)`,
    );
    const open = await fleet.one<{ hosts: number }>(
      `select count(*)::int as hosts
       from (select host_hash from lease where closed_at is null group by host_hash having count(*) > 1) twice`,
    );

    expect([overlapping.count, open.hosts]).toEqual([0, 0]);
  });

  it("takes few probes for all that", async () => {
    const rounds = await fleet.one<{ probes: number; subnets: number }>(
      `select (select count(*)::int from probe) as probes, (select count(*)::int from delegation) as subnets`,
    );

    // Three of the first rounds at the most for each subnet, and as many again for those that changed hands.
    expect(rounds.probes).toBeLessThanOrEqual(6 * rounds.subnets);
  });
});

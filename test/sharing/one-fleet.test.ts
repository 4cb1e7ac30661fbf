/** Two whole coordinators with a crawler each: one fleet for rounds, whoever leads and wherever a crawler is connected. */
import { afterEach, beforeEach, expect, it } from "vitest";
import { readCoordinatorConfig } from "#coordinator/config";
import { type RunningCoordinator, startCoordinator } from "#coordinator/main";
import { randomSecrets } from "#coordinator/web/secrets";
import type { CrawlerId, SubnetId } from "#core/ids";
import { silentLog } from "#core/log";
import type { CrawlerHello } from "#protocol/messages";
import { helloOf } from "../gateway/gateway-on-loopback.ts";
import { RawCrawler } from "../gateway/raw-crawler.ts";
import { type FlowWorld, newFlowWorld } from "../support/flow-world.ts";
import { isLong } from "../support/long.ts";
import { noon, scope, seeds } from "../support/store-world.ts";
import { until } from "../support/until.ts";

let world: FlowWorld;
let running: RunningCoordinator[];
/** 5.1.1.0/24 and 5.1.2.0/24 in every coordinator's tree, with nothing to fetch yet. */
let subnets: readonly SubnetId[];
beforeEach(async () => {
  world = await newFlowWorld();
  subnets = [await world.subnet("5.1.1.0", "5.1.1.255"), await world.subnet("5.1.2.0", "5.1.2.255")];
  running = [];
});
afterEach(async () => {
  await Promise.all(running.map((coordinator) => coordinator.stop()));
  await world.close();
});

async function start(): Promise<RunningCoordinator> {
  const config = readCoordinatorConfig({
    listen: { port: 0 },
    delegation: { expectedCrawlers: 2, settleSeconds: 0.1, policy: "exhaustive" },
    // A late answer of a busy machine still counts.
    probe: { deadlineMs: 30_000 },
  });
  const coordinator = await startCoordinator({
    config,
    database: world.database,
    log: silentLog,
    version: "test",
  });
  running.push(coordinator);
  return coordinator;
}

/** A crawler that answers every probe with this time. */
async function come(
  name: string,
  { webUrl }: RunningCoordinator,
  rttMs: number,
  changes: Partial<CrawlerHello> = {},
): Promise<{ crawlerId: CrawlerId; crawler: RawCrawler; asked: string[]; coordinators: readonly string[] }> {
  const { secret: key, hash: keyHash } = randomSecrets.make();
  const crawlerId = await world.crawlers.register({ name, keyHash });
  const crawler = await RawCrawler.connect(`${webUrl.replace("http", "ws")}/crawler`);
  await crawler.send(helloOf(name, { key, ...changes }));
  const { coordinators = [] } = await crawler.next("coordinator:welcome");
  const asked: string[] = [];
  const answer = async () => {
    for (;;) {
      const { requestId, method, address } = await crawler.next("coordinator:probe");
      asked.push(address);
      const outcome = { type: "measured", method, rttMs, tries: 1 } as const;
      await crawler.send({ type: "crawler:probe-report", requestId, outcome });
    }
  };
  answer().catch(() => {});
  return { crawlerId, crawler, asked, coordinators };
}

const ownerOf = async (subnetId: number) =>
  (
    await world.rows<{ owner: number }>(
      `select crawler_id as owner from delegation where subnet_id = ${subnetId}`,
    )
  )[0]?.owner;
/** Adds URLs in the first or second subnet. */
async function fill(number: 1 | 2): Promise<SubnetId> {
  const subnetId = subnets[number - 1]!;
  await world.frontier.admit(seeds(`http://s${number}.example/`), scope, noon);
  await world.resolve(`s${number}.example`, `5.1.${number}.7`, subnetId);
  return subnetId;
}

const decided = async (subnetId: number, owner: number) => {
  await until(async () => (await ownerOf(subnetId)) === owner, 100_000);
};

it.runIf(isLong)(
  "a round finds the nearest wherever it is connected, also when the other coordinator has taken the lead",
  { timeout: 240_000 },
  async () => {
    const athens = await start();
    const berlin = await start();
    const far = await come("olive", athens, 40);
    const near = await come("linden", berlin, 4);
    await until(
      async () => (await world.rows("select from crawler where state = 'online'")).length === 2,
      20_000,
    );

    const first = await fill(1);
    await decided(first, near.crawlerId);
    // The leader ends, and its crawler moves to the other.
    await athens.stop();
    running = [berlin];
    const again = await come("beech", berlin, 2);
    const second = await fill(2);
    await decided(second, again.crawlerId);

    expect([far.asked.includes("5.1.1.7"), near.asked.includes("5.1.1.7")]).toEqual([true, true]);
    expect(near.asked.includes("5.1.2.7")).toBe(true);
    expect(
      await world.rows("select subnet_id from probe_round group by subnet_id having count(*) > 1"),
    ).toEqual([]);
    expect(await world.rows("select term::int from fleet_lead")).toEqual([{ term: 2 }]);
  },
);

it("a crawler that denies a target at the other coordinator is not asked to probe it", {
  timeout: 240_000,
}, async () => {
  const athens = await start();
  const berlin = await start();
  const olive = await come("olive", athens, 40);
  const denies = { networks: ["5.1.1.0/24"], domains: [] };
  const linden = await come("linden", berlin, 4, { denies });
  await until(async () => (await world.rows("select from crawler_denies")).length === 1, 20_000);

  const [denied, allowed] = [await fill(1), await fill(2)];
  await decided(denied, olive.crawlerId);
  await decided(allowed, linden.crawlerId);

  expect([linden.asked.includes("5.1.1.7"), linden.asked.includes("5.1.2.7")]).toEqual([false, true]);
});

it("crawlers learn where the other coordinators are, on arrival and when one starts later", async () => {
  const athens = await start();
  const olive = await come("olive", athens, 40);
  const berlin = await start();
  const url = ({ webUrl }: RunningCoordinator) => `${webUrl.replace("http", "ws")}/crawler`;
  const { urls } = await olive.crawler.next("coordinator:addresses");
  const linden = await come("linden", berlin, 4);

  expect(olive.coordinators).toEqual([url(athens)]);
  expect(urls.toSorted()).toEqual([url(athens), url(berlin)].toSorted());
  expect(linden.coordinators.toSorted()).toEqual([url(athens), url(berlin)].toSorted());
});

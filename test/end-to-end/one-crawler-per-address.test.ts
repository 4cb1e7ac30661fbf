/**
 * Three owners' hosts share each address. By the origins' own log, an address is never requested by two crawlers at a time, nor
 * by one faster than its pace, while subnets move, one crawler is killed and returns, and another is cut off and loses its
 * leases. Real crawlers, a real coordinator and database, the emulated Internet.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import type { RunningCoordinator } from "#coordinator/main";
import type { CrawlerId, SubnetId } from "#core/ids";
import { startCrawler } from "#crawler/main";
import type { Resident } from "#crawler/resident-crawler";
import { crawlerConfig } from "#crawler/settings/config";
import { newCrawlerKey } from "#ops/cli/crawler-key";
import { generateWorld } from "#ops/world/generate-world";
import { type RunningWorld, startWorld } from "#ops/world/main";
import { builtProgram } from "../support/built-command.ts";
import { FaultyRelay } from "../support/relay.ts";
import { newWorld, type World } from "../support/store-world.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { until } from "../support/until.ts";
import { giveSubnet, ownedScope, plainSites } from "./owned-hosts.ts";
import { crawlerUrl, startQuietCoordinator } from "./quiet-coordinator.ts";

const generated = generateWorld({ seed: 11, sites: 40, crawlers: 3 });
const plain = plainSites(generated);
const addresses = plain.slice(0, 3).map(({ address }) => address);
/** Three hosts at each address, one of each crawler. */
const sites = plain.slice(0, 9).map((site, at) => {
  const address = addresses[Math.floor(at / 3)]!;
  return { ...site, address, addresses: [address] };
});
const internetAsItIs = { ...generated, sites };
const pages = 6;
const [restMs, floorMs] = [500, 200];
const folder = temporaryFolder("nearcrawl-addresses-");

let world: World;
let internet: RunningWorld;
let coordinator: RunningCoordinator;
let relay: FaultyRelay;
const crawlers: Resident[] = [];
const children: ChildProcess[] = [];

beforeAll(async () => {
  world = await newWorld();
  internet = await startWorld(internetAsItIs);
}, 60_000);

afterAll(async () => {
  for (const child of children) child.kill("SIGKILL");
  await Promise.all(crawlers.map((crawler) => crawler.stop()));
  await relay?.close();
  await coordinator?.stop();
  await internet?.close();
  await world?.close();
  rmSync(folder, { recursive: true, force: true });
}, 60_000);

it("an address gets requests from one crawler at a time, at its pace, also when crawlers fail", async () => {
  const [north, south, east] = (await frontierOfThree()) as [Owner, Owner, Owner];
  coordinator = await startQuietCoordinator({ database: world.database, internet, settings });
  relay = await FaultyRelay.open(Number(new URL(coordinator.webUrl).port));

  const killed = await startApart(east, 2);
  await until(() => askedBy(2).length > 3, 20_000);
  crawlers.push(await startCrawler(crawlerConfig(settingsOf(south, 1, `http://127.0.0.1:${relay.port}`))));
  crawlers.push(await startCrawler(crawlerConfig(settingsOf(north, 0, coordinator.webUrl))));
  killed.kill("SIGKILL");
  await move(east, south);
  await startApart(east, 2);
  await until(() => askedBy(0).length + askedBy(1).length > 3, 40_000);
  relay.set({ type: "cut" });
  await move(south, north);
  const before = internet.requestLog.total;
  await until(() => internet.requestLog.total > before + 10, 40_000);
  await move(north, south);
  relay.set({ type: "open" });
  await until(() => addresses.every((address) => handedOn(address).length > 0), 40_000);

  for (const address of addresses) {
    const within = gapsAt(address).filter(({ isHandedOn }) => !isHandedOn);
    // A round trip more or less, and the resolution of the clocks.
    expect(least(handedOn(address)), `from crawler to crawler at ${address}`).toBeGreaterThan(restMs * 0.8);
    expect(least(within), `of one crawler at ${address}`).toBeGreaterThan(floorMs / 4 - 10);
  }
}, 150_000);

interface Owner {
  readonly crawlerId: CrawlerId;
  readonly subnetId: SubnetId;
  readonly name: string;
  readonly key: string;
}

/** Each crawler has a subnet, and one host at each of the addresses. */
async function frontierOfThree(): Promise<Owner[]> {
  const owners: Owner[] = [];
  for (const [index, { name }] of generated.crawlers.entries()) {
    const { key, keyHash } = newCrawlerKey();
    const crawlerId = await world.crawlers.register({ name, keyHash });
    const own = sites.filter((_, at) => at % 3 === index);
    const subnetId = await giveSubnet(world.pool, { crawlerId, index }, { sites: own, pages });
    owners.push({ crawlerId, subnetId, name, key });
  }
  return owners;
}

const settings = {
  delegation: { settleSeconds: 0 },
  scope: ownedScope,
  lease: { seconds: 3, urlsPerHost: 2, addressRestSeconds: restMs / 1000 },
  heartbeatSeconds: 1,
  departureSeconds: 3,
  balance: { policy: "none" },
};

const settingsOf = ({ name, key }: Owner, index: number, webUrl: string) => ({
  coordinatorUrl: crawlerUrl(webUrl),
  key,
  name,
  home: join(folder, name),
  publicAddress: generated.crawlers[index]!.address,
  proxy: internet.proxyUrlOf(index),
  coordinatorProxy: "none",
  resolvers: [internet.dnsAddress],
  politenessFloorMs: floorMs,
  responseTimeFactor: 0,
  probeMethods: ["connect" as const],
  limits: { priority: 0 },
});

/** In its own process, so that it can be killed. */
async function startApart(owner: Owner, index: number): Promise<ChildProcess> {
  const file = join(folder, `${owner.name}.json`);
  writeFileSync(file, JSON.stringify(settingsOf(owner, index, coordinator.webUrl)));
  const main = await builtProgram("migrating-crawler/main");
  const child = spawn(process.execPath, [main, file], { stdio: "ignore" });
  children.push(child);
  return child;
}

/** Moves the subnet with its hosts from one to the other, while it has open leases. */
async function move(from: Owner, to: Owner): Promise<void> {
  const moved = { subnetId: from.subnetId, from: from.crawlerId, to: to.crawlerId, rttMs: null };
  await world.delegations.move([{ ...moved, cause: "overload", reason: "as the test says" }], new Date());
}

const askedBy = (index: number) =>
  internet.requestLog.entries().filter(({ crawlerIndex }) => crawlerIndex === index);

interface Gap {
  readonly ms: number;
  readonly isHandedOn: boolean;
}

/** Times between the requests to an address, by its origin's log. */
function gapsAt(address: string): Gap[] {
  const hosts = sites.filter((site) => site.address === address).map(({ host }) => host);
  const asked = internet.requestLog.entries().filter(({ host }) => hosts.includes(host));
  return asked.slice(1).map((request, at) => ({
    ms: request.atMs - asked[at]!.atMs,
    isHandedOn: request.crawlerIndex !== asked[at]!.crawlerIndex,
  }));
}

const handedOn = (address: string) => gapsAt(address).filter(({ isHandedOn }) => isHandedOn);
const least = (gaps: readonly Gap[]) => Math.min(...gaps.map(({ ms }) => ms));

/**
 * A whole coordinator on a real database whose machine's clock is a day ahead for a short time, as by a slip of an operator or of
 * a time server: what it handed out and took meanwhile keeps nothing waiting afterwards.
 */
import { readdirSync } from "node:fs";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { readCoordinatorConfig } from "#coordinator/config";
import { type RunningCoordinator, startCoordinator } from "#coordinator/main";
import type { AlertList } from "#coordinator/tell/overview/alert-rules";
import { randomSecrets } from "#coordinator/web/secrets";
import { silentLog } from "#core/log";
import { coordinatorCommand } from "#ops/cli/commands/coordinator";
import type { Lease } from "#protocol/lease";
import { RawCrawler } from "../gateway/raw-crawler.ts";
import { inProcess } from "../support/command-in-process.ts";
import { everyRead } from "../support/every-read.ts";
import { type FlowWorld, newFlowWorld } from "../support/flow-world.ts";
import { arrivedResult, scope, seeds } from "../support/store-world.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { until } from "../support/until.ts";

const dayMs = 86_400_000;

let world: FlowWorld;
let coordinator: RunningCoordinator | null;
let aheadMs: number;
beforeEach(async () => {
  world = await newFlowWorld();
  [coordinator, aheadMs] = [null, 0];
});
afterEach(async () => {
  await coordinator?.stop();
  await world.close();
});

const machineClock = {
  wall: () => new Date(Date.now() + aheadMs),
  steadyMs: () => performance.now(),
  uptimeMs: () => performance.now(),
};

async function start(): Promise<RunningCoordinator> {
  const config = readCoordinatorConfig({
    ...{ listen: { port: 0 }, lease: { urlsPerHost: 1, addressRestSeconds: 0 }, logLevel: "silent" },
  });
  coordinator = await startCoordinator({
    ...{ config, database: world.database, log: silentLog, version: "test", machineClock },
  });
  return coordinator;
}

const ready = async () => {
  const answer = await fetch(new URL("/ready", coordinator!.webUrl));
  return { status: answer.status, ...((await answer.json()) as { reason?: string }) };
};

async function come(key: string): Promise<RawCrawler> {
  const url = `${coordinator!.webUrl.replace("http", "ws")}/crawler`;
  return await RawCrawler.arrive(url, "north", { key });
}

/** What it is handed out; null: nothing, however often it asks. */
async function nextLease(crawler: RawCrawler, times = 100): Promise<Lease | null> {
  for (let asked = 0; asked < times; asked += 1) {
    await crawler.send({ type: "crawler:ready", freeHosts: 1 });
    const { leases } = await crawler.next("coordinator:tasks");
    if (leases[0] !== undefined) return leases[0] as Lease;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  return null;
}

async function fetchOne(crawler: RawCrawler, sequence: number, { leaseId, urls }: Lease): Promise<void> {
  const { result } = arrivedResult({ sequence, leaseId, url: urls[0]!.url });
  const fetchedAt = new Date().toISOString();
  await crawler.send({ type: "crawler:result", sequence, leaseId, result: { ...result, fetchedAt } });
  await crawler.next("coordinator:acknowledge");
}

it("hosts are crawled at once when a clock that was a day ahead for a moment is right again", async () => {
  const { secret: key, hash: keyHash } = randomSecrets.make();
  const north = await world.crawlers.register({ name: "north", keyHash });
  const subnetId = await world.subnet("5.1.1.0", "5.1.1.255");
  const began = new Date();
  await world.delegations.delegateOwnSubnet(subnetId, north, began);
  await world.frontier.admit(
    seeds(...["", "a", "b", "c"].map((path) => `http://s1.example/${path}`)),
    scope,
    began,
  );
  await world.frontier.saveResolutions(
    [{ type: "resolved", host: "s1.example", addresses: ["5.1.1.7"], subnetId, ttlSeconds: 3600 }],
    began,
  );
  await start();
  const crawler = await come(key);
  await fetchOne(crawler, 1, (await nextLease(crawler))!);

  aheadMs = dayMs;
  const granted = await nextLease(crawler, 3);
  if (granted !== null) await fetchOne(crawler, 2, granted);
  const during = await ready();
  const { alerts } = (await (await fetch(new URL("/api/alerts", coordinator!.webUrl))).json()) as AlertList;
  const reports = everyRead(world.pool, () => performance.now());
  const limit = async () => (await reports.queueAges(new Date())).verdict;
  await until(async () => (await limit()).limitedBy === "coordinator-clock", 20_000);
  const verdict = await limit();
  aheadMs = 0;
  const next = await nextLease(crawler);

  expect(next?.urls).toHaveLength(1);
  expect(during).toMatchObject({
    status: 503,
    reason: expect.stringContaining("own clock jumped ahead by 24 hours"),
  });
  expect(alerts.find(({ name }) => name === "clock-wrong")).toMatchObject({
    severity: "critical",
    words: expect.stringContaining("his coordinator's own clock jumped ahead by 24 hours"),
    advice: expect.stringContaining("timedatectl"),
  });
  expect(verdict.words).toContain("limited by a clock: ");
  expect(await ready()).toMatchObject({ status: 200 });
  const [late] = await world.rows<{ hosts: number; turns: number; leases: number; incidents: number }>(
    `select (select count(*)::int from frontier_host where not_before > now() + interval '1 hour') as hosts,
       (select count(*)::int from address_turn where greatest(free_at, expires_at) > now() + interval '1 hour') as turns,
       (select count(*)::int from lease where expires_at > now() + interval '1 hour') as leases,
       (select count(*)::int from incident) as incidents`,
  );
  expect(late).toEqual({ hosts: 0, turns: 0, leases: 0, incidents: 0 });
}, 60_000);

it("a start by a clock that differs from the database's is refused before anything is written", async () => {
  aheadMs = -20_000;
  await expect(start()).rejects.toThrow(
    /this coordinator's own clock is 20 s behind the database server's: let NTP set it \(timedatectl\)/,
  );
  const [written] = await world.rows<{ coordinators: number }>(
    "select count(*)::int as coordinators from coordinator_place",
  );
  expect(written).toEqual({ coordinators: 0 });
});

it.each([
  ["1970", 0],
  ["2107", Date.UTC(2107, 0, 1)],
])("a clock at %s is reported before anything is written", async (year, atMs) => {
  const home = temporaryFolder("nearcrawl-wrong-clock-");
  vi.useFakeTimers({ toFake: ["Date"], now: atMs });
  try {
    const outcome = await inProcess(coordinatorCommand(), ["add-crawler", "athens", "--home", home]);
    expect(outcome).toMatchObject({ code: 1, out: "" });
    expect(outcome.err).toContain(`this machine's clock shows ${year}-01-01, which cannot be`);
  } finally {
    vi.useRealTimers();
  }
  expect(readdirSync(home)).toEqual([]);
});

/**
 * Two joined crawlers of one partner, each with its own folder, a real coordinator and database, and the emulated Internet:
 * enough for one of them to move to the other's host.
 */
import { mkdirSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { RunningCoordinator } from "#coordinator/main";
import { createMoveStore } from "#coordinator/place/crawlers/move-store";
import type { CrawlerId } from "#core/ids";
import { writeMembership } from "#crawler/core/membership";
import { startCrawler } from "#crawler/main";
import { homeSettings } from "#crawler/membership/home-folder";
import { openIdentity } from "#crawler/membership/identity";
import type { Resident } from "#crawler/resident-crawler";
import { Spool } from "#crawler/spool/spool";
import { newCrawlerKey } from "#ops/cli/crawler-key";
import { generateWorld } from "#ops/world/generate-world";
import { type RunningWorld, startWorld } from "#ops/world/main";
import { packResult } from "#protocol/packed/message-frames";
import { arrivedResult, newWorld } from "../support/store-world.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { giveSubnet, ownedScope, plainSites } from "./owned-hosts.ts";
import { crawlerUrl, startQuietCoordinator } from "./quiet-coordinator.ts";

const generated = generateWorld({ seed: 11, sites: 40, crawlers: 2 });
const sites = plainSites(generated);

export const floorMs = 100;

export interface Host {
  readonly home: string;
  readonly name: string;
  readonly crawlerId: CrawlerId;
  /** Of its own identity. */
  readonly publicKey: string;
}

export async function newMovingWorld() {
  const world = await newWorld();
  const { pool } = world.database;
  const internet: RunningWorld = await startWorld({ ...generated, sites });
  const folder = realpathSync(temporaryFolder("nearcrawl-moves-"));
  let coordinator: RunningCoordinator = await start();
  const port = Number(new URL(coordinator.webUrl).port);
  const running: Resident[] = [];
  let hosts = 0;

  async function start(port = 0): Promise<RunningCoordinator> {
    const settings = {
      ...{ delegation: { settleSeconds: 0 }, scope: ownedScope, lease: { urlsPerHost: 5 } },
      ...{ heartbeatSeconds: 1, balance: { policy: "none" } },
    };
    return await startQuietCoordinator({ database: world.database, internet, settings, port });
  }

  /** A folder whose crawler has joined and owns a subnet with this number of hosts and pages. */
  async function host(
    name: string,
    owned: { readonly hosts: number; readonly pages: number },
  ): Promise<Host> {
    const index = hosts++ % 2;
    const home = join(folder, name);
    mkdirSync(home);
    const { key, keyHash } = newCrawlerKey();
    const crawlerId = await world.crawlers.register({ name, keyHash });
    const { publicKey } = openIdentity(home);
    await pool.query("update crawler set public_key = $2 where crawler_id = $1", [crawlerId, publicKey]);
    writeMembership(home, {
      coordinatorUrl: crawlerUrl(coordinator.webUrl),
      name,
      certificatePin: null,
      releaseKeys: ["A".repeat(43)],
      releaseThreshold: 1,
      key,
      ticket: null,
    });
    writeFileSync(
      join(home, "settings.toml"),
      [
        `publicAddress = "${generated.crawlers[index]!.address}"`,
        `proxy = "${internet.proxyUrlOf(index)}"`,
        `coordinatorProxy = "none"`,
        `resolvers = ["${internet.dnsAddress}"]`,
        `politenessFloorMs = ${floorMs}`,
        "responseTimeFactor = 0",
        `probeMethods = ["connect"]`,
      ].join("\n"),
    );
    const own = sites.splice(0, owned.hosts);
    await giveSubnet(pool, { crawlerId, index: hosts }, { sites: own, pages: owned.pages });
    return { home, name, crawlerId, publicKey };
  }

  /** As after a kill before anything was shipped: its results wait in its spool. */
  async function leaseAndKeep({ crawlerId, home }: Host): Promise<void> {
    const leases = await world.lease(crawlerId, new Date());
    const spool = new Spool({ home, maxBytes: 1e9 });
    for (const { leaseId, urls } of leases)
      for (const { url } of urls)
        spool.append(leaseId, packResult(leaseId, arrivedResult({ sequence: 1, leaseId, url }).result));
    spool.close();
    await pool.query("insert into spool (crawler_id, spool_id) values ($1, $2)", [crawlerId, spool.id]);
  }

  const rows = async <Row extends object>(sql: string, values: readonly unknown[] = []): Promise<Row[]> =>
    (await pool.query<Row>(sql, [...values])).rows;

  return {
    pool,
    database: world.database,
    moves: createMoveStore(pool),
    internet,
    host,
    leaseAndKeep,
    rows,
    /** From the folder alone; gives the reason of a refusal, if any. */
    run: async ({ home }: Pick<Host, "home">) => {
      let refused: string | null = null;
      const crawler = await startCrawler(homeSettings(home), {
        onRefused: ({ reason }) => {
          refused = reason;
        },
      });
      running.push(crawler);
      return { crawler, refusal: () => refused };
    },
    stopCoordinator: async () => await coordinator.stop(),
    startCoordinator: async () => {
      coordinator = await start(port);
    },
    stopCrawlers: async () => {
      await Promise.all(running.splice(0).map((crawler) => crawler.stop()));
    },
    close: async () => {
      await Promise.all(running.map((crawler) => crawler.stop()));
      await coordinator.stop();
      await internet.close();
      await world.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

export type MovingWorld = Awaited<ReturnType<typeof newMovingWorld>>;

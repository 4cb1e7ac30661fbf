/**
 * Two coordinators as processes of their own on one database, real crawlers in this process, each at home at one of the two,
 * and the emulated Internet. A coordinator can be killed and comes back at the same address.
 */
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createCrawlerStore } from "#coordinator/crawlers/crawler-store";
import { admitUrls } from "#coordinator/frontier/admit-urls";
import type { CrawlScope } from "#coordinator/frontier/frontier";
import { createFrontierStore, createRejectedUrlStore } from "#coordinator/frontier/frontier-store";
import { quietLog } from "#crawler/core/log";
import type { RunningCrawler } from "#crawler/crawler-process";
import { startCrawler } from "#crawler/main";
import { type CrawlerSettings, crawlerConfig } from "#crawler/settings/config";
import type { Database } from "#db/server-database";
import { newCrawlerKey } from "#ops/cli/crawler-key";
import type { RunningWorld } from "#ops/world/main";
import type { World } from "#ops/world/model";

export type Side = 0 | 1;
export const otherSide = (side: Side): Side => (side === 0 ? 1 : 0);

interface SharedFleetOptions {
  readonly database: Database;
  /** The built command's file. */
  readonly main: string;
  readonly world: World;
  readonly internet: RunningWorld;
  readonly folder: string;
  /** Of both coordinators. */
  readonly settings: Readonly<Record<string, unknown>>;
  readonly crawlerSettings: Partial<CrawlerSettings>;
  /** Of each coordinator, beside what leads it to the database. */
  readonly environment?: (side: Side) => Readonly<Record<string, string>>;
}

interface Coordinator {
  child: ChildProcess | null;
  /** Where it was reached; kept when it is gone. */
  port: number;
}

interface Session {
  /** Null: none. */
  side: Side | null;
  atMs: number;
}

/** What must not be, and how much was done. */
export interface SharedFigures {
  readonly subnets: number;
  readonly roundsTwice: number;
  readonly movedAway: number;
  readonly urls: number;
  readonly fetchedTwice: number;
  readonly pending: number;
}

export class SharedFleet {
  readonly #options: SharedFleetOptions;
  readonly #coordinators: readonly [Coordinator, Coordinator] = [
    { child: null, port: 0 },
    { child: null, port: 0 },
  ];
  readonly #crawlers = new Map<number, RunningCrawler>();
  readonly #settings = new Map<number, CrawlerSettings>();
  readonly sessions = new Map<number, Session>();
  readonly frontier;

  constructor(options: SharedFleetOptions) {
    this.#options = options;
    this.frontier = createFrontierStore(options.database.pool);
  }

  /** Resolves when it listens. */
  async startCoordinator(side: Side): Promise<void> {
    const { database, internet, folder, main, settings } = this.#options;
    const coordinator = this.#coordinators[side];
    const home = join(folder, `coordinator-${side}`);
    mkdirSync(home, { recursive: true });
    const file = join(home, "test-settings.json");
    const stated = {
      listen: { port: coordinator.port },
      resolvers: [internet.dnsAddress],
      logLevel: "silent",
    };
    writeFileSync(file, JSON.stringify({ ...stated, ...settings }));
    const env = {
      ...{ ...process.env, DATABASE_URL: database.url, NEARCRAWL_SCHEMA: database.schema },
      ...this.#options.environment?.(side),
    };
    const child = fork(main, ["coordinator", "--home", home, "--config", file], {
      env,
      execArgv: [],
      stdio: ["ignore", "ignore", "pipe", "ipc"],
    });
    let complaints = "";
    child.stderr?.on("data", (text) => {
      complaints = `${complaints}${text}`.slice(-2000);
    });
    const listening = new Promise<string>((resolve, reject) => {
      child.on("message", (message: { type?: string; webUrl?: string }) => {
        if (message.type === "listening") resolve(message.webUrl ?? "");
      });
      child.once("exit", (code) => reject(new Error(`the coordinator ended with ${code}: ${complaints}`)));
    });
    coordinator.child = child;
    coordinator.port = Number(new URL(await listening).port);
  }

  /** Returns when it was done, by performance.now(). */
  async kill(side: Side): Promise<number> {
    const { child } = this.#coordinators[side];
    if (child === null) throw new Error("it does not run");
    const gone = once(child, "exit");
    const atMs = performance.now();
    child.kill("SIGKILL");
    await gone;
    this.#coordinators[side].child = null;
    return atMs;
  }

  /** It does nothing more, and its connections stand, as on a machine that is lost. */
  signal(side: Side, signal: "SIGSTOP" | "SIGCONT"): void {
    this.#coordinators[side].child?.kill(signal);
  }

  urlOf(side: Side): string {
    return `ws://127.0.0.1:${this.#coordinators[side].port}/crawler`;
  }

  /** Registered when it starts for the first time; it knows this coordinator, and of others what it is told. */
  async startCrawler(index: number, home: Side): Promise<void> {
    const known = this.#settings.get(index) ?? (await this.#settingsOf(index));
    const settings = { ...known, coordinatorUrl: this.urlOf(home) };
    this.#settings.set(index, settings);
    this.sessions.set(index, { side: null, atMs: performance.now() });
    const note = (side: Side | null) => this.sessions.set(index, { side, atMs: performance.now() });
    const log = {
      ...quietLog,
      info: (fields: { coordinatorUrl?: string }, words: string) => {
        if (words === "the coordinator welcomed this crawler")
          note(fields.coordinatorUrl === this.urlOf(0) ? 0 : 1);
      },
      warn: (_: object, words: string) => {
        if (words === "the link to the coordinator is down") note(null);
      },
    };
    this.#crawlers.set(index, await startCrawler(crawlerConfig(settings), { log }));
  }

  async stopCrawler(index: number): Promise<void> {
    await this.#crawlers.get(index)?.stop();
    this.#crawlers.delete(index);
    this.sessions.delete(index);
  }

  connectedTo(side: Side): number[] {
    return [...this.sessions].filter(([, session]) => session.side === side).map(([index]) => index);
  }

  async admit(hosts: readonly string[], scope: CrawlScope): Promise<void> {
    const { pool } = this.#options.database;
    const ports = { frontier: this.frontier, rejected: createRejectedUrlStore(pool) };
    await admitUrls(
      hosts.map((host) => `http://${host}/`),
      ports,
      { scope, now: new Date() },
    );
  }

  async one<Row extends object>(text: string, values: readonly unknown[] = []): Promise<Row> {
    return (await this.#options.database.pool.query<Row>(text, [...values])).rows[0]!;
  }

  async count(text: string): Promise<number> {
    return (await this.one<{ count: number }>(`select count(*)::int as count ${text}`)).count;
  }

  /** How many times somebody has taken the lead. */
  async term(): Promise<number> {
    return (await this.one<{ term: number }>("select term::int as term from fleet_lead")).term;
  }

  async figures(): Promise<SharedFigures> {
    const { urlsPending: pending } = await this.frontier.progress(new Date());
    const twice = (of: string) => `from (select ${of} having count(*) > 1) twice`;
    return {
      pending,
      subnets: await this.count("from delegation where cause = 'probe-round'"),
      roundsTwice: await this.count(
        twice(`from probe_round where cause = 'new-subnet' and crawler_id is not null group by subnet_id`),
      ),
      movedAway: await this.count("from delegation_history where cause = 'crawler-left'"),
      urls: await this.count("from (select distinct host_hash, url_hash from page_fetch) urls"),
      fetchedTwice: await this.count(twice("from page_fetch group by host_hash, url_hash")),
    };
  }

  async close(): Promise<void> {
    await Promise.all([...this.#crawlers.values()].map((crawler) => crawler.stop()));
    for (const { child } of this.#coordinators) {
      if (child === null || child.exitCode !== null) continue;
      const gone = once(child, "exit");
      child.kill("SIGKILL");
      await gone;
    }
  }

  async #settingsOf(index: number): Promise<CrawlerSettings> {
    const { database, world, internet, folder, crawlerSettings } = this.#options;
    const { name, address } = world.crawlers[index]!;
    const { key, keyHash } = newCrawlerKey();
    await createCrawlerStore(database.pool).register({ name, keyHash });
    return {
      ...{ coordinatorUrl: "", key, name, home: join(folder, name), publicAddress: address },
      ...{ proxy: internet.proxyUrlOf(index), coordinatorProxy: "none", resolvers: [internet.dnsAddress] },
      ...{ responseTimeFactor: 0, probeMethods: ["head", "connect"] },
      // The other coordinator, which the first one names, is at a special-purpose address here.
      allowRanges: ["127.0.0.1"],
      ...crawlerSettings,
    };
  }
}

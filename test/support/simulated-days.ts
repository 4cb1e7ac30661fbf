/**
 * Days of a small crawl on a manual clock: real stores receive each day's results, and all scheduled jobs run twice a day. It
 * shows in minutes what grows from day to day.
 */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { scheduleChanges } from "#coordinator/crawl/changes/start";
import { scheduleChannels } from "#coordinator/crawl/channels/start";
import { createFrontierStore } from "#coordinator/crawl/frontier/frontier-store";
import { applyLinks, defaultOutboxBounds } from "#coordinator/crawl/frontier/link-outbox-store";
import { frontierOrder } from "#coordinator/crawl/frontier/order/strategies";
import { scheduleHostWorths } from "#coordinator/crawl/frontier/start";
import { recrawlDuties } from "#coordinator/crawl/recrawl/start";
import { defaultRecrawlSettings } from "#coordinator/crawl/recrawl/visit-findings";
import { createResultStore } from "#coordinator/crawl/results/result-store";
import { takeResults } from "#coordinator/crawl/results/take-results";
import { scheduleSubmissions } from "#coordinator/crawl/submissions/start";
import { createSubmissionStore } from "#coordinator/crawl/submissions/submission-store";
import { createTrustStore } from "#coordinator/crawl/trust/trust-store";
import { rankLocally } from "#coordinator/crawl/web-graph/local-rank-store";
import { defaultPageRankSettings } from "#coordinator/crawl/web-graph/page-rank";
import { createAuditLog } from "#coordinator/database/audit-log";
import { createCrawlerStore } from "#coordinator/place/crawlers/crawler-store";
import { createAccuracyStore } from "#coordinator/place/delegation/accuracy-store";
import { createDelegationStore } from "#coordinator/place/delegation/store";
import { type PolicySettings, policySections } from "#coordinator/run/settings/schema";
import { createIncidentStore } from "#coordinator/tell/fleet/incident-store";
import { figureWriter, forgetFigures } from "#coordinator/tell/overview/figure-store";
import { createMetrics } from "#coordinator/tell/overview/metrics";
import { observeOperation, scheduleUpkeep } from "#coordinator/tell/overview/start";
import { scheduleSites } from "#coordinator/tell/sites/start";
import { retentionDuties } from "#coordinator/tell/storage/start";
import { asLeaseId, asSubnetId, type CrawlerId, type SubnetId } from "#core/ids";
import { IncidentLog } from "#core/incidents";
import { silentLog } from "#core/log";
import { seededRandom } from "#core/random";
import type { Timekeeper } from "#core/scheduler";
import { urlKeyOf } from "#core/url-key";
import type { Database } from "#db/server-database";
import type { Lease } from "#protocol/lease";
import type { CrawlerHeartbeat, CrawlerHello } from "#protocol/messages";
import type { FetchResult } from "#protocol/result";
import { applyImport } from "#rir-import/apply";
import { everyRead } from "./every-read.ts";

export interface SimulatedSettings {
  /** At most 250, each in its own /24. */
  readonly hosts: number;
  readonly urlsPerHost: number;
  readonly newUrlsPerDay: number;
  readonly crawlers: number;
  readonly roundsPerDay: number;
  readonly retention: PolicySettings["retention"];
  readonly changes: PolicySettings["changes"];
}

const firstDay = Date.UTC(2031, 0, 1);
const dayMs = 86_400_000;
const scope = { pagesPerHost: 10_000, maxDepth: 8, admitNewHosts: true };
const leaseSeconds = 300;
const rankEveryDays = 7;

export class SimulatedDays {
  readonly #database: Database;
  readonly #settings: SimulatedSettings;
  readonly #random = seededRandom(19);
  readonly #jobs: (() => Promise<unknown>)[] = [];
  readonly #incidents: IncidentLog;
  readonly #stores;
  #nowMs = firstDay;
  #crawlers: CrawlerId[] = [];
  #away: CrawlerId | null = null;
  #subnets: SubnetId[] = [];
  #sequence = 0;
  #day = 0;

  constructor(database: Database, settings: SimulatedSettings) {
    const { pool } = database;
    this.#database = database;
    this.#settings = settings;
    this.#stores = {
      crawlers: createCrawlerStore(pool),
      delegations: createDelegationStore(pool),
      frontier: createFrontierStore(pool),
      results: createResultStore(pool),
      incidents: createIncidentStore(pool),
      accuracy: createAccuracyStore(pool),
      audit: createAuditLog(pool),
      submissions: createSubmissionStore(pool),
    };
    this.#incidents = new IncidentLog({ store: this.#stores.incidents, log: silentLog, onNoted: () => {} });
  }

  get now(): Date {
    return new Date(this.#nowMs);
  }

  /** Sets up the registry, crawlers, first URLs and jobs. */
  async begin(): Promise<void> {
    const { crawlers: count, hosts, urlsPerHost } = this.#settings;
    await this.#importRegistry();
    const { rows } = await this.#database.pool.query<{ subnet_id: number }>(
      "select subnet_id from subnet where first_address >= '5.1.0.0' and last_address < '5.1.255.255' order by first_address",
    );
    this.#subnets = rows.map((row) => asSubnetId(row.subnet_id));
    for (let number = 1; number <= count; number++) {
      const name = `crawler-${number}`;
      const crawlerId = await this.#stores.crawlers.register({ name, keyHash: `key of ${name}` });
      await this.#arrive(crawlerId, name);
      this.#crawlers.push(crawlerId);
    }
    for (let host = 0; host < hosts; host++) {
      await this.#admit(Array.from({ length: urlsPerHost }, (_, page) => urlOf(host, page)));
      const subnetId = this.#subnets[host]!;
      await this.#stores.frontier.saveResolutions(
        [
          {
            ...{ type: "resolved", host: `s${host}.example`, addresses: [`5.1.${host}.7`] },
            ...{ subnetId, ttlSeconds: 1000 * 86_400 },
          },
        ],
        this.now,
      );
      await this.#round(subnetId, "new-subnet");
    }
    await this.#scheduleJobs();
  }

  /** Each half of the day has fetches, probes and a run of every job. */
  async nextDay(): Promise<void> {
    const { roundsPerDay, newUrlsPerDay, hosts } = this.#settings;
    await this.#comeAndGo();
    for (const half of [0, 1]) {
      this.#nowMs = firstDay + this.#day * dayMs + (half * dayMs) / 2 + 3_600_000;
      await this.#fetchWhatIsDue();
      for (let round = 0; round < roundsPerDay / 2; round++)
        await this.#round(this.#subnets[this.#below(hosts)]!, "refresh");
      await this.#noteFigures();
      this.#nowMs += 2 * leaseSeconds * 1000;
      for (const job of this.#jobs) await job();
    }
    const added = Array.from({ length: newUrlsPerDay }, (_, index) =>
      urlOf(this.#below(hosts), 100_000 + this.#day * newUrlsPerDay + index),
    );
    await this.#admit(added);
    await this.#deedsOfPeople();
    await this.#samples();
    this.#day++;
    if (this.#day % rankEveryDays === 0)
      await rankLocally(this.#database.pool, {
        settings: defaultPageRankSettings,
        write: true,
        at: this.now,
      });
  }

  // The events of a day.

  #below(count: number): number {
    return Math.floor(this.#random() * count);
  }

  async #admit(urls: readonly string[]): Promise<void> {
    const keyed = urls.map((url) => ({ key: keyOf(url), depth: 0 }));
    await this.#stores.frontier.admit(keyed, scope, this.now);
  }

  async #arrive(crawlerId: CrawlerId, name: string): Promise<void> {
    const hello = helloOf(name);
    await this.#stores.crawlers.arrive({ crawlerId, hello, address: null, subnetId: null, now: this.now });
    await this.#stores.crawlers.hasJoined(crawlerId);
    const others = this.#crawlers.filter((one) => one !== crawlerId);
    const rtts = others.map((to) => ({ from: crawlerId, to, rttMs: 20, method: "connect" as const }));
    await this.#stores.crawlers.saveRtts(rtts, this.now);
  }

  /** One crawler is away for two days of every ten; its subnets go to another. */
  async #comeAndGo(): Promise<void> {
    const { crawlers, delegations } = this.#stores;
    const now = this.now;
    if (this.#day % 10 === 4) {
      const crawlerId = this.#crawlers[this.#below(this.#crawlers.length)]!;
      await crawlers.leave({ crawlerId, reason: "its power failed", now });
      await this.#stores.frontier.returnLeasesOf(crawlerId, now);
      this.#crawlers = this.#crawlers.filter((one) => one !== crawlerId);
      const { rows } = await this.#database.pool.query<{ subnet_id: number }>(
        "select subnet_id from delegation where crawler_id = $1",
        [crawlerId],
      );
      const moves = rows.map(({ subnet_id }) => ({
        ...{ subnetId: asSubnetId(subnet_id), from: crawlerId, cause: "crawler-left" as const, rttMs: 20 },
        ...{ to: this.#crawlers[this.#below(this.#crawlers.length)]!, reason: "it left" },
      }));
      await delegations.move(moves, now);
      this.#away = crawlerId;
    }
    if (this.#day % 10 === 6 && this.#away !== null) {
      await this.#arrive(this.#away, `crawler-${this.#away}`);
      this.#crawlers.push(this.#away);
      this.#away = null;
    }
  }

  /** One lease in ten expires and one is returned; one page in ten has changed, and one fetch in ten fails. */
  async #fetchWhatIsDue(): Promise<void> {
    const { frontier, results, crawlers } = this.#stores;
    for (const crawlerId of this.#crawlers) {
      const leases = await frontier.leaseHosts({
        ...{ crawlerId, hosts: 1000, urlsPerHost: 20, leaseSeconds, addressRestSeconds: 0 },
        now: this.now,
      });
      const fetched: Lease[] = [];
      for (const lease of leases) {
        const fate = this.#below(10);
        if (fate === 0) continue;
        if (fate > 1) fetched.push(lease);
        else await frontier.returnLease({ crawlerId, leaseId: asLeaseId(lease.leaseId) }, this.now);
      }
      const arrived = fetched.flatMap((lease) =>
        lease.urls.map(({ url }) => ({
          ...{ leaseId: asLeaseId(lease.leaseId), sequence: ++this.#sequence, wireBytes: 400 },
          result: this.#resultOf(url),
        })),
      );
      const spoolId = `00000000-0000-4000-8000-${String(crawlerId).padStart(12, "0")}`;
      for (let start = 0; start < arrived.length; start += 100)
        await takeResults(
          { crawlerId, spoolId, results: arrived.slice(start, start + 100) },
          results,
          { scope, recrawl: defaultRecrawlSettings },
          this.now,
        );
      await crawlers.heartbeats([{ crawlerId, heartbeat, at: this.now }]);
    }
  }

  #resultOf(url: string): FetchResult {
    const base = {
      url,
      fetchedAt: this.now.toISOString(),
      address: null,
      timing: { dnsMs: 1, connectMs: 10, tlsMs: null, firstByteMs: 20, totalMs: 30 },
      ...{ wireBytes: 1000, bodyBytes: 3000, etag: null, lastModified: null, hostDelayMs: 1000 },
    };
    if (this.#below(10) === 0)
      return {
        ...base,
        outcome: { type: "failed", blame: "network", code: "timed-out", reason: "30 s" },
        page: null,
      };
    const version = this.#below(10) === 0 ? this.#day : 0;
    const number = `${url.length}${url.split("/").at(-1)}`;
    const links = Array.from({ length: 5 }, (_, index) => ({
      url: urlOf((Number(number) + index) % this.#settings.hosts, index),
      anchor: `to ${index}`,
      nofollow: false,
    }));
    return {
      ...base,
      outcome: { type: "fetched", status: 200, truncated: false },
      page: {
        ...{ contentType: "text/html", charset: "utf-8", canonicalUrl: null, description: "" },
        title: `Page ${number} of day ${version}`,
        headings: [],
        ...{ language: "en", textSearchConfig: "english", words: 40 },
        text: Array.from(
          { length: 40 },
          (_, word) => `w${(Number(number) * 7 + word * version) % 5000}`,
        ).join(" "),
        links,
        robots: { noindex: false, nofollow: false },
        digest: `${number}${version}`.padStart(64, "0"),
        simhash: `${number}${version}`.padStart(16, "0"),
      },
    };
  }

  /** Three crawlers are probed; the first gets the subnet. */
  async #round(subnetId: SubnetId, cause: "new-subnet" | "refresh"): Promise<void> {
    const start = this.#below(this.#crawlers.length);
    const asked = [0, 1, 2].map((step) => this.#crawlers[(start + step) % this.#crawlers.length]!);
    const [first, second] = asked as [CrawlerId, CrawlerId];
    await this.#stores.delegations.saveRound({
      ...{ subnetId, cause, policy: "nearest", parameters: { lambdaMs: 2 } },
      ...{ targetUrl: "http://s1.example/", targetAddress: "5.1.1.7" },
      ...{ startedAt: this.now, decidedAt: this.now, crawlerId: first, measured: true, rttMs: 10 },
      ...{ runnerUpId: second, runnerUpRttMs: 11, reason: { type: "nearest" } },
      probes: asked.map((crawlerId, at) => ({
        crawlerId,
        outcome: { type: "measured", method: "connect", rttMs: 10 + at, tries: 3 },
      })),
    });
  }

  /** For one minute in a hundred. */
  async #noteFigures(): Promise<void> {
    const failures = { target_failures: 0, network_failures: 1, crawler_failures: 0, our_failures: 0 };
    const minute = {
      fetches: 10,
      pages: 9,
      fetched_bytes: 30_000,
      shipped_bytes: 4000,
      rounds: 1,
      probes: 3,
    };
    const ofCrawler = { fetches: 2, pages: 2, wire_bytes: 2000, ...failures };
    for (let part = 0; part < 7; part++)
      await figureWriter(this.#database.pool)(
        new Date(this.#nowMs - part * 100 * 60_000),
        { ...minute, ...failures },
        new Map(this.#crawlers.map((crawlerId) => [crawlerId, ofCrawler])),
      );
  }

  /** Half of the rejected URLs are the same every day. */
  async #deedsOfPeople(): Promise<void> {
    const { audit, submissions } = this.#stores;
    await audit.record({
      ...{ at: this.now, actor: "anna", via: "page", action: "policy.change", target: null, words: "a try" },
      ...{ before: null, after: null, remoteAddress: null },
    });
    const id = await submissions.begin({ deed: "add", submittedBy: "anna" }, this.now);
    const faults = Array.from({ length: 6 }, (_, at) => ({
      ...{ place: at + 1, url: `mailto:${at < 3 ? "" : this.#day}x${at}`, key: null, fault: "no http URL" },
    }));
    await submissions.take(id, faults, { deed: "add", scope, now: this.now });
  }

  async #samples(): Promise<void> {
    const [crawlerId] = this.#crawlers as [CrawlerId];
    for (const kind of ["flood", "wrong-result"])
      this.#incidents.note({ crawlerId, kind, words: "too many", remoteAddress: null, at: this.now });
    await this.#incidents.flush();
    await this.#database.pool.query(
      `insert into accuracy_sample (subnet_id, target_address, target_host, method, owner_id, owner_rtt_ms, best_id,
         best_rtt_ms, asked, answered, sampled_at)
       select $1, '5.1.1.7', 's1.example', 'connect', $2, 10, $2, 10, 5, 5, $3 from generate_series(1, 4)`,
      [this.#subnets[0], crawlerId, this.now],
    );
    await this.#database.pool.query(
      `with decided as (
         insert into double_check (host_hash, url_hash, host, url, crawler_id, cause, opinions, wanted, next_by,
           verdict, decided_at)
         select 1, n, 's1.example', 'http://s1.example/', $1, 'sample', '[]', '{}', $2, 'agree', $2
         from generate_series(1, 3) n
         returning check_id
       )
       insert into check_outcome (crawler_id, check_id, host_hash, outcome, decided_at)
       select $1, check_id, 1, 'agree', $2 from decided`,
      [crawlerId, this.now],
    );
  }

  async #importRegistry(): Promise<void> {
    const folder = mkdtempSync(join(tmpdir(), "nearcrawl-days-"));
    try {
      const file = join(folder, "a.db");
      writeFileSync(file, registryOf(this.#settings.hosts));
      await applyImport(this.#database, [file]);
    } finally {
      rmSync(folder, { recursive: true });
    }
  }

  // The rooms' jobs.

  async #scheduleJobs(): Promise<void> {
    const { pool } = this.#database;
    const { frontier, accuracy } = this.#stores;
    const { retention, changes } = this.#settings;
    const now = () => this.now;
    const nowMs = () => performance.now();
    const timekeeper = {
      every: (_name: string, _every: unknown, work: () => Promise<unknown>) => void this.#jobs.push(work),
      // Every job runs on every simulated day anyway.
      hurry: () => {},
    } as unknown as Timekeeper;
    const ports = { pool, timekeeper, log: silentLog, now, nowMs };
    const retaining = retentionDuties(ports, { retention, changes });
    await retaining.begin();
    retaining.start();
    scheduleUpkeep({ ...ports, incidents: this.#incidents });
    scheduleChanges({ ...ports, keepDays: () => changes.keepDays });
    scheduleSubmissions(pool, timekeeper, now);
    scheduleChannels(pool, timekeeper, now);
    scheduleSites(ports);
    const order = frontierOrder(policySections.frontier.parse({ order: "pagerank" }));
    scheduleHostWorths({ ...ports, order: () => order });
    const recrawl = policySections.recrawl.parse({ strategy: "optimal" });
    await recrawlDuties(ports, { recrawl }).start();
    timekeeper.every(
      "apply-links",
      0,
      async () => await applyLinks(pool, { ...defaultOutboxBounds, scope }, now()),
    );
    timekeeper.every("return-expired-leases", 0, async () => await frontier.returnExpired(now()));
    timekeeper.every("reopen-refused", 0, async () => await frontier.reopenRefused(now()));
    timekeeper.every("forget-figures", 0, async () => {
      await forgetFigures(pool, now());
      await accuracy.forget(new Date(this.#nowMs - 90 * dayMs));
    });
    timekeeper.every("settle-checks", 0, async () => {
      await createTrustStore(pool).dropStale(now(), new Date(this.#nowMs - 30 * dayMs));
    });
    const reads = everyRead(pool, nowMs);
    const metrics = createMetrics();
    timekeeper.every("observe-operation", 0, async () => await observeOperation({ reads, metrics, now }));
  }
}

const urlOf = (host: number, page: number) => `http://s${host}.example/${page}`;

function keyOf(url: string) {
  const key = urlKeyOf(url);
  if (typeof key === "string") throw new Error(`${url}: ${key}`);
  return key;
}

const heartbeat: CrawlerHeartbeat = {
  ...{
    type: "crawler:heartbeat",
    openHosts: 1,
    spooledResults: 0,
    pages: 1,
    fetchedBytes: 1,
    shippedBytes: 1,
  },
  holdingBack: [],
};

const helloOf = (name: string): CrawlerHello => ({
  ...{ type: "crawler:hello", protocolVersions: [1], name, key: "k".repeat(32), softwareVersion: "0.2.0" },
  ...{ spoolId: "00000000-0000-4000-8000-000000000001", heldLeases: [], publicAddress: null, place: null },
  capabilities: { probeMethods: ["head", "connect"], ipv6: false },
  limits: { pagesPerDay: 1_000_000, bytesPerDay: 1e12, concurrentHosts: 1000 },
});

function registryOf(hosts: number): string {
  const net = (range: string, name: string) =>
    `inetnum: ${range}\nnetname: ${name}\ncountry: NL\norg: ORG-EX1-RIPE\nsource: RIPE\n\n`;
  const organisation = "organisation: ORG-EX1-RIPE\norg-name: Example Holdings\nsource: RIPE\n\n";
  const ranges = Array.from({ length: hosts }, (_, host) => net(`5.1.${host}.0/24`, `NET-${host}`));
  return `${organisation}${net("5.1.0.0/16", "WHOLE")}${ranges.join("")}`;
}

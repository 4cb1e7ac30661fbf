/** A site on loopback, a real crawler's part that fetches it, the real stores, and the coordinator's web server. */
import type { AddressInfo } from "node:net";
import { readCoordinatorConfig } from "#coordinator/config";
import type { HintSource } from "#coordinator/hints/hint";
import { type HintPolicies, hintSettings } from "#coordinator/hints/hint-settings";
import { hintPart, scheduleHints } from "#coordinator/hints/start";
import { following } from "#coordinator/live-config";
import { createMetrics } from "#coordinator/overview/metrics";
import { defaultRecrawlSettings } from "#coordinator/recrawl/visit-findings";
import { takeResults } from "#coordinator/results/take-results";
import { asLeaseId, type CrawlerId } from "#core/ids";
import { silentLog } from "#core/log";
import { createNameResolver } from "#core/name-resolver";
import { type Handle, startOrigin } from "../migrating-crawler/support/origin.ts";
import { sliceRunner } from "../migrating-crawler/support/slices.ts";
import { newWorld, noon, scope, secondsAfterNoon, spoolOf } from "../support/store-world.ts";
import { webServer } from "../support/web-server.ts";

export async function newHintedSite() {
  const world = await newWorld();
  const runner = sliceRunner();
  let handle: Handle = (_request, response) => response.writeHead(404).end();
  const origin = await startOrigin((request, response) => handle(request, response));
  const metrics = createMetrics();
  let policies: HintPolicies = hintSettings.parse({});
  let now = noon;
  let sequence = 0;
  let crawlerId: CrawlerId;
  const config = {
    get hints() {
      return policies;
    },
    scope: {
      ...{ ...scope, followNofollow: false },
      ...{
        newHostsPerCrawlerAndDay: 1000,
        newHostsPerDomainAndDay: 1000,
        newHostsPerLinkingSiteAndDay: 1000,
      },
    },
  };
  const app = webServer(world.database, {
    now: () => now,
    parts: [
      hintPart({
        ...{ pool: world.pool, metrics, config, log: silentLog, now: () => now },
      }),
    ],
  });
  await app.listen({ host: "127.0.0.1", port: 0 });
  const base = `http://127.0.0.1:${(app.server.address() as AddressInfo).port}`;
  const authority = `site.localhost:${origin.port}`;

  const duties = new Map<string, () => Promise<unknown>>();
  scheduleHints(
    {
      ...{ pool: world.pool, metrics, log: silentLog, now: () => now, onDue: () => {} },
      timekeeper: { every: (name, _ms, work) => void duties.set(name, work) },
      resolver: createNameResolver({ servers: [] }),
    },
    following(() => ({
      ...readCoordinatorConfig({}),
      scope: config.scope,
      hints: policies,
      publicUrl: base,
    })),
  );
  const counts = async () =>
    new Map(
      (await metrics.hints.get()).values.map(({ labels, value }) => [
        `${labels.source} ${labels.what}`,
        value,
      ]),
    );

  return {
    ...{ world, pool: world.pool, origin, base, app, metrics, authority, site: `http://${authority}` },
    /** The site has these pages; its front page is in the frontier, and not fetched yet. */
    begin: async (pages: Readonly<Record<string, string>>, changes: Partial<HintPolicies> = {}) => {
      await world.reset();
      await world.pool.query("truncate hint, hint_key, hint_host, websub_subscription, page cascade");
      metrics.hints.reset();
      policies = hintSettings.parse(changes);
      now = noon;
      sequence = 0;
      handle = (request, response) => {
        const body = pages[request.url ?? ""];
        const type = /\.txt$/.test(request.url ?? "") ? "text/plain" : "text/html";
        if (body === undefined) response.writeHead(404).end();
        else response.writeHead(200, { "content-type": `${type}; charset=utf-8` }).end(body);
      };
      origin.requests.length = 0;
      crawlerId = await world.delegatedHost("north", `http://${authority}/`);
    },
    at: (seconds: number) => {
      now = secondsAfterNoon(seconds);
    },
    now: () => now,
    /** Everything that is due, by the crawler's own code; gives the paths that the site was asked for, without robots.txt. */
    crawl: async (): Promise<string[]> => {
      const before = origin.requests.length;
      await world.pool.query("update frontier_host set not_before = '-infinity'");
      for (const { leaseId, urls } of await world.lease(crawlerId, now)) {
        await world.pool.query("update lease set granted_at = granted_at - interval '1 hour'");
        const crawled = await runner.crawl(
          urls.map(({ url }) => url),
          { leaseId, urls },
        );
        const results = crawled.results.map((result) => ({
          ...{
            sequence: ++sequence,
            leaseId: asLeaseId(leaseId),
            wireBytes: 100,
            result: { ...result, fetchedAt: now.toISOString() },
          },
        }));
        const batch = { crawlerId, spoolId: spoolOf(1), results };
        const taken = await takeResults(
          batch,
          world.results,
          { scope, recrawl: defaultRecrawlSettings },
          now,
        );
        if (taken.refused) throw new Error(JSON.stringify(taken.refused));
      }
      await world.frontier.returnLeasesOf(crawlerId, now);
      return origin.requests
        .slice(before)
        .flatMap((line) => (line.endsWith("/robots.txt") ? [] : [line.split(" ")[1]!]));
    },
    /** What is done by the clock; gives what it counted. */
    turn: async () => {
      const before = await counts();
      for (const name of ["take-hints", "judge-hints", "forget-hints"]) await duties.get(name)!();
      const after = await counts();
      const of = (source: HintSource, what: string) =>
        (after.get(`${source} ${what}`) ?? 0) - (before.get(`${source} ${what}`) ?? 0);
      const judged = (source: HintSource) => ({ right: of(source, "right"), wrong: of(source, "wrong") });
      return {
        keys: { good: of("indexnow", "good-key"), wrong: of("indexnow", "wrong-key") },
        taken: { indexnow: of("indexnow", "taken"), websub: of("websub", "taken") },
        judged: { indexnow: judged("indexnow"), websub: judged("websub") },
      };
    },
    post: async (body: unknown, headers: Record<string, string> = {}) =>
      await fetch(`${base}/indexnow`, {
        method: "POST",
        headers: { "content-type": "application/json; charset=utf-8", ...headers },
        body: typeof body === "string" ? body : JSON.stringify(body),
      }),
    counted: async (what: string, source: HintSource = "indexnow") =>
      (await counts()).get(`${source} ${what}`) ?? 0,
    close: async () => {
      await app.close();
      runner.close();
      await origin.close();
      await world.close();
    },
  };
}

export type HintedSite = Awaited<ReturnType<typeof newHintedSite>>;

/**
 * A run against the emulated Internet: registry files are generated and imported, the processes start, the
 * sites are crawled, and the policies are compared on them.
 */

import { join } from "node:path";
import { createCrawlerStore } from "#coordinator/crawlers/crawler-store";
import { type PolicyName, usesEarlierRounds } from "#coordinator/delegation/policies/policies";
import { admitUrls } from "#coordinator/frontier/admit-urls";
import { createFrontierStore, createRejectedUrlStore } from "#coordinator/frontier/frontier-store";
import { applyImport } from "#rir-import/apply";
import { generateWorld } from "../../world/generate-world.ts";
import type { World } from "../../world/model.ts";
import { writePublishedFiles } from "../../world/published-files.ts";
import { writeRegistryFiles } from "../../world/registry-files.ts";
import { type CommandContext, writeCurrentRun } from "../command-context.ts";
import { newCrawlerKey } from "../crawler-key.ts";
import { ownSignInLink } from "../issue-command-link.ts";
import { followRun, type RunOutcome, type ThroughOutages, throughOutages } from "./follow-run.ts";
import { comparePolicies, type PolicyRow, type WorldParameters } from "./policy-comparison.ts";
import { type OpenedRun, openRun } from "./run-record.ts";
import type { RunVoice } from "./run-voice.ts";
import { ServerWatch } from "./server-watch.ts";
import { SystemProcesses } from "./system-processes.ts";

const schema = "world";

export interface EmulatedRunOptions {
  readonly context: CommandContext;
  readonly parameters: WorldParameters;
  readonly port: number;
  readonly fresh: boolean;
  readonly voice: RunVoice;
  /** Resolves when a person wants the run to end early. */
  readonly stopRequested: Promise<unknown>;
}

export interface EmulatedRun {
  readonly webUrl: string;
  readonly resumed: boolean;
  readonly outcome: RunOutcome;
  readonly policies: readonly PolicyRow[];
  /** Ends every process of the run and closes the database. */
  stop(): Promise<void>;
}

export async function runEmulated(options: EmulatedRunOptions): Promise<EmulatedRun> {
  const { context, parameters, voice } = options;
  const folder = join(context.home, schema);
  const { databaseUrl, home } = context;
  const watch = new ServerWatch(voice);
  const steadily = throughOutages(voice, Promise.race([options.stopRequested, watch.ended]));
  const opening = openRun({
    database: { databaseUrl, home, schema, onServer: watch.onServer },
    throughOutages: steadily,
    parameters,
    folder,
    fresh: options.fresh,
    disposable: true,
    onReturn: (words) => voice.note(words),
  });
  const run = await watch.over(opening);
  const processes = new SystemProcesses({ run: folder }, (words) => voice.note(words));
  const stop = async () => {
    await processes.stop();
    await run.close();
  };
  const crawl = async (): Promise<EmulatedRun> => {
    const world = generateWorld(parameters);
    const registry = join(folder, "registry");
    if (!run.resumed)
      await steadily(async () => await importRegistry(world, run, { folder: registry, voice }));
    const webUrl = await startSystem(world, run, processes, { ...options, steadily });
    if (!run.resumed) await steadily(async () => await admitSites(world, run, parameters));
    const followed = followRun({
      database: run.database,
      crawlers: world.crawlers.length,
      expectedPages: expectedPages(world, parameters),
      voice,
      throughOutages: steadily,
      stopRequested: options.stopRequested,
    });
    const outcome = await Promise.race([followed, processes.worldDied]);
    const policies = await steadily(
      async () => await comparePolicies({ pool: run.database.pool, world, parameters }),
    );
    if (outcome.finished) await steadily(async () => await run.finish({ outcome, policies }));
    return { webUrl, resumed: run.resumed, outcome, policies, stop };
  };
  try {
    return await watch.over(crawl());
  } catch (error) {
    await stop();
    throw error;
  }
}

function expectedPages(world: World, parameters: WorldParameters): number {
  return world.sites.reduce((sum, site) => sum + Math.min(site.pages, parameters.pagesPerSite), 0);
}

async function importRegistry(
  world: World,
  run: OpenedRun,
  to: { folder: string; voice: RunVoice },
): Promise<void> {
  const files = await writeRegistryFiles(world, to.folder);
  const published = await writePublishedFiles(world, to.folder);
  const report = await applyImport(run.database, [...files, ...published], {});
  to.voice.note(`registry: ${files.length} dumps, generation ${report.generation}`);
}

/**
 * Hosts that a crawler of the demonstration crawls side by side. Few: the whole Internet runs on this machine's
 * processors, and where they are busy, a round trip measures them and not the emulated network.
 */
const hostsAtOnce = 14;

/**
 * A policy that learns must not start dozens of rounds before the first is decided, or it would be measured without what it
 * learns; one that does not may hurry.
 */
const roundsAtOnce = (policy: PolicyName) => (usesEarlierRounds(policy) ? 6 : 24);

async function startSystem(
  world: World,
  run: OpenedRun,
  processes: SystemProcesses,
  options: EmulatedRunOptions & { readonly steadily: ThroughOutages },
): Promise<string> {
  const { context, parameters, steadily } = options;
  const internet = await processes.startWorld([JSON.stringify(worldArguments(parameters))]);
  const resolvers = [String(internet.dnsAddress)];
  const proxies = internet.proxyUrls as readonly string[];
  const crawlersResolvers = internet.dnsAddresses as readonly string[];
  const coordinator = await processes.startCoordinator(coordinatorSettings(options, resolvers, world), {
    home: context.home,
    databaseUrl: context.databaseUrl,
    schema,
  });
  const webUrl = String(coordinator.webUrl);
  const { voice } = options;
  const signIn = voice.isTerminal ? await steadily(async () => await ownSignInLink(run.database.pool)) : null;
  voice.webUrl(webUrl, run.database.description, signIn?.url ?? null);
  writeCurrentRun(context, { schema, webUrl, pid: process.pid, resolvers });
  const crawlers = createCrawlerStore(run.database.pool);
  const pagesPerDay = Math.ceil((world.sites.length * parameters.pagesPerSite * 50) / world.crawlers.length);
  for (const [index, crawler] of world.crawlers.entries()) {
    const { key, keyHash } = newCrawlerKey();
    await steadily(async () => await crawlers.register({ name: crawler.name, keyHash }));
    const place = crawler.place === null ? null : world.places[crawler.place];
    processes.startCrawler({
      coordinatorUrl: `${webUrl.replace(/^http/, "ws")}/crawler`,
      key,
      name: crawler.name,
      home: join(context.home, schema, "crawlers", crawler.name),
      publicAddress: crawler.address,
      place: place ? placeOf(place) : null,
      proxy: proxies[index],
      resolvers: [crawlersResolvers[index] ?? String(internet.dnsAddress)],
      // They share one machine's processors with the coordinator: threads of their own would only take memory, and
      // nobody else's work is there to give way to.
      limits: { pagesPerDay, concurrentHosts: hostsAtOnce, extractionThreads: 0, priority: 0 },
      probeMethods: ["head", "connect"],
    });
  }
  return webUrl;
}

function placeOf(place: World["places"][number]): object {
  const { name, country, latitude, longitude } = place;
  return { name, country, latitude, longitude };
}

const worldArguments = ({ sites, crawlers, seed, noiseMs }: WorldParameters) => ({
  sites,
  crawlers,
  seed,
  noiseMs,
});

function coordinatorSettings(options: EmulatedRunOptions, resolvers: readonly string[], world: World) {
  const { parameters } = options;
  return {
    listen: { host: "127.0.0.1", port: options.port },
    resolvers,
    delegation: {
      policy: parameters.policy,
      thresholdMs: parameters.thresholdMs,
      lambdaMs: parameters.lambdaMs,
      seed: parameters.seed,
      expectedCrawlers: world.crawlers.length,
      settleSeconds: 15,
      concurrentRounds: roundsAtOnce(parameters.policy),
    },
    scope: { pagesPerHost: parameters.pagesPerSite, maxDepth: 20, admitNewHosts: false },
    lease: { seconds: 90 },
    heartbeatSeconds: 5,
  };
}

async function admitSites(world: World, run: OpenedRun, parameters: WorldParameters): Promise<void> {
  const { pool } = run.database;
  const ports = { frontier: createFrontierStore(pool), rejected: createRejectedUrlStore(pool) };
  const scope = { pagesPerHost: parameters.pagesPerSite, maxDepth: 20, admitNewHosts: true };
  await admitUrls(
    world.sites.map((site) => `http://${site.host}/`),
    ports,
    { scope, now: new Date() },
  );
}

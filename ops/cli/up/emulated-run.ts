/**
 * A run on the emulated Internet: it generates and imports registry files, starts the processes, crawls the sites, and compares
 * policies on them.
 */

import { join } from "node:path";
import { admitUrls } from "#coordinator/crawl/frontier/admit-urls";
import { createFrontierStore, createRejectedUrlStore } from "#coordinator/crawl/frontier/frontier-store";
import { type PolicyName, usesEarlierRounds } from "#coordinator/place/delegation/policies/policies";
import { applyImport } from "#rir-import/apply";
import { generateWorld } from "../../world/generate-world.ts";
import type { World } from "../../world/model.ts";
import { writePublishedFiles, writeRegistryFiles } from "../../world/registry-files.ts";
import { followRun, type RunOutcome, type RunVoice } from "./follow-run.ts";
import { comparePolicies, type PolicyRow, type WorldParameters } from "./policy-comparison.ts";
import { type RunFrame, type RunOptions, runFramed } from "./run-frame.ts";
import type { OpenedRun } from "./run-record.ts";

const schema = "world";

interface EmulatedRunOptions extends RunOptions {
  readonly parameters: WorldParameters;
}

interface EmulatedRun {
  readonly webUrl: string;
  readonly resumed: boolean;
  readonly outcome: RunOutcome;
  readonly policies: readonly PolicyRow[];
  stop(): Promise<void>;
}

export async function runEmulated(options: EmulatedRunOptions): Promise<EmulatedRun> {
  const { parameters, voice } = options;
  return await runFramed(options, { schema, parameters, disposable: true }, async (frame) => {
    const { run, steadily, processes, stop } = frame;
    const world = generateWorld(parameters);
    const registry = join(frame.folder, "registry");
    if (!run.resumed)
      await steadily(async () => await importRegistry(world, run, { folder: registry, voice }));
    const webUrl = await startSystem(world, frame, options);
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
  });
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
 * How many hosts a crawler of the demonstration fetches from at once. They are few, because the whole Internet runs on this
 * machine's processors. When these are busy, round trips measure them instead of the emulated network.
 */
const hostsAtOnce = 14;

/**
 * A learning policy must not start dozens of rounds before the first one is decided, or it would be measured without its
 * learning. The others may run faster.
 */
const roundsAtOnce = (policy: PolicyName) => (usesEarlierRounds(policy) ? 6 : 24);

async function startSystem(world: World, frame: RunFrame, options: EmulatedRunOptions): Promise<string> {
  const { parameters } = options;
  const internet = await frame.processes.startWorld([JSON.stringify(worldArguments(parameters))]);
  const resolvers = [String(internet.dnsAddress)];
  const proxies = internet.proxyUrls as readonly string[];
  const crawlersResolvers = internet.dnsAddresses as readonly string[];
  const webUrl = await frame.startCoordinator(coordinatorSettings(options, resolvers, world), resolvers);
  const pagesPerDay = Math.ceil((world.sites.length * parameters.pagesPerSite * 50) / world.crawlers.length);
  for (const [index, crawler] of world.crawlers.entries()) {
    const place = crawler.place === null ? null : world.places[crawler.place];
    await frame.startCrawler(webUrl, {
      name: crawler.name,
      publicAddress: crawler.address,
      place: place ? placeOf(place) : null,
      proxy: proxies[index],
      resolvers: [crawlersResolvers[index] ?? String(internet.dnsAddress)],
      // All crawlers share the machine's processors, so extraction threads would only take memory. No other work needs
      // priority.
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
    // All crawlers belong to this run, so witnesses would only cost probes and accuracy.
    trust: { witnesses: false },
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

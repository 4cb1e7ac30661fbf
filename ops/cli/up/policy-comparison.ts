/**
 * The table at the end of a run: for each policy, how many subnets went to the best crawler or to one within 5 ms of it, with
 * how many probes per URL, and the resulting round-trip and download times. The policy that ran is measured from the database.
 * The others are computed over the same world, by the simulator and by the download model of the world's proxies, for the pages
 * that the run fetched. The table says which rows are which.
 */

import type { Pool } from "pg";
import { z } from "zod";
import { type PolicyName, policyNames } from "#coordinator/place/delegation/policies/policies";
import { type SimulationResult, simulatePolicies } from "#coordinator/place/delegation/simulation/simulation";
import { UsageError } from "#core/errors";
import { downloadTimeMs, worldInstance } from "../../world/compare.ts";
import type { World } from "../../world/model.ts";
import { formatTable } from "../output.ts";

export interface PolicyRow {
  readonly policy: PolicyName;
  /** `live` means measured in a run; `computed`, by the simulator and the world's model. */
  readonly source: "live" | "computed";
  readonly subnets: number;
  readonly bestPct: number;
  readonly within5msPct: number;
  readonly probesPerUrl: number;
  readonly meanRttMs: number;
  /** Mean over the pages fetched in the run. Null if there were none. */
  readonly meanDownloadMs: number | null;
}

/** The crawler of each site's subnet (index in the world, null if there is none), and how many probes were made. */
interface Choices {
  readonly crawlerOfSite: readonly (number | null)[];
  readonly probes: number;
}

interface ComparedRun {
  readonly pool: Pool;
  readonly world: World;
  readonly parameters: WorldParameters;
}

/**
 * Returns the run's own policy live and all four computed, so that the live row can be compared with its computed one. The
 * order is that of `tableOrder`.
 */
export async function comparePolicies(run: ComparedRun): Promise<PolicyRow[]> {
  const pages = await readFetchedPages(run.pool, run.world);
  const live = await liveRow(run, pages);
  const { thresholdMs, lambdaMs, seed } = run.parameters;
  const computed = simulatePolicies(
    worldInstance(run.world),
    policyNames.map((policy) => ({ policy, parameters: { thresholdMs, lambdaMs } })),
    { seed },
  ).map((result) => computedRow(result, run.world, pages));
  return inTableOrder([live, ...computed]);
}

async function liveRow(run: ComparedRun, fetched: readonly FetchedPage[]): Promise<PolicyRow> {
  return {
    policy: run.parameters.policy,
    source: "live",
    ...nearness(run.world, await readLiveChoices(run.pool, run.world)),
    meanDownloadMs: mean(fetched.map((page) => page.totalMs)),
  };
}

function inTableOrder(rows: readonly PolicyRow[]): PolicyRow[] {
  return rows.toSorted((a, b) => policyNames.indexOf(a.policy) - policyNames.indexOf(b.policy));
}

function computedRow(result: SimulationResult, world: World, pages: readonly FetchedPage[]): PolicyRow {
  const probes = result.probes.reduce((sum, count) => sum + count, 0);
  return {
    policy: result.policy,
    source: "computed",
    ...nearness(world, { crawlerOfSite: result.chosen, probes }),
    meanDownloadMs: mean(pages.map((page) => computedDownloadMs(world, result.chosen, page))),
  };
}

function computedDownloadMs(world: World, chosen: readonly number[], page: FetchedPage): number {
  const site = world.sites[page.siteIndex]!;
  const { bandwidthKbps, serverDelayMs } = site;
  const rttMs = world.rttMs(chosen[page.siteIndex]!, site.address) ?? 0;
  const { wireBytes, connectionReused } = page;
  return downloadTimeMs({ rttMs, bodyBytes: wireBytes, bandwidthKbps, serverDelayMs, connectionReused });
}

/** How close the choices are to the best ones, by the world's undisturbed round-trip times. */
export function nearness(
  world: World,
  choices: Choices,
): Omit<PolicyRow, "policy" | "source" | "meanDownloadMs"> {
  const subnets = sitesBySubnet(world);
  const excessMs = subnets.flatMap((sites) => {
    const chosen = choices.crawlerOfSite[sites[0]!] ?? null;
    if (chosen === null) return [];
    const meanRtts = world.crawlers.map(
      (_, crawler) => mean(sites.map((site) => rttOf(world, crawler, site))) ?? 0,
    );
    return [meanRtts[chosen]! - Math.min(...meanRtts)];
  });
  const rtts = choices.crawlerOfSite.flatMap((crawler, site) =>
    crawler === null ? [] : [rttOf(world, crawler, site)],
  );
  return {
    subnets: subnets.length,
    bestPct: percent(excessMs.filter((ms) => ms <= floatSlackMs).length, subnets.length),
    within5msPct: percent(excessMs.filter((ms) => ms <= 5 + floatSlackMs).length, subnets.length),
    probesPerUrl: choices.probes / Math.max(1, world.sites.length),
    meanRttMs: mean(rtts) ?? 0,
  };
}

const floatSlackMs = 1e-9;

function sitesBySubnet(world: World): number[][] {
  const subnets = new Map<number, number[]>();
  for (const [index, site] of world.sites.entries()) {
    const sites = subnets.get(site.subnet);
    if (sites) sites.push(index);
    else subnets.set(site.subnet, [index]);
  }
  return [...subnets.values()];
}

function rttOf(world: World, crawler: number, site: number): number {
  return world.rttMs(crawler, world.sites[site]!.address) ?? Number.POSITIVE_INFINITY;
}

function percent(part: number, whole: number): number {
  return whole === 0 ? 0 : (100 * part) / whole;
}

function mean(values: readonly number[]): number | null {
  return values.length === 0 ? null : values.reduce((sum, value) => sum + value, 0) / values.length;
}

export function policyTable(rows: readonly PolicyRow[]): string {
  const columns = [
    { title: "policy" },
    { title: "figures" },
    { title: "best crawler", align: "right" },
    { title: "within 5 ms", align: "right" },
    { title: "probes per URL", align: "right" },
    { title: "mean RTT", align: "right" },
    { title: "mean download", align: "right" },
  ] as const;
  const cells = rows.map((row) => [
    row.policy,
    row.source,
    `${row.bestPct.toFixed(1)} %`,
    `${row.within5msPct.toFixed(1)} %`,
    row.probesPerUrl.toFixed(2),
    `${row.meanRttMs.toFixed(1)} ms`,
    row.meanDownloadMs === null ? "–" : `${row.meanDownloadMs.toFixed(0)} ms`,
  ]);
  return formatTable(columns, cells);
}

// Reads a run's outcome from the database: which crawler got which site, and each download.

interface FetchedPage {
  /** Index in `World.sites`. */
  readonly siteIndex: number;
  /** Bytes of the body on the wire. */
  readonly wireBytes: number;
  readonly connectionReused: boolean;
  readonly totalMs: number;
}

async function readLiveChoices(pool: Pool, world: World): Promise<Choices> {
  const rows = await rowsOf<{ host: string; crawler: string }>(
    pool,
    `select h.host, c.name as crawler
     from frontier_host h
     join delegation d on d.subnet_id = h.subnet_id
     join crawler c on c.crawler_id = d.crawler_id`,
  );
  const crawlers = new Map(world.crawlers.map((crawler, index) => [crawler.name, index]));
  const chosen = new Map(rows.map((row) => [row.host, crawlers.get(row.crawler) ?? null]));
  const probes = await pool.query<{ probes: number }>(
    "select count(*)::int as probes from probe where how = 'probe'",
  );
  return {
    crawlerOfSite: world.sites.map((site) => chosen.get(site.host) ?? null),
    probes: probes.rows[0]!.probes,
  };
}

async function rowsOf<Row extends object>(pool: Pool, sql: string): Promise<Row[]> {
  return (await pool.query<Row>(sql)).rows;
}

async function readFetchedPages(pool: Pool, world: World): Promise<FetchedPage[]> {
  const sites = new Map(world.sites.map((site, index) => [site.host, index]));
  const rows = await rowsOf<{ host: string; wire_bytes: number; reused: boolean; total_ms: number }>(
    pool,
    `select h.host, f.wire_bytes, f.connect_ms is null as reused, f.total_ms
     from page_fetch f
     join frontier_host h on h.host_hash = f.host_hash
     where f.outcome = 'fetched'`,
  );
  return rows.flatMap((row) => {
    const siteIndex = sites.get(row.host);
    if (siteIndex === undefined) return [];
    return [{ siteIndex, wireBytes: row.wire_bytes, connectionReused: row.reused, totalMs: row.total_ms }];
  });
}

// The validated parameters of a run, which decide whether an interrupted run can be resumed.

/** Command-line values are text. An empty one would be read as 0. */
const written = z.union([z.number(), z.string().regex(/\S/, "expected a number").transform(Number)]);

const amount = (least: number, most: number) => written.pipe(z.number().min(least).max(most));
const count = (least: number, most: number) => written.pipe(z.int().min(least).max(most));

const worldSchema = z.strictObject({
  sites: count(1, 100_000).default(500),
  crawlers: count(1, 200).default(12),
  policy: z.enum(policyNames).default("nearest"),
  seed: count(0, 0xffff_ffff).default(1),
  pagesPerSite: count(1, 1000).default(5),
  noiseMs: amount(0, 100).default(0),
  thresholdMs: amount(0, 10_000).default(50),
  lambdaMs: amount(0, 1000).default(2),
});

/** A run on the emulated Internet, identified by its parameters. */
export type WorldParameters = Readonly<z.infer<typeof worldSchema>>;

export function worldParameters(values: Record<string, unknown>): WorldParameters {
  const known = Object.fromEntries(
    Object.keys(worldSchema.shape).flatMap((name) =>
      values[name] === undefined ? [] : [[name, values[name]]],
    ),
  );
  const checked = worldSchema.safeParse(known);
  if (checked.success) return checked.data;
  const faults = checked.error.issues.map((issue) => `--${kebab(String(issue.path[0]))}: ${issue.message}`);
  throw new UsageError(faults.join("\n"));
}

const kebab = (name: string) => name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);

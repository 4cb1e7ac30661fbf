/**
 * The table at the end of a run: for each policy, how many subnets went to the best crawler and within 5 ms
 * of it, at how many probes a URL, and what that means for round trips and downloads. A policy that ran is
 * measured from the database; the others are computed over the same world, by the simulator and by the
 * model of a download that the world's proxies follow, on the pages that the run fetched. The table says which
 * is which.
 */
import type { Pool } from "pg";
import { type PolicyName, policyNames } from "#coordinator/delegation/policies/round";
import { type SimulationResult, simulatePolicies } from "#coordinator/delegation/simulation/simulation";
import { worldInstance } from "../../simulate/world-instance.ts";
import { downloadTimeMs } from "../../world/compare.ts";
import type { World } from "../../world/model.ts";
import { formatTable } from "../output.ts";
import { type FetchedPage, readFetchedPages, readLiveChoices } from "./run-measurements.ts";
import type { WorldParameters } from "./run-parameters.ts";

export interface PolicyRow {
  readonly policy: PolicyName;
  /** `live`: measured in a run; `computed`: by the simulator and the world's model. */
  readonly source: "live" | "computed";
  readonly subnets: number;
  readonly bestPct: number;
  readonly within5msPct: number;
  readonly probesPerUrl: number;
  readonly meanRttMs: number;
  /** Over the pages of the run; null when it fetched none. */
  readonly meanDownloadMs: number | null;
}

/** Which crawler each site's subnet went to (by position in the world; null: to nobody), and what that took. */
export interface Choices {
  readonly crawlerOfSite: readonly (number | null)[];
  readonly probes: number;
}

export interface ComparedRun {
  readonly pool: Pool;
  readonly world: World;
  readonly parameters: WorldParameters;
}

/**
 * The run's own policy live, and all four computed, so that the live row can be held against its own
 * computed one; in the order of `tableOrder`.
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

export async function liveRow(run: ComparedRun, pages?: readonly FetchedPage[]): Promise<PolicyRow> {
  const fetched = pages ?? (await readFetchedPages(run.pool, run.world));
  return {
    policy: run.parameters.policy,
    source: "live",
    ...nearness(run.world, await readLiveChoices(run.pool, run.world)),
    meanDownloadMs: mean(fetched.map((page) => page.totalMs)),
  };
}

const tableOrder: readonly PolicyName[] = ["random", "ipmicra", "nearest", "exhaustive"];

export function inTableOrder(rows: readonly PolicyRow[]): PolicyRow[] {
  return rows.toSorted((a, b) => tableOrder.indexOf(a.policy) - tableOrder.indexOf(b.policy));
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

/** How near the choices came to the best ones, by the world's undisturbed round-trip times. */
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

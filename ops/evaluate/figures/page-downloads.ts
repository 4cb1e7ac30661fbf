/**
 * How long pages take in one world, by who chose the crawler: round trips, the server's own time, and the bytes on
 * the site's link. Only the first part knows where the crawler is.
 */
import { type SimulationInstance, simulatePolicies } from "#coordinator/delegation/simulation/simulation";
import { worldInstance } from "../../simulate/world-instance.ts";
import { downloadTimeMs } from "../../world/compare.ts";
import type { World } from "../../world/model.ts";
import { type NamedVariant, variants } from "../figure.ts";
import { paper } from "../paper.ts";

export interface DownloadRow {
  readonly policy: string;
  readonly rttMs: number;
  readonly roundTripsMs: number;
  readonly serverMs: number;
  readonly bytesMs: number;
}

export interface DownloadGroup {
  readonly name: string;
  readonly rows: readonly DownloadRow[];
}

/** What the emulated sites' pages have on the wire in the mean, headers included. */
export const pageBytes = 12_800;

const compared: readonly NamedVariant[] = [
  variants.random,
  variants.ipmicra(50),
  variants.ipmicra(25),
  variants.nearest,
  variants.exhaustive,
];

/** One row per policy, the farthest crawler for every site last. */
export function downloadsOf(world: World, seed: number): DownloadRow[] {
  const instance = worldInstance(world);
  const results = simulatePolicies(
    instance,
    compared.map(({ variant }) => variant),
    { seed },
  );
  const rows = compared.map(({ name }, index) => rowOf(name, world, instance, results[index]!.chosen));
  return [...rows, rowOf("worst", world, instance, farthest(instance))];
}

function farthest({ targets }: SimulationInstance): number[] {
  return targets.map(({ rtt }) =>
    Array.from(rtt).reduce((worst, ms, index, all) => (ms > all[worst]! ? index : worst), 0),
  );
}

function rowOf(
  policy: string,
  world: World,
  { targets }: SimulationInstance,
  chosen: readonly number[],
): DownloadRow {
  const parts = world.sites.map((site, index) => {
    const rttMs = targets[index]!.rtt[chosen[index]!]!;
    const { bandwidthKbps, serverDelayMs } = site;
    const takesMs = (ms: number) =>
      downloadTimeMs({ rttMs: ms, bodyBytes: pageBytes, bandwidthKbps, serverDelayMs });
    const withoutDistanceMs = takesMs(0);
    return {
      policy,
      rttMs,
      roundTripsMs: takesMs(rttMs) - withoutDistanceMs,
      serverMs: serverDelayMs,
      bytesMs: withoutDistanceMs - serverDelayMs,
    };
  });
  return meanRow(parts);
}

export function meanRows(runs: readonly (readonly DownloadRow[])[]): DownloadRow[] {
  return runs[0]!.map((_, index) => meanRow(runs.map((rows) => rows[index]!)));
}

function meanRow(rows: readonly DownloadRow[]): DownloadRow {
  const mean = (field: Exclude<keyof DownloadRow, "policy">) =>
    rows.reduce((sum, row) => sum + row[field], 0) / Math.max(1, rows.length);
  return {
    policy: rows[0]?.policy ?? "",
    rttMs: mean("rttMs"),
    roundTripsMs: mean("roundTripsMs"),
    serverMs: mean("serverMs"),
    bytesMs: mean("bytesMs"),
  };
}

export const totalMs = (row: DownloadRow) => row.roundTripsMs + row.serverMs + row.bytesMs;

/**
 * What random assignment costs against the best, in RTT and in whole downloads; and the ratio of RTTs at which
 * the downloads' would be the paper's, with the same servers and links.
 */
export function ratiosOf({ rows }: DownloadGroup): { rtt: number; download: number; neededRtt: number } {
  const random = rows.find((row) => row.policy === variants.random.name)!;
  const best = rows.find((row) => row.policy === variants.exhaustive.name)!;
  const fixedMs = best.serverMs + best.bytesMs;
  return {
    rtt: random.rttMs / best.rttMs,
    download: totalMs(random) / totalMs(best),
    neededRtt: (paper.downloadRatio * totalMs(best) - fixedMs) / best.roundTripsMs,
  };
}

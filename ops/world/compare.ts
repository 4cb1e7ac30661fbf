/**
 * What it takes to compare delegation policies on one world without running each: the world as an instance
 * for the simulator, and how long a download takes by the model that the emulated Internet's proxies follow.
 */
import { writeFile } from "node:fs/promises";
import type { InstanceHost, LatencyInstance } from "./instance.ts";
import { pathOf, type World } from "./model.ts";
import { bytesPerMs, initialWindowBytes } from "./slow-start.ts";

export interface Download {
  readonly rttMs: number;
  /** Everything the server sends, headers included, as it goes over the wire. */
  readonly bodyBytes: number;
  readonly bandwidthKbps: number;
  readonly serverDelayMs: number;
  /** True: the request goes over an open connection that was idle; no handshake then. */
  readonly connectionReused?: boolean;
}

/**
 * From the start of the connection to the last byte, in ms: one RTT for the handshake, one for the request,
 * and the sending time under slow start (RFC 6928: ten segments first, doubling each round trip) at the
 * given bandwidth. A round takes an RTT, or as long as its bytes need where that is more.
 */
export function downloadTimeMs(download: Download): number {
  const { rttMs, bodyBytes, bandwidthKbps, serverDelayMs, connectionReused = false } = download;
  const rate = bytesPerMs(bandwidthKbps);
  let windowBytes = initialWindowBytes;
  let leftBytes = bodyBytes;
  let sendingMs = 0;
  while (leftBytes > windowBytes) {
    sendingMs += Math.max(rttMs, windowBytes / rate);
    leftBytes -= windowBytes;
    windowBytes *= 2;
  }
  return (connectionReused ? 1 : 2) * rttMs + serverDelayMs + sendingMs + leftBytes / rate;
}

export function instanceOf(world: World): LatencyInstance {
  const indices = world.crawlers.map((_, index) => index);
  const row = new Float64Array(indices.length);
  return {
    name: world.name,
    unit: "ms RTT",
    crawlers: world.crawlers.map((crawler) => hostOf(world, crawler)),
    crawlerRtt: indices.map((a) => indices.map((b) => world.crawlerRttMs(a, b))),
    targets: world.sites.map((site, index) => {
      world.rttRow(index, row);
      return { ...hostOf(world, site), rtt: Array.from(row) };
    }),
  };
}

export async function writeInstance(world: World, file: string): Promise<void> {
  await writeFile(file, `${JSON.stringify(instanceOf(world))}\n`);
}

function hostOf(
  world: World,
  host: { readonly subnet: number; readonly country: string | null },
): InstanceHost {
  const holder = world.subnets[host.subnet]?.holder ?? null;
  return {
    path: pathOf(world, host.subnet),
    org: holder === null ? "" : (world.holders[holder]?.name ?? ""),
    cc: host.country ?? "",
  };
}

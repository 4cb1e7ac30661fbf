/**
 * Host paces as they lie on disk over a restart: one entry per host. An entry that is not one, or a wait
 * that no host can have asked for, is left out, so that a damaged file can neither stop the crawl nor speed it up
 * beyond what the floor and robots.txt allow anyway.
 */
import { z } from "zod";
import type { HostPace } from "./host-pace.ts";

/** Hosts that are written: those of the hosts met last. */
const maxHosts = 5000;
/** The longest wait that is believed: Retry-After may be long, but a clock may also have been wrong. */
const longestWaitMs = 366 * 86_400_000;

const number = z.number().min(0);
const keptPace = z.object({
  host: z.string().min(1).max(253),
  notBeforeMs: number,
  crawlDelayMs: number.max(3_600_000),
  backOffMs: number.max(86_400_000),
  backedOffAtMs: number,
  usualMs: number,
  answers: number,
  lastMs: number,
  stretch: z.number().min(1).max(10),
  failures: number.max(100),
}) satisfies z.ZodType<HostPace>;
const file = z.object({ version: z.literal(1), hosts: z.array(z.unknown()).max(maxHosts) });

/** The paces, those met last first, as a JSON value. */
export function keptPaces(paces: Iterable<[string, HostPace]>): unknown {
  const hosts: z.infer<typeof keptPace>[] = [];
  for (const [host, pace] of paces) {
    if (hosts.length === maxHosts) break;
    hosts.push({ host, ...pace });
  }
  return { version: 1, hosts };
}

/** Those met last last, ready to be remembered again; null when the JSON is not ours. */
export function pacesFrom(json: unknown, nowMs: number): [string, HostPace][] | null {
  const read = file.safeParse(json);
  if (!read.success) return null;
  return read.data.hosts.flatMap((entry) => paceOf(entry, nowMs)).reverse();
}

function paceOf(entry: unknown, nowMs: number): [string, HostPace][] {
  const read = keptPace.safeParse(entry);
  if (!read.success) return [];
  const { host, ...pace } = read.data;
  const latestMs = nowMs + longestWaitMs;
  return pace.notBeforeMs <= latestMs && pace.backedOffAtMs <= latestMs ? [[host, pace]] : [];
}

/**
 * Host paces as they lie on disk over a restart: one row of numbers per host. A row that is not one, or a wait
 * that no host can have asked for, is left out, so that a damaged file can neither stop the crawl nor speed it up
 * beyond what the floor and robots.txt allow anyway.
 */
import { z } from "zod";
import { type HostPace, newPace } from "./host-pace.ts";

/** Rows that are written: those of the hosts met last. */
const maxRows = 5000;
/** The longest wait that is believed: Retry-After may be long, but a clock may also have been wrong. */
const longestWaitMs = 366 * 86_400_000;

type Row = readonly [string, ...number[]];

const number = z.number().min(0);
const row = z.tuple([
  z.string().min(1).max(253),
  number,
  number,
  number,
  number,
  number,
  number,
  number,
  number,
  number,
]);
const file = z.object({ version: z.literal(1), hosts: z.array(z.unknown()).max(maxRows) });

/** The paces, those met last first, as a JSON value. */
export function keptPaces(paces: Iterable<[string, HostPace]>): unknown {
  const hosts: Row[] = [];
  for (const [host, pace] of paces) {
    if (hosts.length === maxRows) break;
    hosts.push(rowOf(host, pace));
  }
  return { version: 1, hosts };
}

/** Those met last last, ready to be remembered again; null when the JSON is not ours. */
export function pacesFrom(json: unknown, nowMs: number): [string, HostPace][] | null {
  const read = file.safeParse(json);
  if (!read.success) return null;
  return read.data.hosts.flatMap((entry) => paceOf(entry, nowMs)).reverse();
}

function rowOf(host: string, pace: HostPace): Row {
  const { notBeforeMs, crawlDelayMs, backOffMs, backedOffAtMs, usualMs, answers, lastMs, stretch, failures } =
    pace;
  const numbers = [notBeforeMs, crawlDelayMs, backOffMs, backedOffAtMs, usualMs, answers, lastMs];
  return [host, ...numbers.map(Math.round), stretch, failures];
}

function paceOf(entry: unknown, nowMs: number): [string, HostPace][] {
  const read = row.safeParse(entry);
  if (!read.success) return [];
  const [
    host,
    notBeforeMs,
    crawlDelayMs,
    backOffMs,
    backedOffAtMs,
    usualMs,
    answers,
    lastMs,
    stretch,
    failures,
  ] = read.data;
  const isTrue = notBeforeMs <= nowMs + longestWaitMs && backedOffAtMs <= nowMs + longestWaitMs;
  const isOurs = crawlDelayMs <= 3_600_000 && backOffMs <= 86_400_000 && stretch >= 1 && stretch <= 10;
  if (!isTrue || !isOurs || failures > 100) return [];
  const pace = {
    notBeforeMs,
    crawlDelayMs,
    backOffMs,
    backedOffAtMs,
    usualMs,
    answers,
    lastMs,
    stretch,
    failures,
  };
  return [[host, { ...newPace, ...pace }]];
}

/** The fleet's list as it was asked for: filtered, sorted, one page of it, with the totals of all. */

import { standingWords } from "../trust/judge-crawler.ts";
import { stateWords } from "./crawler-view.ts";
import type { FleetEntry } from "./fleet-list-reads.ts";

export const fleetSorts = ["name", "state", "subnets", "pages", "rtt", "incidents", "trust", "seen"] as const;
export type FleetSort = (typeof fleetSorts)[number];

export const fleetStates = ["online", "draining", "offline", "never", "revoked", "distrusted"] as const;
export type FleetStateFilter = (typeof fleetStates)[number];

export interface FleetQuery {
  /** Part of a name or a place; empty: all. */
  readonly text: string;
  readonly state: FleetStateFilter | "";
  readonly country: string;
  readonly version: string;
  readonly sort: FleetSort;
  /** From 1. */
  readonly page: number;
}

export interface FleetView {
  readonly query: FleetQuery;
  readonly totals: FleetTotals;
  /** Of the whole fleet, for the filters. */
  readonly countries: readonly string[];
  readonly versions: readonly string[];
  readonly found: number;
  readonly crawlers: readonly FleetEntry[];
  readonly more: boolean;
}

export interface FleetTotals {
  readonly crawlers: number;
  readonly connected: number;
  readonly offline: number;
  readonly draining: number;
  readonly distrusted: number;
  readonly subnets: number;
  readonly pagesToday: number;
  /** Of those that are connected. */
  readonly pagesPerDay: number;
  readonly incidents: number;
}

const fleetPageSize = 50;

/** `pageSize` infinite: all of them, for CSV. */
export function fleetView(
  fleet: readonly FleetEntry[],
  query: FleetQuery,
  pageSize: number = fleetPageSize,
): FleetView {
  const found = fleet.filter((entry) => fits(entry, query)).sort(order(query.sort));
  const start = Number.isFinite(pageSize) ? (query.page - 1) * pageSize : 0;
  return {
    query,
    totals: totalsOf(fleet),
    countries: distinct(fleet.map(({ country }) => country)),
    versions: distinct(fleet.map(versionOf)),
    found: found.length,
    crawlers: found.slice(start, start + pageSize),
    more: found.length > start + pageSize,
  };
}

/** What its dock runs, or what it says itself. */
function versionOf({ release, softwareVersion }: FleetEntry): string | null {
  return release?.version ?? softwareVersion;
}

export function isTrusted({ trust }: Pick<FleetEntry, "trust">): boolean {
  return trust !== "distrusted" && trust !== "probes-doubted";
}

function fits(entry: FleetEntry, { text, state, country, version }: FleetQuery): boolean {
  const wanted = text.toLowerCase();
  if (!entry.name.includes(wanted) && !(entry.place ?? "").toLowerCase().includes(wanted)) return false;
  if (country !== "" && entry.country !== country) return false;
  if (version !== "" && versionOf(entry) !== version) return false;
  if (state === "") return true;
  return state === "distrusted" ? !isTrusted(entry) : stateWords(entry).state === state;
}

const stateOrder = { offline: 0, never: 1, draining: 2, online: 3, revoked: 4 } as const;
const trustOrder = {
  distrusted: 0,
  "probes-doubted": 1,
  watched: 2,
  unproven: 3,
  "not-compared": 4,
  trusted: 5,
} as const;

/** What needs a look first; names decide among equals. */
function order(sort: FleetSort): (a: FleetEntry, b: FleetEntry) => number {
  const by: Readonly<Record<FleetSort, (entry: FleetEntry) => number>> = {
    name: () => 0,
    state: (entry) => stateOrder[stateWords(entry).state],
    subnets: ({ subnets }) => -subnets,
    pages: ({ pagesToday }) => -pagesToday,
    rtt: ({ meanRttMs }) => -(meanRttMs ?? -1),
    incidents: ({ incidents }) => -incidents,
    trust: ({ trust }) => trustOrder[trust],
    seen: ({ lastSeenAt }) => lastSeenAt?.getTime() ?? 0,
  };
  return (a, b) => by[sort](a) - by[sort](b) || (a.name < b.name ? -1 : 1);
}

function totalsOf(fleet: readonly FleetEntry[]): FleetTotals {
  const totals = {
    ...{ crawlers: fleet.length, connected: 0, offline: 0, draining: 0, distrusted: 0 },
    ...{ subnets: 0, pagesToday: 0, pagesPerDay: 0, incidents: 0 },
  };
  for (const entry of fleet) {
    const isConnected = entry.state !== "offline";
    if (isConnected) {
      totals.connected += 1;
      totals.pagesPerDay += entry.pagesPerDay;
    } else if (!entry.revoked) totals.offline += 1;
    if (entry.draining !== null && !entry.revoked) totals.draining += 1;
    if (!isTrusted(entry)) totals.distrusted += 1;
    totals.subnets += entry.subnets;
    totals.pagesToday += entry.pagesToday;
    totals.incidents += entry.incidents;
  }
  return totals;
}

function distinct(values: readonly (string | null)[]): string[] {
  return [...new Set(values.filter((value): value is string => value !== null))].sort();
}

/** One column of the fleet's list. A cell of the page that is more than its text is in fleet-page.ts, by `key`. */
export interface FleetColumn {
  /** As the CSV's columns are called. */
  readonly key: string;
  /** Headings of the page and of the command; left out: not shown there. */
  readonly page?: string;
  readonly command?: string;
  readonly isNumber?: boolean;
  /** In the CSV. */
  readonly value: (entry: FleetEntry) => string | number | null;
  /** For people; left out: the value. */
  readonly text?: (entry: FleetEntry) => string;
}

/** What page, CSV and command show of each crawler, in the CSV's order; the JSON has the entry itself. */
export const fleetColumns: readonly FleetColumn[] = [
  { key: "name", page: "Crawler", command: "crawler", value: ({ name }) => name },
  { key: "place", value: ({ place }) => place },
  { key: "country", value: ({ country }) => country },
  {
    ...{ key: "state", page: "State", command: "state" },
    value: (entry) => stateWords(entry).state,
    text: ({ revoked, state }) => (revoked ? "revoked" : state),
  },
  { key: "since", value: (entry) => stateWords(entry).since },
  { key: "why", value: (entry) => stateWords(entry).why },
  { key: "version", page: "Version", value: versionOf },
  { key: "subnets", page: "Subnets", command: "subnets", isNumber: true, value: ({ subnets }) => subnets },
  {
    ...{ key: "pages_today", page: "Pages today", command: "pages today", isNumber: true },
    value: ({ pagesToday }) => pagesToday,
  },
  { key: "pages_per_day", command: "of", isNumber: true, value: ({ pagesPerDay }) => pagesPerDay },
  {
    ...{ key: "bytes_today", command: "bytes today", isNumber: true },
    value: ({ bytesToday }) => bytesToday,
    text: ({ bytesToday }) => roundBytesText(bytesToday),
  },
  {
    ...{ key: "bytes_per_day", command: "of", isNumber: true },
    value: ({ bytesPerDay }) => bytesPerDay,
    text: ({ bytesPerDay }) => roundBytesText(bytesPerDay),
  },
  { key: "mean_rtt_ms", page: "Mean RTT", isNumber: true, value: ({ meanRttMs }) => meanRttMs },
  { key: "open_leases", command: "leases", isNumber: true, value: ({ openLeases }) => openLeases },
  {
    ...{ key: "incidents_7_days", page: "Incidents, 7 d", isNumber: true },
    value: ({ incidents }) => incidents,
  },
  { key: "trust", page: "Trust", value: ({ trust }) => trust, text: ({ trust }) => standingWords[trust] },
];

/** Of a column, for people; "–" where there is nothing. */
export function textOf({ text, value }: FleetColumn, entry: FleetEntry): string {
  return text?.(entry) ?? String(value(entry) ?? "–");
}

const units = ["B", "kB", "MB", "GB", "TB", "PB"] as const;

/** Three figures: 999 B, 1.23 MB, 45.6 GB. */
export function roundBytesText(bytes: number): string {
  let [value, unit] = [bytes, 0];
  while (value >= 999.5 && unit < units.length - 1) [value, unit] = [value / 1000, unit + 1];
  return `${Number(value.toPrecision(3))} ${units[unit]}`;
}

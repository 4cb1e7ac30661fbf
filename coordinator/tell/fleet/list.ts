/** The fleet's list as it was asked for: filtered, sorted, one page of it, with the totals of all. */
import type { FleetAnswer, FleetQuery } from "./fleet-api.ts";
import { type FleetEntry, stateWords, versionOf } from "./fleet-entry.ts";

interface FleetView extends Pick<FleetAnswer, "totals" | "countries" | "versions" | "found" | "more"> {
  readonly crawlers: readonly FleetEntry[];
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
    totals: totalsOf(fleet),
    countries: distinct(fleet.map(({ country }) => country)),
    versions: distinct(fleet.map(versionOf)),
    found: found.length,
    crawlers: found.slice(start, start + pageSize),
    more: found.length > start + pageSize,
  };
}

export function isTrusted({ trust }: Pick<FleetEntry, "trust">): boolean {
  return trust !== "distrusted" && trust !== "probes-doubted";
}

function fits(entry: FleetEntry, { q, state, country, version }: FleetQuery): boolean {
  const wanted = q.toLowerCase();
  if (!entry.name.includes(wanted) && !(entry.place ?? "").toLowerCase().includes(wanted)) return false;
  if (country !== undefined && entry.country !== country) return false;
  if (version !== undefined && versionOf(entry) !== version) return false;
  if (state === undefined) return true;
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
function order(sort: FleetQuery["sort"]): (a: FleetEntry, b: FleetEntry) => number {
  const by: Readonly<Record<FleetQuery["sort"], (entry: FleetEntry) => number>> = {
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

function totalsOf(fleet: readonly FleetEntry[]): FleetAnswer["totals"] {
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

/** The capacities of a plan: pages per day, and bytes per day if partners state them. */
import type { RttTable } from "../distances/predicted-rtts.ts";
import { type BalanceInput, type BalanceSettings, plannedCapacity } from "./plan.ts";

/** All arrays are indexed by crawler. */
export interface Burden {
  readonly capacityPages: Float64Array;
  /** Infinite when the partner set no limit. */
  readonly capacityBytes: Float64Array;
  /** The present load of its subnets. */
  readonly pages: Float64Array;
  readonly bytes: Float64Array;
}

/** Crawlers not listed have no capacity. */
export function burdenOf(
  { crawlers, subnets }: Pick<BalanceInput, "crawlers" | "subnets">,
  rtts: RttTable,
): Burden {
  const indices = new Map(rtts.crawlerIds.map((crawlerId, index) => [crawlerId, index]));
  const burden = {
    capacityPages: new Float64Array(indices.size),
    capacityBytes: new Float64Array(indices.size).fill(Number.POSITIVE_INFINITY),
    pages: new Float64Array(indices.size),
    bytes: new Float64Array(indices.size),
  };
  for (const { crawlerId, capacityPagesPerDay, capacityBytesPerDay } of crawlers) {
    const index = indices.get(crawlerId)!;
    burden.capacityPages[index] = capacityPagesPerDay;
    burden.capacityBytes[index] = capacityBytesPerDay ?? Number.POSITIVE_INFINITY;
  }
  for (const { crawlerId, loadPagesPerDay, loadBytesPerDay = 0 } of subnets) {
    burden.pages[indices.get(crawlerId)!]! += loadPagesPerDay;
    burden.bytes[indices.get(crawlerId)!]! += loadBytesPerDay;
  }
  return burden;
}

interface PlannedCapacities {
  /** Both limits apply. */
  readonly pages: Float64Array;
  readonly bytes: Float64Array;
}

/**
 * Leaves the dead band free if the fleet has room, otherwise uses the stated capacities; if even these do not suffice,
 * all grow by the same factor, so that everyone is equally overloaded.
 */
export function plannedCapacities(burden: Burden, settings: BalanceSettings): PlannedCapacities {
  const banded = {
    pages: burden.capacityPages.map((capacity, index) =>
      plannedCapacity(capacity, burden.pages[index]!, settings),
    ),
    bytes: burden.capacityBytes.map((capacity, index) =>
      capacity === Number.POSITIVE_INFINITY
        ? capacity
        : plannedCapacity(capacity, burden.bytes[index]!, settings),
    ),
  };
  const stated = { pages: burden.capacityPages, bytes: burden.capacityBytes };
  const [pages, bytes] = [sum(burden.pages), sum(burden.bytes)];
  const suffices = (limits: { pages: Float64Array; bytes: Float64Array }) =>
    sum(limits.pages) >= pages && sum(limits.bytes) >= bytes;
  return suffices(banded)
    ? banded
    : { pages: grownTo(stated.pages, pages), bytes: grownTo(stated.bytes, bytes) };
}

function grownTo(capacities: Float64Array, load: number): Float64Array {
  const carried = sum(capacities);
  return carried > 0 && load > carried
    ? capacities.map((capacity) => (capacity * load) / carried)
    : capacities;
}

/**
 * With equal loads, rounds capacities to whole subnets. If the lost fractions are needed, the crawlers with the
 * largest ones take another subnet.
 */
export function wholeUnits(capacities: Float64Array, unit: number, subnets: number): Float64Array {
  // Adds a margin, so that a capacity of 0.3 carries three subnets of 0.1.
  const units = capacities.map((capacity) => capacity / unit + 1e-9);
  const whole = units.map(Math.floor);
  const fraction = (crawler: number) => units[crawler]! % 1;
  const byFraction = [...units.keys()].sort((a, b) => fraction(b) - fraction(a) || a - b);
  const missing = subnets - sum(whole);
  for (const crawler of byFraction.slice(0, Math.max(0, missing))) whole[crawler]! += 1;
  return whole.map((count) => count * unit);
}

const sum = (values: Float64Array) => values.reduce((total, value) => total + value, 0);

/**
 * The capacities that a plan keeps to: in pages a day, and in bytes a day where partners state that too.
 *
 * The flow knows one unit, pages. A crawler whose bytes would run out first, at the mean size of a page, is planned
 * with the pages that its bytes allow; that subnets' pages differ in size is put right afterwards (whole-placement).
 */
import type { CrawlerId } from "#core/ids";
import type { PackedSubnets } from "./packed-subnets.ts";
import { type BalanceCrawler, type BalanceSettings, plannedCapacity } from "./plan.ts";
import type { LikelyCrawlers } from "./rtt-table.ts";

/** Per crawler, by index; all in the same order. */
export interface Burden {
  readonly capacityPages: Float64Array;
  /** Infinite where the partner set no limit. */
  readonly capacityBytes: Float64Array;
  /** What its subnets cost now. */
  readonly pages: Float64Array;
  readonly bytes: Float64Array;
}

/** Crawlers that are not listed have no capacity. */
export function burdenOf(subnets: PackedSubnets, listed: ReadonlyMap<CrawlerId, BalanceCrawler>): Burden {
  const { crawlerIds } = subnets.rtts;
  const limits = crawlerIds.map((crawlerId) => listed.get(crawlerId));
  const burden = {
    capacityPages: Float64Array.from(limits, (one) => one?.capacityPagesPerDay ?? 0),
    capacityBytes: Float64Array.from(limits, (one) => one?.capacityBytesPerDay ?? Number.POSITIVE_INFINITY),
    pages: new Float64Array(crawlerIds.length),
    bytes: new Float64Array(crawlerIds.length),
  };
  for (const row of subnets.living()) {
    burden.pages[subnets.ownerOf(row)]! += subnets.pagesOf(row);
    burden.bytes[subnets.ownerOf(row)]! += subnets.bytesOf(row);
  }
  return burden;
}

interface PlannedCapacities {
  /** What each crawler may carry of either; a plan keeps to both. */
  readonly pages: Float64Array;
  readonly bytes: Float64Array;
  /** Pages for the flow; together they hold all load. */
  readonly flow: Float64Array;
}

/**
 * With the dead band where the fleet has room for it; else the capacities as stated; and where the fleet as a whole
 * cannot carry the load, everyone's grown by the same factor, so that all are equally overloaded.
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
  const limits = suffices(banded)
    ? banded
    : { pages: grownTo(stated.pages, pages), bytes: grownTo(stated.bytes, bytes) };
  return { ...limits, flow: flowCapacities(limits, pages, bytes) };
}

function flowCapacities(
  limits: { readonly pages: Float64Array; readonly bytes: Float64Array },
  pages: number,
  bytes: number,
): Float64Array {
  if (bytes === 0 || pages === 0) return limits.pages;
  const pageBytes = bytes / pages;
  const both = limits.pages.map((capacity, index) => Math.min(capacity, limits.bytes[index]! / pageBytes));
  return sum(both) >= pages ? both : limits.pages;
}

function grownTo(capacities: Float64Array, load: number): Float64Array {
  const carried = sum(capacities);
  return carried > 0 && load > carried
    ? capacities.map((capacity) => (capacity * load) / carried)
    : capacities;
}

/**
 * With equal loads, capacities in whole subnets. Where the fractions that are lost by this are needed to hold
 * everything, the crawlers with the largest ones take a subnet more.
 */
export function wholeUnits(capacities: Float64Array, unit: number, subnets: number): Float64Array {
  // A hair more, so that a capacity of 0.3 carries three subnets of 0.1.
  const units = capacities.map((capacity) => capacity / unit + 1e-9);
  const whole = units.map(Math.floor);
  const fraction = (crawler: number) => units[crawler]! % 1;
  const byFraction = [...units.keys()].sort((a, b) => fraction(b) - fraction(a) || a - b);
  const missing = subnets - sum(whole);
  for (const crawler of byFraction.slice(0, Math.max(0, missing))) whole[crawler]! += 1;
  return whole.map((count) => count * unit);
}

const sum = (values: Float64Array) => values.reduce((total, value) => total + value, 0);

/** The transport problem that min-cost-flow solves: crawlers and subnets by index, costs on demand. */
export interface FlowProblem {
  /** What each crawler may carry. Together they hold all loads. */
  readonly capacities: Float64Array;
  /** How many subnets there are; `loadOf` and `costsInto` take indexes below it. */
  readonly subnets: number;
  /** True for an index that no longer stands for a subnet. */
  isGone(subnet: number): boolean;
  loadOf(subnet: number): number;
  /** Writes the cost (ms) of a unit of the subnet's load at each crawler; all finite. */
  costsInto(subnet: number, costs: Float64Array): void;
  /**
   * Of a large fleet, the costs of the likely crawlers alone: a problem that has it is solved exactly over these, and
   * `breadth` grows where they do not suffice. Without it every crawler comes into question.
   */
  readonly likelyInto?: LikelyInto | undefined;
}

export type LikelyInto = (subnet: number, breadth: number, into: LikelyCrawlers) => void;

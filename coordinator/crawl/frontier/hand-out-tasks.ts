/**
 * A crawler asks for work when it has room: it gets host slices of the subnets delegated to it, or the
 * reason why there is nothing now and when asking again makes sense.
 */

import type { CrawlerId } from "#core/ids";
import type { CoordinatorMessage } from "#protocol/coordinator-messages";
import type { Lease } from "#protocol/lease";
import type { Partition } from "../../place/domain-sets/partition.ts";
import type { FrontierStore } from "./frontier-store.ts";
import type { FrontierOrder } from "./order/strategies.ts";

interface HandOutSettings {
  readonly leaseSeconds: number;
  readonly urlsPerHost: number;
  readonly hostsPerRequest: number;
  /** Before another crawler than the last one asks an address; the store's own when left out. */
  readonly addressRestSeconds?: number;
  /** Which due URLs of a host go first; the longest due when left out. */
  readonly order?: FrontierOrder;
  /** Of each page so many links are asked for their type; none when left out. */
  readonly linkTypeChecks?: number;
  /** What this coordinator has crawled by its own domain sets; left out: every host. */
  readonly partition?: Partition;
}

export type Tasks = Omit<Extract<CoordinatorMessage, { type: "coordinator:tasks" }>, "leases"> & {
  readonly leases: Lease[];
};

/** What a crawler without work is told, and says of itself from then on: it holds nothing back. */
export const nothingDueReason = "no URL of its subnets is due";
export const askAgainSoonMs = 500;
const askAgainWhenIdleMs = 2000;

interface WorkRequest {
  readonly crawlerId: CrawlerId;
  readonly freeHosts: number;
  readonly draining: boolean;
  /** False: its key is for measurements only. */
  readonly mayCrawl?: boolean;
  readonly pagesLeftToday: number;
}

/** Why the crawler gets no work whatever is due; null: it may get some. */
export function withoutWork(request: WorkRequest): Tasks | null {
  if (request.draining) return nothing("this crawler is being drained", 30_000);
  if (request.mayCrawl === false) return nothing("this crawler's key is for measurements only", 60_000);
  if (request.pagesLeftToday <= 0) return nothing("the pages or bytes of this day are used up", 60_000);
  return null;
}

export async function handOutTasks(
  request: WorkRequest,
  frontier: Pick<FrontierStore, "leaseHosts">,
  settings: HandOutSettings,
  now: Date,
): Promise<Tasks> {
  const idle = withoutWork(request);
  if (idle !== null) return idle;
  // All slices together stay within what the day has left.
  const urlsPerHost = Math.min(settings.urlsPerHost, request.pagesLeftToday);
  const affordableHosts = Math.floor(request.pagesLeftToday / urlsPerHost);
  const leases = await frontier.leaseHosts({
    crawlerId: request.crawlerId,
    hosts: Math.min(request.freeHosts, settings.hostsPerRequest, affordableHosts),
    urlsPerHost,
    leaseSeconds: settings.leaseSeconds,
    ...(settings.addressRestSeconds === undefined ? {} : { addressRestSeconds: settings.addressRestSeconds }),
    ...(settings.order === undefined ? {} : { order: settings.order }),
    ...(settings.partition === undefined ? {} : { partition: settings.partition }),
    now,
  });
  if (leases.length === 0) return nothing(nothingDueReason, askAgainWhenIdleMs);
  return {
    type: "coordinator:tasks",
    leases: withChecks(leases, settings),
    askAgainMs: askAgainSoonMs,
    reason: "",
  };
}

function withChecks(leases: readonly Lease[], { linkTypeChecks = 0 }: HandOutSettings): Lease[] {
  return leases.map((lease) => (linkTypeChecks === 0 ? lease : { ...lease, linkTypeChecks }));
}

export function nothing(reason: string, askAgainMs: number): Tasks {
  return { type: "coordinator:tasks", leases: [], askAgainMs, reason };
}

/** Answers a crawler that asks for work: host slices of its delegated subnets, or why there is nothing now and when to ask again. */

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
  /** Seconds before another crawler may use an address; the store's default when omitted. */
  readonly addressRestSeconds?: number;
  /** Order of a host's due URLs; longest due first when omitted. */
  readonly order?: FrontierOrder;
  /** Links per page whose type is checked; none when omitted. */
  readonly linkTypeChecks?: number;
  /** The coordinator's own domain sets; every host when omitted. */
  readonly partition?: Partition;
}

export type Tasks = Omit<Extract<CoordinatorMessage, { type: "coordinator:tasks" }>, "leases"> & {
  readonly leases: Lease[];
};

/** Sent to a crawler without work, which then reports it: nothing holds it back. */
export const nothingDueReason = "no URL of its subnets is due";
export const askAgainSoonMs = 500;
const askAgainWhenIdleMs = 2000;

interface WorkRequest {
  readonly crawlerId: CrawlerId;
  readonly freeHosts: number;
  readonly draining: boolean;
  /** False when its key only allows measurements. */
  readonly mayCrawl?: boolean;
  readonly pagesLeftToday: number;
}

/** Why the crawler gets no work whatever is due; null when it may get some. */
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
  // All slices together stay within the rest of the day's limit.
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

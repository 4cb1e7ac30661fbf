/** Answers a crawler that asks for work: host slices of its subnets, or why there are none and when to ask again. */

import type { CrawlerId } from "#core/ids";
import type { CoordinatorMessage } from "#protocol/coordinator-messages";
import type { Lease } from "#protocol/lease";
import type { LeaseRequest } from "./frontier.ts";
import type { FrontierStore } from "./frontier-store.ts";

interface HandOutSettings
  extends Pick<LeaseRequest, "leaseSeconds" | "urlsPerHost" | "addressRestSeconds" | "order" | "partition"> {
  readonly hostsPerRequest: number;
  /** Links per page whose type is checked. None if omitted. */
  readonly linkTypeChecks?: number;
}

export type Tasks = Omit<Extract<CoordinatorMessage, { type: "coordinator:tasks" }>, "leases"> & {
  readonly leases: Lease[];
};

/** Reason sent to a crawler without work, which reports it. It means that nothing holds the crawler back. */
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

/** Why the crawler gets no work even if some is due. Null if it may get some. */
export function withoutWork(request: WorkRequest): Tasks | null {
  if (request.draining) return nothing("this crawler is being drained", 30_000);
  if (request.mayCrawl === false) return nothing("this crawler's key is for measurements only", 60_000);
  if (request.pagesLeftToday <= 0) return nothing("the pages or bytes of this day are used up", 60_000);
  return null;
}

/** Must only be called for crawlers that may get work. */
export async function handOutTasks(
  { crawlerId, freeHosts, pagesLeftToday }: WorkRequest,
  frontier: Pick<FrontierStore, "leaseHosts">,
  { hostsPerRequest, linkTypeChecks = 0, ...terms }: HandOutSettings,
  now: Date,
): Promise<Tasks> {
  // All slices together stay within the rest of the day's limit.
  const urlsPerHost = Math.min(terms.urlsPerHost, pagesLeftToday);
  const hosts = Math.min(freeHosts, hostsPerRequest, Math.floor(pagesLeftToday / urlsPerHost));
  const leases = await frontier.leaseHosts({ ...terms, crawlerId, hosts, urlsPerHost, now });
  if (leases.length === 0) return nothing(nothingDueReason, askAgainWhenIdleMs);
  return {
    type: "coordinator:tasks",
    leases: linkTypeChecks === 0 ? leases : leases.map((lease) => ({ ...lease, linkTypeChecks })),
    askAgainMs: askAgainSoonMs,
    reason: "",
  };
}

export function nothing(reason: string, askAgainMs: number): Tasks {
  return { type: "coordinator:tasks", leases: [], askAgainMs, reason };
}

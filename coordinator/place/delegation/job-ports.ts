/** What the jobs that decide whose the subnets are, and those that balance them, work with. */
import type { CrawlerId } from "#core/ids";
import type { Log } from "#core/log";
import type { Timekeeper } from "#core/scheduler";
import type { CoordinatorMessage } from "#protocol/coordinator-messages";
import type { Fleet } from "../crawlers/crawler.ts";
import type { AnycastRanges } from "./anycast.ts";
import type { DeniedTargets } from "./denied-targets.ts";
import type { FleetSettling } from "./measure-peers.ts";
import type { DelegationQueue } from "./queue.ts";
import type { RecalibrationQueue } from "./recalibration/recalibrate.ts";
import type { CoordinatorState } from "./state.ts";
import type { DelegationStore } from "./store.ts";

export interface DelegationJobPorts {
  readonly timekeeper: Pick<Timekeeper, "every" | "hurry">;
  readonly state: CoordinatorState;
  /** `online`: the whole fleet; `here`: those that are connected to this coordinator, the only one that can send to them. */
  readonly gateway: Fleet & {
    here?(): readonly CrawlerId[];
    send(crawlerId: CrawlerId, message: CoordinatorMessage): boolean;
  };
  readonly queue: Pick<DelegationQueue, "fill" | "isUnderWay" | "request">;
  readonly settling: FleetSettling;
  readonly recalibration: RecalibrationQueue;
  readonly delegations: DelegationStore;
  /** Mean time from one fetch of a page to its next; left out, the fixed interval. */
  readonly recrawlDays?: () => number;
  /** Without it, nobody denies anything. */
  readonly denied?: DeniedTargets;
  /** Without it, nothing is taken for anycast. */
  readonly anycast?: AnycastRanges;
  readonly log: Log;
  readonly now: () => Date;
}

/** Dependencies of the jobs that delegate and balance subnets. */
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
  /** `online` is the whole fleet; `here` are the crawlers connected to this coordinator, which alone can send to them. */
  readonly gateway: Fleet & {
    here?(): readonly CrawlerId[];
    send(crawlerId: CrawlerId, message: CoordinatorMessage): boolean;
  };
  readonly queue: Pick<DelegationQueue, "fill" | "isUnderWay" | "request">;
  readonly settling: FleetSettling;
  readonly recalibration: RecalibrationQueue;
  readonly delegations: DelegationStore;
  /** Mean days between fetches of a page; the fixed interval when omitted. */
  readonly recrawlDays?: () => number;
  /** Nobody denies anything when omitted. */
  readonly denied?: DeniedTargets;
  /** Nothing counts as anycast when omitted. */
  readonly anycast?: AnycastRanges;
  readonly log: Log;
  readonly now: () => Date;
}

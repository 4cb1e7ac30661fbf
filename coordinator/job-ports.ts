/** What the jobs of several rooms work with. */
import type { CrawlerId } from "#core/ids";
import type { Log } from "#core/log";
import type { NameResolver } from "#core/name-resolver";
import type { Timekeeper } from "#core/scheduler";
import type { CrawlerStore } from "./crawlers/crawler-store.ts";
import type { AnycastRanges } from "./delegation/anycast.ts";
import type { DeniedTargets } from "./delegation/denied-targets.ts";
import type { FleetSettling } from "./delegation/measure-peers.ts";
import type { DelegationQueue } from "./delegation/queue.ts";
import type { RecalibrationQueue } from "./delegation/recalibration/recalibrate.ts";
import type { CoordinatorState } from "./delegation/state.ts";
import type { DelegationStore } from "./delegation/store.ts";
import type { FrontierStore } from "./frontier/frontier-store.ts";
import type { CrawlerGateway } from "./gateway/gateway.ts";
import type { Counters } from "./overview/counters.ts";
import type { ResultStore } from "./results/result-store.ts";

export interface JobPorts {
  readonly timekeeper: Pick<Timekeeper, "every" | "hurry">;
  readonly state: CoordinatorState;
  /** `online`: the whole fleet; `here`: those that are connected to this coordinator, the only one that can send to them. */
  readonly gateway: Pick<CrawlerGateway, "online" | "probe" | "send"> & { here?(): readonly CrawlerId[] };
  readonly queue: Pick<DelegationQueue, "fill" | "isUnderWay" | "request">;
  readonly settling: FleetSettling;
  readonly recalibration: RecalibrationQueue;
  readonly crawlers: CrawlerStore;
  readonly delegations: DelegationStore;
  readonly frontier: FrontierStore;
  readonly results: ResultStore;
  readonly resolver: NameResolver;
  readonly counters: Counters;
  /** Crawlers that get no new subnet now. */
  readonly withoutRoom: () => ReadonlySet<CrawlerId>;
  /** Mean time from one fetch of a page to its next; left out, the fixed interval. */
  readonly recrawlDays?: () => number;
  /** Without it, nobody denies anything. */
  readonly denied?: DeniedTargets;
  /** Without it, nothing is taken for anycast. */
  readonly anycast?: AnycastRanges;
  readonly log: Log;
  readonly now: () => Date;
}

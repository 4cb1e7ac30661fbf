/** Periodic work when crawlers come, go or are overloaded. */

import type { CrawlerId } from "#core/ids";
import { jobs } from "#core/scheduler";
import { isBelieved } from "../crawlers/crawler.ts";
import type { CrawlerStore } from "../crawlers/crawler-store.ts";
import type { ProbingSettings } from "../delegation/delegation-settings.ts";
import type { DelegationJobPorts } from "../delegation/queue.ts";
import { type HandOverPorts, HandOvers, type HeirLine, successionOf } from "./hand-overs.ts";
import { PutOffMoves } from "./input.ts";
import { NewcomerSettling } from "./join.ts";
import type { BalanceSettings } from "./plan.ts";
import { refreshCrawlers } from "./presence.ts";
import { rebalanceLoad } from "./relief.ts";

const handOverMs = 5000;
/** Ten probes per pass make 120 a minute. */
const settleMs = 5000;

export interface BalanceJobPorts extends DelegationJobPorts {
  readonly crawlers: CrawlerStore;
  readonly frontier: HandOverPorts["frontier"];
  readonly withoutRoom: () => ReadonlySet<CrawlerId>;
  readonly counters: { moves(cause: string, subnets: number): void };
}

interface SuccessionSettings {
  readonly recrawl: { readonly intervalHours: number };
}

interface BalanceJobSettings extends SuccessionSettings {
  readonly balance: BalanceSettings;
  readonly probe: ProbingSettings;
  readonly departureSeconds: number;
}

export function scheduleBalance(ports: BalanceJobPorts, config: BalanceJobSettings): void {
  const { timekeeper, gateway, counters, log } = ports;
  const { recrawlDays = () => config.recrawl.intervalHours / 24 } = ports;
  // Distrusted crawlers get nothing new, as newcomers or for relief.
  const believed = {
    ...gateway,
    online: () => gateway.online().filter((id) => isBelieved(ports.state.crawler(id))),
  };
  const handOvers = new HandOvers(
    {
      ...ports,
      online: () => heirsOnline(ports),
      recrawlDays,
      onMoved: (cause, subnets) => counters.moves(cause, subnets),
    },
    { departureMs: config.departureSeconds * 1000, since: ports.now() },
  );
  timekeeper.every(jobs.handOver, handOverMs, async () => {
    await handOvers.pass();
  });
  const newcomers = new NewcomerSettling({
    ...ports,
    fleet: believed,
    rounds: {
      isUnderWay: (subnetId) => ports.queue.isUnderWay(subnetId),
      request: (subnetIds, cause) => {
        ports.queue.request(subnetIds, cause);
        if (subnetIds.length > 0) timekeeper.hurry(jobs.delegate);
      },
    },
    probe: () => config.probe,
    recrawlDays,
    onMoved: (subnets) => counters.moves("joined", subnets),
  });
  timekeeper.every(jobs.settle, settleMs, async () => await newcomers.pass());
  const putOff = new PutOffMoves();
  const rebalanceMs = () => config.balance.everySeconds * 1000;
  timekeeper.every(jobs.rebalance, rebalanceMs, async () => {
    const settings = { ...config.balance, probe: config.probe, recrawlDays: recrawlDays() };
    const moved = await rebalanceLoad({ ...ports, fleet: believed, putOff }, settings, ports.now());
    counters.moves("overload", moved.length);
    if (moved.length > 0) log.info({ subnets: moved.length }, "load was rebalanced");
  });
}

/** Crawlers that can take a subnet: connected, trusted, with room, and not draining. */
function heirsOnline({ gateway, withoutRoom }: BalanceJobPorts): CrawlerId[] {
  const full = withoutRoom();
  return gateway.online().filter((crawlerId) => !full.has(crawlerId));
}

/** Where a crawler's subnets would go now, by the same plan as the next hand-over pass. */
export function succession(
  ports: BalanceJobPorts,
  config: SuccessionSettings,
): (crawlerId: CrawlerId) => Promise<HeirLine[]> {
  const { recrawlDays = () => config.recrawl.intervalHours / 24 } = ports;
  const online = () => heirsOnline(ports);
  return async (crawlerId) => await successionOf(crawlerId, { ...ports, online, recrawlDays }, ports.now());
}

/** Reads the fleet again and acts at once when a crawler is drained, resumed or revoked, or when a new key is requested. */
export async function followFleet(
  ports: Pick<BalanceJobPorts, "crawlers" | "state" | "timekeeper" | "log"> & {
    /** Additional work on the changed fleet, done before subnets are handed over. */
    readonly onChange?: () => Promise<void>;
  },
): Promise<{ stop(): Promise<void> }> {
  let turn = Promise.resolve();
  const refresh = async () => {
    await refreshCrawlers(ports);
    await ports.onChange?.();
    ports.timekeeper.hurry(jobs.handOver);
    ports.timekeeper.hurry(jobs.settle);
  };
  const notices = await ports.crawlers.onChange(() => {
    turn = turn.then(refresh).catch((error: unknown) => {
      ports.log.error({ error }, "the fleet changed, but could not be read; the next arrival reads it again");
    });
  });
  return {
    stop: async () => {
      await notices.stop();
      await turn;
    },
  };
}

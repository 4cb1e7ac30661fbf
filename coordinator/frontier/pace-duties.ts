/** By the clock: crawlers are told whether to slow down or to hurry up, by how much due work they have. */
import type { CrawlerId } from "#core/ids";
import type { Log } from "#core/log";
import type { Timekeeper } from "#core/scheduler";
import type { CoordinatorConfig } from "../config.ts";
import { PaceOfFleet, type PacePorts } from "./pace-crawlers.ts";

export interface PaceDuties {
  /** A session began: the crawler does what its host allows until it is told. */
  onWelcome(crawlerId: CrawlerId): void;
  start(): void;
}

export function paceDuties(
  ports: Omit<PacePorts, "rule"> & {
    readonly timekeeper: Pick<Timekeeper, "every">;
    readonly log: Log;
  },
  config: Pick<CoordinatorConfig, "pace">,
): PaceDuties {
  const fleet = new PaceOfFleet({ ...ports, rule: () => config.pace });
  const everyMs = () => config.pace.everySeconds * 1000;
  const pass = async () => {
    const crawlers = await fleet.pass();
    if (crawlers > 0) ports.log.debug({ crawlers }, "crawlers were told their pace");
  };
  return {
    onWelcome: (crawlerId) => fleet.forget(crawlerId),
    start: () => ports.timekeeper.every("pace-crawlers", everyMs, pass),
  };
}

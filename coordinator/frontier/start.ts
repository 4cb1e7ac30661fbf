/**
 * Reckons what hosts are worth under the frontier's order (frontier/order/order-sql.ts), a moment at a time, so that every
 * host that is due has its figure renewed within minutes; forgets the figures where the order does not ask for them.
 */

import type { Pool } from "pg";
import type { CrawlerId } from "#core/ids";
import type { Log } from "#core/log";
import { jobs, type Timekeeper } from "#core/scheduler";
import type { CoordinatorConfig } from "../config.ts";
import type { JobPorts } from "../job-ports.ts";
import {
  forgetShortlists,
  forgetWorths,
  type ReckonedUntil,
  reckonFromStart,
  reckonWorths,
} from "./order/order-sql.ts";
import { type FrontierOrder, worthShareOf } from "./order/strategies.ts";
import { PaceOfFleet, type PacePorts } from "./pace.ts";
import { resolveHosts } from "./resolve-hosts.ts";

export interface HostWorthDuty {
  readonly pool: Pool;
  readonly timekeeper: Pick<Timekeeper, "every">;
  /** In force now. */
  readonly order: () => FrontierOrder;
  readonly now: () => Date;
  readonly nowMs: () => number;
}

const everyMs = 5000;

/** Of every turn, for the database's sake. */
const busyMs = 500;

export function scheduleHostWorths(duty: HostWorthDuty): void {
  let after: ReckonedUntil = reckonFromStart;
  duty.timekeeper.every("reckon-host-worths", everyMs, async () => {
    const order = duty.order();
    const untilMs = duty.nowMs() + busyMs;
    let isMore = true;
    while (isMore && duty.nowMs() < untilMs) isMore = await forgetShortlists(duty.pool, duty.now());
    isMore = true;
    while (isMore && duty.nowMs() < untilMs) {
      if (worthShareOf(order) === 0) {
        isMore = await forgetWorths(duty.pool);
        continue;
      }
      const reached = await reckonWorths(duty.pool, order.name, { after, now: duty.now() });
      after = reached ?? reckonFromStart;
      isMore = reached !== null;
    }
  });
}

// By the clock: crawlers are told whether to slow down or to hurry up, by how much due work they have.

interface PaceDuties {
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

const resolveBatch = 200;

// Hosts get their addresses, and what was leased or refused comes back, by the clock.

export function scheduleFrontier(
  ports: JobPorts,
  config: Pick<CoordinatorConfig, "allowSpecialPurpose">,
): void {
  const { timekeeper } = ports;
  timekeeper.every(jobs.resolveHosts, 500, async () => {
    const settings = { batch: resolveBatch, allowSpecialPurpose: config.allowSpecialPurpose };
    const subnetOf = (address: string) => ports.state.subnetOf(address);
    const settled = await resolveHosts({ ...ports, subnetOf }, settings, ports.now);
    if (settled > 0) timekeeper.hurry(jobs.delegate);
    if (settled === resolveBatch) timekeeper.hurry(jobs.resolveHosts);
  });
  timekeeper.every("return-expired-leases", 5000, async () => {
    const leases = await ports.frontier.returnExpired(ports.now());
    ports.counters.leases("expired", leases);
    if (leases > 0) ports.log.warn({ leases }, "leases ran out and returned");
  });
  timekeeper.every("reopen-refused", 60_000, async () => await ports.frontier.reopenRefused(ports.now()));
}

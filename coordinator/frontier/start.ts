/**
 * Reckons what hosts are worth under the frontier's order (frontier/order/host-worth-store.ts), a moment at a time, so that every
 * host that is due has its figure renewed within minutes; forgets the figures where the order does not ask for them.
 */
import type { Pool } from "pg";
import type { Timekeeper } from "#core/scheduler";
import { forgetWorths, type ReckonedUntil, reckonFromStart, reckonWorths } from "./order/host-worth-store.ts";
import { type FrontierOrder, worthShareOf } from "./order/order-strategies.ts";

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

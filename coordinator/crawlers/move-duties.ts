/** Moves in a running coordinator: taken up when an operator asks, looked at by the clock, told to whoever comes too late. */
import type { Pool } from "pg";
import type { CrawlerId } from "#core/ids";
import type { Log } from "#core/log";
import type { Timekeeper } from "#core/scheduler";
import type { CoordinatorMessage } from "#protocol/coordinator-messages";
import { notedMoves, noteOwnChanges } from "../access/system-audit-store.ts";
import { refreshCrawlers } from "../balance/presence.ts";
import { fleetDuties } from "../balance/start.ts";
import type { CoordinatorState } from "../delegation/state.ts";
import { type Admitted, type Introduction, isHelloSigned, type Refusal } from "./admit-crawler.ts";
import type { CrawlerStore } from "./crawler.ts";
import { Mover } from "./move-crawlers.ts";
import { createMoveStore } from "./move-store.ts";

export interface MoveDutyPorts {
  readonly pool: Pool;
  readonly gateway: {
    send(crawlerId: CrawlerId, message: CoordinatorMessage): boolean;
    refuse(crawlerId: CrawlerId, refusal: Refusal): boolean;
  };
  readonly crawlers: Pick<CrawlerStore, "list">;
  /** How many other coordinators run on this database. */
  readonly others: () => Promise<number>;
  readonly state: CoordinatorState;
  readonly timekeeper: Pick<Timekeeper, "every" | "hurry">;
  readonly log: Log;
  readonly now: () => Date;
}

export interface MoveDuties extends Pick<Mover, "start" | "review" | "onMessage" | "onLeave" | "onArrival"> {
  /** What to tell somebody who was not let in: that his crawler has moved, when it was that. */
  refusalOf(introduction: Introduction, otherwise: Refusal): Promise<Refusal>;
}

const reviewMs = 2000;

export function moveDuties(ports: MoveDutyPorts): MoveDuties {
  const { pool, gateway, timekeeper, log, now } = ports;
  const mover = new Mover({
    moves: notedMoves(createMoveStore(pool), noteOwnChanges(ports)),
    send: (crawlerId, message) => gateway.send(crawlerId, message),
    refuse: (crawlerId, refusal) => gateway.refuse(crawlerId, refusal),
    onMoved: async () => {
      await refreshCrawlers(ports);
      timekeeper.hurry(fleetDuties.handOver);
    },
    log,
    now,
  });
  return {
    start: async () => {
      // Moves that another coordinator leads go on; what nobody leads any more ends when nothing happens in it.
      if ((await ports.others()) === 0) await mover.start();
      timekeeper.every("review-moves", reviewMs, async () => await mover.review());
    },
    review: () => mover.review(),
    onMessage: (crawlerId, message) => mover.onMessage(crawlerId, message),
    onLeave: (crawlerId, reason) => mover.onLeave(crawlerId, reason),
    onArrival: (arrival) => mover.onArrival(arrival),
    refusalOf: async (introduction, otherwise) => {
      const { hello } = introduction;
      const publicKey = hello.identity?.publicKey ?? null;
      if (publicKey === null || !isHelloSigned(introduction, publicKey)) return otherwise;
      return (await mover.refusalOf(publicKey, hello.name)) ?? otherwise;
    },
  };
}

/** Lets somebody in as `admit` decides, or tells him that his crawler has moved. */
export async function admitUnlessMoved(
  introduction: Introduction,
  admit: () => Promise<Admitted | { readonly refuse: Refusal }>,
  moves: Pick<MoveDuties, "refusalOf"> | undefined,
): Promise<Admitted | { readonly refuse: Refusal }> {
  const admitted = await admit();
  if (!("refuse" in admitted) || moves === undefined) return admitted;
  return { refuse: await moves.refusalOf(introduction, admitted.refuse) };
}

/** What happens to keys while their crawlers are connected: new ones by the clock and on request, and none any more. */

import type { Pool } from "pg";
import type { Secrets } from "#core/access-types";
import type { CrawlerId } from "#core/ids";
import type { Log } from "#core/log";
import { jobs, type Timekeeper } from "#core/scheduler";
import type { CoordinatorMessage, Refusal } from "#protocol/coordinator-messages";
import { noteOwnChanges } from "../../database/own-changes-store.ts";
import { isHelloSigned, shutOut } from "./admit-crawler.ts";
import type { LeaseReturns } from "./crawler.ts";
import type { CrawlerStore } from "./crawler-store.ts";
import type { IdentityStore } from "./identity-store.ts";
import { keyRule, rotateKeys } from "./key-rotation.ts";
import { type MoveDuties, Mover } from "./move-crawlers.ts";
import { createMoveStore } from "./move-store.ts";
import { notedMoves } from "./noted-moves.ts";
import type { SigningKeyStore } from "./signing-key-store.ts";

interface KeyDutyPorts {
  readonly identities: IdentityStore;
  readonly signingKeys: Pick<SigningKeyStore, "dueRenewals">;
  readonly frontier: LeaseReturns;
  readonly gateway: {
    online(): readonly CrawlerId[];
    send(crawlerId: CrawlerId, message: CoordinatorMessage): boolean;
    refuse(crawlerId: CrawlerId, refusal: Refusal): boolean;
  };
  readonly secrets: Secrets;
  readonly timekeeper: Pick<Timekeeper, "every" | "hurry">;
  readonly log: Log;
  readonly now: () => Date;
}

interface KeyDuties {
  /** From now on by the clock. */
  start(): void;
  /** An operator may have shut crawlers out, or asked for new keys. */
  review(): Promise<void>;
  /** It may be sent messages: a key that is due. */
  onWelcome(crawlerId: CrawlerId): void;
}

const rotateMs = 3_600_000;

/** Whoever is welcomed meanwhile is looked at together. */
const welcomeMs = 250;

const duties = { all: "rotate-keys", welcomed: "rotate-welcomed-keys" } as const;

export function keyDuties(ports: KeyDutyPorts, config: { readonly signingKeyDays: () => number }): KeyDuties {
  const { timekeeper, gateway } = ports;
  /** Welcomed since the last look: a key that was sent in the session before is sent anew. */
  let arrived = new Set<CrawlerId>();
  const rotateWelcomed = async () => {
    const newcomers = [...arrived];
    arrived = new Set();
    // Who was shut out between its key and its welcome was not online when the notice came.
    await endSessions(newcomers, ports);
    await rotateKeys(newcomers, ports, { ...keyRule, resendMs: 0 });
    await renewSigningKeys(newcomers, ports, config.signingKeyDays());
  };
  const rotateAll = async () => {
    await endSessions(gateway.online(), ports);
    await rotateKeys(gateway.online(), ports, keyRule);
    await renewSigningKeys(gateway.online(), ports, config.signingKeyDays());
  };
  return {
    start: () => {
      timekeeper.every(duties.all, rotateMs, rotateAll, { onEach: true });
      timekeeper.every(duties.welcomed, rotateMs, rotateWelcomed, { onEach: true });
    },
    review: async () => {
      await endSessions(gateway.online(), ports);
      timekeeper.hurry(duties.all);
    },
    onWelcome: (crawlerId) => {
      arrived.add(crawlerId);
      timekeeper.hurry(duties.welcomed, welcomeMs);
    },
  };
}

/** Of crawlers that were shut out; what they were leased is for others at once. */
async function endSessions(
  crawlerIds: readonly CrawlerId[],
  { identities, frontier, gateway, log, now }: KeyDutyPorts,
): Promise<void> {
  if (crawlerIds.length === 0) return;
  for (const crawlerId of await identities.shutOut(crawlerIds)) {
    gateway.refuse(crawlerId, shutOut);
    const leases = await frontier.returnLeasesOf(crawlerId, now());
    log.warn({ crawlerId, leases }, "a crawler's access was revoked, and its session ended");
  }
}

/** Asked again at the next look, until the crawler has announced another. */
async function renewSigningKeys(
  crawlerIds: readonly CrawlerId[],
  { signingKeys, gateway, log, now }: KeyDutyPorts,
  maxAgeDays: number,
): Promise<void> {
  if (crawlerIds.length === 0) return;
  for (const { crawlerId, isAsked } of await signingKeys.dueRenewals(crawlerIds, {
    maxAgeDays,
    now: now(),
  })) {
    const reason = isAsked ? "an operator asked for it" : `it is ${maxAgeDays} days old`;
    if (gateway.send(crawlerId, { type: "coordinator:renew-signing-key", reason }))
      log.info({ crawlerId, reason }, "a crawler was asked for another signing key");
  }
}

// Moves in a running coordinator: taken up when an operator asks, looked at by the clock, told to whoever comes too late.

interface MoveDutyPorts {
  readonly pool: Pool;
  readonly gateway: {
    send(crawlerId: CrawlerId, message: CoordinatorMessage): boolean;
    refuse(crawlerId: CrawlerId, refusal: Refusal): boolean;
  };
  readonly crawlers: Pick<CrawlerStore, "list">;
  /** Whether this coordinator leads the crawler's move: it is connected here, or to none and somebody has to say so. */
  readonly mayBegin: (crawlerId: CrawlerId) => boolean;
  /** How many other coordinators run on this database. */
  readonly others: () => Promise<number>;
  /** Reads the crawlers anew. */
  readonly refresh: () => Promise<void>;
  readonly timekeeper: Pick<Timekeeper, "every" | "hurry">;
  readonly log: Log;
  readonly now: () => Date;
}

const reviewMs = 2000;

export function moveDuties(ports: MoveDutyPorts): MoveDuties {
  const { pool, gateway, timekeeper, log, now } = ports;
  const mover = new Mover({
    moves: notedMoves(createMoveStore(pool), noteOwnChanges(ports)),
    send: (crawlerId, message) => gateway.send(crawlerId, message),
    refuse: (crawlerId, refusal) => gateway.refuse(crawlerId, refusal),
    mayBegin: ports.mayBegin,
    onMoved: async () => {
      await ports.refresh();
      timekeeper.hurry(jobs.handOver);
    },
    log,
    now,
  });
  return {
    start: async () => {
      // Moves that another coordinator leads go on; what nobody leads any more ends when nothing happens in it.
      if ((await ports.others()) === 0) await mover.start();
      timekeeper.every("review-moves", reviewMs, async () => await mover.review(), { onEach: true });
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

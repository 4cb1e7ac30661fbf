/** Manages keys while crawlers are connected: replaces them on schedule and on request, and ends sessions of revoked crawlers. */

import type { Pool } from "pg";
import type { Secrets } from "#core/access-types";
import type { Change } from "#core/audit";
import type { CrawlerId } from "#core/ids";
import type { Log } from "#core/log";
import { jobs, type Timekeeper } from "#core/scheduler";
import type { CoordinatorMessage, Refusal } from "#protocol/coordinator-messages";
import { type NoteChange, noteOwnChanges } from "../../database/audit-log.ts";
import { isHelloSigned, shutOut } from "./admit-crawler.ts";
import type { LeaseReturns } from "./crawler.ts";
import type { CrawlerStore } from "./crawler-store.ts";
import type { DueRotation } from "./identity.ts";
import type { IdentityStore } from "./identity-store.ts";
import { type MoveDuties, Mover } from "./move-crawlers.ts";
import { type CrawlerMoveRecord, createMoveStore, type MoveStore } from "./move-store.ts";
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
  start(): void;
  /** Called when an operator may have revoked crawlers or requested new keys. */
  review(): Promise<void>;
  /** Called when the crawler can receive messages, such as a new key. */
  onWelcome(crawlerId: CrawlerId): void;
}

const rotateMs = 3_600_000;

/** Newly welcomed crawlers are handled together after this delay. */
const welcomeMs = 250;

const duties = { all: "rotate-keys", welcomed: "rotate-welcomed-keys" } as const;

export function keyDuties(ports: KeyDutyPorts, config: { readonly signingKeyDays: () => number }): KeyDuties {
  const { timekeeper, gateway } = ports;
  /** Crawlers welcomed since the last review. A key that was sent in the session before is sent again. */
  let arrived = new Set<CrawlerId>();
  const rotateWelcomed = async () => {
    const newcomers = [...arrived];
    arrived = new Set();
    // A crawler revoked between authentication and welcome was not online when the notification came.
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

/** Ends the sessions of revoked crawlers. Their leases become available at once. */
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

/** Asks on every review until the crawler announces another key. */
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

// Moves in a running coordinator. They start when an operator asks, are reviewed by a timer, and are reported to crawlers
// that return too late.

interface MoveDutyPorts {
  readonly pool: Pool;
  readonly gateway: {
    send(crawlerId: CrawlerId, message: CoordinatorMessage): boolean;
    refuse(crawlerId: CrawlerId, refusal: Refusal): boolean;
  };
  readonly crawlers: Pick<CrawlerStore, "list">;
  /**
   * Whether this coordinator leads the crawler's move, because the crawler is connected here, or is connected nowhere and a
   * coordinator has to report that.
   */
  readonly mayBegin: (crawlerId: CrawlerId) => boolean;
  readonly others: () => Promise<number>;
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
      // Moves led by another coordinator continue. A move without a leader times out.
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

// Sends new keys to connected crawlers when an operator asked or the key is old. The former key stays valid until the crawler
// confirms (or uses) the new one, and for a grace period after that, so that a crash in between locks no crawler out.

interface RotationPorts {
  readonly identities: Pick<IdentityStore, "dueRotations" | "issueKey">;
  /** Returns false if the crawler is gone or too old to receive keys. */
  readonly gateway: { send(crawlerId: CrawlerId, message: CoordinatorMessage): boolean };
  readonly secrets: Secrets;
  readonly log: { info(fields: object, message: string): void };
  readonly now: () => Date;
}

/** A key is used for 90 days, like public certificates. The crawler has a minute to store a key that was sent. */
const keyRule = { maxAgeDays: 90, resendMs: 60_000 } as const;

/** Returns how many crawlers were sent a new key. */
async function rotateKeys(
  crawlerIds: readonly CrawlerId[],
  ports: RotationPorts,
  rule: { readonly maxAgeDays: number; readonly resendMs: number },
): Promise<number> {
  if (crawlerIds.length === 0) return 0;
  const due = await ports.identities.dueRotations(crawlerIds, { ...rule, now: ports.now() });
  let sent = 0;
  for (const rotation of due) if (await rotate(rotation, ports)) sent += 1;
  return sent;
}

async function rotate(
  { crawlerId, scopes, graceHours }: DueRotation,
  { identities, gateway, secrets, log, now }: RotationPorts,
): Promise<boolean> {
  const { secret: key, hash: keyHash } = secrets.make();
  await identities.issueKey({ crawlerId, keyHash, scopes }, now());
  const oldKeySeconds = graceHours * 3600;
  const isSent = gateway.send(crawlerId, {
    type: "coordinator:key",
    key,
    scopes: [...scopes],
    oldKeySeconds,
  });
  if (isSent) log.info({ crawlerId, graceHours }, "a crawler was sent a new key");
  return isSent;
}

export function notedMoves(moves: MoveStore, note: NoteChange): MoveStore {
  return {
    ...moves,
    async commit(moveId, now) {
      const record = await moves.find(moveId);
      const isDone = await moves.commit(moveId, now);
      if (isDone && record) await note(moved(record));
      return isDone;
    },
    async fail(moveId, words, now) {
      const isNew = await moves.fail(moveId, words, now);
      const record = isNew ? await moves.find(moveId) : null;
      if (record) await note(moveFailed(record, words));
      return isNew;
    },
  };
}

function moved({ moveId, name, otherName }: CrawlerMoveRecord): Change {
  const words = `${name} has moved to the host of ${otherName}, which no longer exists.`;
  return { action: "crawler-moved", target: name, words, after: { moveId, host: otherName } };
}

function moveFailed({ moveId, name, otherName }: CrawlerMoveRecord, why: string): Change {
  const words = `${name} was not moved to the host of ${otherName}: ${why}.`;
  return { action: "crawler-move-failed", target: name, words, after: { moveId, host: otherName } };
}

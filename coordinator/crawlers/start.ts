/** What happens to keys while their crawlers are connected: new ones by the clock and on request, and none any more. */
import type { CrawlerId } from "#core/ids";
import type { Log } from "#core/log";
import type { Timekeeper } from "#core/scheduler";
import type { CoordinatorMessage } from "#protocol/coordinator-messages";
import { keyRule, rotateKeys } from "../balance/rotate-keys.ts";
import type { FrontierStore } from "../frontier/ports.ts";
import { type Refusal, type Secrets, shutOut } from "./admit-crawler.ts";
import type { IdentityStore } from "./identity.ts";

export interface KeyDutyPorts {
  readonly identities: IdentityStore;
  readonly frontier: Pick<FrontierStore, "returnLeasesOf">;
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

export interface KeyDuties {
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

export function keyDuties(ports: KeyDutyPorts): KeyDuties {
  const { timekeeper, gateway } = ports;
  /** Welcomed since the last look: a key that was sent in the session before is sent anew. */
  let arrived = new Set<CrawlerId>();
  const rotateWelcomed = async () => {
    const newcomers = [...arrived];
    arrived = new Set();
    // Who was shut out between its key and its welcome was not online when the notice came.
    await endSessions(newcomers, ports);
    await rotateKeys(newcomers, ports, { ...keyRule, resendMs: 0 });
  };
  const rotateAll = async () => {
    await endSessions(gateway.online(), ports);
    await rotateKeys(gateway.online(), ports, keyRule);
  };
  return {
    start: () => {
      timekeeper.every(duties.all, rotateMs, rotateAll);
      timekeeper.every(duties.welcomed, rotateMs, rotateWelcomed);
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
    log.warn({ crawlerId, leases }, "a crawler was shut out, and its session ended");
  }
}

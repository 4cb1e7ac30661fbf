/** What happens to keys while their crawlers are connected: new ones by the clock and on request, and none any more. */
import type { CrawlerId } from "#core/ids";
import type { CoordinatorMessage } from "#protocol/coordinator-messages";
import { type Refusal, type Secrets, shutOut } from "./flows/admit-crawler.ts";
import type { IdentityStore } from "./flows/identity-ports.ts";
import type { FrontierStore } from "./flows/ports.ts";
import { keyRule, rotateKeys } from "./flows/rotate-keys.ts";
import type { Log } from "./log.ts";
import type { Timekeeper } from "./timekeeper.ts";

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
const dutyName = "rotate-keys";

export function keyDuties(ports: KeyDutyPorts): KeyDuties {
  /** Welcomed since the last look: a key that was sent in the session before is sent anew. */
  const arrived = new Set<CrawlerId>();
  const rotate = async () => {
    const newcomers = [...arrived];
    arrived.clear();
    // Who was shut out between its key and its welcome was not online when the notice came.
    await endSessions(ports);
    await rotateKeys(newcomers, ports, { ...keyRule, resendMs: 0 });
    await rotateKeys(ports.gateway.online(), ports, keyRule);
  };
  return {
    start: () => ports.timekeeper.every(dutyName, rotateMs, rotate),
    review: async () => {
      await endSessions(ports);
      ports.timekeeper.hurry(dutyName);
    },
    onWelcome: (crawlerId) => {
      arrived.add(crawlerId);
      ports.timekeeper.hurry(dutyName);
    },
  };
}

/** Of crawlers that were shut out; what they were leased is for others at once. */
async function endSessions({ identities, frontier, gateway, log, now }: KeyDutyPorts): Promise<void> {
  for (const crawlerId of await identities.shutOut(gateway.online())) {
    gateway.refuse(crawlerId, shutOut);
    const leases = await frontier.returnLeasesOf(crawlerId, now());
    log.warn({ crawlerId, leases }, "a crawler was shut out, and its session ended");
  }
}

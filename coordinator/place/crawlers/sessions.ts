/**
 * How a crawler's session ended: a code, stored with the words (crawler.offline_code), and the advice for each. An
 * unknown code comes from another version of the coordinator and gets general advice.
 */

import type { CrawlerId } from "#core/ids";
import type { CoordinatorRefuse } from "#protocol/coordinator-messages";
import type { CrawlerHeartbeat, Goodbye } from "#protocol/messages";

export interface SessionEnd {
  /** Null if only the words are known. */
  readonly code: SessionEndCode | null;
  /** A plain phrase without a full stop. */
  readonly reason: string;
}

export type SessionEndCode =
  | NonNullable<Goodbye["code"]>
  | CoordinatorRefuse["code"]
  /** Three heartbeats were missed. */
  | "vanished"
  /** The connection broke or was closed by either side. */
  | "lost"
  /** The crawler left more unread than a working one does. */
  | "does-not-read"
  /** Another coordinator found this one gone, or this one restarted. */
  | "coordinator-gone";

interface EndWords {
  /** Replaces the words of the crawler or the protocol. Omitted if those say more. */
  readonly words?: string;
  readonly advice: string;
}

const byItself = { advice: "It connects again by itself within a minute or so." };
const byItsHost = { advice: "It is back when its host starts it again." };
const isGone = {
  advice:
    "Its machine, its process or its network is gone. It connects again by itself; if it stays away for an hour, ask its partner.",
};
const general = {
  advice:
    "It connects again by itself. If it stays away, ask its partner to look at nearcrawl crawler status.",
};

const endWords: Readonly<Record<SessionEndCode, EndWords>> = {
  stops: { words: "its host stopped it", ...byItsHost },
  leaves: { words: "its host took it out of the fleet", ...byItsHost },
  "starts-over": { words: "it starts over after a move", ...byItself },
  "new-settings": { words: "its host changed its settings", ...byItself },
  "out-of-bytes": {
    words: "its host's limit on bytes is reached",
    advice: "It connects again by itself when its host's next day or month begins.",
  },
  joined: {
    words: "it has joined, and its host has not started it yet",
    advice:
      "Its partner starts it: the last line that join printed (nearcrawl-crawler.mjs run). Any reason why it cannot run will appear here.",
  },
  "awaits-release": {
    advice:
      "Offer one to all: nearcrawl release list, then nearcrawl release stage VERSION --to all. It takes it within a minute.",
  },
  "awaits-other-release": {
    advice: "Offer a release that it accepts: nearcrawl release list. Its supervisor looks again by itself.",
  },
  "awaits-key": {
    advice:
      "Make a new identity for it (nearcrawl fleet reinvite): the invitation pins the keys that count now. Its partner joins with it and --again.",
  },
  "awaits-administrator": {
    advice: "Its partner decides which releases run there. Ask for it to be accepted.",
  },

  "copied-folder": {
    advice: "Two machines hold its folder: have one of them stopped, or give it a new identity.",
  },
  replaced: { words: "a newer session of the same crawler took its place", ...byItself },
  "shutting-down": { words: "the coordinator was stopped", ...byItself },
  busy: byItself,
  "internal-error": byItself,
  "bad-message": general,
  "too-much": general,
  "bad-signature": general,
  "wrong-key": general,
  "wrong-version": { advice: "Its partner updates it: its release and the coordinator share no protocol." },
  moved: general,
  revoked: { advice: "Give it a new identity to take it back." },

  vanished: { words: "three heartbeats did not come", ...isGone },
  lost: isGone,
  "does-not-read": { words: "it does not read what it is sent", ...isGone },
  "coordinator-gone": byItself,
};

/** `said` is the detail from the crawler, the network or the coordinator. */
export function sessionEnd(code: SessionEndCode | null, said = ""): SessionEnd {
  return { code, reason: (code === null ? undefined : endWords[code].words) ?? said };
}

/** Advice, in sentences, about an absent crawler. `code` is as stored. */
export function adviceOnEnd(code: string | null): string {
  return code !== null && Object.hasOwn(endWords, code)
    ? endWords[code as SessionEndCode].advice
    : general.advice;
}

/** Ends after which the crawler's supervisor is running, has said what it waits for, and has disconnected. */
export const waitingEnds: readonly SessionEndCode[] = [
  "awaits-release",
  "awaits-other-release",
  "awaits-key",
  "awaits-administrator",
];

// Collects heartbeats and writes them together once a second, since 10,000 crawlers send hundreds per second. The interval
// grows with the fleet, up to a maximum at which a lost crawler is still detected in time.

/** Interval per crawler of the fleet: 10,000 crawlers send 333 heartbeats a second. */
const msPerCrawler = 3;
/** Maximum interval. Three missed beats and a quarter stay below the two minutes after which a crawler counts as gone. */
const mostMs = 30_000;
const writtenTogether = 1000;

/** The heartbeat interval for a fleet of `crawlers`. `leastMs` is the operator's minimum. */
export function heartbeatMsFor(crawlers: number, leastMs: number): number {
  return Math.max(leastMs, Math.min(mostMs, crawlers * msPerCrawler));
}

export interface Heard {
  readonly crawlerId: CrawlerId;
  readonly heartbeat: CrawlerHeartbeat;
  readonly at: Date;
}

export class Heartbeats {
  readonly #write: (heard: readonly Heard[]) => Promise<void>;
  #heard = new Map<CrawlerId, Heard>();

  constructor(crawlers: { readonly heartbeats: (heard: readonly Heard[]) => Promise<void> }) {
    this.#write = crawlers.heartbeats;
  }

  note(crawlerId: CrawlerId, heartbeat: CrawlerHeartbeat, at: Date): void {
    this.#heard.set(crawlerId, { crawlerId, heartbeat, at });
  }

  /** Heartbeats that cannot be written are dropped, because the next ones carry the same information. */
  async write(): Promise<void> {
    const heard = [...this.#heard.values()].sort((a, b) => a.crawlerId - b.crawlerId);
    this.#heard = new Map();
    for (let at = 0; at < heard.length; at += writtenTogether)
      await this.#write(heard.slice(at, at + writtenTogether));
  }
}

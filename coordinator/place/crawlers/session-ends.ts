/**
 * How the session of a crawler ended: a code, which is stored beside the words (crawler.offline_code), and what people are
 * told about each. A code that is not here is of another version of a coordinator, and gets the general advice.
 */
import type { CoordinatorRefuse } from "#protocol/coordinator-messages";
import type { Goodbye } from "#protocol/messages";

export interface SessionEnd {
  /** Null: nothing but the words is known. */
  readonly code: SessionEndCode | null;
  /** In plain words, without a full stop. */
  readonly reason: string;
}

export type SessionEndCode =
  | NonNullable<Goodbye["code"]>
  | CoordinatorRefuse["code"]
  /** Three heartbeats did not come. */
  | "vanished"
  /** The connection broke or was closed, by whomever. */
  | "lost"
  /** More waits to be sent than a crawler that reads leaves unread. */
  | "does-not-read"
  /** Another coordinator found its connection's coordinator gone, or this one found itself started. */
  | "coordinator-gone";

interface EndWords {
  /** In place of what the crawler or the protocol says; left out: that says more. */
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

/** `said`: what the crawler, the network or the coordinator says of it. */
export function sessionEnd(code: SessionEndCode | null, said = ""): SessionEnd {
  return { code, reason: (code === null ? undefined : endWords[code].words) ?? said };
}

/** What there is to do about a crawler that is away, in sentences. `code`: as it is stored. */
export function adviceOnEnd(code: string | null): string {
  return code !== null && Object.hasOwn(endWords, code)
    ? endWords[code as SessionEndCode].advice
    : general.advice;
}

/** Its supervisor runs, said for what it waits, and left. */
export const waitingEnds: readonly SessionEndCode[] = [
  "awaits-release",
  "awaits-other-release",
  "awaits-key",
  "awaits-administrator",
];

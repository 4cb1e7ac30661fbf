/** How a crawler stands, in plain words: since when, why, and what there is to do about it. */

import { howMany } from "#core/format";
import type { FleetEntry } from "./fleet-ports.ts";

export interface StateWords {
  /** One word for a badge: online, offline, draining, revoked, never. */
  readonly state: "online" | "offline" | "draining" | "revoked" | "never";
  readonly since: string | null;
  /** A sentence without its end; null: nothing has to be said. */
  readonly why: string | null;
  /** What there is to do, in sentences; null: nothing. */
  readonly advice: string | null;
}

export type Standing = Pick<
  FleetEntry,
  | "state"
  | "revoked"
  | "lastSeenAt"
  | "connectedAt"
  | "offlineReason"
  | "draining"
  | "subnets"
  | "openLeases"
  | "joiningSince"
> & { readonly identity: Pick<FleetEntry["identity"], "copiedAt"> };

export function stateWords(entry: Standing): StateWords {
  if (entry.revoked) {
    return {
      state: "revoked",
      since: iso(entry.lastSeenAt),
      why: "it is shut out: no key of it opens anything",
      advice: "Give it a new identity to take it back.",
    };
  }
  if (entry.lastSeenAt === null && entry.state === "offline") {
    return {
      state: "never",
      since: null,
      why: "it has never connected",
      advice: "Its partner runs the line of the invitation. If the line was lost, invite it anew.",
    };
  }
  if (entry.state === "offline") return offlineWords(entry);
  if (entry.draining !== null) return drainingWords(entry, entry.draining);
  const joins = entry.joiningSince === null ? null : "it joins, and is given what is nearest to it";
  return { state: "online", since: iso(entry.connectedAt), why: joins, advice: null };
}

function offlineWords(entry: Standing): StateWords {
  const why = entry.offlineReason ?? "no reason was noted";
  const copied =
    entry.identity.copiedAt === null
      ? null
      : "Its folder was seen on two machines: have one of them stopped, or give it a new identity.";
  const advice = copied ?? adviceOn(why);
  return { state: "offline", since: iso(entry.lastSeenAt), why, advice };
}

/** How the reason begins that a dock leaves behind where nothing runs (migrating-crawler/dock/dock.ts). */
export const waitingGoodbye = "goodbye: it waits for ";

/** The first that fits; reasons are ours or the crawler's own (gateway/connection, the crawler's goodbye). */
const advices: readonly (readonly [RegExp, string])[] = [
  [
    /^goodbye: it waits for a release: /,
    "Offer one to all: nearcrawl release list, then nearcrawl release stage VERSION --to all. It takes it within a minute.",
  ],
  [
    /^goodbye: it waits for (a release key|a release signed)/,
    "Make a new identity for it (nearcrawl fleet reinvite): the invitation pins the keys that count now. Its partner joins with it and --again.",
  ],
  [
    /^goodbye: it waits for this machine's administrator/,
    "Its partner decides which releases run there. Ask for it to be accepted.",
  ],
  [/^goodbye: it waits for /, "It says itself what has to be done; its dock looks again by itself."],
  [
    /^goodbye: it has joined/,
    "Its partner starts it: the last line that join printed (nearcrawl-crawler.mjs run). Whatever it waits for then, it says here.",
  ],
  [
    /copied|another machine/i,
    "Two machines hold its folder: have one of them stopped, or give it a new identity.",
  ],
  [/coordinator/i, "It connects again by itself within a minute or so."],
  [
    /stopped|SIGTERM|SIGINT|asked to|moves|leave|for good|paused/i,
    "It is back when its host starts it again.",
  ],
  [
    /vanished|heartbeat|ECONN|EPIPE|ETIMEDOUT|closed|link|does not read|power/i,
    "Its machine, its process or its network is gone. It connects again by itself; if it stays away for an hour, ask its partner.",
  ],
];

function adviceOn(reason: string): string {
  const known = advices.find(([pattern]) => pattern.test(reason))?.[1];
  return (
    known ??
    "It connects again by itself. If it stays away, ask its partner to look at nearcrawl crawler status."
  );
}

const askers = {
  operator: "an operator",
  crawler: "its host, for good",
  trust: "the comparison of its pages with others'",
  partner: "its partner",
} as const;

function drainingWords(
  { subnets, openLeases }: Standing,
  { since, askedBy, subnets: had }: NonNullable<Standing["draining"]>,
): StateWords {
  const handed = Math.max(0, had - subnets);
  const isDone = subnets === 0 && openLeases === 0;
  const how = isDone
    ? `all of its ${howMany(had, "subnet")} went to others`
    : `${handed.toLocaleString("en-GB")} of ${howMany(had, "subnet")} went to others, ${howMany(openLeases, "lease")} open`;
  return {
    state: "draining",
    since: since.toISOString(),
    why: `it hands over, as ${askers[askedBy]} asked: ${how}`,
    advice: askedBy === "trust" ? "Look at the evidence, then believe it again or shut it out." : null,
  };
}

const iso = (date: Date | null): string | null => date?.toISOString() ?? null;

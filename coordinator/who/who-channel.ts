/** In plain words: that a URL is not crawled since the channel it lies in leaves it out. */
import type { UrlReport } from "../frontier/frontier-reports.ts";
import { because, stop } from "./explain.ts";
import type { Standing } from "./who-answer.ts";

export interface LeavingChannel {
  readonly channelId: number;
  /** Host and directory of each of its parts. */
  readonly prefixes: readonly string[];
  readonly why: string;
}

/** `last_outcome` of URLs that were in the frontier before a channel left them out. */
export const outsideChannel = "outside-channel";

/** What is not in the frontier. */
export function leftOutLine({ channelId, prefixes, why }: LeavingChannel): Standing {
  const [first = "", ...others] = prefixes;
  const more = others.length === 0 ? "" : ` and ${others.length} more`;
  return stop(
    "outside-channel",
    `No channel admits it: channel ${channelId} (${first}${more}) leaves it out, since ${why}. nearcrawl channels shows its rules.`,
  );
}

/** What is in it, and refused; the reason that is kept begins with the channel. */
export function takenOutLine({ lastReason }: UrlReport): Standing {
  return stop("outside-channel", `No channel admits it${because(lastReason)}.`);
}

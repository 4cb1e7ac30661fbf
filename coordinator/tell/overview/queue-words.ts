/** The queue in words: what due hosts wait for, and what limits the crawl as a whole. */
import { howMany, spanWords } from "#core/format";
import {
  type LimitCode,
  limitCodes,
  type PaceLimit,
  type Verdict,
  type WaitingHost,
  type WaitReason,
} from "./queue-api.ts";

/** `words` completes "waits for". `name` is shorter, for charts. */
export const waitReasonWords: Readonly<
  Record<WaitReason, { readonly words: string; readonly name: string }>
> = {
  "no-address": { words: "an address (DNS)", name: "no address yet" },
  "no-ipv6": { words: "a crawler that speaks IPv6", name: "no crawler speaks IPv6" },
  "no-delegation": { words: "a crawler for their subnet", name: "no crawler yet" },
  "crawler-offline": { words: "their crawler, which is offline", name: "crawler offline" },
  "crawler-draining": { words: "their crawler's subnets to go to others", name: "crawler draining" },
  budget: { words: "tomorrow: their crawler's day is used up", name: "budget used up" },
  politeness: { words: "the site's pace", name: "the site's pace" },
  "crawler-full": { words: "room at their crawler", name: "crawler full" },
  "in-line": { words: "their turn", name: "next in line" },
};

/** What keeps a host from being asked more often, in words. */
export const paceLimitWords: Readonly<Record<PaceLimit, string>> = {
  "back-off": "its back-off after 429, 503 or no answer",
  "site-cap": "an operator's cap on its site",
  "crawl-delay": "its Crawl-delay",
  "tolerated-rate": "the rate that it tolerates",
  "slow-answers": "its slow answers",
  "usual-pace": "the usual rest between requests to one host",
};

/** Why this host waits, in a sentence. */
export function waitWords(host: WaitingHost, now: Date): string {
  const crawler = host.crawler ?? "its crawler";
  switch (host.reason) {
    case "no-address":
      return "DNS has not been asked for its address yet, or has given none";
    case "no-ipv6":
      return "it has only IPv6 addresses, and no crawler that is online speaks IPv6";
    case "no-delegation":
      return host.range === null
        ? "its address is in no registered subnet"
        : "no crawler was found for its subnet yet";
    case "crawler-offline":
      return `${crawler} is offline`;
    case "crawler-draining":
      return `${crawler} is being emptied; the subnet goes to another`;
    case "budget":
      return `${crawler} has fetched today what its partner allows`;
    case "politeness": {
      if (host.notBefore === null) return "its address is being asked, or rests";
      const seconds = (Date.parse(host.notBefore) - now.getTime()) / 1000;
      const why = host.slowBecause.length === 0 ? "" : `: ${host.slowBecause.join("; and ")}`;
      return `the host is left alone for another ${spanWords(Math.max(1, seconds))}${why}`;
    }
    case "crawler-full":
      return host.holdingBack.length > 0
        ? `${crawler} holds back: ${host.holdingBack.join("; ")}`
        : `${crawler} has as many hosts as it takes`;
    case "in-line":
      return `nothing is in the way; ${crawler} will ask for it`;
  }
}

export interface LimitCount {
  readonly limit: Exclude<LimitCode, "nothing-due">;
  readonly hosts: number;
}

/** Returns what limits the crawl: the reason of the most hosts, or of several equal ones the first in `limitCodes`. */
export function verdictOf(counts: readonly LimitCount[]): Verdict {
  const place = ({ limit }: LimitCount) => limitCodes.indexOf(limit);
  const [most] = counts
    .filter(({ hosts }) => hosts > 0)
    .sort((one, other) => other.hosts - one.hosts || place(one) - place(other));
  if (most === undefined) return { limitedBy: "nothing-due", hosts: 0, words: "nothing is due" };
  const { limit, hosts } = most;
  const those = howMany(hosts, "host");
  const words = limitWords[limit]
    .replace("HOSTS'", `${those}${hosts === 1 ? "'s" : "'"}`)
    .replace("HOSTS", those)
    .replace("WAIT", hosts === 1 ? "waits" : "wait")
    .replace("TOLERATE", hosts === 1 ? "tolerates" : "tolerate");
  return { limitedBy: limit, hosts, words: `limited by ${words}` };
}

const limitWords: Readonly<Record<LimitCount["limit"], string>> = {
  "no-address": "DNS: HOSTS WAIT for an address",
  "no-ipv6": "crawlers' networks: HOSTS WAIT for a crawler that speaks IPv6",
  "no-delegation": "the search for crawlers: HOSTS WAIT for one",
  "crawler-offline": "crawlers that are offline: HOSTS WAIT for them",
  "crawler-draining": "crawlers that are being drained: HOSTS WAIT for another",
  budget: "the crawlers' daily limits: HOSTS WAIT for tomorrow",
  "crawler-full": "the crawlers' capacity: HOSTS WAIT for room at their crawlers",
  "back-off": "HOSTS' back-off after 429, 503 or no answer",
  "site-cap": "operators' caps on HOSTS",
  "crawl-delay": "HOSTS' Crawl-delay",
  "tolerated-rate": "the rate that HOSTS TOLERATE",
  "slow-answers": "HOSTS' slow answers",
  "usual-pace": "HOSTS' usual pace: a rest between requests to one host",
  "in-line": "nothing: HOSTS WAIT to be asked for",
};

/** The words of the overview that pages and command line share. */

import { spanWords } from "#core/format";
import type { Blame } from "./minute-figures.ts";
import type { WaitingHost, WaitReason } from "./queue-api.ts";

/** What a host that is due waits for. */
export const waitReasonWords: Readonly<Record<WaitReason, string>> = {
  "no-address": "an address (DNS)",
  "no-ipv6": "a crawler that speaks IPv6",
  "no-delegation": "a crawler for their subnet",
  "crawler-offline": "their crawler, which is offline",
  "crawler-draining": "their crawler's subnets to go to others",
  budget: "tomorrow: their crawler's day is used up",
  politeness: "the site's pace",
  "crawler-full": "room at their crawler",
  "in-line": "their turn",
};

/** The same where there is little room. */
export const waitReasonNames: Readonly<Record<WaitReason, string>> = {
  "no-address": "no address yet",
  "no-ipv6": "no crawler speaks IPv6",
  "no-delegation": "no crawler yet",
  "crawler-offline": "crawler offline",
  "crawler-draining": "crawler draining",
  budget: "budget used up",
  politeness: "the site's pace",
  "crawler-full": "crawler full",
  "in-line": "next in line",
};

export const blameWords: Readonly<Record<Blame, string>> = {
  target: "the site",
  network: "the network path",
  crawler: "the crawler or its machine",
  us: "our software",
};

export const blames = Object.keys(blameWords) as readonly Blame[];

/** Why this one waits, in a sentence. */
export function waitWords(host: WaitingHost, now: Date): string {
  const crawler = host.crawler ?? "its crawler";
  switch (host.reason) {
    case "no-address":
      return "DNS has not been asked for its address yet, or has given none";
    case "no-ipv6":
      return "it has only IPv6 addresses, and no crawler that is online speaks IPv6";
    case "no-delegation":
      return host.range === null
        ? "its address lies in no registered subnet"
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

/** What the crawl as a whole is limited by, in one line: what is in the way of the most hosts. */

import { howMany } from "#core/format";
import { type LimitCode, limitCodes, type PaceLimit, type Verdict } from "./queue-api.ts";

export interface LimitCount {
  readonly limit: Exclude<LimitCode, "nothing-due">;
  readonly hosts: number;
}

/** Of several in the way of as many hosts, the one that stands first in `limitCodes`. */
export function verdictOf(counts: readonly LimitCount[]): Verdict {
  const place = ({ limit }: LimitCount) => limitCodes.indexOf(limit);
  const [most] = counts
    .filter(({ hosts }) => hosts > 0)
    .sort((one, other) => other.hosts - one.hosts || place(one) - place(other));
  if (most === undefined) return { limitedBy: "nothing-due", hosts: 0, words: "nothing is due" };
  return { limitedBy: most.limit, hosts: most.hosts, words: limitWords(most) };
}

/** What keeps a host from being asked more often. */
export const paceLimitWords: Readonly<Record<PaceLimit, string>> = {
  "back-off": "its back-off after 429, 503 or no answer",
  "site-cap": "an operator's cap on its site",
  "crawl-delay": "its Crawl-delay",
  "tolerated-rate": "the rate that it tolerates",
  "slow-answers": "its slow answers",
  "usual-pace": "the usual rest between requests to one host",
};

function limitWords({ limit, hosts }: LimitCount): string {
  const those = howMany(hosts, "host");
  const theirs = `${those}${hosts === 1 ? "'s" : "'"}`;
  const wait = hosts === 1 ? "waits" : "wait";
  switch (limit) {
    case "no-address":
      return `limited by DNS: ${those} ${wait} for an address`;
    case "no-ipv6":
      return `limited by crawlers' networks: ${those} ${wait} for a crawler that speaks IPv6`;
    case "no-delegation":
      return `limited by the search for crawlers: ${those} ${wait} for one`;
    case "crawler-offline":
      return `limited by crawlers that are offline: ${those} ${wait} for them`;
    case "crawler-draining":
      return `limited by crawlers that are being drained: ${those} ${wait} for another`;
    case "budget":
      return `limited by the crawlers' daily limits: ${those} ${wait} for tomorrow`;
    case "crawler-full":
      return `limited by the crawlers' capacity: ${those} ${wait} for room at their crawlers`;
    case "back-off":
      return `limited by ${theirs} back-off after 429, 503 or no answer`;
    case "site-cap":
      return `limited by operators' caps on ${those}`;
    case "crawl-delay":
      return `limited by ${theirs} Crawl-delay`;
    case "tolerated-rate":
      return `limited by the rate that ${those} ${hosts === 1 ? "tolerates" : "tolerate"}`;
    case "slow-answers":
      return `limited by ${theirs} slow answers`;
    case "usual-pace":
      return `limited by ${theirs} usual pace: a rest between requests to one host`;
    case "in-line":
      return `limited by nothing: ${those} ${wait} to be asked for`;
  }
}

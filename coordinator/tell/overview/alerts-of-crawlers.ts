/** Alerts about crawlers: who is away, waits, fails, or is not trusted. */
import { bytesText } from "#core/format";
import type { AlertFacts, CrawlerFacts, IncidentFacts } from "./alert-facts.ts";
import { type AlertRule, about, critical, info, isLong, leastFetches, warning } from "./alert-rule.ts";

export const crawlerRules = [
  warning("crawler-disk", "/fleet", {
    /** Bytes. A crawler's spool is bounded by less than that; a machine below it is about to fail in other ways, too. */
    threshold: 250e6,
    looksFor: (bytes) =>
      `a connected crawler cannot write its results, or has less than ${bytesText(bytes)} free on its disk`,
    advice: `Ask its partner to free disk space (nearcrawl-crawler status says what it takes). It keeps its results in
      memory, and takes no new work.`,
    runbook: [
      "A crawler that is connected cannot write its results (`ENOSPC`, quota, read-only), or has under 250 MB free. It takes no new work while its disk",
      "takes nothing, and tries again every ten seconds. Its partner has to make room; `nearcrawl-crawler status` there says how much it takes. Crawlers",
      "of older versions tell the first alone.",
    ],
    find: ({ crawlers }, bytes) => {
      const full = crawlers.filter(
        ({ state, diskFault, diskFreeBytes }) =>
          state !== "offline" && (diskFault != null || (diskFreeBytes ?? bytes) < bytes),
      );
      const why = (one: CrawlerFacts) => one.diskFault ?? `${bytesText(one.diskFreeBytes ?? 0)} free`;
      return about(
        full.map((one) => `${one.name} (${why(one)})`),
        "Crawlers whose disk is full or nearly full",
      );
    },
  }),
  warning("incidents", "/fleet/incidents", {
    looksFor: "incidents were recorded in the last hour",
    advice: "The runbook (watching the fleet) explains each kind.",
    find: ({ incidents }) => {
      const byKind = new Map<string, number>();
      for (const { kind, count } of incidents) byKind.set(kind, (byKind.get(kind) ?? 0) + count);
      const kinds = [...byKind].sort(([, a], [, b]) => b - a).map(([kind, count]) => `${kind} (${count})`);
      return about(kinds, `Incidents in the last hour${whoseWords(incidents)}`);
    },
  }),
  critical("no-crawler-connected", "/fleet", {
    looksFor: "no crawler is connected",
    runbook: [
      "Nothing is crawled. Can partners reach the coordinator: its address, its certificate (`fleet invite` pins the key: a renewed key shuts everybody",
      "out), a firewall? `nearcrawl_sessions_refused_total` says with which code they are turned away.",
    ],
    find: ({ crawlers }) => {
      if (crawlers.some(({ state, lastSeenMs }) => state !== "offline" && lastSeenMs !== null)) return null;
      if (crawlers.length === 0)
        return {
          words: "No crawler is registered, so nothing is crawled.",
          advice: "Invite a partner: nearcrawl fleet invite --name NAME.",
        };
      return {
        words: `None of ${crawlers.length} registered crawlers is connected, so nothing is crawled.`,
        advice: `Check whether partners can reach this coordinator (its address, its certificate, a firewall), then ask one of
          them what its crawler reports.`,
      };
    },
  }),
  warning("copied-folder", "/fleet/incidents?kind=copied-folder", {
    looksFor: "two machines ran with one crawler's folder within the last day",
    advice: "Have one of them stopped, or reinvite that crawler: nearcrawl fleet reinvite NAME.",
    runbook: [
      "Two machines work as one crawler. `nearcrawl fleet incidents --name NAME` has both addresses: have one stopped, or `nearcrawl fleet reinvite",
      "NAME`.",
    ],
    find: crawlersWho(({ copiedFolder }) => copiedFolder, "Two machines run with one crawler's folder"),
  }),
  warning("crawler-offline", "/fleet", {
    /** Minutes. Most machines are back from an update or a cut line within this; the subnets went to others long before. */
    threshold: 60,
    looksFor: (minutes) => `a crawler that is not draining has been away for over ${minutes} minutes`,
    advice: `Its page says why, and what its last message was; write to the partner. Others have its subnets. If it is gone
      for good: nearcrawl fleet kill NAME.`,
    runbook: [
      "For more than an hour. Its page says why and what its last words were; its subnets are with others since minutes. Write to the partner; if it is",
      "gone for good, `nearcrawl fleet kill NAME` ends the alert.",
    ],
    // Who drains and goes has been taken leave of.
    find: crawlersWho(
      ({ state, waits, drainingSinceMs, lastSeenMs }, { nowMs }, minutes) =>
        state === "offline" && !waits && drainingSinceMs === null && isLong(lastSeenMs, nowMs, minutes),
      (minutes) => `Offline for more than ${minutes} minutes`,
      ({ lastSeenMs }) => lastSeenMs ?? 0,
    ),
  }),
  info("crawler-never-ran", "/fleet/invitations", {
    /** Minutes. The line that joins prints the line that starts. */
    threshold: 15,
    looksFor: (minutes) => `a crawler joined over ${minutes} minutes ago, and nothing has run there since`,
    advice: `Its partner has joined but not started it: the command was printed last (node nearcrawl-crawler.mjs run). Write
      to the partner.`,
    runbook: [
      "Its partner has joined and not started it, or it ended before anything ran. Joining prints the line that starts it, and the one that starts it",
      "with the machine; `node nearcrawl-crawler.mjs check` and `log` on its machine say what is in the way. Write to the partner. One that was connected",
      "once and left is `crawler-offline`; of one that is older than the database's last going back it is not known.",
    ],
    // Who says that it waits has an alert of its own, and who has left for good is not expected.
    find: crawlersWho(
      ({ neverRan, waits, drainingSinceMs, joinedMs }, { nowMs }, minutes) =>
        neverRan && !waits && drainingSinceMs === null && isLong(joinedMs, nowMs, minutes),
      (minutes) => `Joined over ${minutes} minutes ago and never ran`,
      ({ joinedMs }) => joinedMs ?? 0,
    ),
  }),
  info("crawler-without-work", "/fleet", {
    /** Minutes. New crawlers are measured, and get what they are nearest to, within a few. */
    threshold: 60,
    looksFor: (minutes) =>
      `a crawler has run for over ${minutes} minutes and gets no work, although it could`,
    advice: `Its page says more: nearcrawl fleet show NAME; who crawls the subnet that it is in: nearcrawl who ADDRESS.`,
    runbook: [
      "It is connected, may crawl, and has fetched nothing for an hour, with the reason in brackets. *No subnet is its own*: it is nearest to nothing, or",
      "was not measured (`nearcrawl fleet show NAME`, `nearcrawl who` about the address it stands at); a larger λ or a full neighbour changes that.",
      "*Hosts of its subnets have been due for an hour*: `nearcrawl queue` says for what they wait. Its partner's limits (hours, pauses, caps) are no",
      "reason for this alert.",
    ],
    find: crawlersWho(
      ({ idleWhy, connectedMs, drainingSinceMs, distrusted }, { nowMs }, minutes) =>
        idleWhy !== null && isLong(connectedMs, nowMs, minutes) && drainingSinceMs === null && !distrusted,
      "Crawlers that run without work",
      () => 0,
      ({ idleWhy }) => ` (${idleWhy})`,
    ),
  }),
  warning("crawler-waits", "/fleet", {
    looksFor: "an offline crawler has reported that it cannot run until somebody acts",
    advice: "Each says what it needs, and from whom: its page, or nearcrawl fleet show NAME.",
    runbook: [
      "A crawler has joined, was started, and cannot run anything until somebody does something. It has said for what it waits (a release that is offered",
      "to all, a key that its invitation did not pin, its own administrator): its page and `nearcrawl fleet show NAME` say that and what to do.",
    ],
    find: crawlersWho(({ waits }) => waits, "Crawlers that cannot run until somebody acts"),
  }),
  info("crawler-draining", "/fleet", {
    /** Hours. Subnets are handed over within minutes, leases run out in five; what still drains a day later was forgotten. */
    threshold: 24,
    looksFor: (hours) => `a crawler has been draining for over ${hours} hours`,
    advice:
      "Resume it with nearcrawl fleet resume NAME, or revoke its access with nearcrawl fleet kill NAME.",
    find: crawlersWho(
      ({ drainingSinceMs, distrusted }, { nowMs }, hours) =>
        isLong(drainingSinceMs, nowMs, hours * 60) && !distrusted,
      (hours) => `Draining for more than ${hours} hours`,
      ({ drainingSinceMs }) => drainingSinceMs ?? 0,
    ),
  }),
  warning("crawler-distrusted", "/fleet/trust", {
    looksFor: "a crawler's results or probe reports are not trusted",
    advice: `Read the evidence: nearcrawl fleet show NAME. Revoke its access, or restore it if a proxy or a site was to blame.`,
    find: crawlersWho(({ distrusted }) => distrusted, "Crawlers whose reports are not trusted"),
  }),
  warning("crawler-errors", "/fleet/failures?blame=crawler", {
    /** A share. The crawler's or its machine's fault; a release is held back from 2 % more than others have (releases/decide-stage). */
    threshold: 0.1,
    looksFor: (
      share,
    ) => `over ${share * 100} % of a crawler's fetches in the last hour (${leastFetches} at least) failed
      through its own fault`,
    advice: "Its failures say what: a full disk, a resolver, a proxy. Tell the partner, or drain it.",
    runbook: [
      "More than a tenth of a crawler's fetches failed by its own or its machine's fault: a full disk, a resolver that does not answer, a proxy.",
      "`/fleet/failures?blame=crawler` says what; tell the partner, or drain it.",
    ],
    find: crawlersWho(
      ({ fetches, ownFailures }, _, share) => fetches >= leastFetches && ownFailures / fetches > share,
      (share) =>
        `More than ${share * 100} % of the last hour's fetches failed through the crawler's own fault`,
      ({ fetches, ownFailures }) => -ownFailures / fetches,
    ),
  }),
  warning("crawler-network", "/fleet/failures?blame=network", {
    /** A share. Of the public web, some few per cent of connections come to nothing; the other crawlers say how many. */
    threshold: 0.2,
    looksFor: (
      share,
    ) => `over ${share * 100} % of a crawler's fetches in the last hour (${leastFetches} at least) got no
      connection in time or lost it, and over three times the other crawlers' share`,
    advice: `Its way to its sites is bad: packets are lost or late, or its resolver is. Tell the partner (nearcrawl-crawler
      check), or drain it until it is well. The sites are not to blame.`,
    runbook: [
      "Over a fifth of a crawler's fetches of the last hour got no connection in time, or lost it, and over three times as large a share as the others'.",
      "Packets are lost or late on its way, or its resolver is: `/fleet/failures?blame=network` names URLs and reasons, `check` at the partner looks at",
      "the machine. Its sites are not to blame and are asked again by and by; drain it where it lasts.",
    ],
    find: crawlersWho(
      (one, { crawlers }, share) => {
        const others = crawlers.filter((other) => other.fetches >= leastFetches && other !== one);
        const fetches = others.reduce((sum, other) => sum + other.fetches, 0);
        const failures = others.reduce((sum, other) => sum + (other.networkFailures ?? 0), 0);
        const least = Math.max(share, fetches === 0 ? 0 : (3 * failures) / fetches);
        return one.fetches >= leastFetches && (one.networkFailures ?? 0) / one.fetches > least;
      },
      (share) => `More than ${share * 100} % of the last hour's fetches came to nothing on the way`,
      ({ fetches, networkFailures = 0 }) => -networkFailures / fetches,
    ),
  }),
  warning("results-wait", "/fleet", {
    /** Results that a crawler has on its disk and that we have not acknowledged: minutes of work at full pace. */
    threshold: 5000,
    looksFor: (results) => `over ${results} results wait on a crawler's disk`,
    advice: `If it is one crawler: its connection is slow, or it was away. If all: results arrive faster than the database
      takes them.`,
    runbook: [
      "More than 5,000 results on a crawler's disk. One crawler: a slow line, or it was away and ships now. All: the database takes results more slowly",
      "than they come; see `database-slow`.",
    ],
    find: crawlersWho(
      ({ waitingResults }, _, most) => waitingResults > most,
      (most) => `More than ${most} results wait on a crawler's disk`,
      ({ waitingResults }) => -waitingResults,
    ),
  }),
] as const;

/** Crawlers that are so, ascending by `order`; equals by name. `more`: of each, behind its name. */
function crawlersWho(
  isSo: (one: CrawlerFacts, facts: AlertFacts, threshold: number) => boolean,
  words: string | ((threshold: number) => string),
  order: (one: CrawlerFacts) => number = () => 0,
  more: (one: CrawlerFacts) => string = () => "",
): AlertRule["find"] {
  return (facts, threshold) => {
    const found = facts.crawlers
      .filter((one) => isSo(one, facts, threshold))
      .sort((a, b) => order(a) - order(b) || (a.name < b.name ? -1 : 1));
    const targets = found.map((one) => one.name + more(one));
    return about(targets, typeof words === "string" ? words : words(threshold));
  };
}

function whoseWords(entries: readonly IncidentFacts[]): string {
  const names = [...new Set(entries.flatMap(({ crawler }) => crawler ?? []))];
  if (names.length === 0) return "";
  return names.length === 1 ? `, of ${names[0]}` : `, of ${names.length} crawlers`;
}

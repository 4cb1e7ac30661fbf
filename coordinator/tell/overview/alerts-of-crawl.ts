/** Alerts about crawlers, about the crawl as a whole, and about the coordinators around this one. */
import { bytesText, leastSamples } from "#core/format";
import { gateName } from "#protocol/bot-gate";
import {
  type AlertFacts,
  type AlertRule,
  about,
  type CrawlerFacts,
  critical,
  dayMs,
  fill,
  info,
  isLong,
  minutesSince,
  namesOf,
  span,
  warning,
} from "./alert-facts.ts";

/** A share of fewer fetches is meaningless (as in releases/staging). */
const leastFetches = 50;

export const crawlerRules = [
  warning("crawler-disk", "/fleet", {
    /** Bytes. A crawler's spool is smaller than that, but a machine with less space will soon fail in other ways, too. */
    threshold: 250e6,
    looksFor: "a connected crawler cannot write its results, or has less than {bytes} free on its disk",
    advice: `Ask its partner to free disk space (nearcrawl-crawler status says what it takes). It keeps its results in memory,
      and takes no new work.`,
    runbook: `The reason is \`ENOSPC\`, a quota or a read-only disk; the crawler tries again every ten seconds. Older versions do
      not report their free space.`,
    find: crawlersWho(
      ({ state, diskFault, diskFreeBytes }, _, bytes) =>
        state !== "offline" && (diskFault != null || (diskFreeBytes ?? bytes) < bytes),
      "Crawlers whose disk is full or nearly full",
      undefined,
      ({ diskFault, diskFreeBytes }) => diskFault ?? `${bytesText(diskFreeBytes ?? 0)} free`,
    ),
  }),
  warning("incidents", "/fleet/incidents", {
    looksFor: "incidents were recorded in the last hour",
    advice: "The runbook (watching the fleet) explains each kind.",
    find: ({ incidents }) => {
      const byKind = new Map<string, number>();
      for (const { kind, count } of incidents) byKind.set(kind, (byKind.get(kind) ?? 0) + count);
      const kinds = [...byKind].sort(([, a], [, b]) => b - a).map(([kind, count]) => `${kind} (${count})`);
      const names = [...new Set(incidents.flatMap(({ crawler }) => crawler ?? []))];
      const whose = names.length === 1 ? `, of ${names[0]}` : `, of ${names.length} crawlers`;
      return about(kinds, `Incidents in the last hour${names.length === 0 ? "" : whose}`);
    },
  }),
  critical("no-crawler-connected", "/fleet", {
    looksFor: "no crawler is connected",
    runbook: `Can partners reach the coordinator: its address, its certificate (a renewed key excludes everybody whose invitation
      pins the former one), a firewall? \`nearcrawl_sessions_refused_total\` says with which code crawlers are refused.`,
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
    runbook: "`nearcrawl fleet incidents --name NAME` has both addresses.",
    find: crawlersWho(({ copiedFolder }) => copiedFolder, "Two machines run with one crawler's folder"),
  }),
  warning("crawler-offline", "/fleet", {
    /** Minutes. Most machines return sooner from an update or an outage. Their subnets went to others long before. */
    threshold: 60,
    looksFor: "a crawler that is not draining has been away for over {n} minutes",
    advice: `Its page says why, and what its last message was; write to the partner. Others have its subnets. If it is gone for
      good: nearcrawl fleet kill NAME.`,
    find: crawlersWho(
      ({ state, waits, drainingSinceMs, lastSeenMs }, { nowMs }, minutes) =>
        state === "offline" && !waits && drainingSinceMs === null && isLong(lastSeenMs, nowMs, minutes),
      "Offline for more than {n} minutes",
      ({ lastSeenMs }) => lastSeenMs ?? 0,
    ),
  }),
  info("crawler-never-ran", "/fleet/invitations", {
    /** Minutes. The command that joins prints the one that starts the crawler. */
    threshold: 15,
    looksFor: "a crawler joined over {n} minutes ago, and nothing has run there since",
    advice: `Its partner has joined but not started it: the command was printed last (node nearcrawl-crawler.mjs run). Write to
      the partner.`,
    runbook: `Or it ended before anything ran: \`node nearcrawl-crawler.mjs check\` and \`log\` on its machine say why. A crawler that
      was connected once is \`crawler-offline\`. Nothing is known of one that is older than the last restore of the database.`,
    // A crawler that says what it waits for has its own alert, and one that left for good is not expected.
    find: crawlersWho(
      ({ neverRan, waits, drainingSinceMs, joinedMs }, { nowMs }, minutes) =>
        neverRan && !waits && drainingSinceMs === null && isLong(joinedMs, nowMs, minutes),
      "Joined over {n} minutes ago and never ran",
      ({ joinedMs }) => joinedMs ?? 0,
    ),
  }),
  info("crawler-without-work", "/fleet", {
    /** Minutes. Within a few, new crawlers are measured and get the subnets nearest to them. */
    threshold: 60,
    looksFor: "a crawler has run for over {n} minutes and gets no work, although it could",
    advice:
      "Its page says more: nearcrawl fleet show NAME; who crawls the subnet that it is in: nearcrawl who ADDRESS.",
    runbook: `The reason is in brackets. *No subnet is its own*: it is nearest to nothing, or was not measured; a larger λ or a full
      neighbour changes that. *Hosts of its subnets have been due for an hour*: \`nearcrawl queue\` says what they wait for. Its
      partner's limits (hours, pauses, caps) raise no alert.`,
    find: crawlersWho(
      ({ idleWhy, connectedMs, drainingSinceMs, distrusted }, { nowMs }, minutes) =>
        idleWhy !== null && isLong(connectedMs, nowMs, minutes) && drainingSinceMs === null && !distrusted,
      "Crawlers that run without work",
      undefined,
      ({ idleWhy }) => idleWhy ?? "",
    ),
  }),
  warning("crawler-waits", "/fleet", {
    looksFor: "an offline crawler has reported that it cannot run until somebody acts",
    advice: "Each says what it needs, and from whom: its page, or nearcrawl fleet show NAME.",
    runbook:
      "It may be a release that is offered to all, a key that its invitation did not pin, or its own administrator.",
    find: crawlersWho(({ waits }) => waits, "Crawlers that cannot run until somebody acts"),
  }),
  info("crawler-draining", "/fleet", {
    /** Hours. Subnets are handed over within minutes and leases expire in five, so a crawler still draining was forgotten. */
    threshold: 24,
    looksFor: "a crawler has been draining for over {n} hours",
    advice:
      "Resume it with nearcrawl fleet resume NAME, or revoke its access with nearcrawl fleet kill NAME.",
    find: crawlersWho(
      ({ drainingSinceMs, distrusted }, { nowMs }, hours) =>
        isLong(drainingSinceMs, nowMs, hours * 60) && !distrusted,
      "Draining for more than {n} hours",
      ({ drainingSinceMs }) => drainingSinceMs ?? 0,
    ),
  }),
  warning("crawler-distrusted", "/fleet/trust", {
    looksFor: "a crawler's results or probe reports are not trusted",
    advice: `Read the evidence: nearcrawl fleet show NAME. Revoke its access, or restore it if a proxy or a site was to blame.`,
    find: crawlersWho(({ distrusted }) => distrusted, "Crawlers whose reports are not trusted"),
  }),
  warning("crawler-errors", "/fleet/failures?blame=crawler", {
    /** A share. A release is held back if its share is 2 % above that of others (releases/staging). */
    threshold: 0.1,
    looksFor: `over {%} of a crawler's fetches in the last hour (${leastFetches} at least) failed through its own fault`,
    advice: "Its failures say what: a full disk, a resolver, a proxy. Tell the partner, or drain it.",
    find: crawlersWho(
      ({ fetches, ownFailures }, _, share) => fetches >= leastFetches && ownFailures / fetches > share,
      "More than {%} of the last hour's fetches failed through the crawler's own fault",
      ({ fetches, ownFailures }) => -ownFailures / fetches,
    ),
  }),
  warning("crawler-network", "/fleet/failures?blame=network", {
    /** A share. On the public web, a few per cent of connections fail; the other crawlers show how many. */
    threshold: 0.2,
    looksFor: `over {%} of a crawler's fetches in the last hour (${leastFetches} at least) got no connection in time or lost it, and
      over three times the other crawlers' share`,
    advice: `Its way to its sites is bad: packets are lost or late, or its resolver is. Tell the partner (nearcrawl-crawler
      check), or drain it until it is well. The sites are not to blame.`,
    find: crawlersWho(
      (one, { crawlers }, share) => {
        const others = crawlers.filter((other) => other.fetches >= leastFetches && other !== one);
        const fetches = others.reduce((sum, other) => sum + other.fetches, 0);
        const failures = others.reduce((sum, other) => sum + (other.networkFailures ?? 0), 0);
        const least = Math.max(share, fetches === 0 ? 0 : (3 * failures) / fetches);
        return one.fetches >= leastFetches && (one.networkFailures ?? 0) / one.fetches > least;
      },
      "More than {%} of the last hour's fetches came to nothing on the way",
      ({ fetches, networkFailures = 0 }) => -networkFailures / fetches,
    ),
  }),
  warning("results-wait", "/fleet", {
    /** Unacknowledged results on a crawler's disk: minutes of work at full pace. */
    threshold: 5000,
    looksFor: "over {n} results wait on a crawler's disk",
    advice: `If it is one crawler: its connection is slow, or it was away. If all: results arrive faster than the database takes
      them.`,
    runbook: "See also `database-slow`.",
    find: crawlersWho(
      ({ waitingResults }, _, most) => waitingResults > most,
      "More than {n} results wait on a crawler's disk",
      ({ waitingResults }) => -waitingResults,
    ),
  }),
] as const;

/** Finds crawlers, ascending by `order`, then by name. `more` is shown in brackets after each name. */
function crawlersWho(
  isSo: (one: CrawlerFacts, facts: AlertFacts, threshold: number) => boolean,
  words: string,
  order: (one: CrawlerFacts) => number = () => 0,
  more?: (one: CrawlerFacts) => string,
): AlertRule["find"] {
  return (facts, threshold) => {
    const found = facts.crawlers
      .filter((one) => isSo(one, facts, threshold))
      .sort((a, b) => order(a) - order(b) || (a.name < b.name ? -1 : 1));
    const targets = found.map((one) => (more === undefined ? one.name : `${one.name} (${more(one)})`));
    return about(targets, fill(words, threshold));
  };
}

/** Fewer gated hosts may be chance. */
const leastGatedHosts = 10;
/** If less was fetched in a day, it is too little to judge by (some 250 pages of the usual 40 kB). */
const leastFetchedBytes = 10_000_000;

const percent = (share: number): string => `${(share * 100).toFixed(1)} %`;

export const crawlRules = [
  critical("errors-by-us", "/fleet/failures?blame=us", {
    /** A share. Faults of our own software should not occur at all, but a few may come from one odd page. */
    threshold: 0.01,
    looksFor: `over {%} of the last hour's fetches (${leastFetches} at least) failed in our own software`,
    advice:
      "If it began with a release, hold it (nearcrawl release hold VERSION). The failures name the URLs to look at.",
    runbook: "`nearcrawl fetch URL` repeats a fetch by hand.",
    find: ({ hour: { fetches, failures } }, share) =>
      fetches < leastFetches || failures.us <= fetches * share
        ? null
        : `${percent(failures.us / fetches)} of the last hour's ${fetches} fetches failed by the fault of our own software.`,
  }),
  warning("subnets-wait", "/fleet/queue?reason=no-delegation", {
    /** Minutes. A round takes seconds, and one without any answer is retried for an hour. */
    threshold: 60,
    looksFor: "a host has waited for over {n} minutes for a crawler",
    advice:
      "Check who was asked, and why nobody took it: all crawlers may be full, draining, or not allowed there.",
    runbook: `\`/who?q=HOST\` says who was asked. Invite a crawler, or raise a budget. Hosts with only IPv6 addresses that no online
      crawler can reach are listed at \`/fleet/queue?reason=no-ipv6\`; \`fleet show NAME\` says who speaks IPv6.`,
    find: ({ queue: { unplacedSeconds: seconds } }, minutes) =>
      seconds === null || seconds <= minutes * 60
        ? null
        : `Hosts in subnets without a crawler have waited for up to ${span(seconds)}.`,
  }),
  warning("queue-age", "/fleet/queue", {
    /** Hours, which 95 % of the due hosts have not reached. A day late is a seventh of the usual recrawl interval (one week). */
    threshold: 24,
    looksFor: "one in twenty due hosts has waited for over {n} hours",
    advice:
      "The queue says why. Raise the budgets of full crawlers, invite more, or crawl less often (recrawl.intervalHours).",
    runbook: `Politeness needs no action: many URLs on few hosts take their time. If hosts wait for their turn, crawlers ask too
      rarely: they are slow, or too few.`,
    find: ({ queue: { p95Seconds: seconds } }, hours) =>
      seconds === null || seconds <= hours * 3600
        ? null
        : `One in twenty due hosts has waited for more than ${span(seconds)}.`,
  }),
  warning("bot-gates-grow", "/fleet/queue#bot-gates", {
    /** A share. Single sites put up a gate now and then, but many at once are a provider's new rule against us. */
    threshold: 0.01,
    looksFor: `within a day a provider's bot gate came up before ${leastGatedHosts} hosts or more, and over {%} of those ever asked`,
    advice: `Ask the provider to list the crawler as a verified bot (runbook: signed requests, the list of addresses), and the
      sites to let it in. Gates are never circumvented; the hosts are tried again by themselves.`,
    runbook: `One provider and many sites indicate a provider's rule against crawlers, or against the addresses of one partner;
      \`nearcrawl failures\` says which crawler met the gates. Each host is tried again with one URL, after a day at first and
      every two weeks at last, and its pages stay as last read.`,
    find: ({ botGates }, leastShare) => {
      const { asked, providers } = botGates ?? { asked: 0, providers: [] };
      const grown = providers
        .filter(({ newHosts }) => newHosts >= leastGatedHosts && newHosts > leastShare * asked)
        .sort((a, b) => b.newHosts - a.newHosts);
      const figures = grown.map(({ provider, hosts, newHosts }) => {
        const shares = `${percent((hosts - newHosts) / asked)} → ${percent(hosts / asked)}`;
        return `${gateName(provider)} ${shares} (${newHosts.toLocaleString("en-GB")} hosts more)`;
      });
      const words = `Hosts behind bot gates, of those ever asked, a day ago and now: ${figures.join("; ")}.`;
      return about(
        grown.map(({ provider }) => gateName(provider)),
        words,
      );
    },
  }),
  warning("link-outbox-late", "/", {
    /**
     * Minutes. Links are usually applied a second after their results. Later means that too many arrive, or nobody applies
     * them.
     */
    threshold: 5,
    looksFor: "links to other hosts have waited for over {n} minutes to be counted",
    advice:
      "Check the coordinators' log for apply-links, and whether the database is slow; a burst clears by itself.",
    runbook: `They wait in the table \`link_outbox\`, and one coordinator at a time applies them, 100,000 at once. A row that cannot be
      read was written by a newer coordinator: start no older one beside it. A mere burst shows as a falling
      \`nearcrawl_link_outbox_links\`. Nothing is lost; hosts are found later.`,
    find: ({ linkOutbox: { effects, ageSeconds } }, minutes) => {
      if (ageSeconds <= minutes * 60) return null;
      const links = `${effects.toLocaleString("en-GB")} links of results to other hosts`;
      return `${links} wait to be counted, for up to ${span(ageSeconds)}.`;
    },
  }),
  info("compression-poor", "/#fleet", {
    /** A share. UCYMicra ships less than a twentieth of what is fetched. */
    threshold: 1 / 20,
    looksFor: `over {%} of what was fetched in 24 hours (${leastFetchedBytes / 1e6} MB at least) was shipped`,
    advice:
      "Short pages and many failed fetches ship more than they fetch; the crawlers' table says whose share is the largest.",
    find: ({ day: { fetchedBytes, shippedBytes } }, share) => {
      if (fetchedBytes < leastFetchedBytes || shippedBytes <= fetchedBytes * share) return null;
      const part = `1/${(fetchedBytes / shippedBytes).toFixed(1)}`;
      return `Crawlers shipped ${part} of what they fetched in the last 24 hours; 1/20 is the aim.`;
    },
  }),
  warning("accuracy-low", "/accuracy", {
    /** A share. Below 90 %, the policy does worse than any that we measured (test/bench/results/delegation.md: 90 to 99 %). */
    threshold: 0.9,
    looksFor: `under {%} of the samples (${leastSamples} at least) are with a crawler that is nearly the nearest`,
    advice:
      "The samples say whose subnets are off. A lower λ probes more before it decides; full crawlers pass theirs on.",
    runbook: `\`/accuracy?only=far\` lists them. Many of one full crawler: its neighbours took over. Everywhere: lower
      \`delegation.lambdaMs\`.`,
    find: ({ accuracy: { samples, share } }, least) =>
      samples < leastSamples || share === null || share >= least
        ? null
        : `Only ${percent(share)} of ${samples} sampled subnets are with a crawler that is nearly the nearest.`,
  }),
  warning("parent-away", "/coordinators", {
    /** Minutes. Coordinators ask their parent every few seconds, and at least every five minutes while it is away. */
    threshold: 15,
    looksFor: "the parent coordinator has been unreachable, or has refused, for over {n} minutes",
    advice: `See why, and how many URLs wait: nearcrawl coordinators list. They are sent when it answers again.`,
    runbook: `This coordinator goes on with what it owns; URLs of others wait in its database and are sent once. A refusal (a cycle,
      claims that overlap, a removed key) ends when the settings on one side change.`,
    find: ({ relatives = [], nowMs }, minutes) => {
      const parent = relatives.find(({ kind }) => kind === "parent");
      if (!parent || !isLong(parent.failingSinceMs, nowMs, minutes)) return null;
      const since = minutesSince(parent.failingSinceMs ?? nowMs, nowMs);
      const why = parent.failure ?? "no answer";
      return `The parent coordinator ${parent.name} has accepted nothing for ${since} minutes (${why}); URLs of others wait here.`;
    },
  }),
  warning("child-silent", "/coordinators", {
    /** Minutes, as for the parent. */
    threshold: 15,
    looksFor: "a coordinator below this one has not been heard from for over {n} minutes, or is refused",
    advice: "Their URLs wait here; if one does not come back: nearcrawl coordinators remove NAME.",
    runbook: "Once it is removed, its URLs are crawled by this coordinator, or by whoever owns them then.",
    // An invited coordinator that has never connected raises no alert.
    find: ({ relatives = [], nowMs }, minutes) => {
      const silent = relatives.filter(
        ({ kind, contactedMs, failingSinceMs }) =>
          kind === "child" && (isLong(contactedMs, nowMs, minutes) || isLong(failingSinceMs, nowMs, minutes)),
      );
      return about(namesOf(silent), "Coordinators below this one are silent or refused");
    },
  }),
  warning("foreign-urls-dropped", "/coordinators", {
    /** Days. */
    threshold: 1,
    looksFor: "URLs for another coordinator were given up within the last day, because too many waited",
    advice:
      "Bring the other side back, or raise coordinators.mostWaitingUrls; URLs that are found again are sent again.",
    runbook:
      "URLs with the fewest links were given up, the oldest first. A waiting URL takes some 200 bytes.",
    find: ({ relatives = [], nowMs }, days) => {
      const full = relatives.filter(
        ({ droppedMs }) => droppedMs !== null && nowMs - droppedMs < days * dayMs,
      );
      const words = "Too many URLs wait for other coordinators, and the least linked were given up";
      return about(namesOf(full), words);
    },
  }),
  warning("alert-delivery-failing", "/alerts#delivery", {
    /** Failed attempts in a row. One or two fail whenever a receiver restarts. */
    threshold: 3,
    looksFor: "a channel that alerts are sent to has failed {n} times in a row",
    advice:
      "The reason is beside the channel on /alerts. Once it is fixed, send a test there, or: nearcrawl alerts test CHANNEL.",
    runbook: `*status 401*: the secret differs. *special-purpose address*: the receiver has a private address, which
      \`allowSpecialPurpose\` of that webhook must name. *certificate*: it is for another name, has expired, or comes from an
      authority of your own (\`NODE_EXTRA_CA_CERTS\`). For mail the words are the server's own. A successful test ends the alert.
      Alerts given up stay unsent: look at \`/alerts\`.`,
    find: ({ channels = [] }, times) => {
      const failing = channels.filter(({ failures }) => failures >= times);
      const targets = failing.map(({ name, failures, failure }) => `${name} (${failures} times: ${failure})`);
      return about(targets, "Channels that fail to deliver alerts");
    },
  }),
] as const;

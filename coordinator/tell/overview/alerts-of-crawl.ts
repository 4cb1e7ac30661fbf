/** Alerts about the crawl as a whole, and about the coordinators around this one. */
import { leastSamples } from "#core/format";
import { gateName } from "#protocol/bot-gate";
import {
  about,
  critical,
  dayMs,
  info,
  isLong,
  leastFetches,
  minutesSince,
  namesOf,
  span,
  warning,
} from "./alert-rule.ts";

/** Fewer may be chance. */
const leastGatedHosts = 10;
/** Less than this fetched in a day is too little to judge by: some 250 pages of the usual 40 kB. */
const leastFetchedBytes = 10_000_000;

export const crawlRules = [
  critical("errors-by-us", "/fleet/failures?blame=us", {
    /** A share. Failures that are our software's fault should not happen at all; a few may come from one odd page. */
    threshold: 0.01,
    looksFor: (share) =>
      `over ${share * 100} % of the last hour's fetches (${leastFetches} at least) failed in our own software`,
    advice: `If it began with a release, hold it (nearcrawl release hold VERSION). The failures name the URLs to look at.`,
    runbook: [
      "More than 1 % of the last hour's fetches failed in our own software. `/fleet/failures?blame=us` names URLs and reasons; `nearcrawl fetch URL`",
      "shows one by hand. If it began with a release: `nearcrawl release hold VERSION`.",
    ],
    find: ({ hour: { fetches, failures } }, share) =>
      fetches < leastFetches || failures.us <= fetches * share
        ? null
        : `${percent(failures.us / fetches)} of the last hour's ${fetches} fetches failed by the fault of our own software.`,
  }),
  warning("subnets-wait", "/fleet/queue?reason=no-delegation", {
    /** Minutes. A round takes seconds, and one that nobody answers is tried again for an hour. */
    threshold: 60,
    looksFor: (minutes) => `a host has waited for over ${minutes} minutes for a crawler`,
    advice: `Check who was asked, and why nobody took it: all crawlers may be full, draining, or not allowed there.`,
    runbook: [
      "Hosts wait for more than an hour for a crawler to be found. `/fleet/queue?reason=no-delegation` lists them, `/who?q=HOST` says who was asked. All",
      "crawlers full, draining or not allowed there? Invite one, or raise a budget. Hosts with IPv6 addresses alone that no crawler online can reach are",
      "not among them: `/fleet/queue?reason=no-ipv6` lists those, and `fleet show NAME` says who speaks it.",
    ],
    find: ({ queue: { unplacedSeconds: seconds } }, minutes) =>
      seconds === null || seconds <= minutes * 60
        ? null
        : `Hosts in subnets without a crawler have waited for up to ${span(seconds)}.`,
  }),
  warning("queue-age", "/fleet/queue", {
    /** Hours. Of the hosts that are due, 95 of 100 wait less: a day late is a seventh of the usual recrawl interval (one week). */
    threshold: 24,
    looksFor: (hours) => `one in twenty due hosts has waited for over ${hours} hours`,
    advice: `The queue says why. Raise the budgets of full crawlers, invite more, or crawl less often
      (recrawl.intervalHours).`,
    runbook: [
      "One in twenty due hosts has waited for more than a day. `/fleet/queue` says for what: budgets, room, politeness (many URLs at few hosts take their",
      "time: nothing to do), or their turn (crawlers ask too rarely: are they slow, or too few?).",
    ],
    find: ({ queue: { p95Seconds: seconds } }, hours) =>
      seconds === null || seconds <= hours * 3600
        ? null
        : `One in twenty due hosts has waited for more than ${span(seconds)}.`,
  }),
  warning("bot-gates-grow", "/fleet/queue#bot-gates", {
    /** A share. Sites put up a gate of their own accord now and then; many at once are a provider's new rule against us. */
    threshold: 0.01,
    looksFor: (
      share,
    ) => `within a day a provider's bot gate came up before ${leastGatedHosts} hosts or more, and over
      ${share * 100} % of those ever asked`,
    advice: `Ask the provider to list the crawler as a verified bot (runbook: signed requests, the list of addresses), and the
      sites to let it in. Gates are never got round; the hosts are tried again by themselves.`,
    runbook: [
      "Within a day a provider's bot gate came up before ten hosts or more, and before over 1 % of all that were ever asked. One provider and many sites",
      "is a rule of the provider's against crawlers, or against the addresses of one partner: `/fleet/queue` and `nearcrawl queue` list providers and",
      "hosts, `nearcrawl failures` says which crawler met them. Ask the provider to list the crawler as a verified bot (signed requests, the published",
      "list of addresses), and sites to let it in. Nothing has to be done for the hosts: they are tried again with one URL, after a day at first and",
      "every two weeks at last, and their pages stay as they were last read.",
    ],
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
    /** Minutes. Links count about a second after their results: so much later, more come than are applied, or nobody does it. */
    threshold: 5,
    looksFor: (minutes) => `links to other hosts have waited for over ${minutes} minutes to be counted`,
    advice:
      "Check the coordinators' log for apply-links, and whether the database is slow; a burst clears by itself.",
    runbook: [
      "What results do to other hosts than their own (URLs named there, links) waits in the table `link_outbox`, and one coordinator at a time applies",
      "it: every second under load, at once in a small crawl. It has waited for more than five minutes. `apply-links` in the logs says what fails; a row",
      "that cannot be read was written by a newer coordinator: start no older one beside it. If it is merely much (`nearcrawl_link_outbox_links` falls),",
      "it is made up for by itself, in bites of 100,000; see `database-slow`. Nothing is lost meanwhile: hosts are found later.",
    ],
    find: ({ linkOutbox: { effects, ageSeconds } }, minutes) => {
      if (ageSeconds <= minutes * 60) return null;
      const links = `${effects.toLocaleString("en-GB")} links of results to other hosts`;
      return `${links} wait to be counted, for up to ${span(ageSeconds)}.`;
    },
  }),
  info("compression-poor", "/#fleet", {
    /** A share. UCYMicra ships less than a twentieth of what is fetched. */
    threshold: 1 / 20,
    looksFor: (share) =>
      `over ${share * 100} % of what was fetched in 24 hours (${leastFetchedBytes / 1e6} MB at least) was shipped`,
    advice: `Short pages and many failed fetches ship more than they fetch; the crawlers' table says whose share is the
      largest.`,
    runbook: [
      "More than a twentieth of the fetched bytes is shipped. Short pages and many failures do that; a single crawler's share stands in its row of the",
      "overview.",
    ],
    find: ({ day: { fetchedBytes, shippedBytes } }, share) => {
      if (fetchedBytes < leastFetchedBytes || shippedBytes <= fetchedBytes * share) return null;
      const part = `1/${(fetchedBytes / shippedBytes).toFixed(1)}`;
      return `Crawlers shipped ${part} of what they fetched in the last 24 hours; 1/20 is the aim.`;
    },
  }),
  warning("accuracy-low", "/accuracy", {
    /** A share. Below nine of ten the policy does worse than any we measured (test/bench/results/delegation.md: 90 to 99 %). */
    threshold: 0.9,
    looksFor: (share) =>
      `under ${share * 100} % of the samples (${leastSamples} at least) are with a crawler that is nearly the nearest`,
    advice: `The samples say whose subnets are off. A lower λ probes more before it decides; full crawlers pass theirs on.`,
    runbook: [
      "Under 90 % of at least 30 samples are with a crawler that is nearly the nearest. `/accuracy?only=far` says whose. Many of one crawler that is",
      "full: its neighbours took over. All over: a lower λ (`delegation.lambdaMs`) probes more before it decides.",
    ],
    find: ({ accuracy: { samples, share } }, least) =>
      samples < leastSamples || share === null || share >= least
        ? null
        : `Only ${percent(share)} of ${samples} sampled subnets are with a crawler that is nearly the nearest.`,
  }),
  warning("parent-away", "/coordinators", {
    /** Minutes. Coordinators ask their parent every few seconds, and when it is away, every five minutes at least. */
    threshold: 15,
    looksFor: (minutes) =>
      `the parent coordinator has been unreachable, or has refused, for over ${minutes} minutes`,
    advice:
      "nearcrawl coordinators list says why and how many URLs wait; they are sent when it answers again.",
    runbook: [
      "The coordinator above this one was not reached, or refused, for over 15 minutes. `nearcrawl coordinators list` says why. This one goes on with",
      "what it owns; what it finds of others waits in its database and goes up later, nothing twice. A refusal (a cycle, claims that overlap, a removed",
      "key) ends when the settings on one side change.",
    ],
    find: ({ relatives = [], nowMs }, minutes) => {
      const parent = relatives.find(({ kind }) => kind === "parent");
      if (!parent || !isLong(parent.failingSinceMs, nowMs, minutes)) return null;
      const since = minutesSince(parent.failingSinceMs ?? nowMs, nowMs);
      const why = parent.failure ?? "no answer";
      return `The parent coordinator ${parent.name} has accepted nothing for ${since} minutes (${why}); URLs of others wait here.`;
    },
  }),
  warning("child-silent", "/coordinators", {
    /** Minutes, as of the parent. */
    threshold: 15,
    looksFor: (minutes) =>
      `a coordinator below this one has not been heard from for over ${minutes} minutes, or is refused`,
    advice: "Their URLs wait here; if one does not come back: nearcrawl coordinators remove NAME.",
    runbook: [
      "A coordinator below this one was not heard of for over 15 minutes, or is refused. What is its own waits here. Where it does not come back:",
      "`nearcrawl coordinators remove NAME`, and this one, or whoever owns it then, crawls it.",
    ],
    // One that was invited and has never come is no alert.
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
    runbook: [
      "More URLs waited for another coordinator than `coordinators.mostWaitingUrls` allows; those with the fewest links were given up, the oldest first.",
      "What is found once more comes once more. Bring the other side back, or raise the bound (some 200 bytes each).",
    ],
    find: ({ relatives = [], nowMs }, days) => {
      const full = relatives.filter(
        ({ droppedMs }) => droppedMs !== null && nowMs - droppedMs < days * dayMs,
      );
      return about(
        namesOf(full),
        "Too many URLs wait for other coordinators, and the least linked were given up",
      );
    },
  }),
  warning("alert-delivery-failing", "/alerts#delivery", {
    /** Attempts in a row. One or two fail whenever a receiver restarts. */
    threshold: 3,
    looksFor: (times) => `a channel that alerts are sent to has failed ${times} times in a row`,
    advice: `The reason is beside the channel on /alerts. Once it is fixed, send a test there, or: nearcrawl alerts test
      CHANNEL.`,
    runbook: [
      "A channel that alerts are sent to has failed three times in a row; `/alerts` has the reason beside it. *status 401*: the secret differs.",
      "*special-purpose address*: the receiver lies at a private address, which `allowSpecialPurpose` of that webhook has to name. *certificate*: the",
      "receiver's is for another name, has expired, or comes from an authority of your own (`NODE_EXTRA_CA_CERTS`). Mail: the server's own words. Then",
      "`nearcrawl alerts test CHANNEL`; one that succeeds ends the alert. What was given up stays unsent: look at `/alerts`.",
    ],
    find: ({ channels = [] }, times) => {
      const failing = channels.filter(({ failures }) => failures >= times);
      const targets = failing.map(({ name, failures, failure }) => `${name} (${failures} times: ${failure})`);
      return about(targets, "Channels that fail to deliver alerts");
    },
  }),
] as const;

function percent(share: number): string {
  return `${(share * 100).toFixed(1)} %`;
}

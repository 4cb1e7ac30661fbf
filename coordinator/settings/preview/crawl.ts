/** Another recrawl interval, scope or lease: what is due, what hosts may have, and what leases would have come to. */
import { meanIntervalDays } from "../../recrawl/recrawl-settings.ts";
import type { PolicySettings } from "../schema.ts";
import { nothingYet, percent } from "./delegation.ts";
import type { PolicyFigure, PreviewPolicies, ProbeRates } from "./types.ts";

const mostLeases = 2000;
const mostLinks = 20_000;

type Pair = readonly [number | null, number | null];

const figure = (name: string, words: string, unit: string, [before, after]: Pair): PolicyFigure => ({
  ...{ name, words, unit },
  ...{ before, after },
});

export const previewFrontier: PreviewPolicies = async ({ before, after, names }, ports) => {
  const { samples, crawlers } = ports;
  const plan = (await ports.recrawlPlan?.()) ?? null;
  const [old, changed] = [
    await samples.frontier(before.scope.pagesPerHost),
    await samples.frontier(after.scope.pagesPerHost),
  ];
  const fleet = (await crawlers.list()).filter(({ state }) => state === "online");
  const capacity = fleet.reduce((sum, { pagesPerDay }) => sum + pagesPerDay, 0);
  const dueADay = ({ recrawl }: PolicySettings) => old.fetchedUrls / meanIntervalDays(recrawl, plan);
  const share = (settings: PolicySettings) => (capacity === 0 ? null : (100 * dueADay(settings)) / capacity);
  return {
    title: "Pages due, and what hosts may have",
    figures: [
      figure("pagesDuePerDay", "Pages that are due again", "pages/day", [dueADay(before), dueADay(after)]),
      figure("ofCapacity", "Of what the connected crawlers may fetch", "%", [share(before), share(after)]),
      ...(names.has("scope.pagesPerHost")
        ? [
            figure("hostsOver", "Hosts with more URLs than they may have", "hosts", [
              old.hostsOver,
              changed.hostsOver,
            ]),
            figure("releasable", "Held URLs that there is room for", "URLs", [
              old.releasable,
              changed.releasable,
            ]),
            figure("held", "Held URLs that stay held", "URLs", [
              old.heldUrls - old.releasable,
              changed.heldUrls - changed.releasable,
            ]),
          ]
        : []),
    ],
    basis: `${old.hosts.toLocaleString("en-GB")} hosts${old.share < 1 ? ` (counted on ${percent(old.share)} of them)` : ""} with ${old.fetchedUrls.toLocaleString("en-GB")} URLs that were fetched; ${fleet.length} connected crawlers whose partners allow ${capacity.toLocaleString("en-GB")} pages per day. Another ${old.newUrls.toLocaleString("en-GB")} URLs wait for their first fetch.`,
    limits: [
      "Pages that have their next time already keep it: the number of due pages moves over one interval.",
      ...(after.recrawl.strategy === "fixed" || after.recrawl.strategy === plan?.strategy
        ? []
        : [
            `What ${after.recrawl.strategy} comes to is known when its first plan is made; until then the fixed interval holds.`,
          ]),
      ...(names.has("scope.pagesPerHost")
        ? [
            "URLs that a host has beyond its new limit stay; held ones are released as further pages of their host come in.",
          ]
        : []),
    ],
  };
};

export const previewLinks: PreviewPolicies = async ({ before, after, names }, { samples }) => {
  const title = "Links that are followed";
  const links = await samples.links(mostLinks);
  const [shallow, deep] = [
    await samples.shareAtDepth(before.scope.maxDepth),
    await samples.shareAtDepth(after.scope.maxDepth),
  ];
  if (links.links === 0 && shallow.urls === 0) return nothingYet(title);
  const followed = ({ scope }: PolicySettings) =>
    links.links === 0 ? null : scope.followNofollow ? 100 : 100 * (1 - links.nofollow / links.links);
  const newHosts = ({ scope }: PolicySettings) => (scope.admitNewHosts ? links.unknownHosts : 0);
  return {
    title,
    figures: [
      ...(names.has("scope.maxDepth")
        ? [figure("atDepth", "URLs whose links lead too far", "%", [100 * shallow.share, 100 * deep.share])]
        : []),
      ...(names.has("scope.followNofollow")
        ? [figure("followed", "Links that are followed", "%", [followed(before), followed(after)])]
        : []),
      ...([...names].some((name) => name === "scope.admitNewHosts" || name.startsWith("scope.newHostsPer"))
        ? [
            figure("newHosts", `New hosts that ${links.links} sampled links would bring in`, "hosts", [
              newHosts(before),
              newHosts(after),
            ]),
          ]
        : []),
    ],
    basis: `A sample of ${links.links.toLocaleString("en-GB")} stored links, to ${links.hosts.toLocaleString("en-GB")} hosts, and of ${shallow.urls.toLocaleString("en-GB")} URLs.`,
    limits: [
      "It holds for links of pages that are fetched from then on: nothing is taken out of the frontier, and links of old pages come in as those are fetched again.",
      "Pages that were not found yet are not counted: new hosts bring further ones.",
    ],
  };
};

export const previewLeases: PreviewPolicies = async ({ before, after, names }, { samples }) => {
  const title = "Leases";
  const leases = await samples.leases(mostLeases);
  if (leases.length === 0) return nothingYet(title);
  // One that ran out would have taken longer: nobody knows how much.
  const ended = leases.filter(({ ending }) => ending === "done");
  const late = ({ lease }: PolicySettings) => ended.filter(({ seconds }) => seconds > lease.seconds).length;
  const cut = ({ lease }: PolicySettings) => leases.filter(({ urls }) => urls >= lease.urlsPerHost).length;
  const ranOut = leases.filter(({ ending }) => ending === "expired").length;
  return {
    title,
    figures: [
      figure("late", "Leases that would have run out before they were done", "leases", [
        late(before),
        late(after),
      ]),
      figure("full", "Leases with as many URLs as they may have, or more", "leases", [
        cut(before),
        cut(after),
      ]),
    ],
    basis: `The latest ${leases.length} leases that have ended; ${ranOut} of them ran out.`,
    limits: [
      "How much longer those would have taken that ran out is not known; they are not counted.",
      ...(names.has("lease.hostsPerRequest")
        ? ["What hosts in one answer come to is not stored: it changes how often crawlers ask."]
        : []),
    ],
  };
};

// Another pace of probes: how long what waits would take.

const mostWaiting = 100_000;

/** Taken where no answer is stored yet. */
const usualAnswerMs = 100;

/** Two tries that agree end a probe; it begins and ends with the crawler's own round trip to us. */
const usualTries = 2;

export const previewPace: PreviewPolicies = async ({ before, after }, { samples }) => {
  const rates = await samples.probeRates(mostWaiting);
  const [old, changed] = [paceOf(before, rates), paceOf(after, rates)];
  const probes = rates.probesPerRound ?? 1;
  const minutes = (pace: Pace) =>
    pace.perSecond === 0 ? null : (rates.waiting * probes) / pace.perSecond / 60;
  return {
    title: "Probes: what waits",
    figures: [
      {
        name: "probesPerSecond",
        words: "Probes that may start, at most",
        unit: "probes/s",
        before: old.perSecond,
        after: changed.perSecond,
      },
      {
        name: "minutes",
        words: "Time to probe what waits",
        unit: "min",
        before: minutes(old),
        after: minutes(changed),
      },
    ],
    basis: `${rates.isCountedInFull ? "" : "At least "}${rates.waiting.toLocaleString("en-GB")} subnets that wait, ${probes.toFixed(1)} probes per round (the latest ${rates.rounds}), ${rates.online} crawlers connected, ${Math.round(rates.answerMs ?? usualAnswerMs)} ms to an answer. What bounds it is ${old.bound} now, and ${changed.bound} after.`,
    limits: [
      "The limits towards one target and one network are not counted: where what waits lies in few networks, it takes longer.",
      "Rounds ask one crawler after the other, and a fleet that knows little yet runs fewer of them.",
    ],
  };
};

interface Pace {
  readonly perSecond: number;
  /** Which of the limits it is. */
  readonly bound: string;
}

function paceOf({ probe, delegation }: PolicySettings, { online, answerMs }: ProbeRates): Pace {
  const { pace } = probe;
  const tries = Math.min(probe.tries, usualTries);
  const seconds = Math.min(probe.deadlineMs, tries * (answerMs ?? usualAnswerMs)) / 1000;
  const limits: readonly (readonly [string, number])[] = [
    ["probe.pace.perSecond", pace.perSecond],
    ["probe.pace.perCrawlerPerSecond", pace.perCrawlerPerSecond * online],
    ["probe.pace.atOnce", pace.atOnce / seconds],
    ["probe.pace.perCrawlerAtOnce", (pace.perCrawlerAtOnce * online) / seconds],
    ["delegation.concurrentRounds", delegation.concurrentRounds / seconds],
  ];
  const [bound, perSecond] = limits.reduce((least, limit) => (limit[1] < least[1] ? limit : least));
  return { bound, perSecond };
}

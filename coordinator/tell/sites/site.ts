/** One host as all rooms know it: its overall state, and the requested part. */

import { domainToUnicode } from "node:url";
import type { z } from "zod";
import { changeCauseWords, delegationCauseWords } from "#core/explanation";
import { howMany, instantWords, whenWords } from "#core/format";
import type { HostHash } from "#core/ids";
import { parseAddress } from "#core/ip/address";
import type { TimeRange } from "#core/time-range";
import { hostHashOf, hostNamed } from "#core/url-key";
import type { ChangeFeed } from "../../crawl/changes/change-feed-reads.ts";
import { everyChange, toldChange } from "../../crawl/changes/page-change.ts";
import type { HostReport } from "../../crawl/frontier/frontier-reports-api.ts";
import { paceReasons } from "../../crawl/frontier/host-pace.ts";
import { answerHost } from "../who/answer.ts";
import { robotsWords, usedUpWords } from "../who/explain-host.ts";
import type { WhoPorts } from "../who/place.ts";
import type { WhoAnswer } from "../who/who-api.ts";
import { partOfCrawling, whence } from "../who/words.ts";
import type {
  Site,
  SiteAnswer,
  SiteChanges,
  SitePages,
  SiteRobots,
  SiteSpeed,
  siteParameters,
} from "./site-api.ts";
import type { SiteReads, SiteRow } from "./site-reads.ts";
import { siteState } from "./sites-api.ts";

export interface SitePorts {
  /** Explains who crawls it. Its host report need not count. */
  readonly who: WhoPorts;
  /** The latest changes of the filtered host. */
  readonly feed: Pick<ChangeFeed, "latest">;
  readonly sites: SiteReads;
}

type AskedSite = z.output<z.ZodObject<typeof siteParameters>> & {
  readonly host: string;
  readonly range: TimeRange;
};

/** Accepts any spelling, with an optional port, and addresses with or without brackets. Returns null if it is not a host. */
export function siteNamed(text: string): string | null {
  const given = text.trim();
  if (given === "" || given.length > 2100) return null;
  const address = given.includes(":") && parseAddress(given) !== null ? `[${given}]` : given;
  return hostNamed(address);
}

export async function answerSite(asked: AskedSite, ports: SitePorts, now: Date): Promise<SiteAnswer> {
  const host = siteNamed(asked.host);
  const hostHash = host === null ? null : hostHashOf(host);
  const row = hostHash === null ? null : await ports.sites.siteRow(hostHash, now);
  const about = { now: now.toISOString(), host: host ?? asked.host.slice(0, 300), part: asked.part };
  if (host === null || hostHash === null || row === null) {
    const words =
      host === null
        ? `“${about.host}” is no host's name, such as www.example.org.`
        : `The crawl does not know ${host}: nobody has submitted a URL of it, and no crawled page led to it.`;
    return { ...about, ...noParts, found: false, words, site: null };
  }
  const who = await answerHost(host, ports.who, now);
  const report = who.host;
  if (report === null)
    return { ...about, ...noParts, found: false, words: `${host} has just gone.`, site: null };
  const known: Known = { host, hostHash, row, who, report };
  const site = siteOf(known, now);
  return {
    ...about,
    ...noParts,
    found: true,
    words: null,
    site,
    ...(await partOf(asked, known, { ports, now })),
  };
}

const noParts = { overview: null, pages: null, changes: null, robots: null, speed: null, links: null };

interface Known {
  readonly host: string;
  readonly hostHash: HostHash;
  readonly row: SiteRow;
  readonly who: WhoAnswer;
  readonly report: HostReport;
}

interface With {
  readonly ports: SitePorts;
  readonly now: Date;
}

async function partOf(asked: AskedSite, known: Known, { ports, now }: With): Promise<Partial<SiteAnswer>> {
  const { sites } = ports;
  const { hostHash } = known;
  switch (asked.part) {
    case "overview": {
      const [counts, failures, needsScripts] = await Promise.all([
        sites.countUrls(hostHash, now),
        sites.failuresOf(hostHash, asked.range),
        sites.drawnByScripts(hostHash),
      ]);
      return { overview: { ...counts, failures, needsScripts } };
    }
    case "pages":
      return { pages: await pagesOf(asked, known, { ports, now }) };
    case "changes":
      return { changes: await changesOf(asked, known, { ports, now }) };
    case "robots":
      return { robots: await robotsOf(known, ports) };
    case "speed": {
      const times = await sites.timesOf(hostHash, asked.range);
      return { speed: speedOf(times, asked, known, now) };
    }
    case "links": {
      const [to, from] = await Promise.all([sites.linksFrom(hostHash), sites.linksHere(hostHash)]);
      return { links: { ...to, ...from } };
    }
  }
}

function siteOf({ host, row, who, report }: Known, now: Date): Site {
  const leaf = who.chain.find(({ unary }) => !unary) ?? null;
  const { effective, optOut, complaints } = who;
  const holder = who.chain.find((one) => one.holder !== null)?.holder ?? null;
  return {
    host,
    name: domainToUnicode(host) || host,
    ...stateOf(row, who, report, now),
    standing: [...who.standing],
    addresses: [...who.addresses],
    subnet: leaf && { range: leaf.range, name: leaf.name },
    organisation: holder && { name: holder.name, handle: holder.handle },
    country: leaf?.country ?? null,
    language: row.language,
    crawler: effective && {
      ...{ name: effective.crawler.name, state: effective.crawler.state, rttMs: effective.rttMs },
      since: effective.since,
      words: `${delegationCauseWords[effective.cause]}, ${whence(effective)}`,
    },
    channels: row.channels.map(({ channelId, directories }) => ({
      channelId,
      directories: [...directories],
    })),
    optOut: optOut && optOutText(optOut),
    complaints: { open: complaints.filter(({ open }) => open).length, all: complaints.length },
    capDelayMs: report.capDelayMs,
    nextAt: report.dueAt,
    knownSince: row.admittedAt.toISOString(),
    ...{ urls: row.urls, fetchedUrls: row.fetchedUrls, fetches: row.fetches, fetchedBytes: row.fetchedBytes },
    ...{ heldUrls: report.budget.heldUrls, outsideLinks: row.outsideLinks },
  };
}

const optOutText = ({ target, state, since }: NonNullable<WhoAnswer["optOut"]>) =>
  `${target} has opted out since ${instantWords(since)}${state === "unconfirmed" ? ", not confirmed yet" : ""}`;

/** The list's state with the reason from the host's explanation. */
function stateOf(
  { standing }: SiteRow,
  who: WhoAnswer,
  { lease, dueAt }: HostReport,
  now: Date,
): Pick<Site, "state" | "words"> {
  const due = dueAt === null ? null : new Date(dueAt);
  const state = siteState({ standing, isLeased: lease !== null, dueAt: due }, now);
  if (lease !== null) {
    const until = whenWords(lease.expiresAt, now);
    return {
      state,
      words: `${lease.crawler} is fetching it: ${howMany(lease.openUrls, "URL")} to go; the lease ends ${until} at the latest`,
    };
  }
  const stop = who.standing.find(({ stops, code }) => stops && !partOfCrawling.has(code));
  if (stop !== undefined) return { state, words: stop.words };
  if (dueAt === null) return { state, words: "Nothing of it is left to fetch" };
  if (state === "scheduled") return { state, words: `Its next fetch is scheduled ${whenWords(dueAt, now)}` };
  const politeness = who.standing.find(({ code }) => code === "politeness");
  return {
    state,
    words: politeness?.words ?? `Due since ${instantWords(dueAt)}: its crawler takes it next`,
  };
}

async function pagesOf(asked: AskedSite, known: Known, { ports, now }: With): Promise<SitePages> {
  const { sites, who } = ports;
  const { host, hostHash, row, report } = known;
  const { filter, outcome = null } = asked;
  const status = asked.status === undefined ? null : Number(asked.status);
  const [{ urls: counts }, found, rejected] = await Promise.all([
    sites.countUrls(hostHash, now),
    sites.urlsOf({ hostHash, host, urls: row.urls }, { filter, outcome, status, after: asked.after }, now),
    sites.countRejected(host),
  ]);
  const limit = who.scope?.pagesPerHost ?? Number.POSITIVE_INFINITY;
  const { heldUrls, leftOutUrls } = report.budget;
  const leftOut = [
    { reason: "held", count: heldUrls, words: `wait: ${usedUpWords(report, limit)}` },
    {
      ...{ reason: "left-out", count: leftOutUrls },
      words: "times a URL was named and not kept: as many as may wait were held already",
    },
    {
      ...{ reason: "trapped", count: row.trappedLinks },
      words:
        "links look like a trap (endless calendars, session ids, repeated segments) and were not followed",
    },
    { reason: "blocked-by-robots", count: counts.blockedByRobots, words: "are disallowed by robots.txt" },
    {
      reason: "refused",
      count: counts.refused,
      words: "are refused: their channel leaves them out, or their address is never crawled",
    },
    {
      reason: "gone",
      count: counts.gone,
      words: "are gone: missing several times in a row, or to be paid for",
    },
    {
      reason: "rejected",
      count: rejected,
      words: "were given to the crawl and rejected, each with its reason",
    },
  ];
  return {
    ...{ filter, outcome, status, counts },
    ...{ urls: [...found.urls], next: found.next, looked: found.looked },
    leftOut: leftOut.filter(({ count }) => count > 0),
  };
}

const changesShown = 50;
const dayMs = 86_400_000;

async function changesOf(
  asked: AskedSite,
  { host, hostHash }: Known,
  { ports, now }: With,
): Promise<SiteChanges> {
  const since = new Date(now.getTime() - Number(asked.days) * dayMs);
  const before = /^\d{1,16}$/.test(asked.after) ? Number(asked.after) : null;
  const kinds = asked.kind === undefined ? [] : [asked.kind];
  const [counts, { changes }] = await Promise.all([
    ports.sites.countChanges(hostHash, since),
    ports.feed.latest({
      filter: { ...everyChange, host, kinds },
      limit: changesShown,
      ...(before === null ? {} : { before }),
    }),
  ]);
  const recent = changes.filter(({ notedAt }) => notedAt >= since);
  const isMore = recent.length === changesShown;
  return {
    ...{ days: Number(asked.days), kind: asked.kind ?? null, counts },
    // Latest first.
    changes: recent.map(toldChange).reverse() as SiteChanges["changes"],
    next: isMore ? recent[0]!.number : null,
  };
}

async function robotsOf({ hostHash, report, who }: Known, { sites }: SitePorts): Promise<SiteRobots> {
  const [blocked, stated] = await Promise.all([sites.blockedUrls(hostHash), sites.statedBy(hostHash)]);
  const { robots, pace } = report;
  return {
    robots: robots && { state: robots.state, words: robotsWords[robots.state], at: robots.at },
    crawlDelayMs: pace?.crawlDelayMs || null,
    blocked,
    ...stated,
    payment: who.standing.find(({ code }) => code === "payment-required")?.words ?? null,
  };
}

/** Codes that report what a site or its owner said about being crawled. */
const saidCodes: readonly string[] = ["opted-out", "complaints", "payment-required", "bot-gate"];

function speedOf(
  times: Awaited<ReturnType<SiteReads["timesOf"]>>,
  { range }: AskedSite,
  known: Known,
  now: Date,
): SiteSpeed {
  const { who, report } = known;
  const { pace, capDelayMs, notBefore } = report;
  const backsOff =
    pace?.backOffMs != null &&
    pace.backedOffAt !== null &&
    Date.parse(pace.backedOffAt) + pace.backOffMs > now.getTime();
  const tolerated = pace?.tolerated?.perHour ?? null;
  const delays = [
    ...[pace?.crawlDelayMs ?? 0, capDelayMs ?? 0, backsOff ? (pace?.backOffMs ?? 0) : 0],
    ...[tolerated === null || tolerated === 0 ? 0 : 3_600_000 / tolerated],
  ];
  const delayMs = Math.max(...delays);
  const moves = who.history.filter(({ changedAt }) => {
    const at = Date.parse(changedAt);
    return at >= range.since.getTime() && at < range.until.getTime();
  });
  return {
    ...{ since: range.since.toISOString(), until: range.until.toISOString() },
    ...times,
    moves: moves.map(({ changedAt, from, to, reason, cause }) => ({
      at: changedAt,
      words: `${from ?? "nobody"} → ${to ?? "nobody"}: ${reason || changeCauseWords[cause]}`,
    })),
    pace: {
      delayMs: delayMs === 0 ? null : Math.round(delayMs),
      reasons: paceReasons(report, now),
      notBefore: notBefore !== null && Date.parse(notBefore) > now.getTime() ? notBefore : null,
      ...{ crawlDelayMs: pace?.crawlDelayMs || null, capDelayMs, backOffMs: pace?.backOffMs ?? null },
      ...{
        backedOffAt: pace?.backedOffAt ?? null,
        usualMs: pace?.usualMs ?? null,
        toleratedPerHour: tolerated,
      },
      said: who.standing.filter(({ code }) => saidCodes.includes(code)).map(({ words }) => words),
    },
  };
}

/** The host's front page, for people who want it crawled. */
export const firstUrlOf = (host: string): string => `https://${host.includes(":") ? `[${host}]` : host}/`;

/** API schemas of `who`. */
import { z } from "zod";
import type { Standing } from "#core/explanation";
import {
  hostReport,
  type UrlReport,
  urlReport,
  waitingReport,
} from "../../crawl/frontier/frontier-reports-api.ts";
import { orderNames } from "../../crawl/frontier/order/strategies.ts";
import { crawlerStates } from "../../place/crawlers/crawler.ts";
import { delegationChange, finerReport, probeRound } from "../../place/delegation/rounds-api.ts";
import {
  chainSubnet,
  effectiveDelegation,
  nearMatch,
  neighbours,
  organisationReport,
  subnetList,
} from "../../place/subnets/subnets-api.ts";
import { complaintLine, optOutReport } from "../../run/opt-outs/opt-outs-api.ts";
import { dateTime, orNull, record, type ToldOf } from "../../web/api-operation.ts";

const publishedReport = record("PublishedReport", {
  source: z.string().describe("A cloud, or a geofeed by its URL."),
  place: z.string().nullable().describe("Null: the list names the range without a single place."),
  range: z.string().describe("As it was published."),
  within: z.string().nullable().describe("The range of the registry object that names the geofeed."),
  listDate: z.string().nullable().describe("Of the list; ISO date."),
});

export const crawlerReport = record("CrawlerReport", {
  crawlerId: z.int(),
  name: z.string(),
  state: z.enum(crawlerStates),
  place: z.string().nullable(),
  country: orNull(z.string(), "ISO 3166 code; null when unknown."),
  latitude: z.number().nullable(),
  longitude: z.number().nullable(),
  address: z.string().nullable(),
  pagesPerDay: z.int(),
  concurrentHosts: z.int(),
  probeMethods: z.array(z.string()),
  speaksIpv6: orNull(z.boolean(), "Whether it contacts sites over IPv6, too; null: not known yet."),
  softwareVersion: z.string().nullable(),
  connectedAt: orNull(dateTime(), "The start of its last session, open or not."),
  lastSeenAt: dateTime().nullable(),
  offlineReason: z.string().nullable(),
  holdingBack: z.array(z.string()).describe("Why it is idle, in its own words."),
  revoked: z.boolean(),
});

const standing = record("Standing", {
  code: z.string(),
  stops: z.boolean().describe("True: no fetch takes place while this holds."),
  words: z.string(),
});

const orderReport = record("OrderReport", {
  strategy: z.enum(orderNames),
  words: z.string().describe("What it puts first."),
  list: z.enum(["new", "old"]).describe("new: it was never visited."),
  newShare: orNull(
    z.number(),
    "The share of a lease that is for new URLs; null: the strategy takes both as they come.",
  ),
  score: z.number().describe("Higher goes first."),
  reason: z.string().describe("The score with how it came about."),
  place: orNull(
    z.int(),
    "In its list, among the due URLs of its host; null: not due, or too far back to be counted.",
  ),
  of: z.int().describe("URLs of its list that were counted."),
  hostWorth: orNull(
    z.number(),
    "What the best new URL of its host is worth; null: not known, or none is due.",
  ),
  worthShare: z
    .number()
    .describe("The share of hosts handed out by worth; the others go by how long they have been due."),
});

const rollUp = record(
  "RollUp",
  {
    subnets: z.int().describe("In use: assigned to a crawler, or with hosts."),
    registered: z.int().nullable().describe("In all, in use or not; null: too many to be counted."),
    byCrawler: z
      .array(z.strictObject({ crawler: z.string(), subnets: z.int(), pages: z.number() }))
      .describe("Ten crawlers at most, those with the most subnets."),
    others: orNull(
      z.strictObject({ crawlers: z.int(), subnets: z.int(), pages: z.number() }),
      "All crawlers that are not named, together.",
    ),
    unassigned: z.int().describe("Subnets with hosts that are not assigned directly."),
    hosts: z.int(),
    dueHosts: z.int().describe("Hosts with a page that is due."),
    pages: z.number(),
    bytes: z.number().describe("Of all fetches so far."),
    rtt: z
      .strictObject({
        pages: z.number().describe("Pages in subnets that were measured."),
        meanMs: z.number().nullable().describe("Null below 30 pages."),
        medianMs: z.number().nullable(),
      })
      .describe("From the subnets' crawlers, each subnet as often as it has pages."),
  },
  "Totals of a space.",
);

const ageingReport = record("AgeingReport", {
  kind: z
    .enum(["all", "country", "holder"])
    .describe("The most specific kind of network of which something was seen."),
  moves: z.int().describe("Seen of that kind."),
  months: z.number().describe("Observed, all its subnets together."),
  perMonth: z.number().describe("Expected moves a month, from all kinds that the subnet belongs to."),
});

export const whoAnswer = record("WhoAnswer", {
  question: z.string(),
  found: z.boolean(),
  takenFor: z.strictObject({
    type: z.enum(["url", "host", "address", "range", "organisation", "country", "crawler", "unknown"]),
    value: z.string(),
  }),
  addresses: z.array(z.string()),
  addressesFrom: z.enum(["question", "frontier", "dns"]).nullable(),
  chain: z.array(chainSubnet).describe("Most specific first."),
  neighbours: orNull(
    neighbours,
    "Subnets beside the most specific one, below the same subnet; null where there is none.",
  ),
  published: z
    .array(publishedReport)
    .describe("Published locations of the address or range, one per source."),
  effective: effectiveDelegation.nullable(),
  ageing: orNull(
    ageingReport,
    "How soon a decision like the one in force is out of date; null: not learned, or not decided by a round.",
  ),
  finer: orNull(finerReport, "In force for this host or address alone, in place of its subnet's delegation."),
  parts: z
    .array(finerReport)
    .describe("Parts of the most specific subnet that are crawled by others than the rest of it."),
  round: probeRound.nullable(),
  history: z.array(delegationChange).describe("Newest first."),
  url: urlReport.nullable(),
  host: hostReport.nullable(),
  waiting: waitingReport.nullable(),
  inside: subnetList.nullable(),
  organisation: organisationReport.nullable(),
  rollUp: orNull(
    rollUp,
    "Totals of a range, an organisation or a country; null: not counted, or not in time.",
  ),
  crawler: crawlerReport.nullable(),
  optOut: optOutReport.nullable().describe("What of it has opted out; no crawler asks for anything of it."),
  complaints: z.array(complaintLine).describe("About it, the latest first."),
  standing: z.array(standing).describe("What blocks the next fetch, or how it will happen."),
  nearMatches: z.array(nearMatch),
  at: dateTime(),
  order: orNull(orderReport, "Of a URL in the frontier: its place among what is due of its host."),
});

/**
 * The value for command, API and page (design section 4d). Dates are UTC texts, round-trip times are in ms, ranges and
 * addresses are canonical texts. Lists are bounded, and a cut list has a total.
 */
export type WhoAnswer = Omit<ToldOf<typeof whoAnswer>, "url" | "standing"> & {
  readonly url: UrlReport | null;
  readonly standing: readonly Standing[];
};
export type TakenFor = WhoAnswer["takenFor"];
export type PublishedReport = ToldOf<typeof publishedReport>;
export type AgeingReport = ToldOf<typeof ageingReport>;
export type CrawlerReport = ToldOf<typeof crawlerReport>;
export type OrderReport = ToldOf<typeof orderReport>;
export type RollUp = ToldOf<typeof rollUp>;

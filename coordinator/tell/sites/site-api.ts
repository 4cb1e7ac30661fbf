/** The questions about one host, and the answers by part. */
import { z } from "zod";
import { changeKinds, pageChange } from "../../crawl/changes/changes-api.ts";
import { openRecord, orNull, type ReadOf } from "../../web/api-operation.ts";
import { siteStates } from "./sites-api.ts";

export const siteParts = ["overview", "pages", "changes", "robots", "speed", "links"] as const;

export type SitePart = (typeof siteParts)[number];

/** Filters of its URLs by state, including rejected ones and others outside the frontier. */
export const urlFilters = [
  "all",
  "due",
  "scheduled",
  "in-progress",
  "failing",
  "blocked-by-robots",
  "refused",
  "gone",
  "held",
  "rejected",
] as const;

export type UrlFilter = (typeof urlFilters)[number];

const instant = z.string().describe("ISO 8601.");
const count = z.int();

const site = openRecord("Site", {
  host: z.string().describe("As the frontier has it: ASCII, lower case."),
  name: z.string().describe("In its own script, where it has one."),
  state: z.enum(siteStates),
  words: z.string().describe("The state, with its reason."),
  standing: z.array(z.object({ code: z.string(), stops: z.boolean(), words: z.string() })),
  addresses: z.array(z.string()),
  subnet: z.object({ range: z.string(), name: z.string() }).nullable(),
  organisation: z.object({ name: z.string(), handle: z.string().nullable() }).nullable(),
  country: z.string().nullable().describe("ISO 3166, of its subnet."),
  language: z.string().nullable().describe("Of most of its pages."),
  crawler: z
    .object({
      name: z.string(),
      state: z.string(),
      rttMs: z.number().nullable(),
      since: instant,
      words: z.string().describe("How it came to have the host."),
    })
    .nullable(),
  channels: z.array(z.object({ channelId: count, directories: z.array(z.string()) })),
  optOut: z.string().nullable().describe("In words; null: it has not opted out."),
  complaints: z.object({ open: count, all: count }),
  capDelayMs: count.nullable().describe("Least time between two requests, by an operator's cap."),
  nextAt: instant.nullable().describe("When its next fetch is scheduled."),
  knownSince: instant,
  urls: count.describe("In the frontier."),
  fetchedUrls: count,
  fetches: count,
  fetchedBytes: z.number(),
  heldUrls: count.describe("Over its budget: they wait until it grows."),
  outsideLinks: count.describe("Links to it from other hosts."),
});

const urlCounts = openRecord(
  "SiteUrlCounts",
  {
    due: count,
    scheduled: count,
    inProgress: count,
    failing: count.describe("Of those due or scheduled: the last fetch failed."),
    blockedByRobots: count,
    refused: count.describe("For another reason than robots.txt."),
    gone: count,
    counted: count,
    more: z.boolean().describe("There are more URLs than are counted."),
  },
  "By state.",
);

const overview = openRecord("SiteOverview", {
  urls: urlCounts,
  freshness: z
    .object({
      pages: count.describe("URLs whose last fetch brought a page, or the same one again."),
      withinDay: count,
      within7Days: count,
      within30Days: count,
      within90Days: count,
      oldestAt: instant.nullable(),
    })
    .describe("When these pages were fetched last; each count holds the ones before it."),
  needsScripts: z
    .object({
      pages: count.describe("Kept, with hardly a word to index."),
      more: z.boolean().describe("There are more pages than were counted."),
      urls: z.array(z.string()).describe("Some of them."),
    })
    .describe("Pages that are empty without scripts: an application draws them."),
  failures: z.object({
    since: instant,
    until: instant,
    stepSeconds: count,
    fetches: count,
    more: z.boolean().describe("There are more fetches in that time: the latest are counted."),
    kinds: z.array(
      z.object({
        outcome: z.string(),
        status: count.nullable(),
        blame: z.string().nullable(),
        fetches: count,
      }),
    ),
    points: z.array(
      z.object({ at: instant, fetches: count, target: count, network: count, crawler: count, us: count }),
    ),
  }),
});

const siteUrl = z.object({
  url: z.string(),
  state: z.enum([
    "due",
    "scheduled",
    "in-progress",
    "blocked-by-robots",
    "refused",
    "gone",
    "held",
    "rejected",
  ]),
  title: z.string().nullable().describe("Of its page in the index, where that may be shown."),
  outcome: z.string().nullable().describe("Of its last fetch."),
  status: count.nullable(),
  reason: z.string().nullable(),
  failures: count.describe("In a row."),
  visits: count,
  fetchedAt: instant.nullable(),
  nextAt: instant.nullable(),
});

const pages = openRecord("SitePages", {
  filter: z.enum(urlFilters),
  outcome: z.string().nullable(),
  status: count.nullable(),
  counts: urlCounts,
  urls: z.array(siteUrl),
  next: z.string().nullable().describe("Pass it as after to continue; null: this was the last part."),
  looked: count.nullable().describe("URLs scanned for this part; null: all."),
  leftOut: z
    .array(z.object({ reason: z.string(), words: z.string(), count: z.number() }))
    .describe("What of the host is not crawled, and why."),
});

const changes = openRecord("SiteChanges", {
  days: count,
  kind: z.enum(changeKinds).nullable(),
  counts: z.array(z.object({ kind: z.enum(changeKinds), changes: count })),
  changes: z.array(pageChange),
  next: orNull(count, "Pass it as after for earlier changes; null: that was all."),
});

const robots = openRecord("SiteRobots", {
  robots: orNull(z.object({ state: z.string(), words: z.string(), at: instant }), "Null: not asked for yet."),
  crawlDelayMs: z.number().nullable(),
  blocked: z.object({
    urls: count,
    more: z.boolean().describe("There are more URLs than were checked."),
    rules: z.array(z.object({ rule: z.string(), urls: count, example: z.string() })),
  }),
  stated: z.object({
    pages: count.describe("Indexed pages that were counted."),
    more: z.boolean(),
    counts: z.array(z.object({ use: z.string(), answer: z.string(), pages: count })),
    sets: z.array(z.object({ pages: count, answers: z.string(), statements: z.array(z.string()) })),
  }),
  notSearched: z.object({
    pages: count.describe(
      "Kept without their text, since their site states that they are not to be searched.",
    ),
    urls: z.array(z.string()).describe("Some of them."),
  }),
  payment: z.string().nullable().describe("It asked to be paid (402), in words."),
});

const times = {
  samples: count.describe("Fetches."),
  rttMs: z.number().nullable().describe("To connect; median."),
  firstByteMs: z.number().nullable().describe("Median."),
  totalMs: z.number().nullable().describe("To download a page, without waiting; median."),
};

const speed = openRecord("SiteSpeed", {
  since: instant,
  until: instant,
  stepSeconds: count,
  more: z.boolean().describe("There are more fetches in that time: the latest are counted."),
  all: z.object({ ...times, wireBytes: z.number() }),
  points: z.array(z.object({ at: instant, ...times, wireBytes: z.number() })),
  crawlers: z.array(z.object({ name: z.string(), ...times })),
  moves: z
    .array(z.object({ at: instant, words: z.string() }))
    .describe("When its subnet, or the host itself, went to another crawler."),
  pace: z.object({
    delayMs: orNull(
      z.number(),
      "Between two requests, by all that holds now; null: the crawler's usual pace.",
    ),
    reasons: z.array(z.string()).describe("Why it is asked more slowly than usual."),
    notBefore: instant.nullable().describe("It is left alone until then."),
    crawlDelayMs: z.number().nullable(),
    capDelayMs: z.number().nullable(),
    backOffMs: z.number().nullable(),
    backedOffAt: instant.nullable(),
    usualMs: z.number().nullable().describe("What it usually takes to answer."),
    toleratedPerHour: z.number().nullable(),
    said: z.array(z.string()).describe("What the site said of our pace, in words."),
  }),
});

const links = openRecord("SiteLinks", {
  to: z.array(z.object({ host: z.string(), pages: count.describe("Of this host, that link there.") })),
  toLooked: z.object({ pages: count, more: z.boolean() }),
  from: z.array(z.object({ host: z.string(), pages: count.describe("Of that host, that link here.") })),
  fromLooked: z.object({ urls: count, pages: count, more: z.boolean() }),
});

export const siteAnswer = openRecord("SiteAnswer", {
  now: instant,
  host: z.string(),
  found: z.boolean(),
  words: z.string().nullable().describe("Of a host that is not known: what to do."),
  part: z.enum(siteParts),
  site: site.nullable(),
  overview: overview.nullable(),
  pages: pages.nullable(),
  changes: changes.nullable(),
  robots: robots.nullable(),
  speed: speed.nullable(),
  links: links.nullable(),
});

export type SiteAnswer = ReadOf<typeof siteAnswer>;
export type Site = ReadOf<typeof site>;
export type SiteOverview = ReadOf<typeof overview>;
export type SiteUrl = ReadOf<typeof siteUrl>;
export type SitePages = ReadOf<typeof pages>;
export type SiteChanges = ReadOf<typeof changes>;
export type SiteRobots = ReadOf<typeof robots>;
export type SiteSpeed = ReadOf<typeof speed>;
export type SiteLinks = ReadOf<typeof links>;

export const siteParameters = {
  part: z.enum(siteParts).default("overview").meta({ description: "The part to show.", example: "pages" }),
  filter: z
    .enum(urlFilters)
    .default("all")
    .meta({ title: "State", description: "Of pages: these URLs alone.", example: "failing" }),
  outcome: z
    .string()
    .max(40)
    .optional()
    .meta({ title: "Last outcome", description: "Of pages: with this last outcome.", example: "http-error" }),
  status: z
    .string()
    .regex(/^[1-9]\d\d$/, "it is no status, such as 404")
    .optional()
    .meta({ title: "Last status", description: "Of pages: with this last status.", example: "404" }),
  days: z
    .enum(["1", "7", "30"])
    .default("7")
    .meta({ title: "Noticed", description: "Of changes: of so many days.", example: "1" }),
  kind: z
    .enum(changeKinds)
    .optional()
    .meta({ title: "What", description: "Of changes: of this kind alone.", example: "changed" }),
  after: z
    .string()
    .max(2100)
    .default("")
    .meta({ description: "Of pages and changes: next of the part before." }),
};

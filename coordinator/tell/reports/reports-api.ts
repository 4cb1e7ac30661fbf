/** The reports' answers. Shares and means over fewer than 30 samples are null. */
import { z } from "zod";
import { dateTime, openRecord, type ReadOf } from "../../web/api-operation.ts";

const coverageFigures = {
  hosts: z.int(),
  pages: z.number(),
  bytes: z.number().describe("Of all fetches so far."),
  sampledPages: z.number().describe("Pages whose age is known: the whole index, or a sample of a large one."),
  fresh7: z.number().nullable().describe("Share of these that was fetched within 7 days."),
  fresh30: z.number().nullable().describe("Share of these that was fetched within 30 days."),
};

const coverageLine = openRecord("CoverageLine", {
  key: z.string().describe("A country's or a language's code; empty: not known."),
  ...coverageFigures,
});

export const coverageSchema = openRecord("CoverageReport", {
  at: dateTime(),
  day: z.string().nullable().describe("Of the figures; null: none was counted yet."),
  countedAt: dateTime().nullable(),
  country: z.string().nullable().describe("What was asked for; null: all."),
  language: z.string().nullable(),
  all: z.object(coverageFigures).meta({ id: "CoverageFigures" }),
  countries: z.array(coverageLine).describe("Most pages first."),
  languages: z.array(coverageLine),
  days: z
    .array(openRecord("CoverageOfDay", { day: z.string(), ...coverageFigures }))
    .describe("Of what was asked for, over the range of time."),
});

const organisationLine = openRecord("OrganisationLine", {
  name: z.string().nullable().describe("Null: the registry names no holder."),
  handle: z.string().nullable(),
  country: z.string().nullable().describe("In which most of its pages are."),
  subnets: z.int().describe("With hosts."),
  hosts: z.int(),
  pages: z.number(),
  bytes: z.number(),
  share: z.number().nullable().describe("Of all pages."),
});

export const organisationsSchema = openRecord("OrganisationsReport", {
  at: dateTime(),
  organisations: z.int(),
  subnets: z.int(),
  hosts: z.int(),
  pages: z.number(),
  bytes: z.number(),
  lines: z.array(organisationLine).describe("Most pages first."),
});

const compared = openRecord(
  "Compared",
  {
    subnets: z.int(),
    pagesPerDay: z.number(),
    ofSubnets: z.int().describe("All with hosts that were measured."),
    ofPagesPerDay: z.number(),
    unmeasuredSubnets: z.int().describe("With hosts and not measured: nothing can be said of them."),
    unmeasuredPagesPerDay: z.number(),
  },
  "What a report looks at: the subnets that cost most.",
);

const farLine = openRecord("FarSubnetLine", {
  subnet: z.string(),
  name: z.string(),
  holder: z.string().nullable(),
  country: z.string().nullable(),
  crawler: z.string(),
  crawlerCountry: z.string().nullable(),
  rttMs: z.number(),
  pagesPerDay: z.number(),
  savesMs: z.number().describe("What the best help would save on each page."),
  savedMsPages: z.number().describe("A day: ms × pages. The list is in this order."),
  help: z.enum(["new-crawler", "absent-crawler", "denied", "make-room", "probe-again"]),
  words: z.string(),
  decidedAt: dateTime().nullable(),
});

export const subnetsSchema = openRecord("SubnetsReport", {
  at: dateTime(),
  compared,
  far: z.int(),
  savedMsPages: z.number(),
  lines: z.array(farLine),
});

const missedLine = openRecord("MissedCrawlerLine", {
  crawler: z.string(),
  country: z.string().nullable(),
  subnets: z.int(),
  pagesPerDay: z.number(),
  lostMsPages: z.number().describe("A day, if it left: ms × pages. The list is in this order."),
  meanLostMs: z.number().nullable().describe("A page; null: too few pages to tell."),
  measuredPages: z.number().describe("Of a day: the next nearest crawler was measured."),
  predictedPages: z.number(),
  unknownPages: z.number().describe("No other crawler is known that could reach them."),
  spreadMs: z.number().nullable().describe("How far off predictions may be (standard deviation)."),
  successor: z.string().nullable(),
  successorPages: z.number(),
});

export const crawlersSchema = openRecord("CrawlersReport", {
  at: dateTime(),
  compared,
  crawlers: z.int(),
  lines: z.array(missedLine),
});

const placementLine = openRecord("PlacementLine", {
  kind: z.enum(["country", "holder"]),
  place: z.string().describe("A country's code, or a holder's name: in whose network it would stand."),
  country: z.string().nullable().describe("Of a holder: of its subnet with the most to fetch."),
  pagesPerDay: z.number().describe("That would come from nearer."),
  nowMs: z.number(),
  thenMs: z.number().nullable().describe("Expected; null: too few were measured anywhere to tell."),
  spreadMs: z.number().nullable().describe("How far off that may be for a page (standard deviation)."),
  savedMsPages: z.number().nullable().describe("A day: ms × pages. The list is in this order."),
  placeSubnets: z.int().describe("Measured subnets in the place."),
  measuredSubnets: z.int().describe("In-country measurements, the basis of the expectation."),
  isOwnMeasure: z.boolean().describe("These are in this country; false: in all countries together."),
  subnets: z
    .array(z.object({ subnet: z.string(), holder: z.string().nullable(), savedMsPages: z.number() }))
    .describe("Where most is saved: whom to ask for a place."),
});

export const placementSchema = openRecord("PlacementReport", {
  at: dateTime(),
  pagesPerDay: z.number(),
  meanRttMs: z.number().nullable().describe("Of all pages of a day, now; null: too few to tell."),
  thenMeanRttMs: z.number().nullable().describe("With a crawler in each of the places listed."),
  isEstimated: z.boolean().describe("False: too few in-country measurements for an estimate."),
  lines: z.array(placementLine).describe("Each in addition to the earlier ones."),
});

export type CoverageReport = ReadOf<typeof coverageSchema>;
export type OrganisationsReport = ReadOf<typeof organisationsSchema>;
export type SubnetsReport = ReadOf<typeof subnetsSchema>;
export type CrawlersReport = ReadOf<typeof crawlersSchema>;
export type PlacementReport = ReadOf<typeof placementSchema>;
export type ComparedPart = ReadOf<typeof compared>;

/** The API of the reports: what it takes and answers. Shares and means of fewer than 30 samples are null. */
import { z } from "zod";
import {
  type ApiOperations,
  answer,
  dateTime,
  errorAnswer,
  get,
  openRecord,
  type ReadOf,
} from "../web/api-operation.ts";

const coverageFigures = {
  hosts: z.int(),
  pages: z.number(),
  bytes: z.number().describe("Of all fetches so far."),
  sampledPages: z
    .number()
    .describe("Pages whose age was looked at: all of the index, or a part of a large one."),
  fresh7: z.number().nullable().describe("Share of these that was fetched within 7 days."),
  fresh30: z.number().nullable().describe("Share of these that was fetched within 30 days."),
};

const coverageLine = openRecord("CoverageLine", {
  key: z.string().describe("A country's or a language's code; empty: not known."),
  ...coverageFigures,
});

const coverageReport = openRecord("CoverageReport", {
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

const organisationsReport = openRecord("OrganisationsReport", {
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

const subnetsReport = openRecord("SubnetsReport", {
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

const crawlersReport = openRecord("CrawlersReport", {
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
  measuredSubnets: z
    .int()
    .describe("Measured from their own country, from which it is expected how near a crawler would be."),
  isOwnMeasure: z.boolean().describe("These are in this country; false: in all countries together."),
  subnets: z
    .array(z.object({ subnet: z.string(), holder: z.string().nullable(), savedMsPages: z.number() }))
    .describe("Where most is saved: whom to ask for a place."),
});

const placementReport = openRecord("PlacementReport", {
  at: dateTime(),
  pagesPerDay: z.number(),
  meanRttMs: z.number().nullable().describe("Of all pages of a day, now; null: too few to tell."),
  thenMeanRttMs: z.number().nullable().describe("With a crawler in each of the places listed."),
  isEstimated: z
    .boolean()
    .describe("False: too few subnets were measured from their own country to expect anything."),
  lines: z.array(placementLine).describe("Each beside those before it."),
});

export type CoverageReport = ReadOf<typeof coverageReport>;
export type OrganisationsReport = ReadOf<typeof organisationsReport>;
export type SubnetsReport = ReadOf<typeof subnetsReport>;
export type CrawlersReport = ReadOf<typeof crawlersReport>;
export type PlacementReport = ReadOf<typeof placementReport>;
export type ComparedPart = ReadOf<typeof compared>;

const at = "2026-03-01T12:00:00.000Z";
const rangeParameters = {
  range: z
    .string()
    .max(4)
    .optional()
    .meta({ description: "1h, 6h, 24h, 7d, 30d, 90d or 1y.", example: "30d" }),
  since: z.string().max(40).optional().meta({ description: "In place of a range: from here.", example: at }),
  until: z.string().max(40).optional().meta({ description: "Up to here.", example: at }),
};

export const reportsApi = {
  coverageReport: {
    ...get("/api/reports/coverage", "read"),
    summary: "Coverage by country and language, over time",
    description: "Counted once an hour; what a day had last stays.",
    parameters: {
      query: {
        day: z
          .string()
          .max(10)
          .optional()
          .meta({ description: "As of this day; left out: the latest.", example: "2026-03-01" }),
        country: z
          .string()
          .max(2)
          .optional()
          .meta({ description: "Only hosts of this country.", example: "DE" }),
        language: z
          .string()
          .max(20)
          .optional()
          .meta({ description: "Only hosts of this language.", example: "de" }),
        ...rangeParameters,
      },
    },
    answers: {
      200: answer(coverageReport),
      400: errorAnswer("That is no day, country or language"),
    },
  },
  organisationsReport: {
    ...get("/api/reports/organisations", "read"),
    summary: "Which organisation has how much of the crawl",
    answers: { 200: answer(organisationsReport) },
  },
  subnetsReport: {
    ...get("/api/reports/subnets", "read"),
    summary: "Which subnets are served badly, and what would help",
    answers: { 200: answer(subnetsReport) },
  },
  crawlersReport: {
    ...get("/api/reports/crawlers", "read"),
    summary: "Which crawlers would be missed most",
    answers: { 200: answer(crawlersReport) },
  },
  placementReport: {
    ...get("/api/reports/placement", "read"),
    summary: "Where the next crawlers should stand",
    description:
      "Countries without a crawler and holders' networks, in the order in which crawlers there would save most round-trip time, each beside those before it.",
    answers: { 200: answer(placementReport) },
  },
} satisfies ApiOperations;

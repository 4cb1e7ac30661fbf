/** The API of the reports: what it takes and answers. Shares and means of fewer than 30 samples are null. */
import { z } from "zod";
import { type ApiOperations, dateTime, errorAnswer, type ReadOf, refusals } from "../web/api-operation.ts";

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

const coverageLine = z
  .object({
    key: z.string().describe("A country's or a language's code; empty: not known."),
    ...coverageFigures,
  })
  .meta({ id: "CoverageLine" });

const coverageReport = z
  .object({
    at: dateTime(),
    day: z.string().nullable().describe("Of the figures; null: none was counted yet."),
    countedAt: dateTime().nullable(),
    country: z.string().nullable().describe("What was asked for; null: all."),
    language: z.string().nullable(),
    all: z.object(coverageFigures).meta({ id: "CoverageFigures" }),
    countries: z.array(coverageLine).describe("Most pages first."),
    languages: z.array(coverageLine),
    days: z
      .array(z.object({ day: z.string(), ...coverageFigures }).meta({ id: "CoverageOfDay" }))
      .describe("Of what was asked for, over the range of time."),
  })
  .meta({ id: "CoverageReport" });

const organisationLine = z
  .object({
    name: z.string().nullable().describe("Null: the registry names no holder."),
    handle: z.string().nullable(),
    country: z.string().nullable().describe("In which most of its pages are."),
    subnets: z.int().describe("With hosts."),
    hosts: z.int(),
    pages: z.number(),
    bytes: z.number(),
    share: z.number().nullable().describe("Of all pages."),
  })
  .meta({ id: "OrganisationLine" });

const organisationsReport = z
  .object({
    at: dateTime(),
    organisations: z.int(),
    subnets: z.int(),
    hosts: z.int(),
    pages: z.number(),
    bytes: z.number(),
    lines: z.array(organisationLine).describe("Most pages first."),
  })
  .meta({ id: "OrganisationsReport" });

const compared = z
  .object({
    subnets: z.int(),
    pagesPerDay: z.number(),
    ofSubnets: z.int().describe("All with hosts that were measured."),
    ofPagesPerDay: z.number(),
    unmeasuredSubnets: z.int().describe("With hosts and not measured: nothing can be said of them."),
    unmeasuredPagesPerDay: z.number(),
  })
  .meta({ id: "Compared", description: "What a report looks at: the subnets that cost most." });

const farLine = z
  .object({
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
  })
  .meta({ id: "FarSubnetLine" });

const subnetsReport = z
  .object({ at: dateTime(), compared, far: z.int(), savedMsPages: z.number(), lines: z.array(farLine) })
  .meta({ id: "SubnetsReport" });

const missedLine = z
  .object({
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
  })
  .meta({ id: "MissedCrawlerLine" });

const crawlersReport = z
  .object({ at: dateTime(), compared, crawlers: z.int(), lines: z.array(missedLine) })
  .meta({ id: "CrawlersReport" });

const placementLine = z
  .object({
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
  })
  .meta({ id: "PlacementLine" });

const placementReport = z
  .object({
    at: dateTime(),
    pagesPerDay: z.number(),
    meanRttMs: z.number().nullable().describe("Of all pages of a day, now; null: too few to tell."),
    thenMeanRttMs: z.number().nullable().describe("With a crawler in each of the places listed."),
    isEstimated: z
      .boolean()
      .describe("False: too few subnets were measured from their own country to expect anything."),
    lines: z.array(placementLine).describe("Each beside those before it."),
  })
  .meta({ id: "PlacementReport" });

export type CoverageReport = ReadOf<typeof coverageReport>;
export type OrganisationsReport = ReadOf<typeof organisationsReport>;
export type SubnetsReport = ReadOf<typeof subnetsReport>;
export type CrawlersReport = ReadOf<typeof crawlersReport>;
export type PlacementReport = ReadOf<typeof placementReport>;
export type ComparedPart = ReadOf<typeof compared>;

const at = "2026-03-01T12:00:00.000Z";
const figures = { hosts: 2, pages: 240, bytes: 9_600_000, sampledPages: 240, fresh7: 0.75, fresh30: 1 };
const comparedExample = {
  ...{ subnets: 14, pagesPerDay: 240, ofSubnets: 14, ofPagesPerDay: 240 },
  ...{ unmeasuredSubnets: 1, unmeasuredPagesPerDay: 3 },
};
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
    method: "get",
    path: "/api/reports/coverage",
    needs: "read",
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
      ...refusals,
      200: {
        description: "The answer",
        schema: coverageReport,
        example: {
          at,
          day: "2026-03-01",
          countedAt: at,
          country: null,
          language: null,
          all: figures,
          countries: [{ key: "DE", ...figures }],
          languages: [{ key: "de", ...figures }],
          days: [{ day: "2026-03-01", ...figures }],
        },
      },
      400: errorAnswer("That is no day, country or language"),
    },
  },
  organisationsReport: {
    method: "get",
    path: "/api/reports/organisations",
    needs: "read",
    summary: "Which organisation has how much of the crawl",
    answers: {
      ...refusals,
      200: {
        description: "The answer",
        schema: organisationsReport,
        example: {
          ...{ at, organisations: 1, subnets: 14, hosts: 2, pages: 240, bytes: 9_600_000 },
          lines: [
            {
              ...{ name: "Example Networks", handle: "ORG-EX1-AP", country: "GR", subnets: 14, hosts: 2 },
              ...{ pages: 240, bytes: 9_600_000, share: 1 },
            },
          ],
        },
      },
    },
  },
  subnetsReport: {
    method: "get",
    path: "/api/reports/subnets",
    needs: "read",
    summary: "Which subnets are served badly, and what would help",
    answers: {
      ...refusals,
      200: {
        description: "The answer",
        schema: subnetsReport,
        example: {
          ...{ at, compared: comparedExample, far: 1, savedMsPages: 380_800 },
          lines: [
            {
              ...{ subnet: "5.6.0.0/16", name: "EXAMPLE-IN", holder: "Example Networks", country: "IN" },
              ...{ crawler: "athens", crawlerCountry: "GR", rttMs: 124, pagesPerDay: 3400, savesMs: 112 },
              ...{ savedMsPages: 380_800, help: "new-crawler" as const, decidedAt: at },
              words: "a crawler in IN would save about 112 ms on 3,400 pages per day",
            },
          ],
        },
      },
    },
  },
  crawlersReport: {
    method: "get",
    path: "/api/reports/crawlers",
    needs: "read",
    summary: "Which crawlers would be missed most",
    answers: {
      ...refusals,
      200: {
        description: "The answer",
        schema: crawlersReport,
        example: {
          ...{ at, compared: comparedExample, crawlers: 2 },
          lines: [
            {
              ...{ crawler: "athens", country: "GR", subnets: 9, pagesPerDay: 200, lostMsPages: 7000 },
              ...{ meanLostMs: 35, measuredPages: 180, predictedPages: 20, unknownPages: 0, spreadMs: 12 },
              ...{ successor: "berlin", successorPages: 150 },
            },
          ],
        },
      },
    },
  },
  placementReport: {
    method: "get",
    path: "/api/reports/placement",
    needs: "read",
    summary: "Where the next crawlers should stand",
    description:
      "Countries without a crawler and holders' networks, in the order in which crawlers there would save most round-trip time, each beside those before it.",
    answers: {
      ...refusals,
      200: {
        description: "The answer",
        schema: placementReport,
        example: {
          ...{ at, pagesPerDay: 3640, meanRttMs: 117, thenMeanRttMs: 12, isEstimated: true },
          lines: [
            {
              ...{ kind: "country" as const, place: "IN", country: "IN", pagesPerDay: 3400, nowMs: 124 },
              ...{ thenMs: 12, spreadMs: 3, savedMsPages: 380_800, placeSubnets: 1 },
              ...{ measuredSubnets: 40, isOwnMeasure: false },
              subnets: [{ subnet: "5.6.0.0/16", holder: "Example Networks", savedMsPages: 380_800 }],
            },
          ],
        },
      },
    },
  },
} satisfies ApiOperations;

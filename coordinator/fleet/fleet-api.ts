/** The API of the fleet's lists: what it takes and answers. */
import { z } from "zod";
import { blames } from "#protocol/result";
import { moveSteps } from "../crawlers/moves.ts";
import { trustStandings } from "../trust/judge-crawler.ts";
import { type ApiOperations, dateTime, errorAnswer, refusals } from "../web/api-operation.ts";
import { chartHistoryExample, chartHistorySchema, rangeParameters } from "../web/chart-history-api.ts";
import { fleetEntrySchema } from "./fleet-entry.ts";
import { fleetSorts, fleetStates } from "./list.ts";

const fleet = z
  .strictObject({
    totals: z.strictObject({
      crawlers: z.int(),
      connected: z.int(),
      offline: z.int(),
      draining: z.int(),
      distrusted: z.int(),
      subnets: z.int(),
      pagesToday: z.int(),
      pagesPerDay: z.int().describe("Of those that are connected."),
      incidents: z.int(),
    }),
    countries: z.array(z.string()),
    versions: z.array(z.string()),
    found: z.int().describe("That fit the filters."),
    page: z.int(),
    more: z.boolean(),
    crawlers: z.array(fleetEntrySchema),
  })
  .meta({ id: "Fleet" });

export const failureShare = z
  .strictObject({
    crawler: z.string(),
    fetches: z.int(),
    failures: z
      .strictObject({ target: z.int(), network: z.int(), crawler: z.int(), us: z.int() })
      .describe("Failures by whose fault they were."),
  })
  .meta({ id: "FailureShare" });

export const incident = z
  .strictObject({
    crawlerId: z.int().nullable(),
    crawler: z.string().nullable(),
    kind: z.string(),
    count: z.int(),
    firstAt: dateTime(),
    lastAt: dateTime(),
    words: z.string(),
    remoteAddress: z.string().nullable(),
    file: z.string().nullable().describe("A document that it is about, or its beginning."),
  })
  .meta({ id: "Incident" });

export const move = z
  .strictObject({
    moveId: z.int(),
    name: z.string(),
    otherName: z.string(),
    step: z.enum(moveSteps),
    words: z.string().describe("Why it failed."),
    askedAt: dateTime(),
    changedAt: dateTime(),
    bytes: z.number(),
    sentBytes: z.number(),
  })
  .meta({ id: "Move" });

const incidents = z
  .strictObject({ incidents: z.array(incident), more: z.boolean() })
  .meta({ id: "Incidents" });

const trustLine = z
  .strictObject({
    crawler: z.string(),
    standing: z.enum(trustStandings),
    pages: z.number(),
    comparisons: z.strictObject({
      agreed: z.int(),
      alone: z.int(),
      once: z.int(),
      untold: z
        .int()
        .describe(
          "Came to nothing that can be concluded. From five on, and a third of all, the crawler is unproven.",
        ),
    }),
    score: z.number(),
    since: dateTime().nullable(),
    words: z.string(),
    restoredAt: dateTime().nullable(),
  })
  .meta({ id: "TrustLine" });

const trustLines = z
  .strictObject({ crawlers: z.array(trustLine), history: chartHistorySchema })
  .meta({ id: "TrustLines" });

const failures = z
  .strictObject({
    hours: z.literal([1, 24]),
    shares: z.strictObject({
      since: dateTime().describe("Later than asked when more than 200,000 fetches were made since."),
      fetches: z.int(),
      failures: z
        .strictObject({ target: z.int(), network: z.int(), crawler: z.int(), us: z.int() })
        .describe("Failures by whose fault they were."),
      byCrawler: z.array(failureShare),
    }),
    latest: z.array(
      z.strictObject({
        at: dateTime(),
        crawler: z.string().nullable(),
        blame: z.enum(blames),
        status: z.int().nullable(),
        url: z.string().nullable(),
        host: z.string().nullable(),
        words: z.string().nullable().describe("Null: it was fetched again since."),
      }),
    ),
    more: z.boolean(),
    history: chartHistorySchema,
  })
  .meta({ id: "Failures" });

const moves = z.strictObject({ moves: z.array(move) }).meta({ id: "Moves" });

export const fleetLine = z
  .strictObject({
    crawlerId: z.int(),
    name: z.string(),
    state: z.enum(["online", "offline", "draining"]),
    place: z.string().nullable(),
    country: z.string().nullable(),
    latitude: z.number().nullable(),
    longitude: z.number().nullable(),
    address: z.string().nullable(),
    pagesPerDay: z.int(),
    concurrentHosts: z.int(),
    probeMethods: z.array(z.string()),
    speaksIpv6: z
      .boolean()
      .nullable()
      .describe("Whether it contacts sites over IPv6, too; null: not known yet."),
    softwareVersion: z.string().nullable(),
    connectedAt: dateTime().nullable(),
    lastSeenAt: dateTime().nullable(),
    offlineReason: z.string().nullable(),
    holdingBack: z.array(z.string()).describe("What holds it back right now, in its own words."),
    revoked: z.boolean(),
    subnets: z.int(),
    pages: z.int(),
    bodyBytes: z.number().describe("Decoded bytes of its pages that are stored."),
    shippedBytes: z.number().describe("What the results of these pages took on the wire, compressed."),
    meanRttMs: z.number().nullable(),
    openLeases: z.int(),
  })
  .meta({ id: "FleetLine" });

export const fleetApi = {
  fleet: {
    method: "get",
    path: "/api/fleet",
    needs: "read",
    summary: "Every crawler: state and why, work against budget, trust",
    description: "Scope read; identities with fleet-read.",
    parameters: {
      query: {
        q: z.string().optional().describe("Part of a name or a place."),
        state: z
          .enum(fleetStates)
          .optional()
          .describe("Only those; distrusted: results or probes not trusted."),
        country: z.string().optional().describe("ISO 3166 code."),
        version: z.string().optional().describe("As its supervisor or the crawler says."),
        sort: z.enum(fleetSorts).optional().describe("What needs a look first; name when left out."),
        page: z.int().min(1).optional().describe("Of 50 each, from 1."),
      },
    },
    answers: {
      ...refusals,
      200: {
        description: "The answer",
        schema: fleet,
        example: {
          totals: {
            crawlers: 1,
            connected: 0,
            offline: 1,
            draining: 0,
            distrusted: 0,
            subnets: 2,
            pagesToday: 0,
            pagesPerDay: 0,
            incidents: 0,
          },
          countries: ["DE"],
          versions: [],
          found: 1,
          page: 1,
          more: false,
          crawlers: [
            {
              crawlerId: 2,
              name: "berlin",
              place: "Berlin",
              country: "DE",
              state: "offline",
              offlineReason: "it was stopped by its host",
              lastSeenAt: "2026-03-01T11:00:00.000Z",
              connectedAt: "2026-03-01T10:00:00.000Z",
              revoked: false,
              softwareVersion: null,
              subnets: 2,
              unmeasured: 0,
              meanRttMs: 0,
              openLeases: 0,
              pagesToday: 0,
              bytesToday: 0,
              bodyBytesToday: 0,
              shippedBytesToday: 0,
              pagesPerDay: 100000,
              bytesPerDay: 10000000000,
              granted: { pagesPerDay: null, bytesPerDay: null },
              partnerAllows: { pagesPerDay: null, bytesPerDay: null },
              draining: null,
              joiningSince: null,
              trust: "not-compared",
              release: null,
              incidents: 0,
              standing: {
                state: "offline",
                since: "2026-03-01T11:00:00.000Z",
                why: "it was stopped by its host",
                advice: "It is back when its host starts it again.",
              },
            },
          ],
        },
      },
      429: errorAnswer("Too many failures from this address"),
    },
  },
  incidents: {
    method: "get",
    path: "/api/fleet/incidents",
    needs: "fleet-read",
    summary: "What was refused and why, the latest first",
    description: "Scope fleet-read.",
    parameters: {
      query: {
        crawler: z.string().optional().describe("Of this crawler only."),
        kind: z.string().optional().describe("Of this kind only, such as bad-signature."),
        since: z.enum(["24h", "7d", "30d", "90d"]).optional().describe("How far back; 7d when left out."),
      },
    },
    answers: {
      ...refusals,
      200: {
        description: "The answer",
        schema: incidents,
        example: {
          incidents: [
            {
              crawlerId: 1,
              crawler: "athens",
              kind: "link-flood",
              count: 3,
              firstAt: "2026-03-01T11:00:00.000Z",
              lastAt: "2026-03-01T11:40:00.000Z",
              words: "40,000 new hosts in a day",
              remoteAddress: "192.0.2.7",
              file: null,
            },
          ],
          more: false,
        },
      },
      429: errorAnswer("Too many failures from this address"),
    },
  },
  trust: {
    method: "get",
    path: "/api/fleet/trust",
    needs: "fleet-read",
    summary: "Whether each crawler is trusted; those that are not come first",
    description: "Scope fleet-read.",
    parameters: { query: rangeParameters },
    answers: {
      ...refusals,
      200: {
        description: "The answer",
        schema: trustLines,
        example: {
          crawlers: [
            {
              crawler: "athens",
              standing: "trusted",
              pages: 5200,
              comparisons: { agreed: 60, alone: 0, once: 1, untold: 0 },
              score: 0.2,
              since: null,
              words: "",
              restoredAt: null,
            },
          ],
          history: chartHistoryExample,
        },
      },
      429: errorAnswer("Too many failures from this address"),
    },
  },
  failures: {
    method: "get",
    path: "/api/fleet/failures",
    needs: "read",
    summary: "Fetches that failed: shares by blame and crawler, and the latest with words",
    description: "Scope read.",
    parameters: {
      query: {
        blame: z.enum(blames).optional().describe("The fault of this side only."),
        crawler: z.string().optional().describe("Of this crawler only (the latest)."),
        host: z.string().optional().describe("Of this host only (the latest)."),
        hours: z.literal([1, 24]).optional().describe("24 when left out."),
        ...rangeParameters,
      },
    },
    answers: {
      ...refusals,
      200: {
        description: "The answer",
        schema: failures,
        example: {
          hours: 24,
          shares: {
            since: "2026-02-28T12:00:00.000Z",
            fetches: 900,
            failures: { target: 12, network: 3, crawler: 0, us: 0 },
            byCrawler: [
              { crawler: "athens", fetches: 900, failures: { target: 12, network: 3, crawler: 0, us: 0 } },
            ],
          },
          latest: [
            {
              at: "2026-03-01T12:00:00.000Z",
              crawler: "athens",
              blame: "network",
              status: null,
              url: "https://www.example.org/",
              host: "www.example.org",
              words: "ECONNRESET: the connection was reset",
            },
          ],
          more: true,
          history: chartHistoryExample,
        },
      },
      429: errorAnswer("Too many failures from this address"),
    },
  },
  moves: {
    method: "get",
    path: "/api/fleet/moves",
    needs: "fleet-read",
    summary: "Moves of crawlers to other hosts, the latest first",
    description: "Scope fleet-read.",
    parameters: { query: { crawler: z.string().optional().describe("That this crawler took part in.") } },
    answers: {
      ...refusals,
      200: {
        description: "The answer",
        schema: moves,
        example: {
          moves: [
            {
              moveId: 4,
              name: "athens",
              otherName: "athens-new",
              step: "running",
              words: "",
              askedAt: "2026-03-01T11:00:00.000Z",
              changedAt: "2026-03-01T11:01:00.000Z",
              bytes: 120000,
              sentBytes: 120000,
            },
          ],
        },
      },
      429: errorAnswer("Too many failures from this address"),
    },
  },
} satisfies ApiOperations;

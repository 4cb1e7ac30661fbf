/** The API of the fleet's lists: what it takes and answers. */
import { z } from "zod";
import { blames } from "#protocol/result";
import { moveSteps } from "../crawlers/moves.ts";
import { trustLine } from "../trust/trust-api.ts";
import {
  type ApiOperations,
  answer,
  dateTime,
  get,
  type ReadOf,
  record,
  type ToldOf,
} from "../web/api-operation.ts";
import { chartHistorySchema, rangeParameters } from "../web/chart-history.ts";
import { crawlerReport } from "../who/who-api.ts";
import { fleetEntrySchema } from "./fleet-entry.ts";

export const fleetSorts = ["name", "state", "subnets", "pages", "rtt", "incidents", "trust", "seen"] as const;
export const fleetStates = ["online", "draining", "offline", "never", "revoked", "distrusted"] as const;

const fleet = record("Fleet", {
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
});

const byBlame = z
  .strictObject({ target: z.int(), network: z.int(), crawler: z.int(), us: z.int() })
  .describe("Failures by whose fault they were.");

export const failureShare = record("FailureShare", {
  crawler: z.string(),
  fetches: z.int(),
  failures: byBlame,
});

export const incident = record("Incident", {
  crawlerId: z.int().nullable(),
  crawler: z.string().nullable(),
  kind: z.string(),
  count: z.int(),
  firstAt: dateTime(),
  lastAt: dateTime(),
  words: z.string(),
  remoteAddress: z.string().nullable(),
  file: z.string().nullable().describe("A document that it is about, or its beginning."),
});

export const move = record("Move", {
  moveId: z.int(),
  name: z.string(),
  otherName: z.string(),
  step: z.enum(moveSteps),
  words: z.string().describe("Why it failed."),
  askedAt: dateTime(),
  changedAt: dateTime(),
  bytes: z.number(),
  sentBytes: z.number(),
});

const incidents = record("Incidents", { incidents: z.array(incident), more: z.boolean() });

const trustLines = record("TrustLines", { crawlers: z.array(trustLine), history: chartHistorySchema });

export const failureShares = z.strictObject({
  since: dateTime().describe("Later than asked when more than 200,000 fetches were made since."),
  fetches: z.int(),
  failures: byBlame,
  byCrawler: z.array(failureShare),
});

export const failureLine = z.strictObject({
  at: dateTime(),
  crawler: z.string().nullable(),
  blame: z.enum(blames),
  status: z.int().nullable(),
  url: z.string().nullable().describe("Null: the frontier knows it no more."),
  host: z.string().nullable(),
  words: z.string().nullable().describe("Null: it was fetched again since."),
});

/** Whose fault it is that a fetch failed. */
export type Blame = (typeof blames)[number];
export type FailureShares = ReadOf<typeof failureShares>;
export type FailureLine = ReadOf<typeof failureLine>;

const failures = record("Failures", {
  hours: z.literal([1, 24]),
  shares: failureShares,
  latest: z.array(failureLine),
  more: z.boolean(),
  history: chartHistorySchema,
});

const moves = record("Moves", { moves: z.array(move) });

export const fleetLine = crawlerReport
  .extend({
    subnets: z.int(),
    pages: z.int(),
    bodyBytes: z.number().describe("Decoded bytes of its pages that are stored."),
    shippedBytes: z.number().describe("What the results of these pages took on the wire, compressed."),
    meanRttMs: z.number().nullable(),
    openLeases: z.int(),
  })
  .meta({ id: "FleetLine" });

export type FleetLine = ToldOf<typeof fleetLine>;

const fleetParameters = {
  q: z.string().max(63).default("").describe("Part of a name or a place."),
  state: z.enum(fleetStates).optional().describe("Only those; distrusted: results or probes not trusted."),
  country: z.string().max(2).optional().describe("ISO 3166 code."),
  version: z.string().max(63).optional().describe("As its supervisor or the crawler says."),
  sort: z.enum(fleetSorts).default("name").describe("What needs a look first."),
  page: z.coerce.number().int().min(1).default(1).describe("Of 50 each, from 1."),
};

export type FleetAnswer = ReadOf<typeof fleet>;
export type FleetQuery = z.output<z.ZodObject<typeof fleetParameters>>;

export const fleetApi = {
  fleet: {
    ...get("/api/fleet", "read"),
    summary: "Every crawler: state and why, work against budget, trust",
    description: "Scope read; identities with fleet-read.",
    parameters: { query: fleetParameters },
    answers: { 200: answer(fleet) },
  },
  incidents: {
    ...get("/api/fleet/incidents", "fleet-read"),
    summary: "What was refused and why, the latest first",
    parameters: {
      query: {
        crawler: z.string().max(63).optional().describe("Of this crawler only."),
        kind: z.string().max(60).optional().describe("Of this kind only, such as bad-signature."),
        since: z.enum(["24h", "7d", "30d", "90d"]).default("7d").describe("How far back."),
      },
    },
    answers: { 200: answer(incidents) },
  },
  trust: {
    ...get("/api/fleet/trust", "fleet-read"),
    summary: "Whether each crawler is trusted; those that are not come first",
    parameters: { query: rangeParameters },
    answers: { 200: answer(trustLines) },
  },
  failures: {
    ...get("/api/fleet/failures", "read"),
    summary: "Fetches that failed: shares by blame and crawler, and the latest with words",
    parameters: {
      query: {
        blame: z.enum(blames).optional().describe("The fault of this side only."),
        crawler: z.string().max(63).optional().describe("Of this crawler only (the latest)."),
        host: z.string().max(253).optional().describe("Of this host only (the latest)."),
        hours: z.enum(["1", "24"]).default("24").describe("Of so many hours."),
        ...rangeParameters,
      },
    },
    answers: { 200: answer(failures) },
  },
  moves: {
    ...get("/api/fleet/moves", "fleet-read"),
    summary: "Moves of crawlers to other hosts, the latest first",
    parameters: { query: { crawler: z.string().optional().describe("That this crawler took part in.") } },
    answers: { 200: answer(moves) },
  },
} satisfies ApiOperations;

/** Schemas of the fleet's lists: what the API accepts and returns. */
import { z } from "zod";
import { blames } from "#protocol/result";
import { moveSteps } from "../../place/crawlers/moves.ts";
import { dateTime, type ReadOf, record, type ToldOf } from "../../web/api-operation.ts";
import { crawlerReport } from "../who/who-api.ts";
import { fleetEntrySchema } from "./fleet-entry.ts";

export const fleetSorts = ["name", "state", "subnets", "pages", "rtt", "incidents", "trust", "seen"] as const;
export const fleetStates = ["online", "draining", "offline", "never", "revoked", "distrusted"] as const;

export const fleet = record("Fleet", {
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

export const fleetLine = crawlerReport
  .extend({
    ...fleetEntrySchema.pick({ subnets: true, meanRttMs: true, openLeases: true }).shape,
    pages: z.int(),
    bodyBytes: z.number().describe("Decoded bytes of its pages that are stored."),
    shippedBytes: z.number().describe("What the results of these pages took on the wire, compressed."),
  })
  .meta({ id: "FleetLine" });

export type FleetLine = ToldOf<typeof fleetLine>;

export const fleetParameters = {
  q: z
    .string()
    .max(63)
    .default("")
    .meta({ title: "Name or place", description: "Part of a name or a place." }),
  state: z
    .enum(fleetStates)
    .optional()
    .meta({ title: "State", description: "Only those; distrusted: results or probes not trusted." }),
  country: z.string().max(2).optional().meta({ title: "Country", description: "ISO 3166 code." }),
  version: z
    .string()
    .max(63)
    .optional()
    .meta({ title: "Version", description: "As its supervisor or the crawler says." }),
  sort: z
    .enum(fleetSorts)
    .default("name")
    .meta({ title: "Sorted by", description: "What needs a look first." }),
  page: z.int().min(1).default(1).describe("Of 50 each, from 1."),
};

export type FleetAnswer = ReadOf<typeof fleet>;
export type FleetQuery = z.output<z.ZodObject<typeof fleetParameters>>;

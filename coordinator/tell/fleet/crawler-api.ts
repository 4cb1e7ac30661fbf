/** The API of one crawler. */
import { z } from "zod";
import type { IncidentEntry } from "#core/incidents";
import { keyScopes } from "#protocol/identity";
import { blames } from "#protocol/result";
import { trustReportSchema } from "../../crawl/trust/trust-api.ts";
import { subnetList } from "../../place/subnets/subnets-api.ts";
import { dateTime, orNull, type ReadOf, record, type ToldOf } from "../../web/api-operation.ts";
import { chartHistorySchema } from "../../web/chart-history.ts";
import {
  failureShare,
  fleetEntrySchema,
  fleetIdentitySchema,
  fleetLine,
  incident,
  move,
} from "./fleet-api.ts";

const crawlerActivity = record("CrawlerActivity", {
  fetches: z.array(
    z.strictObject({
      at: dateTime(),
      url: z.string().nullable(),
      outcome: z.string(),
      blame: z.enum(blames).nullable(),
      status: z.int().nullable(),
      totalMs: z.number(),
      bodyBytes: z.int(),
      shippedBytes: z.int(),
    }),
  ),
  probes: z.strictObject({
    asked: z.int(),
    measured: z.int(),
    rounds: z.int().describe("The latest probe rounds of the fleet that were looked through."),
  }),
});

const crawlerWork = record("CrawlerWork", {
  domainSets: z
    .strictObject({
      operator: z.array(z.string().max(4096)).max(16),
      partner: z.array(z.string().max(4096)).max(16),
    })
    .describe(
      "Each text is one set; a host must be in one of the operators' and in one of the partner's. None: every host.",
    ),
  pace: orNull(
    z.strictObject({
      pace: z.enum(["slow-down", "steady", "hurry-up"]),
      dueSlices: z.int().describe("Host slices, due or in hand; of many, no more than it took to tell."),
      since: dateTime(),
    }),
    "The pace last sent to it for its due work; null: none in this session.",
  ),
});

export const absence = record("Absence", {
  since: dateTime(),
  until: dateTime(),
  reason: z.string().describe("The coordinator's own record."),
  lastWords: z.string().nullable().describe("How the process before ended, as it says."),
});

/** The fields of its list entry that everybody may see. */
export const shownOfEntry = {
  ...({ pagesToday: true, bytesToday: true, bodyBytesToday: true, shippedBytesToday: true } as const),
  ...({ pagesPerDay: true, bytesPerDay: true, granted: true, partnerAllows: true, draining: true } as const),
  ...({ unmeasured: true, joiningSince: true, trust: true, release: true } as const),
};

const crawlerOperation = fleetEntrySchema
  .pick({ standing: true, ...shownOfEntry })
  .extend({
    incidentsInSevenDays: z.int(),
    activity: crawlerActivity,
    work: crawlerWork,
    absences: z.array(absence),
    failures: failureShare.nullable(),
  })
  .meta({ id: "CrawlerOperation" });

const crawlerKey = record("CrawlerKey", {
  keyId: z.int(),
  scopes: z.array(z.enum(keyScopes)),
  issuedAt: dateTime(),
  keptAt: dateTime().nullable().describe("Null: nobody has said or shown that it arrived."),
  lastUsedAt: dateTime().nullable(),
  expiresAt: dateTime().nullable(),
  revokedAt: dateTime().nullable(),
});

const releaseOffer = record("ReleaseOffer", {
  version: z.string(),
  offeredAt: dateTime(),
  state: z.string().nullable(),
  reason: z.string(),
  reportedAt: dateTime().nullable().describe("Null: nothing was heard yet."),
});

const logLine = record("LogLine", {
  at: dateTime(),
  kind: z.enum(["connected", "away", "incident", "move", "key", "invitation", "release", "trust", "change"]),
  words: z.string(),
  by: z.string().nullable(),
});

export const logPage = z.strictObject({ lines: z.array(logLine), page: z.int(), more: z.boolean() });

const crawlerInside = record("CrawlerInside", {
  identity: fleetIdentitySchema,
  keys: z.array(crawlerKey),
  offers: z.array(releaseOffer),
  trust: trustReportSchema.nullable(),
  incidents: z.array(incident),
  moves: z.array(move),
  log: logPage,
});

export const crawlerDetail = record("CrawlerDetail", {
  crawler: fleetLine,
  subnets: subnetList,
  peers: z.array(z.strictObject({ name: z.string(), rttMs: z.number(), method: z.string() })),
  outcomes: z.array(z.strictObject({ outcome: z.string(), fetches: z.int() })),
  operation: crawlerOperation,
  inside: crawlerInside.nullable().describe("With scope fleet-read, and for its partner."),
  history: chartHistorySchema,
});

/** The public part of its page. */
export type CrawlerDetail = Pick<ToldOf<typeof crawlerDetail>, "crawler" | "subnets" | "peers" | "outcomes">;
export type CrawlerActivity = ReadOf<typeof crawlerActivity>;
export type CrawlerWork = ReadOf<typeof crawlerWork>;
export type OfferEntry = ReadOf<typeof releaseOffer>;
export type CrawlerLogPage = ReadOf<typeof logPage>;
export type Inside = ReadOf<typeof crawlerInside> & { readonly incidents: readonly IncidentEntry[] };
export type Operation = ReadOf<typeof crawlerOperation>;

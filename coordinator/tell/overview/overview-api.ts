/** The API of the overview, its alerts and the coordinator's health. */
import { z } from "zod";
import { probeMethods } from "#protocol/messages";
import { delegationCause } from "../../place/subnets/subnets-api.ts";
import {
  type ApiOperations,
  answer,
  dateTime,
  errorAnswer,
  get,
  orNull,
  record,
  type ToldOf,
} from "../../web/api-operation.ts";
import { chartHistorySchema } from "../../web/chart-history.ts";
import { fleetLine } from "../fleet/fleet-api.ts";
import { alertChannel, alertSeverities } from "./alert-facts.ts";
import { alertNames } from "./alert-rules.ts";
import { queueAges, spanFigures } from "./queue-api.ts";

const alertSchema = record("Alert", {
  name: z.enum(alertNames),
  severity: z.enum(alertSeverities),
  words: z.string().describe("What is the matter."),
  advice: z.string().describe("What to do."),
  link: z.string().describe("The page with what is behind it."),
  targets: z
    .array(z.string())
    .describe("Crawlers or releases that it is about, the worst first; five at most."),
  count: z.int().describe("How many it is about; 1 when it is about the crawl as a whole."),
  since: dateTime().nullable().describe("Null: not noted yet; it is looked every ten seconds."),
  toldAt: orNull(dateTime(), "When it was last sent to the channels; null: not yet, or it is not to be."),
});

const mutedAlert = alertSchema
  .extend({
    ...{ until: dateTime(), reason: z.string(), mutedBy: z.string() },
    mutedTarget: z.string().nullable().describe("Null: all of the rule."),
  })
  .meta({ id: "MutedAlert" });

const acknowledgedAlert = alertSchema
  .extend({ by: z.string(), at: dateTime(), note: z.string() })
  .meta({ id: "AcknowledgedAlert" });

export const alertList = record("AlertList", {
  at: dateTime(),
  alerts: z
    .array(alertSchema)
    .describe("The critical first, without what is muted or acknowledged; empty: nothing needs attention."),
  acknowledged: z
    .array(acknowledgedAlert)
    .describe("What somebody is at; it comes back when it ends and begins, or names something new."),
  muted: z
    .array(mutedAlert)
    .describe("What is the matter and told to nobody until an hour that somebody named."),
  channels: z.array(alertChannel).describe("Where alerts are sent; empty: nowhere."),
  incomplete: orNull(
    z.string(),
    `Why this is not all: the database could not be asked within a second, and these are what the coordinator knows of
itself. Null: it is all.`,
  ),
});

const totals = record("Totals", {
  isEstimate: z.boolean().describe("Estimated from a part of the table, where that is large."),
  hosts: z.int(),
  hostsResolved: z.int(),
  hostsUnresolved: z.int(),
  hostsRefused: z.int(),
  hostsGated: z.int().describe("A bot gate answers in their place: they rest, and are tried again."),
  urls: z.int(),
  urlsDue: z.int(),
  urlsLeased: z.int(),
  urlsRefused: z.int(),
  urlsGone: z.int(),
  urlsPaymentRequired: z.int().describe("Their sites ask to be paid (402): asked again after a month."),
  urlsPending: z.int(),
  pages: z.int(),
  bodyBytes: z.int(),
  shippedBytes: z.int(),
  rounds: z.int(),
  probes: z.int(),
  subnetsWaiting: z.int(),
  subnetsDelegated: z.int(),
  meanRttMs: z.number().nullable(),
  generation: z.int().nullable().describe("Of the registry in force."),
  generationAppliedAt: dateTime().nullable(),
});

const rates = record(
  "Rates",
  { pagesPerMinute: z.number(), fetchedBytesPerMinute: z.number(), probesPerMinute: z.number() },
  "Of the last minute or two.",
);

const recentDelegation = record("RecentDelegation", {
  range: z.string(),
  name: z.string(),
  country: z.string().nullable(),
  crawler: z.string(),
  rttMs: z.number().nullable(),
  since: dateTime(),
  cause: delegationCause,
});

const accuracyEstimate = record("AccuracyEstimate", {
  samples: z.int(),
  nearlyBest: z.int(),
  withinMs: z.int(),
  days: z.int(),
  share: z.number().nullable(),
  low: z.number().describe("Wilson score interval of the share, 95 % confidence."),
  high: z.number(),
});

export const overview = record("Overview", {
  at: dateTime(),
  startedAt: dateTime().nullable().describe("Null: told by the command, without a coordinator."),
  phase: z.string(),
  sessions: z.int(),
  roundsUnderWay: z.int().nullable(),
  probesUnderWay: z.int().nullable(),
  alerts: z.array(alertSchema),
  rates: rates,
  history: chartHistorySchema,
  queue: queueAges,
  lastHour: spanFigures,
  lastDay: spanFigures,
  accuracy: accuracyEstimate,
  totals: totals,
  fleet: z.array(fleetLine),
  recent: z.array(recentDelegation),
});

export const healthFault = record("HealthFault", {
  code: z.string().describe(
    `The name of the alert, or migrations-missing (the database is older than the software), tree-missing (the registry's
tree is not in memory yet), crawlers-not-served (it starts, ends, or may have been replaced), jobs-stand-still.`,
  ),
  words: z.string(),
  isInTheWay: z.boolean().describe("False: it can work, and somebody should look."),
  since: dateTime().nullable().describe("Null: not known."),
});

const accuracySample = record("AccuracySample", {
  range: z.string(),
  name: z.string(),
  country: z.string().nullable(),
  targetHost: z.string(),
  targetAddress: z.string(),
  method: z.enum(probeMethods),
  owner: z.string(),
  ownerRttMs: z.number().nullable().describe("Null: it got no answer."),
  best: z.string().nullable().describe("Null: nobody got an answer."),
  bestRttMs: z.number().nullable(),
  asked: z.int(),
  answered: z.int(),
  sampledAt: dateTime(),
});

export const accuracyView = record("AccuracyView", {
  at: dateTime(),
  estimate: accuracyEstimate,
  farOnly: z.boolean(),
  samples: z.array(accuracySample),
  history: chartHistorySchema,
});

export const overviewApi = {
  events: {
    ...get("/events", "read"),
    summary: "Live regions of the overview page, as server-sent events",
    description:
      "Event `overview`, every two seconds while something changes: `{regions: {name: html}}`. For figures poll /api/overview.",
    answers: {
      200: { description: "A stream that does not end", schema: z.string(), type: "text/event-stream" },
      503: errorAnswer("As many pages as can be kept live are live"),
    },
  },
} satisfies ApiOperations;

export const operationApi = {
  openapi: {
    ...get("/api/openapi.json", null),
    navigation: { group: null, entry: "API", path: "/api" },
    alsoFound: "operations examples errors",
    summary: "This document",
    answers: { 200: { description: "OpenAPI 3.1", schema: z.looseObject({}) } },
  },
  health: {
    ...get("/health", null),
    summary: "The process runs",
    description:
      "Asks nobody anything: while this answers, the process need not be restarted. Whether it can work says /ready.",
    answers: {
      200: answer(z.strictObject({ status: z.string(), version: z.string() }), "It does"),
    },
  },
  ready: {
    ...get("/ready", null),
    summary: "The coordinator can work",
    description: `200: the database answers and can be written, it has every migration of this software, the tree of the
registry in force is in memory, and the jobs run. 503: something of that is in the way, and whoever asks should be sent to
another coordinator. \`faults\` has also what is not in the way and deserves a look (\`isInTheWay\` false): a process that is
late, a job that fails, nobody who leads, another coordinator that went silent. Answers within 2 s whatever the database does:
it is asked on connections of its own. Whether it can be written is looked at every ten seconds at most, and at once after a
failure. For load balancers and process managers; needs no token.`,
    answers: {
      200: answer(z.strictObject({ ready: z.boolean(), faults: z.array(healthFault) }), "It can"),
      503: answer(
        z.strictObject({ ready: z.boolean(), reason: z.string(), faults: z.array(healthFault) }),
        "Something is in the way",
      ),
    },
  },
  metrics: {
    ...get("/metrics", null),
    summary: "Counters for Prometheus",
    answers: {
      200: { description: "Prometheus text format", schema: z.string(), type: "text/plain" },
    },
  },
} satisfies ApiOperations;

export type Overview = ToldOf<typeof overview>;
export type CrawlTotals = ToldOf<typeof totals>;
export type RecentDelegation = ToldOf<typeof recentDelegation>;

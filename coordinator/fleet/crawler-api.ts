/** The API of one crawler: what is known of it, and what may be done with it. */
import { z } from "zod";
import type { IncidentEntry } from "#core/incidents";
import { keyScopes } from "#protocol/identity";
import { crawlerName } from "#protocol/invitation";
import { blames } from "#protocol/result";
import { mostSetCharacters } from "../domain-sets/domain-set.ts";
import { mostSets } from "../domain-sets/partition.ts";
import { subnetList } from "../subnets/subnets-api.ts";
import { trustReportSchema } from "../trust/trust-api.ts";
import {
  type ApiOperations,
  answer,
  dateTime,
  errorAnswer,
  get,
  orNull,
  post,
  type ReadOf,
  record,
  type ToldOf,
} from "../web/api-operation.ts";
import { chartHistorySchema, rangeParameters } from "../web/chart-history.ts";
import { bytesPerDay, nothingBody, pagesPerDay, typedConfirmation } from "../web/form-fields.ts";
import { failureShare, fleetLine, incident, move } from "./fleet-api.ts";
import { budgetSchema, fleetEntrySchema, fleetIdentitySchema } from "./fleet-entry.ts";

const shutOut = record("ShutOut", {
  name: z.string(),
  revoked: z.boolean(),
  returnedLeases: z.int().optional(),
});

const rotation = record("Rotation", { graceHours: z.number().min(0).max(720).default(24) });

const askedRotation = record("AskedRotation", {
  name: z.string(),
  online: z.boolean(),
  graceHours: z.number(),
});

const askedSigningKey = record("AskedSigningKey", { name: z.string(), online: z.boolean() });

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

const absence = record("Absence", {
  since: dateTime(),
  until: dateTime(),
  reason: z.string().describe("The coordinator's own record."),
  lastWords: z.string().nullable().describe("How the process before ended, as it says."),
});

/** What everybody may see of its entry in the list. */
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

const logPage = z.strictObject({ lines: z.array(logLine), page: z.int(), more: z.boolean() });

const crawlerInside = record("CrawlerInside", {
  identity: fleetIdentitySchema,
  keys: z.array(crawlerKey),
  offers: z.array(releaseOffer),
  trust: trustReportSchema.nullable(),
  incidents: z.array(incident),
  moves: z.array(move),
  log: logPage,
});

const crawlerDetail = record("CrawlerDetail", {
  crawler: fleetLine,
  subnets: subnetList,
  peers: z.array(z.strictObject({ name: z.string(), rttMs: z.number(), method: z.string() })),
  outcomes: z.array(z.strictObject({ outcome: z.string(), fetches: z.int() })),
  operation: crawlerOperation,
  inside: crawlerInside.nullable().describe("With scope fleet-read, and for its partner."),
  history: chartHistorySchema,
});

const givenDomainSets = record("GivenDomainSets", {
  sets: z.array(z.string().max(mostSetCharacters)).max(mostSets),
});

const changedDomainSets = record("ChangedDomainSets", {
  name: z.string(),
  operator: z.array(z.string().max(4096)).max(16),
  partner: z.array(z.string().max(4096)).max(16),
  before: z.array(z.string().max(4096)).max(16),
});

const crawlerLog = logPage
  .extend({ name: z.string(), absences: z.array(absence) })
  .meta({ id: "CrawlerLog" });

const shutOutPreview = record("ShutOutPreview", {
  name: z.string(),
  state: z.enum(["online", "offline", "draining"]),
  revoked: z.boolean(),
  openLeases: z.int(),
  subnets: z.int(),
  heirs: z.array(
    z.strictObject({
      crawler: z.string().nullable().describe("Null: measured again."),
      subnets: z.int(),
      measured: z
        .boolean()
        .describe(
          "Whether that crawler has measured them; else nothing can be probed in them, and it stands next to them.",
        ),
    }),
  ),
});

const budgetChange = z
  .strictObject({
    pagesPerDay: pagesPerDay.nullable().optional(),
    bytesPerDay: bytesPerDay.nullable().optional(),
  })
  .refine((body) => body.pagesPerDay !== undefined || body.bytesPerDay !== undefined, {
    message: "say pagesPerDay, bytesPerDay or both",
  })
  .meta({ id: "BudgetChange", description: "Omitted: unchanged; null: as its partner allows." });

const moveRequest = z.strictObject({ to: crawlerName });

const changedBudget = record("ChangedBudget", {
  name: z.string(),
  before: budgetSchema,
  granted: budgetSchema,
  inForce: z.strictObject({ pagesPerDay: z.int(), bytesPerDay: z.number() }),
});

/** What takes work away is confirmed on the pages by typing the name. */
const confirmedBody = z.strictObject({
  confirmation: typedConfirmation("The crawler's name once more"),
});

const path = { name: z.string().meta({ description: "The crawler's name.", example: "athens" }) };
const deed = <Deed extends string>(name: Deed) =>
  ({
    ...post(`/api/fleet/crawlers/{name}/${name}`, "fleet-write"),
    parameters: { path },
  }) as const;
const noCrawler = errorAnswer("There is no crawler of this name");
const unconfirmed = errorAnswer("The confirmation is not the crawler's name");

/** What the page has of it beside what operators and partners see. */
export type CrawlerDetail = Pick<ToldOf<typeof crawlerDetail>, "crawler" | "subnets" | "peers" | "outcomes">;
export type CrawlerActivity = ReadOf<typeof crawlerActivity>;
export type CrawlerWork = ReadOf<typeof crawlerWork>;
export type OfferEntry = ReadOf<typeof releaseOffer>;
export type CrawlerLogPage = ReadOf<typeof logPage>;
export type Inside = ReadOf<typeof crawlerInside> & { readonly incidents: readonly IncidentEntry[] };
export type Operation = ReadOf<typeof crawlerOperation>;
export type ShutOutPreview = ReadOf<typeof shutOutPreview>;

export const crawlerApi = {
  revokeCrawler: {
    ...deed("revoke"),
    summary: "Revoke a crawler's access",
    description:
      "Its session ends at once, and none of its keys works; an invitation with renews brings it back.",
    body: { schema: confirmedBody, example: { confirmation: "athens" } },
    answers: { 200: answer(shutOut), 422: unconfirmed, 404: noCrawler },
  },
  killCrawler: {
    ...deed("kill"),
    summary: "Revoke a crawler's access, and hand over its work at once",
    description: "As revoke; its leases return and its subnets are handed over without waiting.",
    body: { schema: confirmedBody, example: { confirmation: "athens" } },
    answers: { 200: answer(shutOut), 422: unconfirmed, 404: noCrawler },
  },
  shutOutPreview: {
    ...get("/api/fleet/crawlers/{name}/kill", "fleet-write"),
    summary: "What would happen if its access were revoked",
    answers: { 200: answer(shutOutPreview), 404: noCrawler },
  },
  rotateKey: {
    ...deed("rotate"),
    summary: "Give a crawler a new key",
    description:
      "Now, when it is connected, else when it comes; the old key is good for graceHours after the new one has arrived.",
    body: { schema: rotation, example: { graceHours: 24 } },
    answers: {
      202: answer(askedRotation),
      409: errorAnswer("No crawler of this name has an identity of its own"),
    },
  },
  renewSigningKey: {
    ...deed("signing-key"),
    summary: "Have a crawler sign its requests with another key",
    description:
      "It is asked now, when it is connected, else when it comes; " +
      "it makes the key itself, and uses it once it is published and caches know it. Done by itself after signingKeyDays.",
    body: { schema: nothingBody, example: {} },
    answers: {
      202: answer(askedSigningKey),
      409: errorAnswer("No crawler of this name makes signing keys"),
    },
  },
  crawler: {
    ...get("/api/crawlers/{name}", "read"),
    summary:
      "One crawler in full: state and why, limits, subnets, failures, absences; for operators and its partner, its past",
    description: "Scope read; partners see their own. `inside` needs fleet-read, or is the partner's own.",
    parameters: {
      path,
      query: {
        page: z.int().min(1).max(200).optional().describe("Of the log, from 1."),
        ...rangeParameters,
      },
    },
    answers: { 200: answer(crawlerDetail), 404: errorAnswer("There is nothing of this name") },
  },
  crawlerLog: {
    ...get("/api/fleet/crawlers/{name}/log", "fleet-read"),
    summary: "Everything recorded about one crawler, the latest first, with its absences",
    parameters: {
      path,
      query: { page: z.int().min(1).max(200).optional().describe("Of 50 each, from 1.") },
    },
    answers: { 200: answer(crawlerLog), 404: noCrawler },
  },
  drainCrawler: {
    ...deed("drain"),
    summary: "Give a crawler no more work and hand over its subnets",
    description: "Partners may do this with their own, on its page.",
    body: { schema: nothingBody, example: {} },
    answers: {
      200: answer(z.strictObject({ name: z.string(), draining: z.boolean() })),
      404: noCrawler,
    },
  },
  resumeCrawler: {
    ...deed("resume"),
    summary: "Resume a drained crawler",
    description: "Partners may resume what they drained themselves.",
    body: { schema: nothingBody, example: {} },
    answers: {
      200: answer(z.strictObject({ name: z.string(), draining: z.boolean() })),
      404: noCrawler,
    },
  },
  believeCrawler: {
    ...deed("believe"),
    summary: "Trust a crawler again",
    description: "The evidence against it no longer counts.",
    body: { schema: nothingBody, example: {} },
    answers: {
      200: answer(z.strictObject({ name: z.string(), restored: z.boolean() })),
      404: noCrawler,
    },
  },
  grantBudget: {
    ...deed("budget"),
    summary: "Grant a crawler pages and bytes per day",
    description: "Takes effect at once, never beyond what its partner allows.",
    body: { schema: budgetChange, example: { pagesPerDay: 50000 } },
    answers: { 200: answer(changedBudget), 404: noCrawler },
  },
  giveDomainSets: {
    ...deed("domain-sets"),
    summary: "Give a crawler domain sets",
    description: "A host must be in one of the sets; none: every host. Open leases finish, and hosts move.",
    body: { schema: givenDomainSets, example: { sets: [".gr not shop.gr", "lang:el"] } },
    answers: {
      200: answer(changedDomainSets),
      404: noCrawler,
      422: errorAnswer(
        "A set cannot be read, contradicts itself, or has nothing in common with what the partner allows; the message says which",
      ),
    },
  },
  moveCrawler: {
    ...deed("move"),
    summary: "Move a crawler to another host",
    description: "The coordinator leads it; GET /api/fleet/moves tells how far it is.",
    body: { schema: moveRequest, example: { to: "athens-new" } },
    answers: {
      202: answer(z.strictObject({ moveId: z.int(), name: z.string(), to: z.string() })),
      404: noCrawler,
      409: errorAnswer("It cannot be moved now; the words say why"),
    },
  },
} satisfies ApiOperations;

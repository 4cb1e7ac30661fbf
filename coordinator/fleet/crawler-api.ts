/** The API of one crawler: what is known of it, and what may be done with it. */
import { z } from "zod";
import { keyScopes } from "#protocol/identity";
import { crawlerName } from "#protocol/invitation";
import { blames } from "#protocol/result";
import { mostSetCharacters } from "../domain-sets/domain-set.ts";
import { mostSets } from "../domain-sets/partition.ts";
import { trustStandings } from "../trust/judge-crawler.ts";
import { type ApiOperations, dateTime, errorAnswer, refusals } from "../web/api-operation.ts";
import { chartHistoryExample, chartHistorySchema, rangeParameters } from "../web/chart-history-api.ts";
import { bytesPerDay, nothingBody, pagesPerDay, typedConfirmation } from "../web/form-fields.ts";
import { subnetList } from "../who/who-api.ts";
import { failureShare, fleetLine, incident, move } from "./fleet-api.ts";
import { budgetSchema, fleetEntrySchema, fleetIdentitySchema } from "./fleet-entry.ts";

const shutOut = z
  .strictObject({ name: z.string(), revoked: z.boolean(), returnedLeases: z.int().optional() })
  .meta({ id: "ShutOut" });

const rotation = z
  .strictObject({ graceHours: z.number().min(0).max(720).default(24) })
  .meta({ id: "Rotation" });

const askedRotation = z
  .strictObject({ name: z.string(), online: z.boolean(), graceHours: z.number() })
  .meta({ id: "AskedRotation" });

const askedSigningKey = z
  .strictObject({ name: z.string(), online: z.boolean() })
  .meta({ id: "AskedSigningKey" });

const crawlerActivity = z
  .strictObject({
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
  })
  .meta({ id: "CrawlerActivity" });

const crawlerWork = z
  .strictObject({
    domainSets: z
      .strictObject({
        operator: z.array(z.string().max(4096)).max(16),
        partner: z.array(z.string().max(4096)).max(16),
      })
      .describe(
        "Each text is one set; a host must be in one of the operators' and in one of the partner's. None: every host.",
      ),
    pace: z
      .strictObject({
        pace: z.enum(["slow-down", "steady", "hurry-up"]),
        dueSlices: z.int().describe("Host slices, due or in hand; of many, no more than it took to tell."),
        since: dateTime(),
      })
      .nullable()
      .describe("The pace last sent to it for its due work; null: none in this session."),
  })
  .meta({ id: "CrawlerWork" });

const absence = z
  .strictObject({
    since: dateTime(),
    until: dateTime(),
    reason: z.string().describe("The coordinator's own record."),
    lastWords: z.string().nullable().describe("How the process before ended, as it says."),
  })
  .meta({ id: "Absence" });

const crawlerOperation = fleetEntrySchema
  .pick({
    ...{ standing: true, pagesToday: true, bytesToday: true, bodyBytesToday: true, shippedBytesToday: true },
    ...{ pagesPerDay: true, bytesPerDay: true, granted: true, partnerAllows: true, draining: true },
    ...{ unmeasured: true, joiningSince: true, trust: true, release: true },
  })
  .extend({
    incidentsInSevenDays: z.int(),
    activity: crawlerActivity,
    work: crawlerWork,
    absences: z.array(absence),
    failures: failureShare.nullable(),
  })
  .meta({ id: "CrawlerOperation" });

const crawlerKey = z
  .strictObject({
    keyId: z.int(),
    scopes: z.array(z.enum(keyScopes)),
    issuedAt: dateTime(),
    keptAt: dateTime().nullable().describe("Null: nobody has said or shown that it arrived."),
    lastUsedAt: dateTime().nullable(),
    expiresAt: dateTime().nullable(),
    revokedAt: dateTime().nullable(),
  })
  .meta({ id: "CrawlerKey" });

const releaseOffer = z
  .strictObject({
    version: z.string(),
    offeredAt: dateTime(),
    state: z.string().nullable(),
    reason: z.string(),
    reportedAt: dateTime().nullable(),
  })
  .meta({ id: "ReleaseOffer" });

const trustReport = z
  .strictObject({
    crawler: z.string(),
    standing: z.enum(trustStandings),
    pages: z.number(),
    comparisons: z.strictObject({
      agreed: z.int(),
      alone: z.int(),
      once: z.int(),
      untold: z.int().describe("Inconclusive. From five on, and a third of all, the crawler is unproven."),
    }),
    score: z.number(),
    distrusted: z.strictObject({ since: dateTime(), words: z.string() }).nullable(),
    probesDoubted: z.strictObject({ since: dateTime(), words: z.string() }).nullable(),
    restoredAt: dateTime().nullable(),
    connected: z.int(),
    evidence: z.array(
      z.strictObject({
        url: z.string(),
        at: dateTime(),
        verdict: z.enum(["alone", "once"]),
        words: z.string(),
        counts: z.boolean(),
        why: z.string(),
        opinions: z.array(z.strictObject({ crawler: z.string(), at: z.string(), said: z.string() })),
      }),
    ),
  })
  .meta({ id: "TrustReport" });

const logLine = z
  .strictObject({
    at: dateTime(),
    kind: z.enum([
      "connected",
      "away",
      "incident",
      "move",
      "key",
      "invitation",
      "release",
      "trust",
      "change",
    ]),
    words: z.string(),
    by: z.string().nullable(),
  })
  .meta({ id: "LogLine" });

const crawlerInside = z
  .strictObject({
    identity: fleetIdentitySchema,
    keys: z.array(crawlerKey),
    offers: z.array(releaseOffer),
    trust: trustReport.nullable(),
    incidents: z.array(incident),
    moves: z.array(move),
    log: z.strictObject({ lines: z.array(logLine), page: z.int(), more: z.boolean() }),
  })
  .meta({ id: "CrawlerInside" });

const crawlerDetail = z
  .strictObject({
    crawler: fleetLine,
    subnets: subnetList,
    peers: z.array(z.strictObject({ name: z.string(), rttMs: z.number(), method: z.string() })),
    outcomes: z.array(z.strictObject({ outcome: z.string(), fetches: z.int() })),
    operation: crawlerOperation,
    inside: crawlerInside.nullable().describe("With scope fleet-read, and for its partner."),
    history: chartHistorySchema,
  })
  .meta({ id: "CrawlerDetail" });

const givenDomainSets = z
  .strictObject({ sets: z.array(z.string().max(mostSetCharacters)).max(mostSets) })
  .meta({ id: "GivenDomainSets" });

const changedDomainSets = z
  .strictObject({
    name: z.string(),
    operator: z.array(z.string().max(4096)).max(16),
    partner: z.array(z.string().max(4096)).max(16),
    before: z.array(z.string().max(4096)).max(16),
  })
  .meta({ id: "ChangedDomainSets" });

const crawlerLog = z
  .strictObject({
    name: z.string(),
    lines: z.array(logLine),
    page: z.int(),
    more: z.boolean(),
    absences: z.array(absence),
  })
  .meta({ id: "CrawlerLog" });

const shutOutPreview = z
  .strictObject({
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
  })
  .meta({ id: "ShutOutPreview" });

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

const changedBudget = z
  .strictObject({
    name: z.string(),
    before: budgetSchema,
    granted: budgetSchema,
    inForce: z.strictObject({ pagesPerDay: z.int(), bytesPerDay: z.number() }),
  })
  .meta({ id: "ChangedBudget" });

/** What takes work away is confirmed on the pages by typing the name. */
const confirmedBody = z.strictObject({
  confirmation: typedConfirmation("The crawler's name once more"),
});

export const crawlerApi = {
  revokeCrawler: {
    method: "post",
    path: "/api/fleet/crawlers/{name}/revoke",
    needs: "fleet-write",
    summary: "Revoke a crawler's access",
    description:
      "Scope fleet-write. Its session ends at once, and none of its keys works; an invitation with renews brings it back.",
    parameters: {
      path: { name: z.string().meta({ description: "The crawler's name.", example: "athens" }) },
    },
    body: { schema: confirmedBody, example: { confirmation: "athens" } },
    answers: {
      ...refusals,
      200: { description: "The answer", schema: shutOut, example: { name: "athens", revoked: true } },
      422: errorAnswer("The confirmation is not the crawler's name"),
      404: errorAnswer("There is no crawler of this name"),
      429: errorAnswer("Too many failures from this address"),
    },
  },
  killCrawler: {
    method: "post",
    path: "/api/fleet/crawlers/{name}/kill",
    needs: "fleet-write",
    summary: "Revoke a crawler's access, and hand over its work at once",
    description:
      "Scope fleet-write. As revoke; its leases return and its subnets are handed over without waiting.",
    parameters: {
      path: { name: z.string().meta({ description: "The crawler's name.", example: "athens" }) },
    },
    body: { schema: confirmedBody, example: { confirmation: "athens" } },
    answers: {
      ...refusals,
      200: {
        description: "The answer",
        schema: shutOut,
        example: { name: "athens", revoked: true, returnedLeases: 3 },
      },
      422: errorAnswer("The confirmation is not the crawler's name"),
      404: errorAnswer("There is no crawler of this name"),
      429: errorAnswer("Too many failures from this address"),
    },
  },
  shutOutPreview: {
    method: "get",
    path: "/api/fleet/crawlers/{name}/kill",
    needs: "fleet-write",
    summary: "What would happen if its access were revoked",
    description: "Scope fleet-write.",
    parameters: {
      path: { name: z.string().meta({ description: "The crawler's name.", example: "athens" }) },
    },
    answers: {
      ...refusals,
      200: {
        description: "The answer",
        schema: shutOutPreview,
        example: {
          name: "athens",
          state: "online",
          revoked: false,
          openLeases: 3,
          subnets: 120,
          heirs: [
            { crawler: "berlin", subnets: 90, measured: true },
            { crawler: null, subnets: 30, measured: false },
          ],
        },
      },
      404: errorAnswer("There is no crawler of this name"),
      429: errorAnswer("Too many failures from this address"),
    },
  },
  rotateKey: {
    method: "post",
    path: "/api/fleet/crawlers/{name}/rotate",
    needs: "fleet-write",
    summary: "Give a crawler a new key",
    description:
      "Scope fleet-write. Now, when it is connected, else when it comes; the old key is good for graceHours after the new one has arrived.",
    parameters: {
      path: { name: z.string().meta({ description: "The crawler's name.", example: "athens" }) },
    },
    body: { schema: rotation, example: { graceHours: 24 } },
    answers: {
      ...refusals,
      202: {
        description: "The answer",
        schema: askedRotation,
        example: { name: "athens", online: true, graceHours: 24 },
      },
      409: errorAnswer("No crawler of this name has an identity of its own"),
      429: errorAnswer("Too many failures from this address"),
    },
  },
  renewSigningKey: {
    method: "post",
    path: "/api/fleet/crawlers/{name}/signing-key",
    needs: "fleet-write",
    summary: "Have a crawler sign its requests with another key",
    description:
      "Scope fleet-write. It is asked now, when it is connected, else when it comes; it makes the key itself, and uses it once it is published and caches know it. Done by itself after signingKeyDays.",
    parameters: {
      path: { name: z.string().meta({ description: "The crawler's name.", example: "athens" }) },
    },
    body: { schema: nothingBody, example: {} },
    answers: {
      ...refusals,
      202: {
        description: "The answer",
        schema: askedSigningKey,
        example: { name: "athens", online: true },
      },
      409: errorAnswer("No crawler of this name makes signing keys"),
      429: errorAnswer("Too many failures from this address"),
    },
  },
  crawler: {
    method: "get",
    path: "/api/crawlers/{name}",
    needs: "read",
    summary:
      "One crawler in full: state and why, limits, subnets, failures, absences; for operators and its partner, its past",
    description: "Scope read; partners see their own. `inside` needs fleet-read, or is the partner's own.",
    parameters: {
      path: { name: z.string().meta({ example: "berlin" }) },
      query: {
        page: z.int().min(1).max(200).optional().describe("Of the log, from 1."),
        ...rangeParameters,
      },
    },
    answers: {
      200: {
        description: "The answer",
        schema: crawlerDetail,
        example: {
          history: chartHistoryExample,
          crawler: {
            crawlerId: 2,
            name: "berlin",
            state: "offline",
            place: "Berlin",
            country: "DE",
            latitude: 52.52,
            longitude: 13.4,
            address: "5.6.200.1",
            pagesPerDay: 100000,
            concurrentHosts: 1,
            probeMethods: ["head"],
            speaksIpv6: false,
            softwareVersion: null,
            connectedAt: "2026-03-01T10:00:00.000Z",
            lastSeenAt: "2026-03-01T11:00:00.000Z",
            offlineReason: "it was stopped by its host",
            holdingBack: [],
            revoked: false,
            subnets: 2,
            pages: 0,
            bodyBytes: 0,
            shippedBytes: 0,
            meanRttMs: 0,
            openLeases: 0,
          },
          subnets: {
            subnets: [
              {
                subnetId: 5,
                range: "1.2.9.0 - 1.2.9.9",
                name: "EXAMPLE-OLD",
                country: "GR",
                crawler: "berlin",
                rttMs: null,
                inherited: false,
              },
            ],
            more: false,
          },
          peers: [{ name: "sydney", rttMs: 26, method: "connect" }],
          outcomes: [],
          operation: {
            standing: {
              state: "offline",
              since: "2026-03-01T11:00:00.000Z",
              why: "it was stopped by its host",
              advice: "It is back when its host starts it again.",
            },
            pagesToday: 0,
            bytesToday: 0,
            bodyBytesToday: 0,
            shippedBytesToday: 0,
            pagesPerDay: 100000,
            bytesPerDay: 10000000000,
            granted: { pagesPerDay: null, bytesPerDay: null },
            partnerAllows: { pagesPerDay: null, bytesPerDay: null },
            draining: null,
            unmeasured: 0,
            joiningSince: null,
            trust: "not-compared",
            release: null,
            incidentsInSevenDays: 0,
            activity: { fetches: [], probes: { asked: 1, measured: 1, rounds: 2 } },
            work: {
              domainSets: { operator: [".gr"], partner: [] },
              pace: { pace: "slow-down", dueSlices: 2, since: "2026-02-27T02:00:00.000Z" },
            },
            absences: [
              {
                since: "2026-02-27T01:00:00.000Z",
                until: "2026-02-27T01:20:00.000Z",
                reason: "vanished: three heartbeats did not come",
                lastWords: "it was ended by SIGKILL",
              },
            ],
            failures: null,
          },
          inside: null,
        },
      },
      404: errorAnswer("There is nothing of this name"),
    },
  },
  crawlerLog: {
    method: "get",
    path: "/api/fleet/crawlers/{name}/log",
    needs: "fleet-read",
    summary: "Everything recorded about one crawler, the latest first, with its absences",
    description: "Scope fleet-read.",
    parameters: {
      path: { name: z.string().meta({ description: "The crawler's name.", example: "athens" }) },
      query: { page: z.int().min(1).max(200).optional().describe("Of 50 each, from 1.") },
    },
    answers: {
      ...refusals,
      200: {
        description: "The answer",
        schema: crawlerLog,
        example: {
          name: "athens",
          lines: [
            {
              at: "2026-03-01T12:00:00.000Z",
              kind: "change",
              words: "athens gets no more leases, and its subnets go to others.",
              by: "anna",
            },
          ],
          page: 1,
          more: false,
          absences: [
            {
              since: "2026-02-27T01:00:00.000Z",
              until: "2026-02-27T01:20:00.000Z",
              reason: "vanished: three heartbeats did not come",
              lastWords: "it was ended by SIGKILL",
            },
          ],
        },
      },
      404: errorAnswer("There is no crawler of this name"),
      429: errorAnswer("Too many failures from this address"),
    },
  },
  drainCrawler: {
    method: "post",
    path: "/api/fleet/crawlers/{name}/drain",
    needs: "fleet-write",
    summary: "Give a crawler no more work and hand over its subnets",
    description: "Scope fleet-write. Partners may do this with their own, on its page.",
    parameters: {
      path: { name: z.string().meta({ description: "The crawler's name.", example: "athens" }) },
    },
    body: { schema: nothingBody, example: {} },
    answers: {
      ...refusals,
      200: {
        description: "The answer",
        schema: z.strictObject({ name: z.string(), draining: z.boolean() }),
        example: { name: "athens", draining: true },
      },
      400: errorAnswer("The body is not as described"),
      404: errorAnswer("There is no crawler of this name"),
      429: errorAnswer("Too many failures from this address"),
    },
  },
  resumeCrawler: {
    method: "post",
    path: "/api/fleet/crawlers/{name}/resume",
    needs: "fleet-write",
    summary: "Resume a drained crawler",
    description: "Scope fleet-write. Partners may resume what they drained themselves.",
    parameters: {
      path: { name: z.string().meta({ description: "The crawler's name.", example: "athens" }) },
    },
    body: { schema: nothingBody, example: {} },
    answers: {
      ...refusals,
      200: {
        description: "The answer",
        schema: z.strictObject({ name: z.string(), draining: z.boolean() }),
        example: { name: "athens", draining: false },
      },
      400: errorAnswer("The body is not as described"),
      404: errorAnswer("There is no crawler of this name"),
      429: errorAnswer("Too many failures from this address"),
    },
  },
  believeCrawler: {
    method: "post",
    path: "/api/fleet/crawlers/{name}/believe",
    needs: "fleet-write",
    summary: "Trust a crawler again",
    description: "Scope fleet-write. The evidence against it no longer counts.",
    parameters: {
      path: { name: z.string().meta({ description: "The crawler's name.", example: "athens" }) },
    },
    body: { schema: nothingBody, example: {} },
    answers: {
      ...refusals,
      200: {
        description: "The answer",
        schema: z.strictObject({ name: z.string(), restored: z.boolean() }),
        example: { name: "athens", restored: true },
      },
      400: errorAnswer("The body is not as described"),
      404: errorAnswer("There is no crawler of this name"),
      429: errorAnswer("Too many failures from this address"),
    },
  },
  grantBudget: {
    method: "post",
    path: "/api/fleet/crawlers/{name}/budget",
    needs: "fleet-write",
    summary: "Grant a crawler pages and bytes per day",
    description: "Scope fleet-write. Takes effect at once, never beyond what its partner allows.",
    parameters: {
      path: { name: z.string().meta({ description: "The crawler's name.", example: "athens" }) },
    },
    body: { schema: budgetChange, example: { pagesPerDay: 50000 } },
    answers: {
      ...refusals,
      200: {
        description: "The answer",
        schema: changedBudget,
        example: {
          name: "athens",
          before: { pagesPerDay: null, bytesPerDay: null },
          granted: { pagesPerDay: 50000, bytesPerDay: null },
          inForce: { pagesPerDay: 50000, bytesPerDay: 10000000000 },
        },
      },
      400: errorAnswer("The body is not as described"),
      404: errorAnswer("There is no crawler of this name"),
      429: errorAnswer("Too many failures from this address"),
    },
  },
  giveDomainSets: {
    method: "post",
    path: "/api/fleet/crawlers/{name}/domain-sets",
    needs: "fleet-write",
    summary: "Give a crawler domain sets",
    description:
      "Scope fleet-write. A host must be in one of the sets; none: every host. Open leases finish, and hosts move.",
    parameters: {
      path: { name: z.string().meta({ description: "The crawler's name.", example: "athens" }) },
    },
    body: { schema: givenDomainSets, example: { sets: [".gr not shop.gr", "lang:el"] } },
    answers: {
      ...refusals,
      200: {
        description: "The answer",
        schema: changedDomainSets,
        example: { name: "athens", operator: [".gr not shop.gr", "lang:el"], partner: [], before: [] },
      },
      400: errorAnswer("The body is not as described"),
      404: errorAnswer("There is no crawler of this name"),
      422: errorAnswer(
        "A set cannot be read, contradicts itself, or has nothing in common with what the partner allows; the message says which",
      ),
      429: errorAnswer("Too many failures from this address"),
    },
  },
  moveCrawler: {
    method: "post",
    path: "/api/fleet/crawlers/{name}/move",
    needs: "fleet-write",
    summary: "Move a crawler to another host",
    description: "Scope fleet-write. The coordinator leads it; GET /api/fleet/moves tells how far it is.",
    parameters: {
      path: { name: z.string().meta({ description: "The crawler's name.", example: "athens" }) },
    },
    body: { schema: moveRequest, example: { to: "athens-new" } },
    answers: {
      ...refusals,
      202: {
        description: "The answer",
        schema: z.strictObject({ moveId: z.int(), name: z.string(), to: z.string() }),
        example: { moveId: 4, name: "athens", to: "athens-new" },
      },
      400: errorAnswer("The body is not as described"),
      404: errorAnswer("There is no crawler of this name"),
      409: errorAnswer("It cannot be moved now; the words say why"),
      429: errorAnswer("Too many failures from this address"),
    },
  },
} satisfies ApiOperations;

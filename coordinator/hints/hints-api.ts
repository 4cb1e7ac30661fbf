/** The API of hints: IndexNow's endpoint, as its protocol has it, and what came of the hints of each host. */
import { z } from "zod";
import { type ApiOperations, dateTime, errorAnswer, tooMany } from "../web/api-operation.ts";
import { hintSources } from "./hint.ts";
import { submissionBody } from "./index-now.ts";

export const hostHintsSchema = z
  .strictObject({
    host: z.string(),
    source: z.enum(hintSources),
    received: z.number().describe("URLs named in all."),
    taken: z.number().describe("Of these, hints that moved a fetch."),
    right: z.number().describe("Hints whose fetch found a change, or a new page."),
    wrong: z.number().describe("Hints whose fetch found what was there before, or nothing."),
    dropped: z
      .number()
      .describe("Skipped: over the daily limit, under a wrong key, named already, or not checked in time."),
    waiting: z.int().describe("Hints whose URL has not been fetched, or whose key has not been checked."),
    trust: z
      .number()
      .describe("0 to 1: the share of the daily limit that the host gets; below 0.1, one hint per day."),
    lastAt: dateTime(),
    keys: z
      .array(
        z.strictObject({
          location: z.string().describe("Of the key's file, without the key itself."),
          folder: z.string().nullable().describe("What the key covers; null: the whole host."),
          state: z.enum(["pending", "good", "wrong"]),
          words: z.string(),
        }),
      )
      .describe("Of IndexNow, the latest ten."),
    feeds: z
      .array(
        z.strictObject({
          feed: z.string(),
          hub: z.string(),
          state: z.enum(["found", "asked", "active", "denied", "failed"]),
          words: z.string(),
          leaseEndsAt: dateTime().nullable(),
          deliveries: z.number(),
          forged: z.number().describe("Calls without a valid signature, which were ignored."),
        }),
      )
      .describe("Of WebSub, ten of them."),
  })
  .meta({ id: "HostHints" });

const hintsAnswer = z
  .strictObject({
    now: dateTime(),
    hosts: z.array(hostHintsSchema).describe("Hosts that sent some, the latest first; one entry per source."),
    feeds: z
      .strictObject({ found: z.int(), asked: z.int(), active: z.int(), denied: z.int(), failed: z.int() })
      .describe("Feeds that name a hub, by state; found: not subscribed."),
  })
  .meta({ id: "HintsAnswer" });

const indexNowAnswer = z
  .strictObject({
    words: z.string(),
    taken: z.int().describe("URLs that are hints now."),
    dropped: z.int().describe("URLs that are not: hints already, or over this host's daily limit."),
  })
  .meta({ id: "IndexNowAnswer" });

const indexNowAnswers = {
  200: {
    description: "The URLs were accepted",
    schema: indexNowAnswer,
    example: { words: "taken", taken: 1, dropped: 0 },
  },
  202: {
    description:
      "They wait until a crawler has checked the key's file; or the host is not crawled here, and nothing is stored",
    schema: indexNowAnswer,
    example: { words: "accepted once the key's file has been checked", taken: 1, dropped: 0 },
  },
  400: errorAnswer("Malformed"),
  403: errorAnswer("The key is not valid: its file is missing, or contains something else"),
  422: errorAnswer("A URL is not of the host or not in the key's folder, or the key is malformed"),
  429: errorAnswer(
    "Over the limit for this address, or this host's daily limit; Retry-After says how long to wait",
  ),
};

const indexNowWords =
  "IndexNow (indexnow.org). A known URL is fetched sooner, at the usual politeness; an unknown one enters within its host's budget. A hint is not a command, and it never adds a host to the crawl.";

export const hintsApi = {
  hints: {
    method: "get",
    path: "/api/fleet/hints",
    needs: "fleet-read",
    summary: "What sites and hubs reported as changed, and how often they were right",
    description: "Scope fleet-read.",
    answers: {
      200: {
        description: "The same as its page",
        schema: hintsAnswer,
        example: {
          now: "2026-03-01T12:00:00.000Z",
          hosts: [
            {
              host: "www.example.org",
              source: "indexnow",
              received: 120,
              taken: 100,
              right: 90,
              wrong: 8,
              dropped: 20,
              waiting: 2,
              trust: 0.92,
              lastAt: "2026-03-01T11:58:00.000Z",
              keys: [{ location: "https://www.example.org/….txt", folder: null, state: "good", words: "" }],
              feeds: [],
            },
          ],
          feeds: { found: 3, asked: 0, active: 1, denied: 0, failed: 0 },
        },
      },
      429: tooMany,
    },
  },
} satisfies ApiOperations;

/** Of the protocol: at the web server's root, for everybody. */
export const indexNowApi = {
  indexNow: {
    method: "post",
    path: "/indexnow",
    needs: null,
    summary: "IndexNow: URLs of a host that changed",
    description: `${indexNowWords} At most 10,000 URLs and 2 MB.`,
    body: {
      schema: submissionBody,
      example: {
        host: "www.example.org",
        key: "d6d5a0c0f8d54e9f",
        urlList: ["https://www.example.org/news"],
      },
    },
    answers: { ...indexNowAnswers, 413: errorAnswer("The body is larger than 2 MB") },
  },
  indexNowUrl: {
    method: "get",
    path: "/indexnow",
    needs: null,
    summary: "IndexNow: one URL that changed",
    description: indexNowWords,
    parameters: {
      query: {
        url: z.string().meta({ example: "https://www.example.org/news" }),
        key: z
          .string()
          .describe("8 to 128 letters, digits and dashes.")
          .meta({ example: "d6d5a0c0f8d54e9f" }),
        keyLocation: z.string().optional().describe("Of the key's file; default /KEY.txt."),
      },
    },
    answers: indexNowAnswers,
  },
} satisfies ApiOperations;

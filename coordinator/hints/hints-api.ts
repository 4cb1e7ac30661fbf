/** The API of hints: IndexNow's endpoint, as its protocol has it, and what came of the hints of each host. */
import { z } from "zod";
import { type ApiOperations, dateTime, errorAnswer, tooMany } from "../web/api-operation.ts";
import { hintSources } from "./hint.ts";
import { submissionBody } from "./index-now.ts";

export const hostHintsSchema = z
  .strictObject({
    host: z.string(),
    source: z.enum(hintSources),
    received: z.number().describe("URLs named, since ever."),
    taken: z.number().describe("Of these, hints that moved a fetch."),
    right: z.number().describe("Hints whose fetch found a change, or a new page."),
    wrong: z.number().describe("Hints whose fetch found what was there before, or nothing."),
    dropped: z
      .number()
      .describe(
        "Left out: beyond what is heard in a day, under a wrong key, named already, or not looked at in time.",
      ),
    waiting: z.int().describe("Hints whose URL was not fetched yet, or whose key was not seen yet."),
    trust: z
      .number()
      .describe("0 to 1: the share of the daily hints that is heard; below 0.1, one hint a day."),
    lastAt: dateTime(),
    keys: z
      .array(
        z.strictObject({
          location: z.string().describe("Of the key's file, with the key itself left out."),
          folder: z.string().nullable().describe("What the key speaks for; null: the whole host."),
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
          forged: z.number().describe("Calls without a good signature, which counted for nothing."),
        }),
      )
      .describe("Of WebSub, ten of them."),
  })
  .meta({ id: "HostHints" });

const hintsAnswer = z
  .strictObject({
    now: dateTime(),
    hosts: z.array(hostHintsSchema).describe("Those that gave some, the latest first; one entry a source."),
    feeds: z
      .strictObject({ found: z.int(), asked: z.int(), active: z.int(), denied: z.int(), failed: z.int() })
      .describe("Feeds that name a hub, by what became of it; found: not subscribed."),
  })
  .meta({ id: "HintsAnswer" });

const indexNowAnswer = z
  .strictObject({
    words: z.string(),
    taken: z.int().describe("URLs that are hints now."),
    dropped: z.int().describe("URLs that are not: hints already, or more than are heard of this host."),
  })
  .meta({ id: "IndexNowAnswer" });

const indexNowAnswers = {
  200: {
    description: "The URLs were taken",
    schema: indexNowAnswer,
    example: { words: "taken", taken: 1, dropped: 0 },
  },
  202: {
    description:
      "They wait until a crawler has seen the key's file; or the host is not crawled here, and nothing is kept",
    schema: indexNowAnswer,
    example: { words: "taken when the key's file was seen", taken: 1, dropped: 0 },
  },
  400: errorAnswer("Malformed"),
  403: errorAnswer("The key is not valid: its file is not there, or holds something else"),
  422: errorAnswer("A URL is not of the host or not in the key's folder, or the key is none"),
  429: errorAnswer(
    "More than is taken from this address, or heard of this host in a day; Retry-After says how long to wait",
  ),
};

const indexNowWords =
  "IndexNow (indexnow.org). A URL that is known is fetched sooner, as politely as ever, and one that is not enters within its host's budget. A hint is no order, and no host comes into the crawl by it.";

export const hintsApi = {
  hints: {
    method: "get",
    path: "/api/fleet/hints",
    needs: "fleet-read",
    summary: "What sites and hubs said had changed, and how often they were right",
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
        keyLocation: z.string().optional().describe("Of the key's file; left out, it is /KEY.txt."),
      },
    },
    answers: indexNowAnswers,
  },
} satisfies ApiOperations;

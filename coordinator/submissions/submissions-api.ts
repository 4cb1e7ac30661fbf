/** The API of handing in URLs: what it takes and answers. */
import { z } from "zod";
import { type ApiOperations, answer, dateTime, errorAnswer } from "../web/api-operation.ts";

/** `add`: let it into the frontier; `recrawl`: fetch again now what the frontier holds. */
export const submissionDeeds = ["add", "recrawl"] as const;

export const urlAnswers = ["new", "known", "elsewhere", "refused"] as const;

export const submissionBounds = {
  /** In one request over HTTP. */
  urls: 10_000,
  /** Receipts are kept for so long. */
  keepDays: 90,
  /** Of a receipt with more URLs nobody counts how many are fetched. */
  countedUrls: 10_000,
} as const;

export const followedStates = [
  "refused",
  "elsewhere",
  "unknown",
  "resolving",
  "unresolvable",
  "undelegated",
  "in-progress",
  "fetched",
  "failed",
  "gone",
  "held",
  "blocked-by-robots",
  "scheduled",
  "due",
] as const;

export const submission = z
  .object({
    submissionId: z.int(),
    deed: z.enum(submissionDeeds),
    submittedBy: z.string(),
    submittedAt: dateTime(),
    urls: z
      .object({ new: z.int(), known: z.int(), elsewhere: z.int(), refused: z.int() })
      .describe(
        "How many had which answer; elsewhere: another coordinator owns them, and they are sent there.",
      ),
    fetched: z
      .int()
      .nullable()
      .describe("Of the new and known ones, how many were fetched since; null: too many to count."),
  })
  .meta({ id: "Submission" });

export const submittedUrl = z
  .object({
    place: z.int().describe("Line or position in the submission, from 1."),
    url: z.string().describe("Canonical, as crawled; as given if it is not a URL."),
    answer: z.enum(urlAnswers),
    reason: z.string().nullable().describe("Why it was refused, or who owns it."),
    state: z.enum(followedStates),
    words: z.string().describe("Its state, in plain words."),
    crawler: z.string().nullable().describe("The crawler of its subnet; null: none yet."),
    aboutAt: dateTime()
      .nullable()
      .describe("Estimated fetch time, from what is due on its host and its pace; null: unknown."),
    lastFetchedAt: dateTime().nullable(),
    lastStatus: z.int().nullable(),
  })
  .meta({ id: "SubmittedUrl" });

const receipt = z
  .object({
    submission,
    urls: z.array(submittedUrl),
    next: z.int().nullable().describe("Value of after= for the next part; null: this is the last."),
  })
  .meta({ id: "SubmissionReceipt" });

export const submissionsApi = {
  submitUrls: {
    method: "post",
    path: "/api/urls",
    needs: "site-recrawl",
    summary: "Submit URLs, or have them fetched again",
    description:
      "Scope url-write; or site-recrawl, with deed recrawl and at most 1,000 URLs of 20 hosts at once and 10,000 in 24 " +
      "hours, for sites that name the token: a TXT record at _nearcrawl.HOST, or at _nearcrawl. of its registrable " +
      "domain, with the text recrawl=NAME. Each URL is answered at once: new, known, elsewhere or refused with the " +
      "reason. The receipt is at /submissions/NUMBER for 90 days. deed recrawl makes known URLs due now; at the usual " +
      "politeness. The URL of a sitemap or feed adds the URLs of its own host that it lists.",
    body: {
      schema: z.strictObject({
        urls: z.array(z.string().min(1).max(4096)).min(1).max(submissionBounds.urls),
        deed: z.enum(submissionDeeds).default("add"),
      }),
      example: { urls: ["https://www.example.org/"], deed: "add" },
    },
    answers: {
      201: answer(receipt, "The receipt, with its first 100 URLs"),
      400: errorAnswer("The body is not as described, or more than the scope takes"),
      413: errorAnswer("The body is larger than 1 MB"),
    },
  },
  submissions: {
    method: "get",
    path: "/api/submissions",
    needs: "url-write",
    summary: "The latest receipts",
    answers: {
      200: answer(z.object({ submissions: z.array(submission) }).meta({ id: "Submissions" })),
    },
  },
  submission: {
    method: "get",
    path: "/api/submissions/{number}",
    needs: "site-recrawl",
    summary: "The state of submitted URLs",
    description:
      "Scope url-write; or site-recrawl, for its own receipts. 100 URLs at a time, starting after `after`.",
    parameters: {
      path: { number: z.int().meta({ description: "Of the receipt.", example: 7 }) },
      query: { after: z.int().optional().describe("The last place already read.") },
    },
    answers: {
      200: answer(receipt),
      404: errorAnswer("There is no receipt with this number, or no longer"),
    },
  },
} satisfies ApiOperations;

/** The API of changed pages: what it takes and answers. */
import { z } from "zod";
import { answersSchema, statementSchema } from "../results/stated-uses-api.ts";
import { type ApiOperations, answer, dateTime, errorAnswer } from "../web/api-operation.ts";

/**
 * first-seen     the index has the page for the first time
 * changed        its body is another one (by SHA-256; the simhash distance tells how much of the text is)
 * links-changed  it links to other URLs than before
 * preferences-changed  its site states other uses of it than before (protocol/preferences)
 * came-back      it is read again, after it was gone or led elsewhere; or no longer asks not to be indexed
 * redirected     it leads elsewhere from now on, or did at the first visit
 * gone           it was in the index and is not any more: missing, refused, or no page; `reason` says which. So is one whose
 *                body is the same, and whose answer asks not to be indexed from now on (`noindex`), and one whose site has opted out
 *                for good: no visit found that, and it was seen when it was deleted
 * given-up       it was missing so often in a row that it is hardly requested any more
 */
export const changeKinds = [
  "first-seen",
  "changed",
  "links-changed",
  "preferences-changed",
  "came-back",
  "redirected",
  "gone",
  "given-up",
] as const;

export const textParts = ["description", "headings", "beginning", "further-down"] as const;

const statedThen = z
  .object({ answers: answersSchema, statements: z.array(statementSchema) })
  .meta({ id: "StatedThen" });

export const textDifference = z
  .object({
    places: z.array(
      z.object({
        part: z
          .enum(textParts)
          .describe("further-down: of the rest of the text, by its index terms, all that is kept of it."),
        before: z.string().describe("Words before it, as they are now."),
        removed: z.string(),
        added: z.string(),
        after: z.string().describe("Words after it."),
      }),
    ),
    more: z.int().describe("Further places that differ."),
  })
  .meta({ id: "TextDifference" });

export const pageChange = z
  .object({
    number: z.int().describe("The cursor after this change. Numbers go up by one."),
    host: z.string(),
    notedAt: dateTime().describe("When it was numbered."),
    kind: z.enum(changeKinds),
    url: z.string(),
    seenAt: dateTime().describe("When it was fetched."),
    status: z.int().nullable().describe("Of the answer."),
    reason: z.string().nullable().describe("Why there is no page."),
    language: z.string().nullable().describe("ISO 639-1."),
    digestBefore: z.string().nullable().describe("SHA-256 of the body, hex."),
    digestAfter: z.string().nullable().describe("SHA-256 of the body, hex."),
    simhashDistance: z.int().nullable().describe("Bits of 64 in which the simhashes of the texts differ."),
    titleBefore: z.string().nullable().describe("The page's title."),
    titleAfter: z.string().nullable().describe("The page's title."),
    wordsBefore: z.int().nullable().describe("Words of the text."),
    wordsAfter: z.int().nullable().describe("Words of the text."),
    linksBefore: z.int().nullable().describe("Links of the page, each URL once."),
    linksAfter: z.int().nullable().describe("Links of the page, each URL once."),
    linksAdded: z.int().nullable().describe("Of links-changed."),
    linksRemoved: z.int().nullable().describe("Of links-changed."),
    location: z.string().nullable().describe("Where a redirect leads."),
    stated: statedThen
      .nullable()
      .describe("What the site stated about the page's uses at that visit; null: nothing, or no page."),
    statedBefore: statedThen.nullable().describe("Of preferences-changed: what it stated before."),
    difference: textDifference
      .nullable()
      .describe(
        "Of changed: where the texts differ. Null: the text is the same, too long to compare, or must not be shown.",
      ),
    words: z.string().describe("The same in plain words."),
  })
  .meta({ id: "PageChange" });

const changes = z
  .object({
    changes: z.array(pageChange),
    next: z.int().describe("The next cursor."),
    more: z.boolean().describe("There may already be more after next."),
  })
  .meta({ id: "Changes" });

export const changesApi = {
  changes: {
    method: "get",
    path: "/api/changes",
    needs: "read",
    summary: "What visits found new, changed or gone, since a cursor",
    description:
      "Needs the scope read where the pages are not open to everybody. Without since: the latest changes; with since: " +
      "those after it, oldest first. Continue with next, at once while more is true. This reads every change exactly " +
      "once, whatever is written meanwhile. Also as CSV: format=csv.",
    parameters: {
      query: {
        since: z.string().max(4000).optional().meta({
          description: "A cursor (next of an answer, number of a change), earliest, or now.",
          example: "earliest",
        }),
        host: z
          .string()
          .max(253)
          .optional()
          .meta({ description: "Only this host.", example: "www.example.org" }),
        prefix: z.string().max(2048).optional().meta({
          description: "Only URLs with this prefix, including scheme and host.",
          example: "https://www.example.org/docs/",
        }),
        dset: z.string().max(4096).optional().meta({
          description:
            "Only hosts and languages of a domain set: top-level domains, domains, lang:CODE, each with not before it for all but that.",
          example: ".org lang:en",
        }),
        kind: z.string().max(200).optional().meta({
          description:
            "Kinds, separated by commas: first-seen, changed, links-changed, preferences-changed, came-back, redirected, gone, given-up.",
          example: "changed",
        }),
        limit: z
          .int()
          .min(1)
          .max(1000)
          .default(100)
          .meta({ description: "Maximum number of changes.", example: 100 }),
      },
    },
    answers: {
      200: answer(changes),
      400: errorAnswer("An invalid cursor, host, prefix, domain set, kind or limit"),
      410: errorAnswer("The cursor is older than what is kept: some changes were missed"),
    },
  },
} satisfies ApiOperations;

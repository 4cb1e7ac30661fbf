/** API schemas of changed pages. */
import { z } from "zod";
import { dateTime } from "../../web/api-operation.ts";
import { answersSchema, statementSchema } from "../batch/stated-uses-api.ts";

/**
 * first-seen     the index has the page for the first time
 * changed        its body is different (by SHA-256; the simhash distance tells how much of the text)
 * links-changed  it links to other URLs than before
 * preferences-changed  its site states other uses of it than before (protocol/preferences)
 * came-back      it can be read again after it was gone or redirected, or no longer asks not to be indexed
 * redirected     it redirects from now on, or did so at the first visit
 * gone           it was in the index and no longer is: missing, refused, or no page; `reason` says which. Also if it
 *                has the same body but asks not to be indexed (`noindex`), or if its site has opted out for good
 *                (found at the deletion, not by a visit)
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

export const textParts = ["description", "headings", "text"] as const;

const statedThen = z
  .object({ answers: answersSchema, statements: z.array(statementSchema) })
  .meta({ id: "StatedThen" });

export const textDifference = z
  .object({
    places: z.array(
      z.object({
        part: z.enum(textParts),
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

export const changes = z
  .object({
    changes: z.array(pageChange),
    next: z.int().describe("The next cursor."),
    more: z.boolean().describe("There may already be more after next."),
  })
  .meta({ id: "Changes" });

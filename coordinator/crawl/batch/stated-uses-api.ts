/** API schema of a site's statements about a page's uses (room results). */
import { z } from "zod";
import { contentUses, preferenceAnswers, statedPreference } from "#protocol/preferences";
import { dateTime } from "../../web/api-operation.ts";

export const statementSchema = z
  .strictObject({
    standard: statedPreference.shape.standard.describe("robots-words: words such as noai, in no standard."),
    place: statedPreference.shape.place.describe("Where it was found."),
    uses: z.array(z.enum(contentUses)).describe("That it speaks of; none: of a kind that is not known."),
    answer: statedPreference.shape.answer.describe("licensed: only by agreement with the site."),
    text: z.string().describe("As it was written."),
  })
  .meta({ id: "StatedPreference" });

const answer = z.enum(preferenceAnswers).exactOptional();

export const answersSchema = z
  .strictObject({ search: answer, "ai-input": answer, "ai-train": answer, "text-and-data-mining": answer })
  .meta({
    id: "UseAnswers",
    description:
      "What the site's statements come to: for each use the strictest. A use that nobody spoke of is absent.",
  });

export const statedUsesSchema = z
  .strictObject({
    answers: answersSchema,
    statements: z.array(statementSchema).describe("Each as it was found."),
    since: dateTime().describe("The fetch that found this list first."),
    confirmedAt: dateTime().describe("The latest fetch that found it."),
  })
  .meta({ id: "StatedUses" });

export const statedCountSchema = z
  .strictObject({ use: z.enum(contentUses), answer: z.enum(preferenceAnswers), pages: z.int() })
  .meta({ id: "StatedCount" });

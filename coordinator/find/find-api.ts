/** The API of the one box: everything that can be opened, by its name. */
import { z } from "zod";
import { type ApiOperations, answer, errorAnswer, get, record, type ToldOf } from "../web/api-operation.ts";

/** In the order in which they come where none matches better. */
export const foundKinds = ["page", "crawler", "host", "who", "setting", "action"] as const;
export type FoundKind = (typeof foundKinds)[number];

/** Longer than any URL that is crawled. */
export const longestQuestion = 2100;

export const mostOfKind = 10;

const found = record("Found", {
  kind: z.enum(foundKinds),
  title: z.string(),
  words: z.string().describe("What it is, or how it stands, in a sentence at most."),
  href: z.string().describe("Of a page here."),
});

const foundAnswer = record("FoundAnswer", {
  question: z.string(),
  results: z.array(found).describe("Kinds in the order of their best match; within a kind the best first."),
  more: z.array(z.enum(foundKinds)).describe(`Kinds of which there are more than the ${mostOfKind} shown.`),
  note: z.string().nullable().describe("Why something may be missing; null: nothing is."),
});

export type Found = ToldOf<typeof found>;
export type FindAnswer = ToldOf<typeof foundAnswer>;

export const findApi = {
  find: {
    ...get("/api/find", null),
    tokenToo: true,
    summary: "Find a page, crawler, host or setting by its name",
    description: `What the search box at the top of every page asks. Exact matches come first, then names that begin with the
question, names of which a word begins with it, and names that hold it; of hosts, exact ones, those below the site, and those
that begin with it. Only what the asker may open is found. An empty question is answered with the main pages.`,
    parameters: {
      query: {
        q: z
          .string()
          .optional()
          .meta({
            description: `Part of a name, a host, an address, a range or a URL; at most ${longestQuestion} characters.`,
            example: "athens",
          }),
      },
    },
    answers: {
      200: answer(foundAnswer, "What was found"),
      400: errorAnswer("The question is too long"),
    },
  },
} satisfies ApiOperations;

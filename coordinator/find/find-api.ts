/** What the one box finds: everything that can be opened, by its name. */
import { z } from "zod";
import { record, type ToldOf } from "../web/api-operation.ts";

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

export const foundAnswer = record("FoundAnswer", {
  question: z.string(),
  results: z.array(found).describe("Kinds in the order of their best match; within a kind the best first."),
  more: z.array(z.enum(foundKinds)).describe(`Kinds of which there are more than the ${mostOfKind} shown.`),
  note: z.string().nullable().describe("Why something may be missing; null: nothing is."),
});

export type Found = ToldOf<typeof found>;
export type FindAnswer = ToldOf<typeof foundAnswer>;

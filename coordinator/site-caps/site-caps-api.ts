/** The API of caps on sites: what it takes and answers. */
import { z } from "zod";
import { type ApiOperations, answer, dateTime, errorAnswer } from "../web/api-operation.ts";
import { leastDelaySeconds, mostDelaySeconds, mostWords } from "./site-cap.ts";

const siteCap = z
  .object({
    site: z.string().describe("It and all names below it."),
    delayMs: z.int().describe("Least time between two requests to one host of the site."),
    words: z.string().describe("Why, as whoever set it says."),
    setBy: z.string(),
    setAt: dateTime(),
    hosts: z.int().describe("Known hosts that belong to the site."),
  })
  .meta({ id: "SiteCap" });

const setCapBody = z.strictObject({
  site: z.string().min(1).max(2100).describe("A host's name, or a URL of it."),
  seconds: z
    .number()
    .min(leastDelaySeconds)
    .max(mostDelaySeconds)
    .describe("Least time between two requests to one host of the site."),
  words: z.string().max(mostWords).default("").describe("Why, for the record."),
});

const example = {
  site: "example.org",
  delayMs: 10_000,
  words: "asked for by its webmaster",
  setBy: "anna",
  setAt: "2026-03-01T12:00:00.000Z",
  hosts: 3,
};

export const siteCapsApi = {
  siteCaps: {
    method: "get",
    path: "/api/fleet/site-caps",
    needs: "read",
    summary: "Sites that operators have slowed down",
    description: "What robots.txt, answers and the usual rest ask for holds beside a cap: the slowest does.",
    answers: {
      200: answer(z.object({ caps: z.array(siteCap) }).meta({ id: "SiteCaps" })),
    },
  },
  setSiteCap: {
    method: "post",
    path: "/api/fleet/site-caps",
    needs: "policy-write",
    summary: "Keep a site's requests so far apart",
    description: "It holds from the next lease of each host on; a site that has a cap gets the new one.",
    body: { schema: setCapBody, example: { site: "example.org", seconds: 10, words: example.words } },
    answers: {
      201: answer(siteCap),
      422: errorAnswer("That is no site, or there are too many caps"),
    },
  },
  removeSiteCap: {
    method: "post",
    path: "/api/fleet/site-caps/{site}/remove",
    needs: "policy-write",
    summary: "Let a site be crawled at its usual pace",
    description:
      "A crawler that was told the cap keeps to it until it reads the site's robots.txt again: within a day.",
    parameters: { path: { site: z.string().meta({ description: "As listed.", example: "example.org" }) } },
    body: { schema: z.strictObject({}), example: {} },
    answers: {
      200: answer(siteCap.omit({ hosts: true })),
      404: errorAnswer("There is no such cap"),
    },
  },
} satisfies ApiOperations;

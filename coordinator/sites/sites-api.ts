/** The API of the list of sites: what it takes and answers. */
import { z } from "zod";
import { type ApiOperations, answer, dateTime, errorAnswer } from "../web/api-operation.ts";
import { siteFilters, siteSorts, siteStates, sitesLimit } from "./sites-list.ts";

const site = z
  .strictObject({
    host: z.string(),
    name: z.string().describe("As people read it: another than host where that is Punycode."),
    state: z.enum(siteStates),
    reason: z.string().nullable().describe("Why it is blocked, unresolved or left out."),
    dueAt: dateTime().nullable().describe("When something of it is next to be fetched; null: nothing is."),
    crawler: z.string().nullable().describe("By its subnet's delegation or an override; null: not assigned."),
    inProgressBy: z.string().nullable().describe("The crawler that has it in hand now."),
    subnet: z.string().nullable(),
    language: z.string().nullable().describe("Of most of its pages."),
    country: z.string().nullable().describe("In which its subnet is registered."),
    organisation: z.string().nullable().describe("That holds its subnet."),
    tld: z.string().nullable(),
    channels: z.int(),
    pages: z.int().describe("With a text of their own, or nearly that of another."),
    urls: z.int(),
    dueUrls: z.int(),
    moreDueUrls: z.boolean().describe("There are more than dueUrls."),
    failures: z.int().describe("Fetches without a usable answer, of the last seven days."),
    fetches: z.int().describe("Of the last seven days."),
    fetchedAt: dateTime().nullable().describe("When one of its URLs was last fetched."),
    addedAt: dateTime(),
    rttMs: z.number().nullable().describe("Measured when its crawler was chosen."),
    bytes: z.number().describe("Fetched of it, ever."),
  })
  .meta({ id: "ListedSite" });

const sites = z
  .strictObject({
    at: dateTime(),
    filter: z.strictObject(
      Object.fromEntries(siteFilters.map((name) => [name, z.string().nullable()])) as Record<
        (typeof siteFilters)[number],
        z.ZodNullable<z.ZodString>
      >,
    ),
    sort: z.enum(siteSorts),
    order: z.enum(["up", "down"]),
    sites: z.array(site),
    count: z.int().describe("Of all that match, as far as they were counted."),
    isWholeCount: z.boolean().describe("False: there are more than count."),
    estimate: z.number().nullable().describe("Where there are more, about how many; null: not known."),
    next: z.string().nullable().describe("Where the next page goes on: its parameter after."),
    progress: z.strictObject({
      isFirstRound: z.boolean().describe("The list is being filled: hosts are missing."),
      roundSeconds: z
        .number()
        .nullable()
        .describe("How long the list takes to look at every host once; null: it never has."),
      knownHosts: z.number().describe("While it is being filled: hosts that the crawl knows, about."),
    }),
  })
  .meta({ id: "Sites" });

const filterParameters = {
  crawler: z.string().optional().meta({ description: "By name.", example: "athens" }),
  state: z.enum(siteStates).optional().meta({ example: "due" }),
  language: z.string().optional().meta({ description: "ISO 639 code.", example: "el" }),
  country: z.string().optional().meta({ description: "ISO 3166 code.", example: "CY" }),
  organisation: z
    .string()
    .optional()
    .meta({ description: "A handle, or a name in full.", example: "Example Networks" }),
  tld: z.string().optional().meta({ example: "gr" }),
  channel: z.enum(["with", "without"]).optional().meta({ example: "with" }),
  host: z.string().optional().meta({ description: "What the host's name begins with.", example: "www." }),
  under: z
    .string()
    .optional()
    .meta({ description: "A domain: its host and all below it.", example: "example.org" }),
} satisfies Record<(typeof siteFilters)[number], z.ZodType>;

const orderParameters = {
  sort: z.enum(siteSorts).optional().meta({ description: "Left out: host.", example: "failures" }),
  order: z.enum(["up", "down"]).optional().meta({
    description: "Left out: names from a, the longest not fetched first, all else the most first.",
    example: "down",
  }),
};

const badQuestion = errorAnswer("What is asked cannot be answered");

export const sitesApi = {
  sites: {
    method: "get",
    path: "/api/sites",
    needs: "read",
    summary: "Hosts, filtered and sorted",
    description:
      "Hosts without a value stand last in either direction. Figures follow the crawl within seconds; what registries and delegations change, within progress.roundSeconds.",
    parameters: {
      query: {
        ...filterParameters,
        ...orderParameters,
        after: z.string().optional().meta({ description: "The next of the page before.", example: "17~-42" }),
        limit: z
          .int()
          .min(1)
          .max(sitesLimit.most)
          .optional()
          .meta({ description: `Left out: ${sitesLimit.usual}.`, example: sitesLimit.usual }),
      },
    },
    answers: {
      200: answer(sites),
      400: badQuestion,
    },
  },
} satisfies ApiOperations;

/** Sent as it is made, so its routes are no views. */
export const siteFilesApi = {
  siteFile: {
    method: "get",
    path: "/sites.json",
    needs: "read",
    summary: "All hosts that match, up to 1,000,000",
    description: "The same as a table: /sites.csv.",
    parameters: { query: { ...filterParameters, ...orderParameters } },
    answers: {
      200: answer(z.strictObject({ sites: z.array(site), isComplete: z.boolean() }).meta({ id: "SiteFile" })),
      400: badQuestion,
    },
  },
} satisfies ApiOperations;

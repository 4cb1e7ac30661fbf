/** The API of search and of indexed pages: what it takes and answers. */
import { z } from "zod";
import { changeKinds, textDifference } from "../changes/changes-api.ts";
import { answersSchema, statedUsesSchema } from "../results/stated-uses-api.ts";
import { type ApiOperations, answer, dateTime, errorAnswer } from "../web/api-operation.ts";
import { scoreParts } from "./page-score.ts";

export const searchReason = z
  .strictObject({
    part: z.enum(scoreParts),
    points: z.number().describe("Less than 0: taken away."),
    most: z.number(),
    words: z.string(),
  })
  .meta({ id: "SearchReason" });

export const foundPage = z
  .strictObject({
    url: z.string(),
    host: z.string(),
    title: z.string(),
    language: z.string().nullable(),
    country: z.string().nullable().describe("Of the host's address."),
    publishedAt: dateTime().nullable().describe("As the page says; null: it does not."),
    fetchedAt: dateTime(),
    crawler: z.string().nullable(),
    uses: answersSchema,
    words: z.int(),
    alike: z.int().describe("Other matching pages with nearly the same text, which are not listed."),
    rank: z.number().describe("Points, at most 100."),
    snippet: z
      .array(z.strictObject({ text: z.string(), matches: z.boolean() }))
      .describe("Plain text in parts, never markup."),
    reasons: z
      .array(searchReason)
      .nullable()
      .describe("Where the points come from, the weightiest first; null without explain=1."),
  })
  .meta({ id: "FoundPage" });

export const facetValue = z.strictObject({ value: z.string(), pages: z.int() }).meta({ id: "FacetValue" });

export const searchFacets = z
  .strictObject({
    language: z.array(facetValue),
    country: z.array(facetValue),
    crawler: z.array(facetValue),
    host: z.array(facetValue),
    preference: z
      .array(facetValue)
      .describe("What sites state of uses: `ai-train=denied`; a page may count in several."),
    pages: z.int().describe("Pages that were counted."),
  })
  .meta({
    id: "SearchFacets",
    description: "The most frequent values among the matches that were looked at.",
  });

export const searchAnswer = z
  .strictObject({
    words: z.string(),
    host: z.string().nullable(),
    language: z.string().nullable(),
    country: z.string().nullable(),
    crawler: z.string().nullable(),
    from: z.string().nullable(),
    to: z.string().nullable(),
    preference: z.string().nullable(),
    excludeHost: z.string().nullable().describe("Hosts, with commas between them."),
    title: z.string().nullable(),
    type: z.string().nullable().describe("html or text."),
    sort: z.enum(["relevance", "date"]),
    limit: z.int(),
    offset: z.int(),
    total: z.int().describe("Pages of nearly the same text count once."),
    more: z.boolean().describe("True: at least `total` match; it was not looked further."),
    pages: z.array(foundPage),
    facets: searchFacets,
    didYouMean: z.string().nullable().describe("Other words that bring more pages; null: no better idea."),
    note: z
      .string()
      .nullable()
      .describe(
        "In plain words: why there is nothing, or that not all of the words were searched, not all matches compared, " +
          "the search cut short, or the index in memory not there yet.",
      ),
  })
  .meta({ id: "SearchAnswer" });

export const pageFetch = z
  .strictObject({
    fetchedAt: dateTime(),
    crawler: z.string().nullable(),
    outcome: z.string(),
    status: z.int().nullable(),
    blame: z.string().nullable(),
    address: z.string().nullable(),
    dnsMs: z.number().nullable(),
    connectMs: z.number().nullable(),
    tlsMs: z.number().nullable(),
    firstByteMs: z.number().nullable(),
    totalMs: z.number(),
    bodyBytes: z.int(),
    wireBytes: z.int(),
    shippedBytes: z.int(),
  })
  .meta({ id: "PageFetch" });

export const outLink = z
  .strictObject({
    url: z
      .string()
      .nullable()
      .describe("null: only its hash was kept, since it is outside of what is crawled."),
    anchor: z.string(),
    nofollow: z.boolean(),
    state: z.enum(["unknown", "not-fetched", "fetched", "indexed"]),
  })
  .meta({ id: "OutLink" });

export const inLink = z
  .strictObject({ url: z.string(), title: z.string(), anchor: z.string(), nofollow: z.boolean() })
  .meta({ id: "InLink" });

export const alikePage = z
  .strictObject({
    url: z.string(),
    title: z.string(),
    sameBytes: z.boolean().describe("Byte by byte the same."),
    isFirst: z.boolean().describe("It had the text before the others."),
  })
  .meta({ id: "AlikePage" });

/** A stretch of a list that may be long. */
const listed = <One extends z.ZodType>(one: One) =>
  z.strictObject({
    items: z.array(one),
    offset: z.int(),
    limit: z.int(),
    total: z.int(),
    more: z.boolean().describe("True: there are more than `total`, which were not counted."),
  });

export const pageFacts = z
  .strictObject({
    url: z.string(),
    host: z.string(),
    hostHash: z.string().describe("64 bits, signed, decimal."),
    urlHash: z.string(),
    title: z.string(),
    description: z.string(),
    headings: z.array(z.strictObject({ level: z.int(), text: z.string() })),
    excerpt: z.string(),
    language: z.string().nullable(),
    declaredLanguage: z.string().nullable(),
    detectedLanguage: z.string().nullable(),
    textSearchConfig: z.string(),
    contentType: z.string(),
    status: z.int(),
    canonicalUrl: z.string().nullable(),
    publishedAt: dateTime().nullable(),
    modifiedAt: dateTime().nullable(),
    structured: z.strictObject({ type: z.string(), name: z.string(), description: z.string() }).nullable(),
    fetchedAt: dateTime(),
    crawler: z.string().nullable(),
    country: z.string().nullable(),
    words: z.int(),
    needsScripts: z
      .boolean()
      .describe("Empty without scripts: an application draws it, so that there is no text to index."),
    lexemes: z.int(),
    bodyBytes: z.int(),
    wireBytes: z.int(),
    shippedBytes: z.int(),
    digest: z.string().describe("SHA-256 of the body, hex."),
    simhash: z.string(),
    linkingHosts: z.int().describe("Other hosts that link to it, as counted last."),
    firstTier: z.boolean().describe("Among the best pages, which are searched first."),
    validators: z.strictObject({ etag: z.string().nullable(), lastModified: z.string().nullable() }),
    robots: z.strictObject({ state: z.string(), at: dateTime() }).nullable(),
    stated: statedUsesSchema
      .nullable()
      .describe(
        "What the site states of the uses of the page; null: nothing. Goes with the page wherever it is passed on.",
      ),
    discoveredAt: dateTime().nullable(),
    nextFetchAt: dateTime().nullable(),
    visits: z.int(),
    depth: z.int().nullable(),
    changes: z
      .array(
        z.strictObject({
          seenAt: dateTime(),
          kind: z.enum(changeKinds),
          words: z.string(),
          difference: textDifference.nullable(),
        }),
      )
      .describe("What visits found changed, the latest first."),
    alike: listed(alikePage),
    fetches: listed(pageFetch),
    outLinks: listed(outLink),
    inLinks: listed(inLink),
  })
  .meta({ id: "PageFacts" });

export const pageAnswer = z
  .strictObject({
    asked: z.string(),
    found: z.boolean(),
    words: z.string().nullable().describe("Why there is nothing to show; null: there is."),
    page: pageFacts.nullable(),
    stated: statedUsesSchema
      .nullable()
      .describe(
        "Of a page that is not shown since its site states that it is not to be searched; else null.",
      ),
  })
  .meta({ id: "PageAnswer" });

/** Filters among the words (operators.ts), a line for those who type. */
export const operatorHelp = [
  ["site:example.org", "a host with all below it"],
  ["-site:ads.example", "without it"],
  ["title:ferry", "in the title"],
  ["lang:de", "language"],
  ["country:GR", "where the host lies"],
  ["after:2026-01-01", "published on this day or later"],
  ["before:2026-02", "before it"],
  ["type:text", "plain text, or html"],
  ["crawler:athens", "fetched by it"],
  ["states:ai-train=denied", "what the site states"],
] as const;

/** Further into a list nobody reads, and skipping costs as much as reading. */
export const maxListOffset = 5000;

const listOffset = (description: string) =>
  z.int().min(0).max(maxListOffset).default(0).meta({ description, example: 0 });

export const searchApi = {
  search: {
    method: "get",
    path: "/api/search",
    navigation: { group: "Sites", order: 20, entry: "Search", also: ["/pages"] },
    needs: "read",
    summary: "Pages that hold these words, best first",
    description:
      "Needs scope read where the pages are not open to everybody. What is looked at is bounded: `more` says that there may " +
      "be more matches than were ranked, and facets count what was looked at. The same question gets the same ranking for " +
      "ten seconds.",
    parameters: {
      query: {
        q: z
          .string()
          .max(300)
          .meta({
            description: [
              'Words; "a phrase", or, -without. At most 300 characters. Filters may stand among the words, and hold in',
              `place of the parameter: ${operatorHelp.map(([typed]) => typed).join(", ")}.`,
            ].join(" "),
            example: "ferry harbour",
          }),
        limit: z.int().min(1).max(100).default(10).meta({ description: "Results at most.", example: 10 }),
        offset: z
          .int()
          .min(0)
          .max(500)
          .default(0)
          .meta({ description: "Results to leave out from the start.", example: 0 }),
        language: z.string().optional().meta({ description: "ISO 639-1 code.", example: "en" }),
        host: z.string().optional().meta({
          description: "Only pages of this host and of those below it.",
          example: "www.example.org",
        }),
        country: z.string().optional().meta({
          description: "ISO 3166-1 code: only pages of hosts whose address lies there, by the registries.",
          example: "GR",
        }),
        crawler: z
          .string()
          .optional()
          .meta({ description: "Only pages that this crawler fetched last.", example: "athens" }),
        from: z.string().meta({ format: "date" }).optional().meta({
          description:
            "Only pages published on this day (UTC) or later; where a page does not say, its fetch counts.",
          example: "2026-01-01",
        }),
        to: z
          .string()
          .meta({ format: "date" })
          .optional()
          .meta({ description: "Only pages published on this day or earlier.", example: "2026-12-31" }),
        preference: z
          .string()
          .max(40)
          .optional()
          .meta({
            description:
              "Only pages of which the site states this of one use (search, ai-input, ai-train, text-and-data-mining): " +
              "`=allowed`, `=licensed`, `=denied`, or `=unstated` where it states nothing of it.",
            example: "ai-train=denied",
          }),
        excludeHost: z.string().optional().meta({
          description:
            "No pages of these hosts (eight at most, with commas between them), nor of those below them.",
          example: "ads.example.org",
        }),
        title: z.string().max(100).optional().meta({
          description: "Only pages whose title has these words.",
          example: "ferry",
        }),
        type: z.enum(["html", "text"]).optional().meta({
          description: "Only pages of this type; text is plain text.",
          example: "html",
        }),
        sort: z.enum(["relevance", "date"]).default("relevance").meta({
          description: "`date`: newest first, of the matches that were looked at.",
          example: "relevance",
        }),
        explain: z
          .enum(["1"])
          .optional()
          .meta({ description: "1: each page says where its points come from.", example: "1" }),
      },
    },
    answers: {
      200: answer(searchAnswer),
      400: errorAnswer("The words are longer than 300 characters, or a filter cannot be one"),
    },
  },
  page: {
    method: "get",
    path: "/api/pages",
    needs: "read",
    summary: "What the index has of one page, with its fetches and links",
    description:
      "Needs scope read where the pages are not open to everybody. Pages that ask not to be indexed, those of sites that " +
      "state that they are not to be searched, and those of sites that have opted out, are not shown.",
    parameters: {
      query: {
        url: z.string().optional().meta({
          description: "Its address; without a scheme, https is meant.",
          example: "https://www.example.org/harbour",
        }),
        host_hash: z.string().optional().meta({
          description: "In place of the address: its host's hash, together with url_hash.",
          example: "-3213478234823482348",
        }),
        url_hash: z
          .string()
          .optional()
          .meta({ description: "Its address's hash.", example: "8234823482348234823" }),
        fetches: listOffset("Latest fetches to leave out."),
        in: listOffset("Links to it to leave out."),
        out: listOffset("Links on it to leave out."),
      },
    },
    answers: {
      200: answer(pageAnswer, "The page"),
      404: answer(pageAnswer, "No page to show, and why"),
      400: errorAnswer("That is no address"),
    },
  },
} satisfies ApiOperations;

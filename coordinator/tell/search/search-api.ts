/** Descriptions of the answers of search and of the page about a page. */
import { z } from "zod";
import { answersSchema, statedUsesSchema } from "../../crawl/batch/stated-uses-api.ts";
import { changeKinds, textDifference } from "../../crawl/changes/changes-api.ts";
import { dateTime } from "../../web/api-operation.ts";

/** See ranking.ts. */
export const scoreParts = ["words", "links", "freshness", "copy"] as const;

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
    description: "The most frequent values among the matches that were ranked.",
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
        "In plain words: why there is nothing, or that not all of the words or pages were searched: the search engine is " +
          "being filled, or took too long.",
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

/** Part of a list that may be long. */
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
    excerpt: z.string().describe("The beginning of its text, as much as the site lets be shown."),
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
    bodyBytes: z.int(),
    wireBytes: z.int(),
    shippedBytes: z.int(),
    digest: z.string().describe("SHA-256 of the body, hex."),
    simhash: z.string(),
    linkingHosts: z.int().describe("Other hosts that link to it; at most a thousand are counted."),
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

/** A line about filters among the words (operators.ts). */
export const operatorHelp = [
  ["site:example.org", "host and subdomains"],
  ["-site:ads.example", "without it"],
  ["title:ferry", "in the title"],
  ["lang:de", "language"],
  ["country:GR", "host's country"],
  ["after:2026-01-01", "published on this day or later"],
  ["before:2026-02", "before it"],
  ["type:text", "plain text, or html"],
  ["crawler:athens", "fetched by it"],
  ["states:ai-train=denied", "what the site states"],
] as const;

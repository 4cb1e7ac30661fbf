/** API schemas of a URL, a host and a subnet's hosts in the frontier. */
import { z } from "zod";
import { dateTime, type ToldOf } from "../../web/api-operation.ts";
import type { StatedUses } from "../batch/stated-uses.ts";
import { statedCountSchema, statedUsesSchema } from "../batch/stated-uses-api.ts";

/** Maximum fetches listed per URL, the latest ones. */
export const visitsListed = 50;

const fetchLine = z
  .strictObject({
    url: z.string(),
    crawler: z.string(),
    fetchedAt: dateTime(),
    outcome: z.string(),
    blame: z.string().nullable(),
    status: z.int().nullable(),
    totalMs: z.number(),
    bodyBytes: z.int(),
    shippedBytes: z.int(),
    changed: z
      .boolean()
      .nullable()
      .describe("Whether it found other content than the fetch before it; null: nothing to compare with."),
  })
  .meta({ id: "FetchLine" });

export const urlReport = z
  .strictObject({
    url: z.string(),
    state: z
      .enum([
        "in-progress",
        "due",
        "scheduled",
        "blocked-by-robots",
        "refused",
        "gone",
        "payment-required",
        "held",
      ])
      .describe(
        "in-progress: a crawler has it. due: it may be fetched now. scheduled: later. held: over its host's budget for " +
          "the time being. payment-required: the site answers with 402, and it is asked again after a month.",
      ),
    depth: z.int(),
    redirects: z.int().describe("In a row that led to it."),
    backLinks: z.int(),
    discoveredAt: dateTime(),
    nextFetchAt: dateTime().nullable(),
    visits: z.int(),
    failures: z.int().describe("In a row."),
    lastFetchedAt: dateTime().nullable(),
    lastOutcome: z.string().nullable(),
    lastStatus: z.int().nullable(),
    lastReason: z.string().nullable(),
    worth: z
      .enum(["good", "near-duplicate", "not-found", "empty", "failed"])
      .nullable()
      .describe("What it counts for in its host's budget; null: nothing."),
    page: z
      .strictObject({
        title: z.string(),
        language: z.string().nullable(),
        words: z.int(),
        declaredLanguage: z.string().nullable().describe("BCP 47, as the page states it."),
        detectedLanguage: z.string().nullable().describe("ISO 639, by the text."),
        publishedAt: dateTime().nullable(),
        modifiedAt: dateTime().nullable(),
        structured: z
          .strictObject({ type: z.string(), name: z.string(), description: z.string() })
          .nullable(),
        duplicateOf: z.string().nullable().describe("A page that had nearly the same text before."),
      })
      .nullable(),
    stated: statedUsesSchema
      .nullable()
      .describe(
        "What the site states of the uses of its page in the index; null: nothing, or there is no page.",
      ),
    fetches: z.array(fetchLine).describe("The latest 50, newest first."),
    id: z
      .strictObject({ hostHash: z.string(), urlHash: z.string() })
      .describe("Its key: what the frontier and the web graph know it by; 64-bit numbers as text."),
    foundBy: z.enum(["seed", "redirect", "list", "link"]).describe("list: a sitemap or a feed."),
    validators: z
      .strictObject({
        etag: z.string().nullable(),
        lastModified: z.string().nullable(),
        digest: z.string().nullable().describe("SHA-256 of the body last read, in hex."),
      })
      .describe("What the next fetch asks with."),
    changes: z.strictObject({
      perDay: z.number().nullable().describe("Estimated content changes per day; null: not known."),
      comparedVisits: z.int(),
      contentChanges: z.int(),
      outLinks: z.int().nullable(),
      linkRatio: z
        .number()
        .nullable()
        .describe("Of its links the share that changed between its last two visits."),
    }),
  })
  .meta({ id: "UrlReport" });

export const hostReport = z
  .strictObject({
    host: z.string(),
    state: z.enum(["unresolved", "resolved", "refused", "unresolvable"]),
    stateReason: z.string(),
    resolveAt: dateTime(),
    resolveFailures: z.int(),
    addresses: z.array(z.string()),
    urlCount: z.int(),
    urlStates: z.record(z.string(), z.int()),
    dueAt: dateTime().nullable(),
    notBefore: dateTime().nullable().describe("Politeness."),
    lease: z
      .strictObject({ crawler: z.string(), grantedAt: dateTime(), expiresAt: dateTime(), openUrls: z.int() })
      .nullable(),
    robots: z
      .strictObject({ state: z.enum(["rules", "none", "closed", "unreachable"]), at: dateTime() })
      .describe("Its robots.txt, as it was found last. closed and unreachable disallow everything.")
      .nullable(),
    pace: z
      .strictObject({
        crawlDelayMs: z.int(),
        backOffMs: z.int().nullable().describe("After 429 or 503."),
        backedOffAt: dateTime().nullable(),
        usualMs: z.int().nullable().describe("How long it usually takes to answer."),
        tolerated: z
          .strictObject({
            perHour: z.number().describe("Requests."),
            limitedBy: z
              .enum(["refused", "silent", "slow"])
              .describe(
                "429 and 503; answers that stayed away; answers that took several times longer than usual.",
              ),
            refusedPerHour: z
              .number()
              .describe("The rate at which it turned crawlers away last; 0: not remembered."),
            refusedAt: dateTime().nullable(),
            at: dateTime().describe("When this was found."),
          })
          .nullable()
          .describe("The rate that it was found to tolerate; null: nothing limits it but the above."),
      })
      .describe("Politeness, as the last crawler left it.")
      .nullable(),
    capDelayMs: z
      .int()
      .nullable()
      .describe("Least time between two requests by an operator's cap on its site; null: there is none."),
    connection: z
      .strictObject({ http: z.string(), tls: z.string().nullable() })
      .describe("How it was spoken to last: HTTP version, verified TLS version.")
      .nullable(),
    budget: z.strictObject({
      earnedUrls: z.int().describe("URLs of it that may be in the frontier, before the operator's limit."),
      heldUrls: z.int().describe("Found beyond the budget, and waiting for it to grow."),
      leftOutUrls: z
        .int()
        .describe("Times that a URL was named beyond what is held back: left out each time, and not kept."),
      pages: z.strictObject({
        good: z.int(),
        nearDuplicates: z.int(),
        notFound: z.int(),
        empty: z.int(),
        failed: z.int(),
        trappedLinks: z.int(),
        outsideLinks: z.int(),
      }),
    }),
    domain: z
      .strictObject({
        domain: z.string(),
        hosts: z.int().describe("That links brought in."),
        newToday: z.int(),
        linkedToday: z
          .int()
          .describe("What its pages' links brought today: hosts, each first one of a domain five times."),
        waiting: z
          .int()
          .describe("URLs that wait for a later day, on new hosts of it or linked from its pages."),
        leftOut: z.int().describe("URLs that came when no more could wait."),
      })
      .describe("Its registrable domain; null: links have brought in nothing of it, and its pages nothing.")
      .nullable(),
    stated: z
      .strictObject({
        pages: z.int().describe("Its indexed pages that were counted."),
        more: z.boolean().describe("There are more than were counted."),
        counts: z.array(statedCountSchema),
      })
      .describe("How many of its pages are stated to be for what."),
    payment: z
      .strictObject({
        inARow: z.int().describe("Answers with status 402 in a row, the last ones."),
        askedAt: dateTime().nullable(),
        price: z.string().nullable().describe("As the site names it; null: it names none."),
      })
      .nullable()
      .describe("It asks to be paid; null: it does not."),
    botGate: z
      .strictObject({
        provider: z.string().describe("Short name, such as cloudflare; unknown: told by its words or shape."),
        of: z.enum(["page", "robots"]).describe("What it answered for."),
        tries: z.int().describe("In a row, one after each rest."),
        since: dateTime(),
        lastAt: dateTime(),
      })
      .nullable()
      .describe("A bot gate answers in the host's place, so that it rests; null: it does not."),
    nextUrls: z.array(z.strictObject({ url: z.string(), nextFetchAt: dateTime() })),
    fetches: z.array(fetchLine),
  })
  .meta({ id: "HostReport" });

export const waitingReport = z
  .strictObject({
    subnetId: z.int(),
    hosts: z.int(),
    more: z.boolean(),
    next: z.array(z.strictObject({ host: z.string(), dueAt: dateTime(), urls: z.int() })),
  })
  .meta({ id: "WaitingReport" });

export type FetchLine = ToldOf<typeof fetchLine>;
export type UrlReport = Omit<ToldOf<typeof urlReport>, "stated"> & { readonly stated: StatedUses | null };
export type PageReport = NonNullable<UrlReport["page"]>;
export type HostReport = ToldOf<typeof hostReport>;
export type WaitingReport = ToldOf<typeof waitingReport>;

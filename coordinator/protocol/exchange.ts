/**
 * What a coordinator and its parent say to each other (WEB-SAILOR section 4.4, figure 5): the child asks, over
 * HTTP, and each such exchange carries URLs both ways. URLs have numbers in each direction that only rise; whoever
 * takes them commits the highest number with them, so that what comes twice counts once, and says so with the next
 * message, so that the other side may let go of them.
 */
import { z } from "zod";
import { listOf } from "./fields.ts";
import { maxRedirects } from "./result.ts";

export const exchangePath = "/api/coordinators/exchange";
export const exchangeVersion = 1;

/** URLs in one message; and their text in all, so that a message stays below `maxExchangeBytes`. */
export const maxExchangedUrls = 2000;
export const maxExchangedUrlBytes = 1_000_000;
/** Of JSON: the URLs, and under 200 bytes around each. */
export const maxExchangeBytes = 4_000_000;
/** Coordinators above one another. */
export const maxChain = 16;
/** Domain sets of one coordinator, and characters of one. */
const maxClaims = 1000;
const maxClaimLength = 300;

/** Of one URL in one message, and in all that is counted of a URL or host of others. */
export const mostLinks = 1_000_000_000;
const number = z.int().min(0).max(Number.MAX_SAFE_INTEGER);
const smallNumber = z.int().min(0).max(1000);

/** The URL is canonical, and made canonical again by whoever takes it. */
export const exchangedUrl = z
  .strictObject({
    number: number.min(1),
    url: z.string().min(1).max(4096),
    depth: smallNumber.describe("Links from a seed."),
    redirects: z.int().min(0).max(maxRedirects).default(0).describe("In a row that led to it."),
    lists: smallNumber.default(0).describe("Sitemaps and feeds in a row that led to it."),
    hops: smallNumber.describe("Coordinators that it has passed."),
    links: z
      .int()
      .min(-mostLinks)
      .max(mostLinks)
      .describe("Links to it added less those removed, since it was last sent."),
  })
  .meta({ id: "ExchangedUrl" });
export type ExchangedUrl = Readonly<z.infer<typeof exchangedUrl>>;

const urls = listOf(exchangedUrl, maxExchangedUrls);

export const childMessage = z.strictObject({
  version: z.int().min(1).max(1000),
  coordinatorId: z.uuid(),
  owns: z.array(z.string().min(1).max(maxClaimLength)).min(1).max(maxClaims),
  linkId: z.uuid().nullable().describe("Of the last answer; null: this is the first."),
  received: number.describe("The highest number that came down and is committed."),
  urls,
});
export type ChildMessage = Readonly<z.infer<typeof childMessage>>;

export const parentAnswer = z.strictObject({
  coordinatorId: z.uuid(),
  chain: z.array(z.uuid()).min(1).max(maxChain).describe("This coordinator and those above it."),
  linkId: z.uuid(),
  received: number.describe("The highest number that came up and is committed."),
  urls,
});
export type ParentAnswer = Readonly<z.infer<typeof parentAnswer>>;

/** What is wrong with a message or an answer, in few words: its own may be as long as itself. */
export function exchangeFault({ issues: [first] }: z.ZodError): string {
  return `not of the stated form (${first?.path.join(".").slice(0, 100)}: ${first?.message.slice(0, 200)})`;
}

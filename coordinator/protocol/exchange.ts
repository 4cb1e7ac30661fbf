/**
 * The exchange between a coordinator and its parent (WEB-SAILOR section 4.4, figure 5). The child asks over HTTP, and each
 * exchange carries URLs both ways, with rising numbers in each direction. The receiver commits the highest number together
 * with the URLs, so that a repetition counts once, and reports it in the next message, so that the sender can drop them.
 */
import { z } from "zod";
import { listOf } from "./fields.ts";
import { maxRedirects } from "./result.ts";

export const exchangePath = "/api/coordinators/exchange";
export const exchangeVersion = 1;

/** Maximum number of URLs, and of characters of text, in one message, so that it stays below `maxExchangeBytes`. */
export const maxExchangedUrls = 2000;
export const maxExchangedUrlBytes = 1_000_000;
/** Maximum size of the JSON, which has less than 200 bytes around each URL. */
export const maxExchangeBytes = 4_000_000;
/** Maximum length of a chain of parent coordinators. */
export const maxChain = 16;
/** Maximum number of domain sets of one coordinator, and of characters in one. */
const maxClaims = 1000;
const maxClaimLength = 300;

/** Maximum number of links to one URL in one message, and maximum count for a URL or host of other coordinators. */
export const mostLinks = 1_000_000_000;
const number = z.int().min(0).max(Number.MAX_SAFE_INTEGER);
const smallNumber = z.int().min(0).max(1000);

/** Sent in canonical form, but the receiver canonicalises it again. */
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

/** Describes the first fault of a message in a few words, because zod's own text may be as long as the message. */
export function exchangeFault({ issues: [first] }: z.ZodError): string {
  return `not of the stated form (${first?.path.join(".").slice(0, 100)}: ${first?.message.slice(0, 200)})`;
}

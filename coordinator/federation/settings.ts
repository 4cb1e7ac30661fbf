/** The settings of a coordinator that has a parent, or children: what is wrong with them is said with the value. */
import { z } from "zod";
import { canParseUrl } from "#core/ip/url-host";
import { urlKeyOf } from "#core/url-key";
import type { ExchangedUrl } from "#protocol/exchange";
import { nothingInBoth, readLayer } from "../domain-sets/partition.ts";
import { readClaims } from "./claims.ts";
import type { GivenUrl, GivenUrls } from "./exchange-ports.ts";

const loopbackHost = /^(?:localhost|\[::1\]|127(?:\.\d{1,3}){3})$/;

function isParentUrl(text: string): boolean {
  if (!canParseUrl(text)) return false;
  const { protocol, hostname, username, password, search, hash } = new URL(text);
  if (username + password + search + hash !== "") return false;
  return protocol === "https:" || (protocol === "http:" && loopbackHost.test(hostname));
}

/** `parent` in the coordinator's file; `nearcrawl coordinators invite NAME`, at the parent, prints it. */
export const parentSettings = z.strictObject({
  url: z
    .string()
    .max(1000)
    .refine(isParentUrl, {
      error: ({ input }) => `"${input}" must be https://host[:port][/path], or http:// on this machine`,
    })
    .transform((url) => url.replace(/\/+$/, "")),
  key: z
    .string()
    .max(200)
    .regex(/^ncc_[A-Za-z0-9_-]{16,}$/, "is no key of nearcrawl coordinators invite (ncc_…)"),
  /** SHA-256 of the parent's TLS key, base64url; null: its certificate is checked as browsers do. */
  certificatePin: z
    .string()
    .regex(/^[A-Za-z0-9_-]{43}$/, "is no pin of a TLS key: 43 characters of base64url")
    .nullable()
    .default(null),
  /** Domain sets by name (".gr", "example.org not blog.example.org"), or blocks of addresses ("192.0.2.0/24"). */
  owns: z
    .array(z.string().min(1).max(300))
    .min(1, "must name a domain set or a block of addresses at least")
    .max(1000)
    .superRefine((texts, context) => {
      const claims = readClaims(texts);
      if (typeof claims === "string") context.addIssue({ code: "custom", message: claims });
    }),
});

/** `coordinators` in the coordinator's file: the exchange with parent and children. */
export const coordinatorsSettings = z.strictObject({
  /** How often the parent is asked while nothing waits. */
  everySeconds: z.number().min(0.1).max(3600).default(5),
  /** URLs that wait for others; beyond, those with the fewest links are given up, the oldest first. Some 200 bytes each. */
  mostWaitingUrls: z.int().min(1000).max(100_000_000).default(1_000_000),
  /** Hosts that nobody knew and that one child may bring in, a day. */
  newHostsPerChildAndDay: z.int().min(0).max(1_000_000_000).default(10_000_000),
});

/** What in other settings contradicts the parent's: an address that is this coordinator's own, or nothing left to crawl. */
export function parentFaults(
  parent: { readonly url: string; readonly owns: readonly string[] } | null,
  { publicUrl, domainSets }: { readonly publicUrl: string | null; readonly domainSets: readonly string[] },
): string[] {
  if (parent === null) return [];
  const isItself = publicUrl !== null && new URL(parent.url).href === new URL(publicUrl).href;
  const claims = readClaims(parent.owns);
  const crawled = readLayer(domainSets);
  const owned = typeof claims === "string" || claims.kind === "blocks" ? [] : claims.sets;
  const nothing =
    typeof crawled === "string"
      ? null
      : nothingInBoth(owned, { layer: crawled, whose: "domainSets, which says what is crawled" });
  return [
    ...(isItself ? [`parent.url: ${parent.url} is this coordinator itself (publicUrl)`] : []),
    ...(nothing === null ? [] : [`parent.owns: ${nothing}`]),
  ];
}

// What another coordinator sends is untrusted: each URL is made canonical anew, and numbers must rise.

/** A text: what is wrong with all of it. A URL without a key is left out and counted, as one that a page names is. */
export function readGivenUrls(urls: readonly ExchangedUrl[]): GivenUrls | string {
  const read: GivenUrl[] = [];
  let highest = 0;
  for (const { url, ...rest } of urls) {
    if (rest.number <= highest)
      return `number ${rest.number} comes after number ${highest}: numbers must rise`;
    highest = rest.number;
    const key = urlKeyOf(url);
    if (typeof key !== "string") read.push({ ...rest, key });
  }
  return { urls: read, highest, faulty: urls.length - read.length };
}

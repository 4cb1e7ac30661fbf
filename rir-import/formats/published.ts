/**
 * Receives a published list of places in any format: each range with its place, then the list's age. A list's size is
 * checked before it is read (`mostListBytes`).
 */
import type { PublishedKind } from "#coordinator/place/subnets/published-ranges";
import type { IpRange } from "#core/ip/range";
import { specialPurposeOfRange } from "#core/ip/special-purpose";
import type { Malformed } from "./record.ts";
import { readRegistryRange } from "./registry-range.ts";

/** A larger list is refused unread. The largest in use has some 5 MB. */
export const mostListBytes = 16 * 2 ** 20;

/** A list not confirmed for longer is ignored, and a newer one replaces it however many ranges it moves. */
export const keptDays = 92;

export const mostListRanges = 500_000;

export const maxPlaceLength = 120;

export interface PublishedSink {
  /** `place` is null when the list gives no single place for the range. */
  range(found: { readonly line: number; readonly range: IpRange; readonly place: string | null }): void;
  ignore(reason: string): void;
  malformed(problem: Malformed): void;
  facts(facts: { readonly listDate?: string; readonly version?: string }): void;
}

export const publishedFormats = [
  "geofeed",
  "aws-ranges",
  "google-ranges",
  "azure-ranges",
  "oracle-ranges",
  "cloudflare-ranges",
] as const;
export type PublishedFormat = (typeof publishedFormats)[number];

export const isPublishedFormat = (format: string): format is PublishedFormat =>
  (publishedFormats as readonly string[]).includes(format);

export const kindOfFormat = (format: PublishedFormat) => format.replace("-ranges", "") as PublishedKind;

/** No network owns a wider range: the widest in the clouds' lists are a /9 and a /20. */
const shortestPrefix = { 4: 8, 6: 16 } as const;

/** Reads a publishable prefix or address, or returns why not. Host bits are cleared. */
export function readPublishedRange(text: string): { readonly range: IpRange } | { readonly reason: string } {
  if (text.includes(" - ") || /^[\d.]+-/.test(text)) return { reason: "not a prefix" };
  const reading = readRegistryRange(text);
  if ("reason" in reading) return reading;
  const { range } = reading;
  const widest = range.family === 4 ? 2 ** (32 - shortestPrefix[4]) : 2 ** (128 - shortestPrefix[6]);
  if (Number(range.last) - Number(range.first) + 1 > widest) {
    return { reason: `a prefix shorter than /${shortestPrefix[range.family]}` };
  }
  const specialPurpose = specialPurposeOfRange(range);
  return specialPurpose === null ? { range } : { reason: `special-purpose addresses, ${specialPurpose}` };
}

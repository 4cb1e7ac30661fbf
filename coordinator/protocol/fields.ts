/** Fields that several messages use, each with its bounds. */
import { z } from "zod";
import { parseAddress } from "../core/ip/address.ts";
import { isHostName, withoutUser } from "../core/ip/url-host.ts";

/** Maximum length of a URL anywhere. RFC 9110 section 4.1 recommends at least 8000, but URLs rarely exceed 2 KB. */
export const maxUrlLength = 2048;

/** User and password are removed on arrival. */
export const url = z.string().min(1).max(maxUrlLength).overwrite(withoutUser);
/** The canonical form of a host. It can end neither a line nor an argument. */
export const hostName = z.string().max(253).refine(isHostName, { error: "is no host's name" });
export const address = z
  .string()
  .max(45)
  .refine((text) => parseAddress(text) !== null, { error: "is no IP address" });
export const words = z.string().max(500);
/** Text from the coordinator that may be read on a terminal: control characters and direction marks are removed. */
export const coordinatorWords = words.transform(plainWords);
export const leaseId = z.string().regex(/^\d{1,19}$/);
/** A SHA-256 digest in hex. */
export const digest = z.string().regex(/^[0-9a-f]{64}$/);
/** Maximum duration in any message (one day). */
export const maxMilliseconds = 86_400_000;
/** Durations too small to measure become 0, because Postgres cannot store 5e-324 as real. */
export const milliseconds = z
  .number()
  .min(0)
  .max(maxMilliseconds)
  .overwrite((ms) => (ms < 1e-6 ? 0 : ms));
/** An instant that Postgres can hold, from 1970 to 9999. */
export const instant = z.iso.datetime().refine((text) => /^(19[7-9]|[2-9]\d)\d/.test(text), {
  error: "is before 1970",
});

/**
 * A list of at most `most` elements, checked only up to the first fault. z.array checks all elements and describes each
 * fault, which takes longer than all other work with such a message.
 */
export function listOf<Element extends z.ZodType>(element: Element, most: number) {
  const list = z
    .array(z.unknown())
    .max(most)
    .transform((values, context): z.output<Element>[] => {
      const checkedOnes: z.output<Element>[] = [];
      for (const [at, value] of values.entries()) {
        const checked = element.safeParse(value);
        if (checked.success) {
          checkedOnes.push(checked.data);
          continue;
        }
        for (const { path, message } of checked.error.issues.slice(0, mostIssues))
          context.addIssue({ code: "custom", path: [at, ...path], message });
        return z.NEVER;
      }
      return checkedOnes;
    });
  elements.set(list, element);
  return list;
}

/** The element schema of each such list, for code that walks through a schema. */
export const elements: WeakMap<z.ZodType, z.ZodType> = new WeakMap();

const mostIssues = 3;

export function plainWords(text: string): string {
  return text.replace(/\p{Cc}/gu, " ").replace(/[\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, "");
}

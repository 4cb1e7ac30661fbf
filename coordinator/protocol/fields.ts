/** What messages are made of: the fields that stand in several of them, each bounded once. */
import { z } from "zod";
import { parseAddress } from "../core/ip/address.ts";
import { isHostName, withoutUser } from "../core/ip/url-host.ts";

/** Longest URL that is accepted anywhere (RFC 9110 section 4.1 recommends at least 8000; the web rarely passes 2 KB). */
export const maxUrlLength = 2048;

/** Comes in without user and password, whoever sent them. */
export const url = z.string().min(1).max(maxUrlLength).overwrite(withoutUser);
/** In the one form that frontier, leases and connections know; nothing in it can end a line or an argument. */
export const hostName = z.string().max(253).refine(isHostName, { error: "is no host's name" });
/** A literal IP address. */
export const address = z
  .string()
  .max(45)
  .refine((text) => parseAddress(text) !== null, { error: "is no IP address" });
/** A reason, for people. */
export const words = z.string().max(500);
/** What the coordinator says to people, who may read it at a terminal: control characters and direction marks go. */
export const coordinatorWords = words.transform(plainWords);
export const leaseId = z.string().regex(/^\d{1,19}$/);
/** SHA-256, hex. */
export const digest = z.string().regex(/^[0-9a-f]{64}$/);
/** A day: no message states a longer time. */
export const maxMilliseconds = 86_400_000;
/** What no clock tells apart from nothing is none: Postgres has no place for 5e-324 in a real. */
export const milliseconds = z
  .number()
  .min(0)
  .max(maxMilliseconds)
  .overwrite((ms) => (ms < 1e-6 ? 0 : ms));
/** An instant that Postgres can hold, and that anybody means. */
export const instant = z.iso.datetime().refine((text) => /^(19[7-9]|[2-9]\d)\d/.test(text), {
  error: "is before 1970",
});

/**
 * A list of at most so many, looked at up to the first element that is not as it should be: z.array looks at all of
 * them and describes each fault, which takes longer than everything else that is done with a message of such a list.
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

/** Of each such list, which does not show it by itself, for whoever walks through a schema. */
export const elements: WeakMap<z.ZodType, z.ZodType> = new WeakMap();

/** Of one element: who reads them is told of the first. */
const mostIssues = 3;

/** Steers no terminal, and does not read backwards. */
export function plainWords(text: string): string {
  return text.replace(/\p{Cc}/gu, " ").replace(/[\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, "");
}

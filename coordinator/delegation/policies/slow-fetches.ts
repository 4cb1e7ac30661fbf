/** Why a subnet is probed again because of its fetches: the evidence as a value, stored with the round, and in words. */
import { z } from "zod";

const ms = z.number().min(0);

/** The fetches of one host that gave the alarm; times in ms. */
export const slowFetches = z.object({
  type: z.literal("slow-fetches"),
  host: z.string().max(253),
  rule: z.enum(["slow-in-a-row", "change-point"]),
  kind: z.enum(["connect", "firstByte"]),
  usualMs: ms,
  nowMs: ms,
  fetches: z.int().min(1),
});
export type SlowFetches = Readonly<z.infer<typeof slowFetches>>;

const kindWords = { connect: "time to connect", firstByte: "time to the first byte" } as const;

/** "Fetches had become slow: of www.example.org, 7 took 48 ms to …, usually 23 ms …". One sentence or two. */
export function slowFetchesWords({ host, rule, kind, usualMs, nowMs, fetches }: SlowFetches): string {
  const times = `usually ${whole(usualMs)}, the last ${fetches} ${whole(nowMs)}`;
  const why =
    rule === "slow-in-a-row"
      ? "each of them slower than the operator's factor allows"
      : "too many in the upper part of what is usual to be chance";
  return `Fetches of ${host} had become slow: ${kindWords[kind]} ${times} (medians), ${why}.`;
}

/** The same in a few words, for a list. */
export function slowFetchesBrief({ host, usualMs, nowMs, fetches }: SlowFetches): string {
  return `${host} slower: ${whole(usualMs)} → ${whole(nowMs)} over ${fetches} fetches`;
}

/** The evidence among a stored round's parameters; null where there is none. */
export function slowFetchesIn(parameters: Readonly<Record<string, unknown>>): SlowFetches | null {
  const parsed = slowFetches.safeParse(parameters.evidence);
  return parsed.success ? parsed.data : null;
}

const whole = (value: number): string => `${value < 10 ? value.toFixed(1) : Math.round(value)} ms`;

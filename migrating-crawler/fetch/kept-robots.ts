/**
 * robots.txt rules as they lie on disk, so that a restart does not send the whole fleet of hosts another request
 * each: the lines that are for us, with their numbers, and when they are to be asked for again. Only rules that
 * were read are kept; a closed or silent site is asked anew.
 */
import { z } from "zod";
import { maxUrlLength } from "#protocol/fields";
import type { KnownRobots } from "./robots.ts";
import { byPrecedence, type RobotsRule, robotsRule } from "./robots-match.ts";

/** What is written at most: the origins met last, while their rules' text stays below this. */
const maxOrigins = 5000;
const maxCharacters = 4 * 1024 * 1024;
const longestMs = 24 * 3_600_000;

const line = z.tuple([z.int().min(1), z.union([z.literal(0), z.literal(1)]), z.string().max(16_384)]);
const entry = z.object({
  origin: z.string().max(300),
  untilMs: z.number(),
  none: z.boolean(),
  crawlDelaySeconds: z.number().min(0).nullable(),
  sitemaps: z.array(z.string().max(maxUrlLength)).max(50),
  agents: z.array(z.string().max(400)).max(20),
  cut: z.boolean(),
  lines: z.array(line).max(100_000),
});
const file = z.object({ version: z.literal(1), origins: z.array(z.unknown()).max(maxOrigins) });

type Entry = z.infer<typeof entry>;

/** Those met last first, as a JSON value. */
export function keptRobots(known: Iterable<[string, KnownRobots]>): unknown {
  const origins: Entry[] = [];
  let characters = 0;
  for (const [origin, { answer, untilMs }] of known) {
    if (answer.type !== "rules" && answer.type !== "none") continue;
    const { rules, ...rest } = answer.rules;
    const lines = rules.map((rule): Entry["lines"][number] => [rule.line, rule.allow ? 1 : 0, rule.source]);
    characters += lines.reduce((sum, [, , value]) => sum + value.length + 20, 200);
    if (origins.length === maxOrigins || characters > maxCharacters) break;
    const none = answer.type === "none";
    origins.push({
      origin,
      untilMs,
      none,
      ...rest,
      sitemaps: [...rest.sitemaps],
      agents: [...rest.agents],
      lines,
    });
  }
  return { version: 1, origins };
}

/** Those met last last; null when the JSON is not ours. What is too old, or damaged, is left out. */
export function robotsFrom(json: unknown, nowMs: number): [string, KnownRobots][] | null {
  const read = file.safeParse(json);
  if (!read.success) return null;
  return read.data.origins.flatMap((one) => knownFrom(one, nowMs)).reverse();
}

function knownFrom(one: unknown, nowMs: number): [string, KnownRobots][] {
  const read = entry.safeParse(one);
  if (!read.success) return [];
  const { origin, untilMs, none, lines, ...rest } = read.data;
  if (untilMs <= nowMs || untilMs > nowMs + longestMs) return [];
  const rules = lines
    .map(([number, allow, value]) => robotsRule(allow === 1, value, number))
    .filter((rule): rule is RobotsRule => rule !== null)
    .sort(byPrecedence);
  return [[origin, { answer: { type: none ? "none" : "rules", rules: { rules, ...rest } }, untilMs }]];
}

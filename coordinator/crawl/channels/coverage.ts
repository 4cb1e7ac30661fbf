/** How far the crawl of a channel or of a seed's host has come, and what cut it short. */
import { z } from "zod";
import { howMany } from "#core/format";
import type { ReadOf } from "../../web/api-operation.ts";

const coveredSeed = z.strictObject({
  url: z.string(),
  state: z.string().nullable().describe("Null: it is not in the frontier."),
  lastOutcome: z.string().nullable(),
  lastStatus: z.int().nullable(),
  fetches: z.int(),
});

export const coverage = z
  .strictObject({
    channelId: z.int().nullable().describe("Null: the whole host."),
    host: z.string(),
    directories: z.array(z.string()),
    maxDepth: z.int().describe("Links from a seed that are followed."),
    seeds: z.array(coveredSeed).describe("1,000 at most."),
    state: z
      .enum(["in-progress", "complete", "cut", "blocked"])
      .describe("cut: everything in the crawl was requested, and more is known that was skipped."),
    cutBy: z.array(z.enum(["budget", "depth"])),
    words: z.string(),
    fetched: z.int().describe("URLs that were requested at least once."),
    waiting: z.int().describe("Due or in progress, and never requested."),
    gone: z.int(),
    refusedByRobots: z.int(),
    held: z.int().describe("Found over the host's budget, and held back."),
    leftOut: z.int().describe("How often a URL beyond those held back was found; of the whole host."),
    tooDeep: z
      .int()
      .describe("URLs that its deepest pages link to and that are not in the crawl; counted to 1,000."),
    deepest: z.int().describe("Links from a seed."),
    more: z.boolean().describe("The host has more URLs than the 100,000 that were counted."),
  })
  .meta({ id: "Coverage" });

/**
 * in-progress  some of its URLs wait for their first fetch
 * complete     all URLs found of it have been requested
 * cut          all its URLs have been requested, but further ones are known that were left out
 * blocked      nobody may or can crawl the host
 */
type CoverageState = Coverage["state"];

/** `budget`: the host has no room for more URLs. `depth`: there are links beyond the maximum depth. */
const coverageCuts = ["budget", "depth"] as const;

export type Coverage = ReadOf<typeof coverage>;

type CoverageCounts = Omit<
  CoverageFacts,
  "channelId" | "host" | "directories" | "maxDepth" | "seeds" | "more" | "blocked"
>;

interface CoverageFacts extends Omit<Coverage, "state" | "cutBy" | "words"> {
  /** Why the host cannot be crawled; null if it can. */
  readonly blocked: string | null;
}

export function coverageOf({ blocked, ...facts }: CoverageFacts): Coverage {
  const cutBy = coverageCuts.filter((cut) =>
    cut === "budget" ? facts.held + facts.leftOut > 0 : facts.tooDeep > 0,
  );
  const state = stateOf(facts, blocked, cutBy);
  return { ...facts, state, cutBy, words: wordsOf(facts, { state, cutBy, blocked }) };
}

/** For example `12 complete, 2 cut by budget, 1 in progress`. */
export function coverageSum(all: readonly Coverage[]): string {
  const counts = new Map<string, number>();
  for (const { state, cutBy } of all) {
    const name = state === "cut" ? `cut by ${cutBy.join(" and ")}` : state.replace("-", " ");
    counts.set(name, (counts.get(name) ?? 0) + 1);
  }
  return [...counts]
    .sort(([, one], [, other]) => other - one)
    .map(([name, count]) => `${count} ${name}`)
    .join(", ");
}

function stateOf(
  { waiting }: CoverageCounts,
  blocked: string | null,
  cutBy: Coverage["cutBy"],
): CoverageState {
  if (blocked !== null) return "blocked";
  if (waiting > 0) return "in-progress";
  return cutBy.length > 0 ? "cut" : "complete";
}

function wordsOf(
  facts: CoverageCounts & { readonly maxDepth: number },
  { state, cutBy, blocked }: Pick<Coverage, "state" | "cutBy"> & { readonly blocked: string | null },
): string {
  if (blocked !== null) return `blocked: ${blocked}`;
  const cuts = cutBy.map((cut) => {
    if (cut === "depth")
      return `depth (${howMany(facts.tooDeep, "URL")} more than ${howMany(facts.maxDepth, "link")} from a seed)`;
    const held = facts.held > 0 ? `${howMany(facts.held, "URL")} held back` : "";
    const leftOut = facts.leftOut > 0 ? `URLs skipped ${howMany(facts.leftOut, "time")}` : "";
    return `budget (${[held, leftOut].filter((words) => words !== "").join(", ")})`;
  });
  const cut = cuts.length === 0 ? "" : `cut by ${cuts.join(" and by ")}`;
  if (state === "in-progress")
    return `in progress: ${howMany(facts.waiting, "URL")} to go${cut === "" ? "" : `; ${cut} so far`}`;
  return cut === "" ? "complete" : cut;
}

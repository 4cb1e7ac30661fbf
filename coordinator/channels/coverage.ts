/** How far the crawl of a channel, or of a seed's host, has come, and what cut it short. */
import { howMany } from "#core/format";

/**
 * in-progress  URLs of it wait for their first fetch
 * complete     everything that was found of it has been asked for
 * cut          the same, and more is known that was left out
 * blocked      nobody may or can crawl the host
 */
export const coverageStates = ["in-progress", "complete", "cut", "blocked"] as const;
type CoverageState = (typeof coverageStates)[number];

/** `budget`: its host has as many URLs as it has earned, or may have. `depth`: links beyond the depth that is allowed. */
export const coverageCuts = ["budget", "depth"] as const;
type CoverageCut = (typeof coverageCuts)[number];

export interface CoveredSeed {
  readonly url: string;
  /** Null: it is not in the frontier. */
  readonly state: string | null;
  readonly lastOutcome: string | null;
  readonly lastStatus: number | null;
  readonly fetches: number;
}

export interface CoverageCounts {
  /** URLs that were requested at least once. */
  readonly fetched: number;
  /** Due or in progress, and never requested. */
  readonly waiting: number;
  readonly gone: number;
  readonly refusedByRobots: number;
  /** Found over the host's budget, and held back. */
  readonly held: number;
  /** Times that one was named beyond what is held back; of the whole host. */
  readonly leftOut: number;
  /** URLs that its deepest pages link to and that are not in the crawl. */
  readonly tooDeep: number;
  /** Links from a seed. */
  readonly deepest: number;
}

export interface Coverage extends CoverageCounts {
  readonly channelId: number | null;
  readonly host: string;
  readonly directories: readonly string[];
  readonly maxDepth: number;
  readonly seeds: readonly CoveredSeed[];
  /** Only so many URLs were looked at: there are more. */
  readonly more: boolean;
  readonly state: CoverageState;
  readonly cutBy: readonly CoverageCut[];
  readonly words: string;
}

interface CoverageFacts extends Omit<Coverage, "state" | "cutBy" | "words"> {
  /** Why nobody may or can crawl the host; null: it is crawled. */
  readonly blocked: string | null;
}

export function coverageOf({ blocked, ...facts }: CoverageFacts): Coverage {
  const cutBy = coverageCuts.filter((cut) =>
    cut === "budget" ? facts.held + facts.leftOut > 0 : facts.tooDeep > 0,
  );
  const state = stateOf(facts, blocked, cutBy);
  return { ...facts, state, cutBy, words: wordsOf(facts, { state, cutBy, blocked }) };
}

/** `12 complete, 2 cut by budget, 1 in progress`. */
export function coverageSum(coverage: readonly Coverage[]): string {
  const counts = new Map<string, number>();
  for (const { state, cutBy } of coverage) {
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
  cutBy: readonly CoverageCut[],
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

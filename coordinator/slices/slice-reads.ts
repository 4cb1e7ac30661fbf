/** What slices there are, for operators: what each has, what moves, and what is wrong with it. */
import type { Database } from "#db/server-database";
import { bucketCount, type OpenSlice } from "../database/slices.ts";
import type { MoveStage, SliceState } from "./catalogue-store.ts";
import { OpenSlices, type SliceFinding } from "./open-slices-store.ts";

export interface SliceReport {
  readonly slices: readonly SliceLine[];
  readonly moves: readonly MoveLine[];
  /** Moves that wait behind those shown. */
  readonly furtherMoves: number;
  /** For people: what needs attention. */
  readonly faults: readonly string[];
}

export interface SliceLine {
  readonly slice: number;
  readonly schema: string | null;
  /** Without a password; null: the server of the shared tables. */
  readonly server: string | null;
  readonly state: SliceState | "down";
  readonly buckets: number;
  /** Of all hosts, by its buckets. */
  readonly share: number;
  /** Estimated; null: its server does not answer. */
  readonly hosts: number | null;
  /** URLs of other slices' hosts that wait to be carried there; null as above. */
  readonly waiting: number | null;
  /** The coordinator that works at it, by its number; null: nobody, or the one that leads. */
  readonly coordinator: number | null;
}

export interface MoveLine {
  readonly move: string;
  readonly from: number;
  readonly to: number;
  readonly firstBucket: number;
  readonly lastBucket: number;
  readonly stage: MoveStage;
  readonly since: string;
  readonly fault: string | null;
}

const movesShown = 20;

export async function sliceReport(database: Database): Promise<SliceReport> {
  const slices = await OpenSlices.open(database, { maxConnections: 2, statementTimeoutMs: 10_000 });
  try {
    const findings = await slices.look();
    const { slices: entries, ranges, moves, leads } = slices.catalogue;
    const lines = await Promise.all(
      entries.map(async (entry): Promise<SliceLine> => {
        const open = slices.open.find(({ number }) => number === entry.number);
        const isUp = open !== undefined && !slices.down.includes(entry.number);
        const buckets = ranges
          .filter(({ slice }) => slice === entry.number)
          .reduce((sum, { first, end }) => sum + end - first, 0);
        const counts = isUp ? await countsOf(open) : null;
        return {
          slice: entry.number,
          schema: entry.schema,
          server: entry.serverUrl,
          state: isUp || isBetween(entry.state) ? entry.state : "down",
          buckets,
          share: buckets / bucketCount,
          hosts: counts?.hosts ?? null,
          waiting: counts?.waiting ?? null,
          coordinator: leads.get(entry.number) ?? null,
        };
      }),
    );
    return {
      slices: lines,
      moves: moves.slice(0, movesShown).map((move) => ({
        ...{ move: move.number, from: move.from, to: move.to, stage: move.stage, fault: move.fault },
        ...{ firstBucket: move.buckets.first, lastBucket: move.buckets.end - 1 },
        since: move.stageAt.toISOString(),
      })),
      furtherMoves: Math.max(0, moves.length - movesShown),
      faults: [
        ...faultsOf(slices, findings).map(({ words }) => words),
        ...entries
          .filter(({ state }) => state === "removing")
          .map(({ number }) => `Slice ${number} is half removed: nearcrawl slices remove ${number} goes on.`),
      ],
    };
  } finally {
    await slices.close();
  }
}

/** Nobody opens it, not yet or no more. */
const isBetween = (state: SliceState) => state === "preparing" || state === "removing";

async function countsOf({ pool }: OpenSlice): Promise<{ hosts: number; waiting: number }> {
  const { rows } = await pool.query<{ hosts: number; waiting: number }>(
    `select (select count(*) from frontier_host)::float8 as hosts,
       (select coalesce(sum(effects), 0) from link_outbox where to_slice is not null)::float8 as waiting`,
  );
  return rows[0]!;
}

/** What the catalogue and the slices themselves say of who holds what must fit, but for what is on its way. */
export function faultsOf(
  { catalogue: { ranges, moves } }: Pick<OpenSlices, "catalogue">,
  findings: readonly SliceFinding[],
): { readonly slice: number; readonly words: string }[] {
  return findings.flatMap(({ number, self, fault }) => {
    const told = (words: string) => [{ slice: number, words: `Slice ${number} ${words}` }];
    if (fault !== null) return told(`does not answer: ${fault}.`);
    if (self === null || self.slice !== number)
      return told(`has a schema that says it is slice ${self?.slice ?? "of nobody"}.`);
    const held = new Set(bucketsIn(self.held));
    const owned = new Set(
      ranges.flatMap((range) => (range.slice === number ? bucketsBetween(range.first, range.end) : [])),
    );
    const moving = new Set(moves.flatMap(({ buckets }) => bucketsBetween(buckets.first, buckets.end)));
    const wrong = (some: Set<number>, other: Set<number>) =>
      [...some].filter((bucket) => !other.has(bucket) && !moving.has(bucket)).length;
    const [tooMany, tooFew] = [wrong(held, owned), wrong(owned, held)];
    if (tooMany + tooFew === 0) return [];
    return told(
      `holds ${tooMany} buckets that are not its own, and lacks ${tooFew} that are: it came back in an older state (nearcrawl slices mend ${number}).`,
    );
  });
}

const bucketsBetween = (first: number, end: number) =>
  Array.from({ length: end - first }, (_, index) => first + index);

/** Of a multirange's text. */
export function bucketsIn(held: string): number[] {
  return [...held.matchAll(/\[(\d+),(\d+)\)/g)].flatMap(([, first, end]) =>
    bucketsBetween(Number(first), Number(end)),
  );
}

/** Rounds of work over two lanes, as two coordinators do it: how many a second by the clock, and by processor time. */
import { type ProcessorTime, processorTime, timeSince } from "./processor-time.ts";

export interface Round extends ProcessorTime {
  readonly count: number;
  readonly wallMs: number;
}

export interface Rates {
  /** A second by the clock, on the machine as it was; median, least and most of the rounds. */
  readonly byClock: Spread;
  /** A second that two processors with nothing else to do would give: computed from the processor time used. */
  readonly onTwoCores: Spread;
  /** Microseconds of processor time for one: of Postgres and of this process. */
  readonly serverUs: number;
  readonly ownUs: number;
}

export interface Spread {
  readonly median: number;
  readonly least: number;
  readonly most: number;
}

const lanes = 2;

/** Does all jobs, two at a time; each gives how many it did. */
export async function roundOf(jobs: readonly (() => Promise<number>)[], server: number): Promise<Round> {
  const before = processorTime(server);
  const startMs = performance.now();
  const waiting = [...jobs];
  let count = 0;
  const lane = async () => {
    for (let job = waiting.shift(); job !== undefined; job = waiting.shift()) {
      const done = await job();
      count += done;
    }
  };
  await Promise.all(Array.from({ length: lanes }, lane));
  return { count, wallMs: performance.now() - startMs, ...timeSince(before, server) };
}

/** A Node process has one thread for this: of two cores it uses one at most, whatever Postgres leaves. */
function twoCoreRate({ count, ownMs, serverMs }: Round): number {
  return (1000 * count) / Math.max(ownMs, (ownMs + serverMs) / 2);
}

export function ratesOf(rounds: readonly Round[]): Rates {
  const per = (part: keyof ProcessorTime) =>
    spread(rounds.map((round) => (1000 * round[part]) / round.count)).median;
  return {
    byClock: spread(rounds.map(({ count, wallMs }) => (1000 * count) / wallMs)),
    onTwoCores: spread(rounds.map(twoCoreRate)),
    serverUs: per("serverMs"),
    ownUs: per("ownMs"),
  };
}

function spread(values: readonly number[]): Spread {
  const sorted = values.toSorted((a, b) => a - b);
  return { median: sorted[Math.floor(sorted.length / 2)]!, least: sorted[0]!, most: sorted.at(-1)! };
}

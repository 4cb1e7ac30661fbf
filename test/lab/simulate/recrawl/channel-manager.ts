/**
 * The manager of a recrawl simulation (sections 2.1 and 3 of the paper): when each channel is submitted next, the strategies'
 * records of its updates, and how fresh its stored pages are.
 */
import { type GroupRecord, isReassignmentDue } from "#coordinator/crawl/recrawl/priority-groups";
import type { SeededRandom } from "#ops/world/seeded-random";
import { Calendar } from "./calendar.ts";
import type { Update } from "./crawler-fleet.ts";
import type { RecrawlWorld } from "./recrawl-world.ts";
import type { RecrawlScenario } from "./scenario.ts";

const never = -1;

export class ChannelManager {
  /** Steps between two submissions of a channel; Infinity: none. */
  readonly intervals: Float64Array;
  /** All submissions and updates of each channel. */
  readonly submitted: Int32Array;
  readonly updates: Int32Array;
  /** Steps of download of all updates of each channel. */
  readonly downloadSteps: Float64Array;
  readonly #scenario: RecrawlScenario;
  readonly #group: Uint8Array;
  readonly #due: Calendar<number>;
  readonly #nextAt: Float64Array;
  readonly #members: Int32Array[];
  readonly #watched: number;
  readonly #lastUpdate: Float64Array;
  /** Since the last reassignment. */
  readonly #recent: {
    readonly submitted: Int32Array;
    readonly updates: Int32Array;
    readonly gaps: Int32Array;
    readonly gapSteps: Float64Array;
  };
  readonly #earlierGap: Float64Array;
  #withEnough = 0;
  /** Share of a channel's pages that were current at the end of its last download, and fresh steps so far. */
  readonly #current: Float64Array;
  readonly #freshSteps: Float64Array;

  constructor(scenario: RecrawlScenario, world: RecrawlWorld, random: SeededRandom) {
    const { channels, steps, changeMinutes } = scenario;
    const numbers = () => new Float64Array(channels);
    const counts = () => new Int32Array(channels);
    this.#scenario = scenario;
    this.#group = world.group;
    this.intervals = Float64Array.from(world.group, (group) => changeMinutes[group]!);
    this.submitted = counts();
    this.updates = counts();
    this.downloadSteps = numbers();
    this.#due = new Calendar(steps);
    this.#nextAt = this.intervals.map((interval) => random.next() * interval);
    this.#nextAt.forEach((at, channel) => {
      this.#due.add(channel, Math.floor(at));
    });
    this.#members = changeMinutes.map((_, group) =>
      Int32Array.from(world.group.keys()).filter((channel) => world.group[channel] === group),
    );
    this.#watched = this.#members.findIndex((members) => members.length > 0);
    this.#lastUpdate = numbers().fill(never);
    this.#recent = { submitted: counts(), updates: counts(), gaps: counts(), gapSteps: numbers() };
    this.#earlierGap = numbers().fill(never);
    this.#current = numbers();
    this.#freshSteps = numbers();
  }

  /** Hands out the channels that are due. */
  submitDue(step: number, submit: (channel: number, limit: number) => void): void {
    for (const channel of this.#due.take(step)) {
      const interval = this.intervals[channel]!;
      this.submitted[channel]! += 1;
      this.#recent.submitted[channel]! += 1;
      this.#schedule(channel, Math.max(step + 1, this.#nextAt[channel]! + interval));
      submit(channel, Math.ceil(interval));
    }
  }

  noteUpdate({ channel, step, downloadSteps }: Update): void {
    const { updates, gaps, gapSteps } = this.#recent;
    const last = this.#lastUpdate[channel]!;
    this.#ageTo(channel, step);
    if (last !== never) {
      gaps[channel]! += 1;
      gapSteps[channel]! += step - last;
    }
    this.#lastUpdate[channel] = step;
    this.#current[channel] = currentShare(downloadSteps / this.#changeMinutes(channel));
    this.updates[channel]! += 1;
    this.downloadSteps[channel]! += downloadSteps;
    updates[channel]! += 1;
    const watched = this.#group[channel] === this.#watched;
    if (watched && hasEnoughUpdates(updates[channel]!) && !hasEnoughUpdates(updates[channel]! - 1))
      this.#withEnough += 1;
  }

  /** The paper's trigger. */
  get isReassignmentDue(): boolean {
    return isReassignmentDue(this.#members[this.#watched]?.length ?? 0, this.#withEnough);
  }

  /** Of each group, most urgent first, since the last reassignment; `intervals`: the current ones, in steps. */
  groupRecords(intervals: readonly number[]): GroupRecord[] {
    return this.#members.map((members, group) => groupRecord(this.#records(members), intervals[group]!));
  }

  /** New intervals from `step` on; the rest of a running interval is scaled likewise, so that submissions stay spread. */
  reassign(intervalOf: (channel: number) => number, step: number, random: SeededRandom): void {
    for (let channel = 0; channel < this.intervals.length; channel += 1) {
      const before = this.intervals[channel]!;
      const interval = intervalOf(channel);
      this.intervals[channel] = interval;
      if (interval === before) continue;
      const left = before === Infinity ? random.next() : Math.max(0, this.#nextAt[channel]! - step) / before;
      this.#due.remove(channel);
      this.#schedule(channel, interval === Infinity ? Infinity : step + 1 + left * interval);
    }
  }

  /** Clears the records. */
  forget(): void {
    const { submitted, updates, gaps, gapSteps } = this.#recent;
    gaps.forEach((count, channel) => {
      if (count > 0) this.#earlierGap[channel] = gapSteps[channel]! / count;
    });
    for (const values of [submitted, updates, gaps, gapSteps]) values.fill(0);
    this.#withEnough = 0;
  }

  /** Mean over time of the share of a channel's current pages; 0 until its first update. */
  freshness(channel: number): number {
    const { steps } = this.#scenario;
    return (this.#freshSteps[channel]! + this.#freshUntil(channel, steps)) / steps;
  }

  *#records(members: Int32Array): Generator<ChannelRecord> {
    const { submitted, updates, gaps, gapSteps } = this.#recent;
    for (const channel of members) {
      const earlier = this.#earlierGap[channel]!;
      yield {
        meanGapSeconds: gaps[channel]! > 0 ? gapSteps[channel]! / gaps[channel]! : null,
        earlierGapSeconds: earlier === never ? null : earlier,
        submitted: submitted[channel]!,
        updates: updates[channel]!,
        downloadSeconds:
          this.updates[channel]! > 0 ? this.downloadSteps[channel]! / this.updates[channel]! : null,
      };
    }
  }

  #schedule(channel: number, at: number): void {
    this.#nextAt[channel] = at;
    if (at <= this.#scenario.steps) this.#due.add(channel, Math.floor(at));
  }

  #ageTo(channel: number, step: number): void {
    this.#freshSteps[channel]! += this.#freshUntil(channel, step);
  }

  /** Fresh steps from the last update to `step`: each page changes as its own Poisson process. */
  #freshUntil(channel: number, step: number): number {
    const last = this.#lastUpdate[channel]!;
    if (last === never) return 0;
    const mean = this.#changeMinutes(channel);
    return this.#current[channel]! * mean * -Math.expm1((last - step) / mean);
  }

  #changeMinutes(channel: number): number {
    return this.#scenario.changeMinutes[this.#group[channel]!]!;
  }
}

/**
 * Share of the pages that have not changed again when a download of this many change intervals ends: pages are downloaded one
 * after another, so that their ages are spread evenly over it.
 */
export function currentShare(changeIntervals: number): number {
  return changeIntervals === 0 ? 1 : -Math.expm1(-changeIntervals) / changeIntervals;
}

// The records of channels and the sums over a group, which the coordinator makes in SQL.

/** What a manager remembers of one channel, which is a host or a part of one, since the last reassignment. */
interface ChannelRecord {
  /** Mean gap between its updates; a gap belongs to the update that ends it. Null before the first gap ended. */
  readonly meanGapSeconds: number | null;
  /** hInterval at the last reassignment; null if it never had one. */
  readonly earlierGapSeconds: number | null;
  /** hSubCount: recrawl tasks submitted. */
  readonly submitted: number;
  /** hSucCount: updates, that is tasks that succeeded. */
  readonly updates: number;
  /** Mean download time of all its updates; null without any. */
  readonly downloadSeconds: number | null;
}

/** Updates of a channel that the trigger waits for: "more than 5". */
const hasEnoughUpdates = (updates: number) => updates > 5;

function groupRecord(channels: Iterable<ChannelRecord>, intervalSeconds: number): GroupRecord {
  const sums = { channels: 0, gaps: 0, submitted: 0, updates: 0, downloadSeconds: 0, busyThreads: 0 };
  for (const channel of channels) {
    const gap = channel.meanGapSeconds ?? channel.earlierGapSeconds ?? intervalSeconds;
    sums.channels += 1;
    sums.gaps += gap;
    sums.submitted += channel.submitted;
    sums.updates += channel.updates;
    sums.downloadSeconds += channel.downloadSeconds ?? 0;
    sums.busyThreads += gap > 0 ? (channel.downloadSeconds ?? 0) / gap : 0;
  }
  const { gaps, ...rest } = sums;
  return { ...rest, hIntervalSeconds: sums.channels > 0 ? gaps / sums.channels : null };
}

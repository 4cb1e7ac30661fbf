/**
 * The crawlers of a recrawl simulation (sections 2.2 and 4 of the paper): task threads, queues, forwarding, time limits, and
 * departures with and without notice. Its steps must be advanced in order, without gaps.
 */
import type { SeededRandom } from "#ops/world/seeded-random";
import { Calendar } from "./calendar.ts";
import type { RecrawlWorld } from "./recrawl-world.ts";
import type { Normal, RecrawlScenario } from "./scenario.ts";

/** Of all tasks so far; the submitted ones are the sum of the first four and of those under way. */
export interface TaskCounts {
  updated: number;
  /** Lost with their crawler. */
  lost: number;
  /** Waited longer than their limit. */
  cancelled: number;
  /** No near crawler was online. */
  refused: number;
  /** Forwarded by a leaving crawler. */
  migrated: number;
}

export interface Update {
  readonly channel: number;
  readonly step: number;
  readonly downloadSteps: number;
}

interface Task {
  readonly channel: number;
  /** Most steps of waiting. */
  readonly limit: number;
  /** Last step of its wait. */
  waitsUntil: number;
  /** The crawler where it runs or waits; -1: none yet. */
  crawler: number;
  /** Steps of its download; 0: it waits. */
  duration: number;
}

export class CrawlerFleet {
  readonly counts: TaskCounts = { updated: 0, lost: 0, cancelled: 0, refused: 0, migrated: 0 };
  waiting = 0;
  running = 0;
  onlineCrawlers: number;
  /** Crawlers online, summed over the steps, and departures without notice: the measure of the fleet's hazard. */
  crawlerSteps = 0;
  unnotified = 0;
  readonly #scenario: RecrawlScenario;
  readonly #world: RecrawlWorld;
  readonly #random: SeededRandom;
  readonly #onUpdate: (update: Update) => void;
  /** Of each crawler; tasks in order of arrival. */
  readonly #online: boolean[];
  readonly #runs: readonly Set<Task>[];
  readonly #waits: readonly Set<Task>[];
  readonly #churn: Calendar<number>;
  readonly #ends: Calendar<Task>;

  constructor(
    scenario: RecrawlScenario,
    world: RecrawlWorld,
    parts: { readonly random: SeededRandom; readonly onUpdate: (update: Update) => void },
  ) {
    const { crawlers, steps, living } = scenario;
    this.#scenario = scenario;
    this.#world = world;
    this.#random = parts.random;
    this.#onUpdate = parts.onUpdate;
    this.onlineCrawlers = crawlers;
    this.#online = Array.from({ length: crawlers }, () => true);
    this.#runs = Array.from({ length: crawlers }, () => new Set<Task>());
    this.#waits = Array.from({ length: crawlers }, () => new Set<Task>());
    this.#churn = new Calendar(steps);
    this.#ends = new Calendar(steps);
    for (let crawler = 0; crawler < crawlers; crawler += 1)
      this.#churn.add(crawler, stepsDrawn(living, parts.random));
  }

  /** Crawlers leave and return, downloads end, and tasks that waited too long are cancelled. */
  advance(step: number): void {
    for (const crawler of this.#churn.take(step)) this.#change(crawler, step);
    for (const task of this.#ends.take(step)) {
      if (task.duration === 0) this.#cancel(task);
      else this.#finish(task, step);
    }
    this.crawlerSteps += this.onlineCrawlers;
  }

  /** `limit`: the most steps of waiting. */
  submit(channel: number, limit: number, step: number): void {
    const waitsUntil = Math.min(step + limit, this.#scenario.steps + 1);
    this.#place({ channel, limit, waitsUntil, crawler: -1, duration: 0 }, step);
  }

  /** Of one crawler; for tests. */
  load(crawler: number): { readonly running: number; readonly waiting: number; readonly online: boolean } {
    const [running, waiting] = [this.#runs[crawler]!.size, this.#waits[crawler]!.size];
    return { running, waiting, online: this.#online[crawler]! };
  }

  #place(task: Task, step: number): void {
    const at = this.#placeFor(task.channel);
    if (at < 0) this.counts.refused += 1;
    else if (this.#runs[this.#world.nearest[at]!]!.size < this.#scenario.threads) this.#start(task, at, step);
    else this.#queue(task, at);
  }

  /**
   * The nearest online crawler with a free thread; else the nearest whose queue is not full; else the one with the shortest
   * queue. -1: none is online.
   */
  #placeFor(channel: number): number {
    const { neighbours, nearest } = this.#world;
    const { threads, queueLength } = this.#scenario;
    const end = (channel + 1) * neighbours;
    let chosen = -1;
    let least = Number.POSITIVE_INFINITY;
    for (let at = end - neighbours; at < end; at += 1) {
      const crawler = nearest[at]!;
      if (!this.#online[crawler]) continue;
      if (this.#runs[crawler]!.size < threads) return at;
      const waiting = this.#waits[crawler]!.size;
      if (least < queueLength || waiting >= least) continue;
      chosen = at;
      least = waiting;
    }
    return chosen;
  }

  #start(task: Task, at: number, step: number): void {
    const { pages, pageSeconds, nearest } = this.#world;
    task.crawler = nearest[at]!;
    task.duration = Math.max(1, Math.ceil((pages[task.channel]! * pageSeconds[at]!) / 60));
    this.#runs[task.crawler]!.add(task);
    this.#ends.add(task, step + task.duration);
    this.running += 1;
  }

  #queue(task: Task, at: number): void {
    task.crawler = this.#world.nearest[at]!;
    this.#waits[task.crawler]!.add(task);
    this.#ends.add(task, task.waitsUntil + 1);
    this.waiting += 1;
  }

  #cancel(task: Task): void {
    this.#stopWaiting(task);
    this.counts.cancelled += 1;
  }

  #finish(task: Task, step: number): void {
    const { crawler, channel, duration } = task;
    this.#stopRunning(task);
    this.counts.updated += 1;
    this.#onUpdate({ channel, step, downloadSteps: duration });
    const [next] = this.#waits[crawler]!;
    if (next === undefined) return;
    this.#stopWaiting(next);
    this.#start(next, this.#placeOf(crawler, next.channel), step);
  }

  #change(crawler: number, step: number): void {
    const leaves = this.#online[crawler]!;
    this.#online[crawler] = !leaves;
    this.onlineCrawlers += leaves ? -1 : 1;
    const { away, living } = this.#scenario;
    this.#churn.add(crawler, step + stepsDrawn(leaves ? away : living, this.#random));
    if (leaves) this.#leave(crawler, step);
  }

  #leave(crawler: number, step: number): void {
    const notified = this.#random.chance(this.#scenario.notifiedShare);
    if (!notified) this.unnotified += 1;
    for (const task of this.#runs[crawler]!) {
      this.#stopRunning(task);
      task.duration = 0;
      // Its download and its waiting limit start again.
      task.waitsUntil = Math.min(step + task.limit, this.#scenario.steps + 1);
      this.#leaveBehind(task, notified, step);
    }
    for (const task of this.#waits[crawler]!) {
      this.#stopWaiting(task);
      this.#leaveBehind(task, notified, step);
    }
  }

  #leaveBehind(task: Task, notified: boolean, step: number): void {
    this.counts[notified ? "migrated" : "lost"] += 1;
    if (notified) this.#place(task, step);
  }

  #stopRunning(task: Task): void {
    this.#ends.remove(task);
    this.#runs[task.crawler]!.delete(task);
    this.running -= 1;
  }

  #stopWaiting(task: Task): void {
    this.#ends.remove(task);
    this.#waits[task.crawler]!.delete(task);
    this.waiting -= 1;
  }

  /** A task waits only at a crawler near its channel. */
  #placeOf(crawler: number, channel: number): number {
    return this.#world.nearest.indexOf(crawler, channel * this.#world.neighbours);
  }
}

function stepsDrawn({ mean, deviation }: Normal, random: SeededRandom): number {
  return Math.max(1, Math.round(mean + deviation * random.normal()));
}

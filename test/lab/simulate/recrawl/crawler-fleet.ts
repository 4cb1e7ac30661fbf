/**
 * The crawlers of a recrawl simulation (sections 2.2 and 4 of the paper): task threads, queues, forwarding, time
 * limits, and departures with and without notice. Its steps have to be gone through in order, none left out.
 */
import type { SeededRandom } from "#ops/world/seeded-random";
import { Calendar, grown } from "./calendar.ts";
import type { RecrawlWorld } from "./recrawl-world.ts";
import type { Normal, RecrawlScenario } from "./scenario.ts";

/** Of all tasks so far; what was submitted is the sum of the first four and of those under way. */
export interface TaskCounts {
  updated: number;
  /** Gone with their crawler. */
  lost: number;
  /** Waited longer than their limit. */
  cancelled: number;
  /** No crawler near was there. */
  refused: number;
  /** Handed on by a crawler that left. */
  migrated: number;
}

export interface Update {
  readonly channel: number;
  readonly step: number;
  readonly downloadSteps: number;
}

export class CrawlerFleet {
  readonly counts: TaskCounts = { updated: 0, lost: 0, cancelled: 0, refused: 0, migrated: 0 };
  waiting = 0;
  running = 0;
  onlineCrawlers: number;
  /** Sum over steps of the crawlers there, and how many left without notice: what the fleet's hazard is measured by. */
  crawlerSteps = 0;
  unnotified = 0;
  readonly #scenario: RecrawlScenario;
  readonly #world: RecrawlWorld;
  readonly #random: SeededRandom;
  readonly #onUpdate: (update: Update) => void;
  readonly #online: Uint8Array;
  readonly #churn: Calendar;
  readonly #ends: Calendar;
  readonly #tasks: TaskTable;
  readonly #runs;
  readonly #waits;

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
    this.#online = new Uint8Array(crawlers).fill(1);
    this.onlineCrawlers = crawlers;
    this.#churn = new Calendar(steps, crawlers);
    this.#ends = new Calendar(steps, 0);
    this.#tasks = new TaskTable((size) => this.#ends.grow(size));
    this.#runs = taskList(crawlers);
    this.#waits = taskList(crawlers);
    for (let crawler = 0; crawler < crawlers; crawler += 1)
      this.#churn.add(crawler, stepsDrawn(living, parts.random));
  }

  /** Crawlers leave and return, downloads end, tasks that waited too long are cancelled. */
  advance(step: number): void {
    for (let crawler = this.#churn.take(step); crawler >= 0; crawler = this.#churn.take(step))
      this.#change(crawler, step);
    for (let task = this.#ends.take(step); task >= 0; task = this.#ends.take(step))
      if (this.#tasks.duration[task] === 0) this.#cancel(task);
      else this.#finish(task, step);
    this.crawlerSteps += this.onlineCrawlers;
  }

  /** `limit`: the most steps that the task may wait. */
  submit(channel: number, limit: number, step: number): void {
    const task = this.#tasks.create(channel);
    this.#tasks.limit[task] = limit;
    this.#tasks.waitsUntil[task] = Math.min(step + limit, this.#scenario.steps + 1);
    this.#place(task, step);
  }

  /** Of one crawler: the tests look whether it keeps to its threads. */
  load(crawler: number): { readonly running: number; readonly waiting: number; readonly online: boolean } {
    return {
      running: this.#runs.length[crawler]!,
      waiting: this.#waits.length[crawler]!,
      online: this.#online[crawler] === 1,
    };
  }

  #place(task: number, step: number): void {
    const at = this.#placeFor(this.#tasks.channel[task]!);
    if (at < 0) {
      this.counts.refused += 1;
      this.#tasks.end(task);
    } else if (this.#runs.length[this.#world.nearest[at]!]! < this.#scenario.threads) {
      this.#start(task, at, step);
    } else this.#queue(task, at);
  }

  /**
   * The nearest crawler there with a thread free; else the nearest whose queue is not full; else that with the
   * shortest queue, where the task waits all the same. -1: none is there.
   */
  #placeFor(channel: number): number {
    const { neighbours, nearest } = this.#world;
    const { threads, queueLength } = this.#scenario;
    const end = (channel + 1) * neighbours;
    let chosen = -1;
    let least = Number.POSITIVE_INFINITY;
    for (let at = end - neighbours; at < end; at += 1) {
      const crawler = nearest[at]!;
      if (this.#online[crawler] === 0) continue;
      if (this.#runs.length[crawler]! < threads) return at;
      const waiting = this.#waits.length[crawler]!;
      if (least < queueLength || waiting >= least) continue;
      chosen = at;
      least = waiting;
    }
    return chosen;
  }

  #start(task: number, at: number, step: number): void {
    const { pages, pageSeconds, nearest } = this.#world;
    const seconds = pages[this.#tasks.channel[task]!]! * pageSeconds[at]!;
    const duration = Math.max(1, Math.ceil(seconds / 60));
    this.#tasks.crawler[task] = nearest[at]!;
    this.#tasks.duration[task] = duration;
    this.#tasks.append(this.#runs, nearest[at]!, task);
    this.#ends.add(task, step + duration);
    this.running += 1;
  }

  #queue(task: number, at: number): void {
    const crawler = this.#world.nearest[at]!;
    this.#tasks.crawler[task] = crawler;
    this.#tasks.append(this.#waits, crawler, task);
    this.#ends.add(task, this.#tasks.waitsUntil[task]! + 1);
    this.waiting += 1;
  }

  #cancel(task: number): void {
    this.#stopWaiting(task);
    this.counts.cancelled += 1;
    this.#tasks.end(task);
  }

  #finish(task: number, step: number): void {
    const crawler = this.#tasks.crawler[task]!;
    this.#stopRunning(task);
    this.counts.updated += 1;
    this.#onUpdate({
      channel: this.#tasks.channel[task]!,
      step,
      downloadSteps: this.#tasks.duration[task]!,
    });
    this.#tasks.end(task);
    const next = this.#waits.first[crawler]!;
    if (next < 0) return;
    this.#stopWaiting(next);
    this.#start(next, this.#placeOf(crawler, this.#tasks.channel[next]!), step);
  }

  #change(crawler: number, step: number): void {
    const leaves = this.#online[crawler] === 1;
    this.#online[crawler] = leaves ? 0 : 1;
    this.onlineCrawlers += leaves ? -1 : 1;
    this.#churn.add(
      crawler,
      step + stepsDrawn(leaves ? this.#scenario.away : this.#scenario.living, this.#random),
    );
    if (leaves) this.#leave(crawler, step);
  }

  #leave(crawler: number, step: number): void {
    const notified = this.#random.chance(this.#scenario.notifiedShare);
    if (!notified) this.unnotified += 1;
    for (let task = this.#runs.first[crawler]!; task >= 0; task = this.#runs.first[crawler]!) {
      this.#stopRunning(task);
      this.#tasks.duration[task] = 0;
      // Its download starts over, and so does what it may wait for a thread.
      this.#tasks.waitsUntil[task] = Math.min(step + this.#tasks.limit[task]!, this.#scenario.steps + 1);
      this.#leaveBehind(task, notified, step);
    }
    for (let task = this.#waits.first[crawler]!; task >= 0; task = this.#waits.first[crawler]!) {
      this.#stopWaiting(task);
      this.#leaveBehind(task, notified, step);
    }
  }

  #leaveBehind(task: number, notified: boolean, step: number): void {
    if (notified) {
      this.counts.migrated += 1;
      this.#place(task, step);
    } else {
      this.counts.lost += 1;
      this.#tasks.end(task);
    }
  }

  #stopRunning(task: number): void {
    this.#ends.remove(task);
    this.#tasks.detach(this.#runs, this.#tasks.crawler[task]!, task);
    this.running -= 1;
  }

  #stopWaiting(task: number): void {
    this.#ends.remove(task);
    this.#tasks.detach(this.#waits, this.#tasks.crawler[task]!, task);
    this.waiting -= 1;
  }

  /** A task only ever waits at a crawler that is near its channel. */
  #placeOf(crawler: number, channel: number): number {
    return this.#world.nearest.indexOf(crawler, channel * this.#world.neighbours);
  }
}

function stepsDrawn({ mean, deviation }: Normal, random: SeededRandom): number {
  return Math.max(1, Math.round(mean + deviation * random.normal()));
}

// The recrawl tasks that are under way, in typed arrays: a number per task, given again when it has ended. A task is
// in one of its crawler's two lists, of those that run and those that wait.

const none = -1;

class TaskTable {
  #size = 1024;
  channel: Int32Array = new Int32Array(this.#size);
  crawler: Int32Array = new Int32Array(this.#size);
  /** Steps it may wait. */
  limit: Int32Array = new Int32Array(this.#size);
  /** Last step of its wait. */
  waitsUntil: Int32Array = new Int32Array(this.#size);
  /** Steps that its download takes; 0: it waits. */
  duration: Int32Array = new Int32Array(this.#size);
  #next: Int32Array = new Int32Array(this.#size);
  #previous: Int32Array = new Int32Array(this.#size);
  #free: number[] = [];
  #used = 0;
  readonly #onGrow: (size: number) => void;

  constructor(onGrow: (size: number) => void) {
    this.#onGrow = onGrow;
    onGrow(this.#size);
  }

  create(channel: number): number {
    const task = this.#free.pop() ?? this.#used++;
    if (task >= this.#size) this.#grow();
    this.channel[task] = channel;
    this.duration[task] = 0;
    return task;
  }

  /** The number may be given again from here on. */
  end(task: number): void {
    this.#free.push(task);
  }

  /** Tasks that have not ended. */
  get alive(): number {
    return this.#used - this.#free.length;
  }

  append(list: TaskList, owner: number, task: number): void {
    const last = list.last[owner]!;
    this.#previous[task] = last;
    this.#next[task] = none;
    if (last === none) list.first[owner] = task;
    else this.#next[last] = task;
    list.last[owner] = task;
    list.length[owner]! += 1;
  }

  detach(list: TaskList, owner: number, task: number): void {
    const next = this.#next[task]!;
    const previous = this.#previous[task]!;
    if (previous === none) list.first[owner] = next;
    else this.#next[previous] = next;
    if (next === none) list.last[owner] = previous;
    else this.#previous[next] = previous;
    list.length[owner]! -= 1;
  }

  #grow(): void {
    this.#size *= 2;
    for (const field of ["channel", "crawler", "limit", "waitsUntil", "duration"] as const)
      this[field] = grown(this[field], this.#size);
    this.#next = grown(this.#next, this.#size);
    this.#previous = grown(this.#previous, this.#size);
    this.#onGrow(this.#size);
  }
}

/** First and last task of each owner, -1 where it has none. */
interface TaskList {
  readonly first: Int32Array;
  readonly last: Int32Array;
  readonly length: Int32Array;
}

function taskList(owners: number): TaskList {
  return {
    first: new Int32Array(owners).fill(none),
    last: new Int32Array(owners).fill(none),
    length: new Int32Array(owners),
  };
}

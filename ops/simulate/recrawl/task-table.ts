/**
 * The recrawl tasks that are under way, in typed arrays: a number per task, given again when it has ended. A task is
 * in one of its crawler's two lists, of those that run and those that wait.
 */
import { grown } from "./calendar.ts";

const none = -1;

export class TaskTable {
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
export interface TaskList {
  readonly first: Int32Array;
  readonly last: Int32Array;
  readonly length: Int32Array;
}

export function taskList(owners: number): TaskList {
  return {
    first: new Int32Array(owners).fill(none),
    last: new Int32Array(owners).fill(none),
    length: new Int32Array(owners),
  };
}

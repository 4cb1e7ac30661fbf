/** Shared by the servers of a running world: the world, its look-ups, its clock and its disturbances. */
import { timerMs } from "#core/timer-ms";
import type { World, WorldSite } from "./model.ts";
import { hashText, SeededRandom } from "./seeded-random.ts";
import type { PlannedPage } from "./site-plan.ts";

export interface WorldState {
  readonly world: World;
  readonly queue: DueQueue;
  /** The extra delay of one flight (a handshake or a request). */
  readonly drawNoiseMs: () => number;
  /** Null: every page stays as planned. */
  readonly changes: PageChanges | null;
  readonly siteByHost: ReadonlyMap<string, WorldSite>;
  /** The first site at each address; a name with several addresses is found at each. */
  readonly siteByAddress: ReadonlyMap<string, WorldSite>;
  /** How long a connection to an unused address stays unanswered. */
  readonly timeoutMs: number;
}

export interface StartOptions {
  /** The mean of an exponential delay on every handshake and request; default 0. */
  readonly noiseMs?: number;
  /** How long a connection to an unused address stays unanswered; default 10 s. */
  readonly timeoutMs?: number;
  /** Pages that change by themselves; default: none. */
  readonly changes?: ChangeProcess;
}

export function worldState(
  world: World,
  { noiseMs = 0, timeoutMs = 10_000, changes }: StartOptions,
): WorldState {
  const random = new SeededRandom(world.seed ^ 0x6e6f6973);
  const siteByAddress = new Map<string, WorldSite>();
  for (const site of world.sites) {
    for (const address of site.addresses) if (!siteByAddress.has(address)) siteByAddress.set(address, site);
  }
  return {
    world,
    queue: new DueQueue(),
    drawNoiseMs: () => (noiseMs === 0 ? 0 : random.exponential(noiseMs)),
    changes: changes === undefined ? null : new PageChanges(changes),
    siteByHost: new Map(world.sites.map((site) => [site.host, site])),
    siteByAddress,
    timeoutMs,
  };
}

/**
 * Runs tasks when they are due, to about half a millisecond. Due times are absolute (performance.now), so that lateness does
 * not accumulate; a single timer waits for the earliest. Node's timers count whole milliseconds, so a task runs up to half a
 * millisecond early.
 */
export class DueQueue {
  /** Earliest first; of equal times, in order of arrival. */
  readonly #waiting: { readonly dueMs: number; readonly run: () => void }[] = [];
  #timer: NodeJS.Timeout | null = null;

  /** A time in the past runs at the next turn of the event loop. */
  at(dueMs: number, run: () => void): void {
    let [low, high] = [0, this.#waiting.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.#waiting[middle]!.dueMs <= dueMs) low = middle + 1;
      else high = middle;
    }
    this.#waiting.splice(low, 0, { dueMs, run });
    if (low === 0) this.#arm();
  }

  close(): void {
    this.#waiting.length = 0;
    this.#arm();
  }

  #arm(): void {
    if (this.#timer) clearTimeout(this.#timer);
    this.#timer = null;
    const [first] = this.#waiting;
    if (!first) return;
    const waitMs = Math.min(60_000, Math.round(first.dueMs - performance.now()));
    this.#timer = setTimeout(() => this.#fire(), timerMs(Math.max(1, waitMs)));
  }

  #fire(): void {
    const limitMs = performance.now() + earlyMs;
    while (this.#waiting[0] !== undefined && this.#waiting[0].dueMs <= limitMs) this.#waiting.shift()!.run();
    this.#arm();
  }
}

const earlyMs = 0.5;

// Pages that change by themselves, each as a Poisson process of its own (exponential times between changes), drawn from a
// seed, the host and the path: the same process shows the same changes at the same times. Time is the origins' clock,
// so that a process in which a day takes seconds is one with as many more changes a day.

interface ChangeProcess {
  readonly seed: number;
  /** Milliseconds since the epoch, before which nothing changed. */
  readonly startMs: number;
  /** 0: the page stays as it is. */
  readonly changesPerDay: (host: string, path: string) => number;
}

/** The state of a page at a moment. */
interface PageVersion {
  /** The number of changes so far. */
  readonly version: number;
  readonly changedAtMs: number;
}

interface Course {
  readonly random: SeededRandom;
  readonly perMs: number;
  version: number;
  changedAtMs: number;
  nextMs: number;
}

/** Past times are not drawn again: a clock that is set back finds the page as last seen. */
export class PageChanges {
  readonly #process: ChangeProcess;
  readonly #courses = new Map<string, Course>();

  constructor(process: ChangeProcess) {
    this.#process = process;
  }

  at(host: string, path: string, nowMs: number): PageVersion {
    const course = this.#course(host, path);
    while (course.nextMs <= nowMs) {
      course.version += 1;
      course.changedAtMs = course.nextMs;
      course.nextMs += gapMs(course);
    }
    return course;
  }

  #course(host: string, path: string): Course {
    const key = `${host}${path}`;
    const known = this.#courses.get(key);
    if (known) return known;
    const { seed, startMs, changesPerDay } = this.#process;
    const random = new SeededRandom(hashText(seed, key));
    const course = {
      random,
      perMs: changesPerDay(host, path) / 86_400_000,
      version: 0,
      changedAtMs: startMs,
      nextMs: startMs,
    };
    course.nextMs += gapMs(course);
    this.#courses.set(key, course);
    return course;
  }
}

/** At least a millisecond, so that a jump of the clock does not take for ever to process. */
function gapMs({ perMs, random }: Course): number {
  return perMs > 0 ? Math.max(1, -Math.log(1 - random.next()) / perMs) : Number.POSITIVE_INFINITY;
}

/** The page with the text of this version; the first one is the planned one. */
export function pageAt(page: PlannedPage, { version }: PageVersion): PlannedPage {
  return version === 0 ? page : { ...page, seed: hashText(page.seed, `version ${version}`) };
}

/** Shared by the servers of a running world: the world, its look-ups, its clock and its disturbances. */
import { timerMs } from "#core/timer-ms";
import type { World, WorldSite } from "./model.ts";
import { hashText, SeededRandom } from "./seeded-random.ts";
import type { PlannedPage } from "./site-plan.ts";

export interface WorldState {
  readonly world: World;
  readonly queue: DueQueue;
  /** Draws the extra delay of one handshake or request. */
  readonly drawNoiseMs: () => number;
  /** Null when every page stays as planned. */
  readonly changes: PageChanges | null;
  readonly siteByHost: ReadonlyMap<string, WorldSite>;
  /** The first site at each address. A name with several addresses is listed at each of them. */
  readonly siteByAddress: ReadonlyMap<string, WorldSite>;
  /** How long a connection to an unused address remains unanswered. */
  readonly timeoutMs: number;
}

export interface StartOptions {
  /** The mean of an exponential delay on every handshake and request. Default: 0. */
  readonly noiseMs?: number;
  /** How long a connection to an unused address remains unanswered. Default: 10 s. */
  readonly timeoutMs?: number;
  /** How pages change by themselves. Default: they do not. */
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
 * Runs tasks when they are due, to about half a millisecond. Due times are absolute (performance.now), so that delays
 * do not accumulate. A single timer waits for the earliest task. Node's timers count whole milliseconds, so a task may
 * run up to half a millisecond early.
 */
export class DueQueue {
  /** Earliest first. Equal times are in order of arrival. */
  readonly #waiting: { readonly dueMs: number; readonly run: () => void }[] = [];
  #timer: NodeJS.Timeout | null = null;

  /** A task whose time is past runs in the next turn of the event loop. */
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

// Pages that change by themselves, each as its own Poisson process (exponential times between changes), drawn from a
// seed, the host and the path. Equal settings give the same changes at the same times. Time is the origins' clock, so
// for days that last seconds, choose correspondingly more changes per day.

interface ChangeProcess {
  readonly seed: number;
  /** In milliseconds since the epoch. Nothing changed before. */
  readonly startMs: number;
  /** Returns 0 for a page that never changes. */
  readonly changesPerDay: (host: string, path: string) => number;
}

/** A page's state at a given time. */
interface PageVersion {
  /** How many changes there have been so far. */
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

/** Past times are not drawn again. If the clock is set back, a page stays as it was last seen. */
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

/** At least a millisecond, so that a jump of the clock can be processed in a reasonable time. */
function gapMs({ perMs, random }: Course): number {
  return perMs > 0 ? Math.max(1, -Math.log(1 - random.next()) / perMs) : Number.POSITIVE_INFINITY;
}

/** Returns the page with the text of this version. Version 0 is the planned page. */
export function pageAt(page: PlannedPage, { version }: PageVersion): PlannedPage {
  return version === 0 ? page : { ...page, seed: hashText(page.seed, `version ${version}`) };
}

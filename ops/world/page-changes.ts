/**
 * Pages that change by themselves, each as a Poisson process of its own (exponential times between changes), drawn from a
 * seed, the host and the path: the same process shows the same changes at the same times. Time is the origins' clock,
 * so that a process in which a day takes seconds is one with as many more changes a day.
 */
import { hashText, SeededRandom } from "./seeded-random.ts";
import type { PlannedPage } from "./site-plan.ts";

export interface ChangeProcess {
  readonly seed: number;
  /** Ms since the epoch: nothing changed before. */
  readonly startMs: number;
  /** 0: the page stays as it is. */
  readonly changesPerDay: (host: string, path: string) => number;
}

/** A page as it is at a moment. */
export interface PageVersion {
  /** Changes so far. */
  readonly version: number;
  /** Ms since the epoch. */
  readonly changedAtMs: number;
}

interface Course {
  readonly random: SeededRandom;
  readonly perMs: number;
  version: number;
  changedAtMs: number;
  nextMs: number;
}

/** Times of the past are not drawn again: a clock that is set back finds the page as it was last seen. */
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

/** At least a millisecond, so that a jump of the clock does not last for ever. */
function gapMs({ perMs, random }: Course): number {
  return perMs > 0 ? Math.max(1, -Math.log(1 - random.next()) / perMs) : Number.POSITIVE_INFINITY;
}

/** The page with the text of this version; the first one is the planned one. */
export function pageAt(page: PlannedPage, { version }: PageVersion): PlannedPage {
  return version === 0 ? page : { ...page, seed: hashText(page.seed, `version ${version}`) };
}

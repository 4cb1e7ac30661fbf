/** Decides at which local hours the crawler may contact sites. */

import { LocalTime } from "../core/local-time.ts";
import { type CrawlerLimits, isOpen, type Week } from "../settings/limits-config.ts";
import { type LimitUsage, limitUsage } from "./limit-usage.ts";

type Hours = Pick<CrawlerLimits, "hours" | "timeZone">;

const minuteMs = 60_000;
const minutesPerDay = 1440;
const minutesPerWeek = 7 * minutesPerDay;

export class Schedule {
  #hours: Hours;
  #time: LocalTime;
  readonly #now: () => Date;

  constructor(hours: Hours, now: () => Date) {
    this.#hours = hours;
    this.#time = new LocalTime(hours.timeZone);
    this.#now = now;
  }

  apply(hours: Hours): void {
    this.#hours = hours;
    this.#time = new LocalTime(hours.timeZone);
  }

  isOpen(): boolean {
    const { hours } = this.#hours;
    return hours === null || this.#isOpenAt(hours, this.#now());
  }

  usage(): LimitUsage {
    const { hours } = this.#hours;
    const resetsAt = hours === null ? null : this.#nextChange(hours);
    const isHeld = !this.isOpen();
    const until = resetsAt === null ? "" : ` until ${this.#time.words(resetsAt)}`;
    return limitUsage("hours", isHeld ? `outside the hours that are set for crawling${until}` : "", {
      resetsAt,
    });
  }

  /**
   * Returns when the schedule opens or closes next, or null when it never does. The result is valid until the next
   * daylight saving change and is then computed again.
   */
  #nextChange(week: Week): Date | null {
    const isOpenNow = this.#isOpenAt(week, this.#now());
    for (let from = this.#now(); ; ) {
      const change = this.#changeByTheWall(week, from, isOpenNow);
      const clocks = change && this.#time.clockChange(from, change);
      if (clocks === null) return change;
      if (this.#isOpenAt(week, clocks) !== isOpenNow) return clocks;
      from = clocks;
    }
  }

  #isOpenAt(week: Week, time: Date): boolean {
    const { weekday, minute } = this.#time.at(time);
    return isOpen(week, weekday, minute);
  }

  #changeByTheWall(week: Week, from: Date, isOpenNow: boolean): Date | null {
    const { weekday, minute } = this.#time.at(from);
    const begun = weekday * minutesPerDay + minute;
    for (let ahead = 1; ahead <= minutesPerWeek; ahead++) {
      const at = (begun + ahead) % minutesPerWeek;
      if (isOpen(week, Math.floor(at / minutesPerDay), at % minutesPerDay) !== isOpenNow)
        return new Date((Math.floor(from.getTime() / minuteMs) + ahead) * minuteMs);
    }
    return null;
  }
}

/** The hours at which the crawler may contact sites, by the clock on the host's wall. */

import { type CrawlerLimits, isOpen, type Week } from "../settings/limits-config.ts";
import type { LimitUsage } from "./limit-usage.ts";
import { LocalTime } from "./local-time.ts";

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
    const { weekday, minute } = this.#time.at(this.#now());
    return hours === null || isOpen(hours, weekday, minute);
  }

  usage(): LimitUsage {
    const { hours } = this.#hours;
    const resetsAt = hours === null ? null : this.#nextChange(hours);
    const isHeld = !this.isOpen();
    const until = resetsAt === null ? "" : ` until ${this.#time.words(resetsAt)}`;
    return {
      ...{ limit: "hours", unit: "", used: null, cap: null, resetsAt },
      holdingBack: isHeld ? `outside the hours that are set for crawling${until}` : "",
    };
  }

  /** When it opens or closes next, to the minute by the clock on the wall; null: never. */
  #nextChange(week: Week): Date | null {
    const now = this.#now();
    const { weekday, minute } = this.#time.at(now);
    const begun = weekday * minutesPerDay + minute;
    const openAt = (ahead: number) => {
      const at = (begun + ahead) % minutesPerWeek;
      return isOpen(week, Math.floor(at / minutesPerDay), at % minutesPerDay);
    };
    const isOpenNow = openAt(0);
    for (let ahead = 1; ahead <= minutesPerWeek; ahead++) {
      if (openAt(ahead) !== isOpenNow) {
        return new Date((Math.floor(now.getTime() / minuteMs) + ahead) * minuteMs);
      }
    }
    return null;
  }
}

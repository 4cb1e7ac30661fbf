/**
 * The limits as the coordinator plans with them: pages and bytes a day. A month's bytes, a rate and hours of the week
 * are told as what they come to on an average day.
 */
import type { CrawlerHello } from "#protocol/messages";
import { openMinutesPerWeek } from "./hours.ts";
import type { CrawlerLimits } from "./limits-config.ts";

const secondsPerDay = 86_400;
const daysPerMonth = 30.4;
const minutesPerWeek = 7 * 1440;

export function toldLimits(limits: CrawlerLimits): CrawlerHello["limits"] {
  const { pagesPerDay, concurrentHosts, bytesPerMonth, kilobytesPerSecond, hours } = limits;
  const openPart = hours === null ? 1 : openMinutesPerWeek(hours) / minutesPerWeek;
  const unlimited = Number.POSITIVE_INFINITY;
  const byMonth = bytesPerMonth === null ? unlimited : bytesPerMonth / daysPerMonth;
  const byRate =
    kilobytesPerSecond === null ? unlimited : kilobytesPerSecond * 1024 * secondsPerDay * openPart;
  const bytesPerDay = Math.floor(Math.min(limits.bytesPerDay, byMonth, byRate));
  return { pagesPerDay: openPart === 0 ? 0 : pagesPerDay, bytesPerDay, concurrentHosts };
}

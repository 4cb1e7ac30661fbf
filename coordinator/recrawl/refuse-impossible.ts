/** Pages and totals for which there is no plan (optimal-rates.ts): a RangeError names the value, and whose it is. */
import type { HostBounds, PagesToRefresh } from "./optimal-rates.ts";

export function refuseImpossible(pages: PagesToRefresh, totalPerDay: number): void {
  const { changesPerDay, importance, mostPerDay, leastPerDay, hosts } = pages;
  const count = changesPerDay.length;
  if (!(totalPerDay > 0 && totalPerDay < Infinity))
    throw new RangeError(`fetches a day in all: ${totalPerDay} is not a positive number`);
  refuseValues("changes a day", changesPerDay, count, false);
  refuseValues("importance", importance, count, false);
  refuseValues("most fetches a day", mostPerDay, count, true);
  if (leastPerDay) refuseLeast(pages, leastPerDay, totalPerDay);
  if (hosts) refuseHosts(pages, hosts);
}

function refuseValues(name: string, values: Float64Array, count: number, mayBeInfinite: boolean): void {
  if (values.length !== count) throw new RangeError(`${name}: ${values.length} values for ${count} pages`);
  const wrong = values.findIndex((value) => !(value >= 0 && (mayBeInfinite || value < Infinity)));
  if (wrong >= 0)
    throw new RangeError(`${name}: ${values[wrong]} of page ${wrong} is not a number from 0 on`);
}

function refuseLeast({ mostPerDay }: PagesToRefresh, least: Float64Array, totalPerDay: number): void {
  refuseValues("least fetches a day", least, mostPerDay.length, false);
  const wrong = least.findIndex((value, page) => value > mostPerDay[page]!);
  if (wrong >= 0)
    throw new RangeError(
      `least fetches a day: ${least[wrong]} of page ${wrong} is more than its most, ${mostPerDay[wrong]}`,
    );
  const sum = least.reduce((all, value) => all + value, 0);
  if (sum > totalPerDay)
    throw new RangeError(`least fetches a day: ${sum} in all, of ${totalPerDay} fetches a day`);
}

function refuseHosts({ changesPerDay, leastPerDay }: PagesToRefresh, hosts: HostBounds): void {
  const { hostOf, mostPerDay } = hosts;
  if (hostOf.length !== changesPerDay.length)
    throw new RangeError(`hosts: ${hostOf.length} for ${changesPerDay.length} pages`);
  refuseValues("most fetches a day of a host", mostPerDay, mostPerDay.length, true);
  const least = new Float64Array(mostPerDay.length);
  hostOf.forEach((host, page) => {
    if (host >= mostPerDay.length)
      throw new RangeError(`hosts: page ${page} is of host ${host}, of ${mostPerDay.length}`);
    least[host]! += leastPerDay?.[page] ?? 0;
  });
  const over = least.findIndex((sum, host) => sum > mostPerDay[host]! * (1 + 1e-12));
  if (over >= 0)
    throw new RangeError(
      `least fetches a day: ${least[over]} on host ${over}, which allows ${mostPerDay[over]}`,
    );
}

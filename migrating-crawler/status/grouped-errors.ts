/** Errors that say the same, one after the other, as one with a count: a site that is down would fill the list. */
import type { ErrorReport } from "./status-report.ts";

export interface GroupedError extends ErrorReport {
  /** How often in a row; `at` is the last time. */
  readonly times: number;
}

/** In the order of the errors, the latest first. */
export function groupedErrors(errors: readonly ErrorReport[]): GroupedError[] {
  const groups: GroupedError[] = [];
  for (const error of errors) {
    const last = groups.at(-1);
    if (last === undefined || !saysTheSame(last, error)) groups.push({ ...error, times: 1 });
    else groups[groups.length - 1] = { ...last, times: last.times + 1 };
  }
  return groups;
}

function saysTheSame(one: ErrorReport, other: ErrorReport): boolean {
  return one.host === other.host && one.code === other.code && one.words === other.words;
}

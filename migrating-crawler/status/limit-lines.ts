/** The host's limits as people read them: a name, what is used against what may be, a share for the bar. */
import { amountInWords, durationInWords } from "./in-words.ts";
import type { LimitReport } from "./status-report.ts";

export interface LimitLine {
  readonly name: string;
  /** `1.2 GiB of 50 GiB`. */
  readonly used: string;
  /** Of the cap, 0 to 1; null: there is no cap, or use is not measured. */
  readonly share: number | null;
  /** `begins anew in 3 h`; empty: it does not. */
  readonly resets: string;
  /** Empty: nothing. */
  readonly holdingBack: string;
}

/** Known ones read well; one that is not, still reads. */
const names: Readonly<Record<string, string>> = {
  pagesPerDay: "Pages today",
  bytesPerDay: "Bytes today",
  bytesPerMonth: "Bytes this month",
  kilobytesPerSecond: "Bytes a second",
  concurrentHosts: "Sites at a time",
  openConnections: "Connections",
  cpuShare: "Processor",
  memoryBytes: "Memory",
  diskBytes: "Disk",
  hours: "Hours",
  onlyWhenIdle: "Only when idle",
};

/** Limits that are switched off and hold nothing back say nothing; a pause has no amount, and is told of elsewhere. */
export function limitLines(limits: readonly LimitReport[], now: Date): LimitLine[] {
  return limits
    .filter(({ limit }) => limit !== "pause")
    .filter(
      ({ used, cap, resetsAt, holdingBack }) =>
        holdingBack !== "" || cap !== null || (used ?? 0) > 0 || resetsAt !== null,
    )
    .map((limit) => ({
      name: names[limit.limit] ?? limit.limit,
      used: usedWords(limit),
      share: shareOf(limit),
      resets: resetWords(limit, now),
      holdingBack: limit.holdingBack,
    }));
}

function usedWords({ used, cap, unit, limit }: LimitReport): string {
  if (limit === "hours") return "";
  if (used === null) return cap === null ? "" : `at most ${amountInWords(cap, unit)}`;
  if (cap === null) return `${amountInWords(used, unit)}, no limit`;
  const ofUnit = unit === "bytes" ? unit : "";
  return `${amountInWords(used, ofUnit)} of ${amountInWords(cap, unit)}`;
}

function shareOf({ used, cap }: LimitReport): number | null {
  if (used === null || cap === null) return null;
  return cap === 0 ? 1 : Math.min(1, used / cap);
}

function resetWords({ resetsAt, limit, holdingBack }: LimitReport, now: Date): string {
  if (resetsAt === null) return "";
  const left = durationInWords(Date.parse(resetsAt) - now.getTime());
  if (limit === "hours") return holdingBack === "" ? `open for ${left} more` : `opens in ${left}`;
  return `begins anew in ${left}`;
}

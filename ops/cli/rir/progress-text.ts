/** The progress of an import: phase, position, records with their rate, and remaining time. */
import type { ImportProgress, OnProgress } from "#rir-import/check";
import { WorkProgress } from "./job-steps.ts";

export async function withProgress<T>(work: (onProgress: OnProgress) => Promise<T>): Promise<T> {
  const told = new WorkProgress();
  let [phase, sinceMs, last] = ["", 0, ""];
  try {
    return await work((progress) => {
      const nowMs = performance.now();
      // The last text of a phase is kept when the next one begins.
      const done = phase !== "" && progress.phase !== phase ? last : null;
      if (progress.phase !== phase) [phase, sinceMs] = [progress.phase, nowMs];
      last = progressText(progress, (nowMs - sinceMs) / 1000);
      const share = progress.total > 1 ? Math.min(1, progress.done / progress.total) : null;
      told.tell({ text: last, share, done }, nowMs);
    });
  } finally {
    told.end();
  }
}

const phases: Readonly<Record<ImportProgress["phase"], string>> = {
  read: "reading",
  nest: "nesting",
  current: "reading the tree in force",
  compare: "comparing",
  write: "writing",
};

/** `elapsedSeconds` counts from the phase's start. */
function progressText(progress: ImportProgress, elapsedSeconds: number): string {
  const { phase, done, total, file, records } = progress;
  const share = total > 0 ? Math.min(1, done / total) : 0;
  const parts = [total > 0 ? `${phases[phase]} ${Math.floor(share * 100)} %` : phases[phase]];
  const countsRows = phase === "current" || phase === "write";
  const number = countsRows ? done : records;
  parts.push(`${number.toLocaleString("en")} ${countsRows ? "rows" : "records"}`);
  if ((countsRows || phase === "read") && elapsedSeconds > 0.5) {
    parts.push(`${Math.round(number / elapsedSeconds).toLocaleString("en")}/s`);
    if (share > 0.02) parts.push(`${secondsText((elapsedSeconds * (1 - share)) / share)} left`);
  } else {
    parts.push(secondsText(elapsedSeconds));
  }
  if (file !== "") parts.push(file.split("/").pop() ?? file);
  return parts.join(" · ");
}

/** `0.4 s`, `12 s`, `3 min 20 s`. */
export function secondsText(seconds: number): string {
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  if (seconds < 60) return `${Math.round(seconds)} s`;
  return `${Math.floor(seconds / 60)} min ${Math.round(seconds % 60)} s`;
}

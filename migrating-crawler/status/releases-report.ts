/** What HOME/releases says of the releases that run here or do not, for a look from outside: nothing is set aside. */
import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { isWatched, type ReleaseState, releaseState } from "../supervisor/release-state.ts";
import type { ReleasesReport } from "./status-report.ts";

const maxFileBytes = 1024 * 1024;
const mostListed = 20;

/** Null when no dock has run here, or what it wrote cannot be read. `policy`: the host's, in words. */
export function releasesReport(home: string, policy: string | null): ReleasesReport | null {
  const state = readReleaseState(home);
  if (state === null) return null;
  const notTaken = state.reports.flatMap(({ version, state: what, reason }) =>
    what === "refused" || what === "pinned" || what === "delayed" ? [{ version, state: what, reason }] : [],
  );
  return {
    current: state.current?.version ?? null,
    isWatched: isWatched(state),
    previous: previousOf(state),
    offeredSince: state.offered?.firstAt ?? null,
    policy,
    notTaken: notTaken.reverse().slice(0, mostListed),
    returned: state.bad
      .map(({ version, at, reason }) => ({ version, at, reason }))
      .reverse()
      .slice(0, mostListed),
  };
}

/** Null when there is none that can be read. */
export function readReleaseState(home: string): ReleaseState | null {
  try {
    const path = join(home, "releases", "state.json");
    if (statSync(path).size > maxFileBytes) return null;
    return releaseState.safeParse(JSON.parse(readFileSync(path, "utf8"))).data ?? null;
  } catch {
    return null;
  }
}

/** What takes the place of the current one if that is not well. */
function previousOf(state: ReleaseState): string | null {
  return (isWatched(state) ? state.good : state.previous)?.version ?? null;
}

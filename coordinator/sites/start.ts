/** The room of sites: the list of hosts, and a page for each. */
import type { Pool } from "pg";
import type { Timekeeper } from "#core/scheduler";
import type { RoomOptions } from "../start-web.ts";
import type { WebPart } from "../web/actions.ts";
import { createSitesReads } from "./sites-reads.ts";
import { sitesRoutes } from "./sites-routes.ts";
import { keepSites } from "./sites-upkeep-store.ts";

export function sitePart({ pool }: Pick<RoomOptions, "pool">): WebPart {
  const parts = [sitesRoutes(createSitesReads(pool))];
  return (to) => {
    for (const part of parts) part(to);
  };
}

const upkeepMs = 2000;
/** Of each turn: at most one part in 50 of a connection goes through hosts that nobody told of … */
const turnMs = 40;
/** … and one in four as long as hosts are missing from the list. */
const firstTurnMs = 500;
/** Hosts that were told of are taken in for so long at most: a fleet at work changes fewer. */
const touchesMs = 1000;

export interface SitesDutyPorts {
  readonly pool: Pool;
  readonly timekeeper: Pick<Timekeeper, "every">;
  readonly now: () => Date;
  /** A clock that never goes back. */
  readonly nowMs: () => number;
}

export function scheduleSites(ports: SitesDutyPorts): void {
  ports.timekeeper.every("keep-sites", upkeepMs, async () => await sitesTurn(ports));
}

/** One turn; gives how many hosts were looked at. */
export async function sitesTurn({ pool, now, nowMs }: Omit<SitesDutyPorts, "timekeeper">): Promise<number> {
  const beganMs = nowMs();
  let [hosts, walkedMs] = [0, 0];
  for (;;) {
    const atMs = nowMs();
    const step = await keepSites(pool, now());
    hosts += step.hosts;
    if (step.rests) return hosts;
    if (!step.isTold) walkedMs += nowMs() - atMs;
    if (walkedMs >= (step.isFirstRound ? firstTurnMs : turnMs) || nowMs() - beganMs >= touchesMs)
      return hosts;
  }
}

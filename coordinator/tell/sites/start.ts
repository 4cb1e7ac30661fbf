import type { Pool } from "pg";
import type { NameResolver } from "#core/name-resolver";
import type { Timekeeper } from "#core/scheduler";
import { addOperations, type WebPart } from "../../ask/add-operations.ts";
import { wholeList } from "../../ask/whole-list.ts";
import { following } from "../../core/policy.ts";
import { createChangeFeed } from "../../crawl/changes/change-feed-reads.ts";
import type { ScopeSettings } from "../../crawl/frontier/frontier-settings.ts";
import { fetchAgain } from "../../crawl/frontier/lease-end-writes.ts";
import { whoReads } from "../who/reads.ts";
import { hostReport } from "../who/url-reads.ts";
import type { SitePorts } from "./site.ts";
import { type SiteAskPorts, siteOperations } from "./site-ask.ts";
import { createSiteReads, scheduledUrls } from "./site-reads.ts";
import { sitesQuestion } from "./sites-api.ts";
import { siteFileColumns, sitesOperations } from "./sites-ask.ts";
import { createSitesReads } from "./sites-reads.ts";
import { keepSites } from "./sites-upkeep-store.ts";

interface SitePartOptions {
  readonly pool: Pool;
  readonly resolver: NameResolver;
  readonly config: { readonly scope: ScopeSettings; readonly domainSets: readonly string[] };
}

export function sitePart(options: SitePartOptions): WebPart {
  const { pool, config, resolver } = options;
  const scope = following(() => config.scope);
  const reads = createSitesReads(pool);
  const list = addOperations(sitesOperations, reads);
  const ports: SiteAskPorts = {
    ...sitePorts({ pool, resolver, scope, domainSets: config.domainSets }),
    scheduled: async (hostHash, asked) => await scheduledUrls(pool, hostHash, asked),
    fetchAgain: async (keys, now) => await fetchAgain(pool, keys, now),
  };
  const one = addOperations(siteOperations, ports);
  const file = wholeList(sitesOperations.sites, {
    ...{ path: "/sites.csv", name: "sites", columns: siteFileColumns },
    pieces: async (input, now) => reads.every(sitesQuestion({ ...input, after: undefined }), now),
  });
  return (to) => {
    for (const part of [list, one, file]) part(to);
  };
}

const upkeepMs = 2000;
/** Time per run for hosts that were not reported, at most one part in 50 of a connection's time. */
const turnMs = 40;
/** Time per run while hosts are missing from the list: one part in four. */
const firstTurnMs = 500;
/** Maximum time per run for reported hosts. Even a busy fleet changes fewer. */
const touchesMs = 1000;

interface SitesDutyPorts {
  readonly pool: Pool;
  readonly timekeeper: Pick<Timekeeper, "every">;
  readonly now: () => Date;
  /** A monotonic clock. */
  readonly nowMs: () => number;
}

export function scheduleSites(ports: SitesDutyPorts): void {
  ports.timekeeper.every("keep-sites", upkeepMs, async () => await sitesTurn(ports));
}

/** Does the work of one run and returns how many hosts were checked. */
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

/** The data sources of a host's page and command. */
function sitePorts({
  pool,
  ...who
}: Pick<SitePartOptions, "pool"> & Omit<SitePorts["who"], "reads">): SitePorts {
  const hostReportNow: SitePorts["who"]["reads"]["hostReport"] = async (hostHash, now) =>
    await hostReport(pool, hostHash, now, false);
  return {
    who: {
      ...who,
      reads: { ...whoReads(pool, () => performance.now()), hostReport: hostReportNow },
    },
    feed: createChangeFeed(pool),
    sites: createSiteReads(pool),
  };
}

/** Crawlers that lease, fetch and send pages (some of them lies) under comparison, with real stores and a manual clock. */

import { defaultRecrawlSettings } from "#coordinator/crawl/recrawl/visit-findings";
import { takeResults } from "#coordinator/crawl/results/take-results";
import { type DoubleCheckPorts, DoubleChecks, judgeCheck } from "#coordinator/crawl/trust/double-checks";
import { defaultTrustRule } from "#coordinator/crawl/trust/evidence";
import { createTrustStore } from "#coordinator/crawl/trust/trust-store";
import { DeniedTargets } from "#coordinator/place/delegation/denied-targets";
import { CoordinatorState } from "#coordinator/place/delegation/state";
import { asLeaseId, type CrawlerId } from "#core/ids";
import type { Incident } from "#core/incidents";
import { silentLog } from "#core/log";
import { seededRandom } from "#core/random";
import type { Lease } from "#protocol/lease";
import { resultOf, type Shipped, text } from "../results/shipping-world.ts";
import { newFlowWorld } from "../support/flow-world.ts";
import { noon, scope, spoolOf } from "../support/store-world.ts";

/** What a crawler finds at a URL; null means what everybody finds. */
export type View = (url: string) => Shipped | null;

export interface Crawling {
  readonly leases: readonly Lease[];
  readonly stored: number;
  readonly checked: number;
}

export const slotMs = 600_000;

export async function newCheckedWorld() {
  const world = await newFlowWorld();
  const trust = createTrustStore(world.pool);
  const denied = new DeniedTargets();
  const incidents: Incident[] = [];
  const views = new Map<CrawlerId, View>();
  let now = new Date(0);
  let online: readonly CrawlerId[] = [];
  let sequence = 0;
  let checks = await newChecks();

  async function newChecks(differences: Partial<DoubleCheckPorts> = {}): Promise<DoubleChecks> {
    const state = new CoordinatorState();
    state.setCrawlers(await world.crawlers.list());
    const ports = {
      trust,
      state,
      incidents: { note: (one: Incident) => void incidents.push(one) },
      log: silentLog,
    };
    const settings = {
      rule: defaultTrustRule,
      watchedPages: 500,
      onDistrust: "drain",
      refetchPages: 1000,
    } as const;
    const made: DoubleChecks = new DoubleChecks(
      {
        ...{ trust, state, results: world.results, frontier: world.frontier },
        online: () => online,
        denied: () => denied,
        onAsked: () => {},
        versionOf: () => "0.1.0",
        random: seededRandom(7),
        onDecided: async (check, step) =>
          await judgeCheck(
            check,
            step,
            { ...ports, followUp: async (...given) => await made.followUp(...given), now: () => now },
            settings,
          ),
        ...differences,
      },
      {
        sampling: { share: 1, newcomerShare: 1, newcomerPages: 0, watchedShare: 1, watchedPages: 0 },
        slotMs,
      },
    );
    return made;
  }

  /** Connects these crawlers and reloads the fleet. */
  const open = async (
    crawlers: readonly CrawlerId[],
    differences: Partial<DoubleCheckPorts> = {},
  ): Promise<void> => {
    online = crawlers;
    views.clear();
    incidents.length = 0;
    await world.pool.query("delete from host_disagreement");
    checks = await newChecks(differences);
  };

  const lease = async (crawlerId: CrawlerId, at: Date): Promise<Lease[]> => {
    now = at;
    return await checks.frontier.leaseHosts({
      crawlerId,
      hosts: 1000,
      urlsPerHost: 100,
      leaseSeconds: 60,
      addressRestSeconds: 0,
      now: at,
    });
  };

  const shipLeases = async (crawlerId: CrawlerId, leases: readonly Lease[], at: Date) => {
    now = at;
    const results = leases.flatMap(({ leaseId, urls }) =>
      urls.map(({ url }) => {
        sequence += 1;
        const found = views.get(crawlerId)?.(url) ?? { page: text(url.length) };
        return { sequence, leaseId: asLeaseId(leaseId), wireBytes: 100, result: resultOf(url, found, at) };
      }),
    );
    const batch = { crawlerId, spoolId: spoolOf(crawlerId), results };
    const settings = { scope, recrawl: defaultRecrawlSettings };
    return { batch, taken: await takeResults(batch, checks.results, settings, at) };
  };

  const crawl = async (crawlerId: CrawlerId, at: Date): Promise<Crawling> => {
    const leases = await lease(crawlerId, at);
    const { taken } = await shipLeases(crawlerId, leases, at);
    return { leases, stored: taken.stored, checked: taken.checked?.length ?? 0 };
  };

  /** Draining crawlers get no leases. */
  const working = () => online.filter((crawlerId) => !incidents.some((one) => one.crawlerId === crawlerId));

  /** All crawlers in turn until nothing is left to do. */
  const crawlOn = async (from: Date): Promise<Date> => {
    for (let at = from, idle = 0; ; at = new Date(at.getTime() + 1000)) {
      let done = 0;
      for (const crawlerId of working()) done += (await crawl(crawlerId, at)).leases.length;
      idle = done === 0 ? idle + 1 : 0;
      if (idle === 3) return at;
    }
  };

  /** Handles comparisons that were not fetched in time. */
  const settle = async (at: Date): Promise<void> => {
    now = at;
    await checks.takeSilences(at);
    await trust.dropStale(at, noon);
  };

  return {
    ...world,
    ...{ trust, denied, incidents, open, lease, shipLeases, crawl, crawlOn, settle },
    retake: async (batch: Parameters<typeof takeResults>[0], at: Date) =>
      await takeResults(batch, checks.results, { scope, recrawl: defaultRecrawlSettings }, at),
    lieOf: (crawlerId: CrawlerId, view: View) => void views.set(crawlerId, view),
    verdicts: async () =>
      await world.rows<{ url: string; verdict: string | null; suspect: number | null; words: string }>(
        "select url, verdict, suspect_id as suspect, words from double_check order by check_id",
      ),
  };
}

export type CheckedWorld = Awaited<ReturnType<typeof newCheckedWorld>>;

/** Wires trust: compares pages, judges crawlers by them, and finds implausible probe reports. */

import { randomInt } from "node:crypto";
import type { Pool } from "pg";
import type { RoundCause } from "#core/explanation";
import type { CrawlerId, SubnetId } from "#core/ids";
import type { IncidentNotes } from "#core/incidents";
import type { Log } from "#core/log";
import type { Timekeeper } from "#core/scheduler";
import type { CrawlerHello } from "#protocol/messages";
import { following } from "../../core/policy.ts";
import { type NoteChange, noteOwnChanges } from "../../database/audit-log.ts";
import type { CrawlerStore } from "../../place/crawlers/crawler-store.ts";
import type { DeniedTargets } from "../../place/delegation/denied-targets.ts";
import type { CoordinatorState } from "../../place/delegation/state.ts";
import type { FrontierStore } from "../frontier/frontier-store.ts";
import type { ResultStore } from "../results/result-store.ts";
import { DoubleChecks, evidenceDays, judgeCheck } from "./double-checks.ts";
import { doubtImpossibleProbes } from "./probe-plausibility.ts";
import type { TrustSettings } from "./trust-settings.ts";
import { createTrustStore, type TrustStore } from "./trust-store.ts";

interface TrustingPorts {
  readonly pool: Pool;
  readonly timekeeper: Pick<Timekeeper, "every">;
  readonly crawlers: Pick<CrawlerStore, "rtts">;
  readonly results: ResultStore;
  readonly frontier: FrontierStore;
  readonly state: CoordinatorState;
  readonly online: () => readonly CrawlerId[];
  readonly denied: () => DeniedTargets;
  readonly request: (subnetIds: readonly SubnetId[], cause: RoundCause) => void;
  readonly incidents: IncidentNotes;
  /** Called with a crawler that may get a comparison if it asks for work. */
  readonly onAsked: (crawlerId: CrawlerId) => void;
  readonly version: string;
  readonly log: Log;
  readonly now: () => Date;
}

interface Trusting {
  /** Stores that take comparisons out of results and add them to leases. */
  readonly stores: { readonly results: ResultStore; readonly frontier: FrontierStore };
  onHello(crawlerId: CrawlerId, hello: CrawlerHello): void;
  start(): Promise<void>;
}

const settleMs = 5000;
const probesMs = 60_000;
const drawn = 2 ** 32;

export function trustDuties(ports: TrustingPorts, config: { readonly trust: TrustSettings }): Trusting {
  const trust = notedTrust(createTrustStore(ports.pool), ports.state, noteOwnChanges(ports));
  /** Has only crawlers that run a release offered by us; other statements are not verified. */
  const versions = new Map<CrawlerId, string>();
  const noteVersion = async (crawlerId: CrawlerId, hello: CrawlerHello): Promise<void> => {
    const version = hello.release?.version ?? hello.softwareVersion;
    versions.delete(crawlerId);
    if (await trust.isOffered(crawlerId, hello)) return void versions.set(crawlerId, version);
    ports.incidents.note({
      crawlerId,
      kind: "unknown-version",
      words: `It says that it runs “${version}”, which is no release that was offered to it: its pages are compared as any other's.`,
      remoteAddress: null,
      at: ports.now(),
    });
  };
  const settings = following(() => config.trust);
  const judging = () => ({
    rule: { alteredShare: settings.alteredShare, threshold: settings.threshold },
    watchedPages: settings.watchedPages,
    onDistrust: settings.onDistrust,
    refetchPages: settings.refetchPages,
  });
  const checks: DoubleChecks = new DoubleChecks(
    {
      ...ports,
      trust,
      versionOf: (crawlerId) => versions.get(crawlerId) ?? null,
      random: () => randomInt(drawn) / drawn,
      onDecided: async (check, step) =>
        await judgeCheck(check, step, { ...ports, trust, followUp }, judging()),
    },
    { sampling: settings, slotMs: settings.slotSeconds * 1000 },
  );
  const followUp: DoubleChecks["followUp"] = async (check, most, at) =>
    await checks.followUp(check, most, at);
  const { timekeeper } = ports;
  return {
    stores: { results: checks.results, frontier: checks.frontier },
    start: async () => {
      await trust.ranAs(ports.version);
      timekeeper.every(
        "settle-checks",
        settleMs,
        async () => await settleChecks({ ...ports, trust, checks }, settings.refetchPages),
      );
      timekeeper.every("watch-probes", probesMs, async () => {
        await doubtImpossibleProbes({ ...ports, trust, peerRtts: async () => await ports.crawlers.rtts() });
      });
    },
    onHello: (crawlerId, hello) => {
      noteVersion(crawlerId, hello).catch((error: unknown) =>
        ports.log.error(
          { crawlerId, error },
          "whether a crawler runs what was offered to it could not be told",
        ),
      );
    },
  };
}

type Settling = Pick<TrustingPorts, "log" | "now"> & {
  readonly trust: TrustStore;
  readonly checks: DoubleChecks;
};

/** Drops expired comparisons, forgets old ones, and fetches again what distrusted crawlers have still sent. */
async function settleChecks(
  { trust, checks: doubleChecks, log, now }: Settling,
  refetchPages: number,
): Promise<void> {
  const silences = await doubleChecks.takeSilences(now());
  if (silences > 0) log.info({ silences }, "crawlers were asked again for pages of theirs and were silent");
  const before = new Date(now().getTime() - evidenceDays * 86_400_000);
  const checks = await trust.dropStale(now(), before);
  if (checks > 0) log.info({ checks }, "pages that nobody fetched again in time are not compared");
  const pages = await trust.fetchLeftovers(now(), refetchPages);
  if (pages > 0) log.info({ pages }, "what a distrusted crawler still shipped is fetched again");
}

export function notedTrust(
  trust: TrustStore,
  state: Pick<CoordinatorState, "crawler">,
  note: NoteChange,
): TrustStore {
  const nameOf = (crawlerId: Parameters<CoordinatorState["crawler"]>[0]) =>
    state.crawler(crawlerId)?.name ?? `crawler ${crawlerId}`;
  return {
    ...trust,
    async distrust(distrust) {
      const done = await trust.distrust(distrust);
      const { crawlerId, words, drain } = distrust;
      const target = nameOf(crawlerId);
      const kept = drain === null ? "it keeps its subnets" : "its subnets go to others";
      const after = { isDrained: drain !== null, pagesFetchedAgain: done.dueAgain };
      const said = `${target} is no longer trusted, and ${kept}: ${words}.`;
      if (done.isNew) await note({ action: "crawler-distrusted", target, words: said, after });
      return done;
    },
    async doubtProbes(doubt) {
      const isNew = await trust.doubtProbes(doubt);
      const target = nameOf(doubt.crawlerId);
      const said = `${target}'s probe reports are no longer trusted: ${doubt.words}.`;
      if (isNew) await note({ action: "crawler-probes-doubted", target, words: said });
      return isNew;
    },
  };
}

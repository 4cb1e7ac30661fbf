/** Builds a folder's report from its files, if its crawler is not running or does not answer. */
import { existsSync } from "node:fs";
import { LocalTime } from "../core/local-time.ts";
import { readMembership } from "../core/membership.ts";
import { readAsked } from "../limits/state-file.ts";
import { UsageCaps } from "../limits/usage-caps.ts";
import { homeSettings } from "../membership/home-folder.ts";
import { identityFile, openIdentity } from "../membership/identity.ts";
import type { CrawlerConfig } from "../settings/config.ts";
import { policyWords } from "../settings/release-policy.ts";
import { spoolHolder } from "../spool/spool-folder.ts";
import { contributionOf, onDay, readStory, type Story, withEnd } from "../status/status-history.ts";
import {
  fingerprintOf,
  type LimitReport,
  limitReport,
  readReleaseState,
  releasesReport,
  type StatusReport,
  statusVersion,
} from "../status/status-report.ts";
import { runningSupervisor } from "./supervisor-home.ts";

export function restingReport(home: string, program: string, now: Date): StatusReport {
  const { config, fault } = settingsOf(home);
  const waitsFor = waitsForIn(home);
  const story = storyOf(home);
  const today = onDay(story, new LocalTime(config?.limits.timeZone ?? null).at(now).day);
  const policy = config === null ? null : policyWords(config.releases);
  return {
    statusVersion,
    at: now.toISOString(),
    state: "not-running",
    words: restingWords(home, program, waitsFor),
    crawler: crawlerPart(home, config),
    coordinator: {
      url: config?.coordinatorUrl ?? null,
      ...{ contactPage: null, userAgent: null, connectedSince: null, notConnectedSince: null },
      notConnectedBecause: "no crawler runs here",
    },
    pause: readAsked("pause", home),
    drain: readAsked("drain", home),
    contribution: contributionOf(today),
    holdingBack: [
      ...(waitsFor === null ? [] : [`it waits for ${waitsFor}`]),
      ...(fault === null ? [] : [fault]),
    ],
    limits: config === null ? [] : capsOnDisk(config, now),
    notTold: [],
    work: null,
    shipping: null,
    errors: { today: today.blames, latest: today.errors },
    versions: { crawler: null, release: null, dock: null, node: null, protocol: null },
    releases: releasesReport(home, policy),
    lastEnds: story.lastEnds,
  };
}

const startedByHand =
  "not known while it does not run: it was given its key by hand, and its settings are not in this folder";

function settingsOf(home: string): { readonly config: CrawlerConfig | null; readonly fault: string | null } {
  try {
    if (readMembership(home) === null) return { config: null, fault: startedByHand };
    return { config: homeSettings(home), fault: null };
  } catch (error) {
    return { config: null, fault: (error instanceof Error ? error.message : String(error)).slice(0, 2000) };
  }
}

/** Includes an end that was not reported to a crawler, because none was started afterwards. */
function storyOf(home: string): Story {
  const story = readStory(home);
  const lastEnd = readReleaseState(home)?.lastEnd ?? null;
  return lastEnd === null ? story : withEnd(story, lastEnd);
}

/** Returns null if no supervisor runs here, since its old reason no longer applies. */
function waitsForIn(home: string): string | null {
  if (runningSupervisor(home) === null || crawlerProcess(home) !== null) return null;
  return readReleaseState(home)?.waitsFor?.reason ?? null;
}

/** Excludes the supervisor, which opens the spool to tell the coordinator why nothing runs. */
function crawlerProcess(home: string): number | null {
  const holder = spoolHolder(home);
  return holder === runningSupervisor(home) ? null : holder;
}

function restingWords(home: string, program: string, waitsFor: string | null): string {
  const supervisor = runningSupervisor(home);
  const holder = crawlerProcess(home);
  if (holder !== null)
    return `A crawler runs here as process ${holder}, but does not answer: it begins or ends just now, or its release knows no status yet.`;
  if (supervisor !== null && waitsFor !== null)
    return `Nothing is crawled from here for now: the supervisor runs as process ${supervisor}, and waits for ${waitsFor.replace(/\.$/, "")}.`;
  if (supervisor !== null)
    return `The supervisor runs as process ${supervisor}, but no crawler runs under it now: it has none yet, or is starting it again; see ${program} log.`;
  return `No crawler runs in this folder. Start it: ${program} run --home ${home}, or systemctl start nearcrawl-crawler.`;
}

function crawlerPart(home: string, config: CrawlerConfig | null): StatusReport["crawler"] {
  return {
    name: config?.name ?? null,
    id: null,
    home,
    processId: spoolHolder(home) ?? runningSupervisor(home),
    startedAt: null,
    fingerprint: fingerprintOf(publicKeyIn(home)),
    publicAddress: config?.publicAddress ?? null,
  };
}

function publicKeyIn(home: string): string | null {
  try {
    return existsSync(identityFile(home)) ? openIdentity(home).publicKey : null;
  } catch {
    return null;
  }
}

/** Use is written ahead, so the file never shows too little. Nothing is changed. */
function capsOnDisk({ home, limits }: CrawlerConfig, now: Date): LimitReport[] {
  const caps = new UsageCaps({ limits, kept: { home, warn: () => {} }, now: () => now });
  return caps.usage().map(limitReport);
}

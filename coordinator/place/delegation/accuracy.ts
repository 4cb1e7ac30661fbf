/**
 * Estimates how near crawlers are to their subnets. From time to time every crawler measures a random delegated subnet, by
 * the rounds' method and at the pace of all probes. A sample only feeds the estimate and changes no
 * delegation. If the owner turns out to be far off, an ordinary round is requested.
 *
 * An address is sampled at most once a month, crawlers whose partners deny it are not asked, and targets that rounds may not
 * probe (special-purpose addresses, opted-out hosts) are excluded.
 */

import type { RoundCause } from "#core/explanation";
import { wilsonInterval } from "#core/format";
import type { CrawlerId, SubnetId } from "#core/ids";
import { parseAddress } from "#core/ip/address";
import { type AllowedSpecialPurpose, refusedBlockOf } from "#core/ip/special-purpose";
import { saysNothing } from "#protocol/messages";
import { type Fleet, isBelieved } from "../crawlers/crawler.ts";
import type { AccuracyStore } from "./accuracy-store.ts";
import type { AnycastRanges } from "./anycast.ts";
import {
  type AccuracyCounts,
  type AccuracySample,
  type Delegation,
  nearlyBestMs,
  type WaitingSubnet,
} from "./delegation.ts";
import type { DeniedTargets } from "./denied-targets.ts";
import { isLate } from "./present-owner.ts";
import { originOf, type ProbeSettings } from "./round-questions.ts";
import type { CoordinatorState } from "./state.ts";
import type { DelegationStore } from "./store.ts";

export interface SamplingPorts {
  readonly state: CoordinatorState;
  readonly fleet: Fleet;
  readonly delegations: Pick<DelegationStore, "targetsFor">;
  readonly accuracy: Pick<AccuracyStore, "add" | "wasSampled">;
  readonly denied?: DeniedTargets;
  readonly anycast?: AnycastRanges;
  /** Crawlers that get no new subnet are not compared. */
  readonly withoutRoom: () => ReadonlySet<CrawlerId>;
  readonly request: (subnetIds: readonly SubnetId[], cause: RoundCause) => void;
  /** Uniform in [0, 1). */
  readonly random: () => number;
  readonly now: () => Date;
}

interface SamplingSettings {
  readonly probe: ProbeSettings;
  readonly allowSpecialPurpose: AllowedSpecialPurpose;
}

const hourMs = 3_600_000;

const restDays = 30;

/** Subnets tried per sample, since one may have no host to probe or a recent sample. */
const tries = 5;

// The share of sampled subnets whose crawler is within a few milliseconds of the nearest. Samples without any answer are not
// counted. A sample that only the owner did not answer counts as far off.

/** Distance in ms from the best beyond which a new round is worth its probes. */
const farOffMs = 4 * nearlyBestMs;

/** All coordinators share one pace, which also survives a restart. */
export async function isSampleDue(
  { accuracy, now }: { readonly accuracy: Pick<AccuracyStore, "lastSampledAt">; readonly now: () => Date },
  subnetsPerHour: number,
): Promise<boolean> {
  if (subnetsPerHour === 0) return false;
  const lastAt = await accuracy.lastSampledAt();
  return lastAt === null || now().getTime() - lastAt.getTime() >= hourMs / subnetsPerHour;
}

/** Takes one sample. Returns null if nothing could be compared, or if the owner could not measure well. */
export async function sampleAccuracy(
  ports: SamplingPorts,
  settings: SamplingSettings,
): Promise<AccuracySample | null> {
  if (ports.fleet.online().length < 2) return null;
  for (let tried = 0; tried < tries; tried += 1) {
    const picked = pick(ports);
    const target = picked && (await targetOf(picked, ports, settings));
    if (picked && target) return await measure(picked, target, { ports, settings });
  }
  return null;
}

/** Picks a subnet that its online owner measured. Anycast ranges are left out, because they have no nearest crawler. */
function pick({ state, fleet, anycast, random }: SamplingPorts): Delegation | null {
  const picked = state.delegationTable.at(Math.floor(random() * state.delegationTable.size));
  if (!picked?.measured || anycast?.has(picked.subnetId)) return null;
  return fleet.online().includes(picked.crawlerId) ? picked : null;
}

async function targetOf(
  { subnetId, crawlerId }: Delegation,
  { delegations, accuracy, denied, now }: SamplingPorts,
  { allowSpecialPurpose }: SamplingSettings,
): Promise<WaitingSubnet | null> {
  const [target] = await delegations.targetsFor([subnetId]);
  const address = target && parseAddress(target.address);
  if (!target || !address) return null;
  if (refusedBlockOf(address, allowSpecialPurpose) !== null) return null;
  if (denied?.denies(crawlerId, target, now().getTime())) return null;
  const since = new Date(now().getTime() - restDays * 86_400_000);
  return (await accuracy.wasSampled(target.address, since)) ? null : target;
}

async function measure(
  { subnetId, crawlerId: ownerId }: Delegation,
  target: WaitingSubnet,
  { ports, settings }: { readonly ports: SamplingPorts; readonly settings: SamplingSettings },
): Promise<AccuracySample | null> {
  const asked = crawlersFor(target, ownerId, { ports, settings });
  const probe = { ...originOf(target), address: target.address, ...settings.probe };
  const answers = await Promise.all(
    asked.map(async (crawlerId) => ({ crawlerId, outcome: await ports.fleet.probe(crawlerId, probe) })),
  );
  // As in rounds, only one method is compared. The owner may have fallen back to another.
  const own = answers.find(({ crawlerId }) => crawlerId === ownerId)?.outcome;
  if (own !== undefined && (saysNothing(own) || isLate(own))) return null;
  const method = own?.type === "measured" ? own.method : settings.probe.method;
  const rtts = answers.flatMap(({ crawlerId, outcome }) =>
    outcome.type === "measured" && outcome.method === method ? [{ crawlerId, rttMs: outcome.rttMs }] : [],
  );
  const best = rtts.reduce<(typeof rtts)[number] | null>((a, b) => (a && a.rttMs <= b.rttMs ? a : b), null);
  const sample: AccuracySample = {
    subnetId,
    targetAddress: target.address,
    targetHost: target.host,
    method,
    ownerId,
    ownerRttMs: rtts.find(({ crawlerId }) => crawlerId === ownerId)?.rttMs ?? null,
    bestId: best?.crawlerId ?? null,
    bestRttMs: best?.rttMs ?? null,
    asked: asked.length,
    answered: rtts.length,
    sampledAt: ports.now(),
  };
  await ports.accuracy.add(sample);
  if (isFarOff(sample) && ports.state.ownerOf(subnetId) === ownerId) ports.request([subnetId], "sampled");
  return sample;
}

/** The owner and every crawler that could replace it. */
function crawlersFor(
  target: WaitingSubnet,
  ownerId: CrawlerId,
  { ports, settings }: { readonly ports: SamplingPorts; readonly settings: SamplingSettings },
): CrawlerId[] {
  const { state, fleet, denied, withoutRoom, now } = ports;
  const full = withoutRoom();
  const nowMs = now().getTime();
  return fleet.online().filter((crawlerId) => {
    if (crawlerId === ownerId) return true;
    const crawler = state.crawler(crawlerId);
    const methods = crawler?.probeMethods ?? [];
    const isAble = methods.length === 0 || methods.includes(settings.probe.method);
    return isAble && isBelieved(crawler) && !full.has(crawlerId) && !denied?.denies(crawlerId, target, nowMs);
  });
}

function isFarOff({ ownerRttMs, bestRttMs }: AccuracySample): boolean {
  return ownerRttMs !== null && bestRttMs !== null && ownerRttMs - bestRttMs > farOffMs;
}

/** Older samples say little, since each delegation is decided again in this time (recalibration.refreshDays). */
export const accuracyDays = 30;

export interface AccuracyEstimate extends AccuracyCounts {
  readonly withinMs: number;
  readonly days: number;
  /** Null if there are no samples. */
  readonly share: number | null;
  /** Wilson score interval of the share, 95 % confidence. */
  readonly low: number;
  readonly high: number;
}

export function accuracyEstimate({ samples, nearlyBest }: AccuracyCounts): AccuracyEstimate {
  const share = samples === 0 ? null : nearlyBest / samples;
  return {
    samples,
    nearlyBest,
    withinMs: nearlyBestMs,
    days: accuracyDays,
    share,
    ...wilsonInterval(nearlyBest, samples),
  };
}

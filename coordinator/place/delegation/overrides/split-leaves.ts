/**
 * Splits leaves whose addresses measure apart below their registered range. Connect times raise the suspicion
 * (`apartAddresses`). A few suspected addresses are each probed in a round by the subnet's crawler and those the
 * policy asks. Where another crawler is nearer by more than 5 ms, the smallest aligned blocks that separate such
 * addresses become parts (`leafParts`).
 */

import type { CrawlerId, SubnetId } from "#core/ids";
import { formatAddress, parseAddress } from "#core/ip/address";
import { firstAddress, lastAddress } from "#core/ip/range";
import { type Group, type LeafWatch, type Suspicion, suspicionOf } from "./leaf-watch.ts";
import { type FinerDecision, type PlannedPart, reviewTimes } from "./override.ts";
import type { FinerDelegationStore } from "./override-store.ts";
import { type FinerRoundPorts, finerRound } from "./round.ts";
import { isAlike, type JudgedAddress, type LeafPart, leafParts } from "./sub-ranges.ts";

interface SplitLeavesPorts extends FinerRoundPorts {
  readonly finer: Pick<FinerDelegationStore, "saveRound" | "partsOf" | "setParts">;
  readonly leaves: LeafWatch;
}

/** A crawler takes a part when it is nearer by more than this, in ms. */
const splitGainMs = 5;
/** Leaves per pass, and addresses probed per leaf. */
const leavesPerPass = 4;
const probesPerLeaf = 4;
/** How long a probed leaf rests, whatever the result. */
const restMs = 3_600_000;

/** One pass; returns the leaves whose parts changed. */
export async function splitLeaves(ports: SplitLeavesPorts): Promise<SubnetId[]> {
  // The policy `random` assigns whole subnets, regardless of where their addresses are.
  if (ports.settings.policy === "random") return [];
  const changed: SubnetId[] = [];
  let probed = 0;
  for (const [subnetId, leaf] of ports.leaves.takeTouched(ports.now().getTime())) {
    if (probed >= leavesPerPass) break;
    const suspicion = await suspicionOf(subnetId, leaf, ports);
    if (suspicion === null) continue;
    probed += 1;
    leaf.restsUntilMs = ports.now().getTime() + restMs;
    if (await splitLeaf(suspicion, ports)) changed.push(subnetId);
  }
  return changed;
}

/** An address with its nearest crawler and the round that found it. */
interface Judged extends JudgedAddress {
  readonly decision: (FinerDecision & { readonly levelMs: number | null }) | null;
}

async function splitLeaf(suspicion: Suspicion, ports: SplitLeavesPorts): Promise<boolean> {
  const { subnetId, owner, parts } = suspicion;
  const range = ports.state.tree.get(subnetId)?.range;
  if (range === undefined) return false;
  const judged: Judged[] = parts.flatMap((part) => judgedBy(part.target.address, part));
  for (const group of suspicion.groups) judged.push(...(await judgeGroup(group, suspicion, ports)));
  const planned = leafParts(range, owner, latestOf(judged))
    .map((part) => plannedPart(part, ports))
    .filter((part) => part !== null);
  if (planned.length === 0 && parts.length === 0) return false;
  const leaf = { subnetId, subnetCrawlerId: owner, parts: planned };
  const set = await ports.finer.setParts(leaf, reviewTimes(ports.now()));
  return set !== null && set.added + set.ended > 0;
}

function judgedBy(text: string, decision: FinerDecision): Judged[] {
  const address = parseAddress(text);
  return address === null
    ? []
    : [{ address, crawlerId: decision.crawlerId, decision: { ...decision, levelMs: null } }];
}

/** One judgement per address: new probes replace earlier ones, but a confirmation keeps its round. */
function latestOf(judged: readonly Judged[]): Judged[] {
  const latest = new Map<number | bigint, Judged>();
  for (const one of judged) {
    const before = latest.get(one.address.value);
    const confirms = one.decision === null && before?.crawlerId === one.crawlerId;
    latest.set(one.address.value, confirms ? before : one);
  }
  return [...latest.values()];
}

/** Addresses alike stay with the crawler that measures them; a few of the others are probed and stand for the rest. */
async function judgeGroup(
  { crawlerId, verdict }: Group,
  suspicion: Suspicion,
  ports: SplitLeavesPorts,
): Promise<Judged[]> {
  const alike = verdict.alike.flatMap(({ address }) => addressed(address, crawlerId));
  const probed: Judged[] = [];
  for (const one of spreadOver(verdict.apart, probesPerLeaf)) {
    const judged = await probeAddress(one, crawlerId, suspicion, ports);
    if (judged !== null) probed.push(judged);
  }
  const known = new Set(probed.map(({ address }) => formatAddress(address)));
  const others = verdict.apart
    .filter(({ address }) => !known.has(address))
    .flatMap(({ address, levelMs }) => {
      const like = probed.find(({ decision }) => isAlike(decision?.levelMs ?? Number.NaN, levelMs));
      return like === undefined ? [] : addressed(address, like.crawlerId);
    });
  return [...alike, ...others, ...probed];
}

function addressed(text: string, crawlerId: CrawlerId): Judged[] {
  const address = parseAddress(text);
  return address === null ? [] : [{ address, crawlerId, decision: null }];
}

/** The crawler nearest to the address, if nearer than the subnet's by enough; null when unknown. */
async function probeAddress(
  { address, levelMs }: { readonly address: string; readonly levelMs: number },
  fetcher: CrawlerId,
  { subnetId, owner, leaf }: Suspicion,
  ports: SplitLeavesPorts,
): Promise<Judged | null> {
  const target = leaf.addresses.get(address)?.target;
  const parsed = parseAddress(address);
  if (target === undefined || parsed === null) return null;
  const first = [...new Set([owner, fetcher])];
  const errand = { target, withinSubnetId: subnetId, cause: "measures-apart", first, byName: false } as const;
  const outcome = await finerRound(errand, ports);
  const subnetRttMs = outcome?.rttsMs.get(owner);
  if (!outcome?.decision || outcome.decision.rttMs === null || subnetRttMs === undefined) return null;
  const isNearer = outcome.decision.rttMs < subnetRttMs - splitGainMs;
  const crawlerId = isNearer ? outcome.decision.crawlerId : owner;
  return { address: parsed, crawlerId, decision: { ...outcome.decision, subnetRttMs, levelMs } };
}

/** An evenly spaced selection that includes both ends. */
function spreadOver<Item>(items: readonly Item[], most: number): Item[] {
  if (items.length <= most) return [...items];
  const last = items.length - 1;
  return Array.from({ length: most }, (_, index) => items[Math.round((index * last) / (most - 1))]!);
}

/** The part with the latest round that found its crawler; null without one. */
function plannedPart(part: LeafPart<Judged>, ports: SplitLeavesPorts): PlannedPart | null {
  const decision = part.addresses.map((one) => one.decision).findLast((one) => one !== null);
  if (!decision) return null;
  const { roundId, rttMs, runnerUpId, runnerUpRttMs, subnetRttMs } = decision;
  const name = ports.state.crawler(part.crawlerId)?.name ?? `crawler ${part.crawlerId}`;
  const ms = (value: number | null) => (value === null ? "an unknown time" : `${value.toFixed(1)} ms`);
  return {
    first: formatAddress(firstAddress(part.range)),
    last: formatAddress(lastAddress(part.range)),
    crawlerId: part.crawlerId,
    roundId,
    rttMs,
    runnerUpId,
    runnerUpRttMs,
    subnetRttMs,
    reason: `a part of the subnet measures apart: ${ms(rttMs)} from ${name}, ${ms(subnetRttMs)} from the subnet's crawler`,
  };
}

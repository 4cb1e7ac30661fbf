/**
 * Splits leaves whose addresses measure apart below their registered range. Connect times of ordinary fetches raise the
 * suspicion: a crawler's times per address are compared with the RTT at delegation, and in a split leaf a part's times with
 * each other (`apartAddresses`). A few suspected addresses are each probed in a round by the subnet's crawler and those
 * chosen by the policy. Where another crawler is nearer by more than 5 ms, the smallest aligned blocks that separate such
 * addresses become parts (`leafParts`).
 */
import { LRUCache } from "lru-cache";
import type { CrawlerId, SubnetId } from "#core/ids";
import { formatAddress, parseAddress } from "#core/ip/address";
import { firstAddress, lastAddress, rangeBetween, rangeHolds } from "#core/ip/range";
import { canParseUrl, urlHost } from "#core/ip/url-host";
import type { ResultBatch } from "../../crawlers/crawler.ts";
import {
  type FinerDecision,
  type FinerDelegation,
  type PlannedPart,
  type ProbedTarget,
  reviewTimes,
} from "./override.ts";
import type { FinerDelegationStore } from "./override-store.ts";
import { type FinerRoundPorts, finerRound } from "./round.ts";
import {
  type ApartVerdict,
  apartAddresses,
  isAlike,
  type JudgedAddress,
  type LeafPart,
  leafParts,
} from "./sub-ranges.ts";

interface SplitLeavesPorts extends FinerRoundPorts {
  readonly finer: Pick<FinerDelegationStore, "saveRound" | "partsOf" | "setParts">;
  readonly leaves: LeafWatch;
}

/** A crawler takes a part if it is nearer by more than this, in ms. */
const splitGainMs = 5;
const leavesPerPass = 4;
const probesPerLeaf = 4;
/** How long a probed leaf is left alone, whatever the result. */
const restMs = 3_600_000;

/** Makes one pass. Returns the leaves whose parts changed. */
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

interface Suspicion {
  readonly subnetId: SubnetId;
  readonly owner: CrawlerId;
  readonly parts: readonly FinerDelegation[];
  readonly leaf: WatchedLeaf;
  /** One group for the rest of the leaf and one per fetched part. */
  readonly groups: readonly Group[];
}

interface Group {
  readonly crawlerId: CrawlerId;
  readonly verdict: ApartVerdict;
}

/** The groups that measure apart within the leaf. Null if there are none, or too little is known. */
async function suspicionOf(
  subnetId: SubnetId,
  leaf: WatchedLeaf,
  { state, settings, finer }: SplitLeavesPorts,
): Promise<Suspicion | null> {
  const delegation = state.delegationOf(subnetId);
  // An unmeasured or anycast leaf has no RTT to compare with.
  if (!delegation?.measured) return null;
  const owner = delegation.crawlerId;
  const watched = [...leaf.addresses.values()];
  const expectedMs = settings.probe.method === "connect" ? delegation.rttMs : null;
  const verdict = apartAddresses(timesBy(owner, watched), expectedMs);
  if (verdict.apart.length === 0 && watched.every(({ crawlerId }) => crawlerId === owner)) return null;
  const parts = await finer.partsOf(subnetId);
  const ofParts = parts.map(({ crawlerId, place }) => {
    const inside = watched.filter(({ target }) => isWithin(place, target.address));
    return { crawlerId, verdict: apartAddresses(timesBy(crawlerId, inside), null) };
  });
  const groups = [{ crawlerId: owner, verdict }, ...ofParts];
  if (groups.every((group) => group.verdict.apart.length === 0)) return null;
  return { subnetId, owner, parts, leaf, groups };
}

const timesBy = (by: CrawlerId, watched: readonly WatchedAddress[]) =>
  watched.flatMap(({ crawlerId, target: { address }, timesMs }) =>
    crawlerId === by ? [{ address, timesMs }] : [],
  );

function isWithin(place: FinerDelegation["place"], text: string): boolean {
  if (place.type !== "part") return false;
  const [address, first, last] = [text, place.first, place.last].map(parseAddress);
  const range = first && last && rangeBetween(first, last);
  return !!range && !!address && rangeHolds(range, address);
}

/** An address with its nearest crawler and the round that found it. */
interface Judged extends JudgedAddress {
  readonly decision: (FinerDecision & { readonly levelMs: number | null }) | null;
}

async function splitLeaf(suspicion: Suspicion, ports: SplitLeavesPorts): Promise<boolean> {
  const { subnetId, owner, parts, groups } = suspicion;
  const range = ports.state.tree.get(subnetId)?.range;
  if (range === undefined) return false;
  const judged: Judged[] = parts.flatMap((part) =>
    judgedAs(part.target.address, part.crawlerId, { ...part, levelMs: null }),
  );
  for (const group of groups) judged.push(...(await judgeGroup(group, suspicion, ports)));
  const planned = leafParts(range, owner, latestOf(judged))
    .map((part) => plannedPart(part, ports))
    .filter((part) => part !== null);
  if (planned.length === 0 && parts.length === 0) return false;
  const leaf = { subnetId, subnetCrawlerId: owner, parts: planned };
  const set = await ports.finer.setParts(leaf, reviewTimes(ports.now()));
  return set !== null && set.added + set.ended > 0;
}

function judgedAs(text: string, crawlerId: CrawlerId, decision: Judged["decision"] = null): Judged[] {
  const address = parseAddress(text);
  return address === null ? [] : [{ address, crawlerId, decision }];
}

/** One judgement per address. New probes replace earlier ones, but a confirmation keeps its round. */
function latestOf(judged: readonly Judged[]): Judged[] {
  const latest = new Map<number | bigint, Judged>();
  for (const one of judged) {
    const before = latest.get(one.address.value);
    const confirms = one.decision === null && before?.crawlerId === one.crawlerId;
    if (!confirms) latest.set(one.address.value, one);
  }
  return [...latest.values()];
}

/** Addresses with similar times stay with their crawler. A few of the others are probed to represent the rest. */
async function judgeGroup(
  { crawlerId, verdict: { alike, apart } }: Group,
  suspicion: Suspicion,
  ports: SplitLeavesPorts,
): Promise<Judged[]> {
  const probed: Judged[] = [];
  for (const one of spreadOver(apart, probesPerLeaf))
    probed.push(...(await probeAddress(one, crawlerId, suspicion, ports)));
  const known = new Set(probed.map(({ address }) => formatAddress(address)));
  const others = apart.flatMap(({ address, levelMs }) => {
    const like = probed.find(({ decision }) => isAlike(decision?.levelMs ?? Number.NaN, levelMs));
    return like === undefined || known.has(address) ? [] : judgedAs(address, like.crawlerId);
  });
  return [...alike.flatMap(({ address }) => judgedAs(address, crawlerId)), ...others, ...probed];
}

/** The crawler nearest to the address, if nearer than the subnet's by enough. Empty if unknown. */
async function probeAddress(
  { address, levelMs }: ApartVerdict["apart"][number],
  fetcher: CrawlerId,
  { subnetId: withinSubnetId, owner, leaf }: Suspicion,
  ports: SplitLeavesPorts,
): Promise<Judged[]> {
  const target = leaf.addresses.get(address)?.target;
  if (target === undefined) return [];
  const errand = { target, withinSubnetId, cause: "measures-apart", first: [owner, fetcher] } as const;
  const { decision = null, rttsMs } = (await finerRound(errand, ports)) ?? {};
  const subnetRttMs = rttsMs?.get(owner);
  if (decision === null || decision.rttMs === null || subnetRttMs === undefined) return [];
  const isNearer = decision.rttMs < subnetRttMs - splitGainMs;
  return judgedAs(address, isNearer ? decision.crawlerId : owner, { ...decision, subnetRttMs, levelMs });
}

/** An evenly spaced selection that includes both ends. */
function spreadOver<Item>(items: readonly Item[], most: number): readonly Item[] {
  if (items.length <= most) return items;
  const last = items.length - 1;
  return Array.from({ length: most }, (_, index) => items[Math.round((index * last) / (most - 1))]!);
}

/** The part with the latest round that found its crawler. Null if there is no such round. */
function plannedPart({ range, crawlerId, addresses }: LeafPart<Judged>, ports: SplitLeavesPorts) {
  const decision = addresses.findLast((one) => one.decision !== null)?.decision;
  if (!decision) return null;
  const { levelMs: _, rttMs, subnetRttMs } = decision;
  const name = ports.state.crawler(crawlerId)?.name ?? `crawler ${crawlerId}`;
  const ms = (value: number | null) => (value === null ? "an unknown time" : `${value.toFixed(1)} ms`);
  const part: PlannedPart = {
    ...decision,
    first: formatAddress(firstAddress(range)),
    last: formatAddress(lastAddress(range)),
    crawlerId,
    reason: `a part of the subnet measures apart: ${ms(rttMs)} from ${name}, ${ms(subnetRttMs)} from the subnet's crawler`,
  };
  return part;
}

// Collects connect times by address and leaf from results. Bounded and in memory only. After a restart it fills again.

/** Maximum addresses, those of recently fetched leaves. */
const maxAddresses = 50_000;
const maxAddressesPerLeaf = 64;
const maxTimes = 8;
/** Maximum changed leaves that wait for a pass. Others are noted at their next fetch. */
const maxTouched = 10_000;

interface WatchedAddress {
  readonly target: ProbedTarget;
  /** The crawler that measured these times, the last to fetch. */
  readonly crawlerId: CrawlerId;
  readonly timesMs: readonly number[];
}

interface WatchedLeaf {
  readonly addresses: Map<string, WatchedAddress>;
  /** The leaf is not examined before this time. */
  restsUntilMs: number;
}

export class LeafWatch {
  readonly #leaves = new LRUCache<SubnetId, WatchedLeaf>({ maxSize: maxAddresses });
  readonly #touched = new Set<SubnetId>();

  /** Notes results. `leafOf` finds the most specific subnet of more than one address. */
  note({ crawlerId, results }: ResultBatch, leafOf: (address: string) => SubnetId | null): void {
    for (const { result } of results) {
      const { address, url, timing } = result;
      if (address === null || timing.connectMs === null || !canParseUrl(url)) continue;
      const subnetId = leafOf(address);
      if (subnetId === null) continue;
      this.#add(subnetId, { url, host: urlHost(url), address }, crawlerId, timing.connectMs);
    }
  }

  #add(subnetId: SubnetId, target: ProbedTarget, crawlerId: CrawlerId, timeMs: number): void {
    const leaf = this.#leaves.get(subnetId) ?? { addresses: new Map(), restsUntilMs: -Infinity };
    const { addresses } = leaf;
    const known = addresses.get(target.address);
    const before = known?.crawlerId === crawlerId ? known.timesMs : [];
    addresses.delete(target.address);
    addresses.set(target.address, { target, crawlerId, timesMs: [...before, timeMs].slice(-maxTimes) });
    const [oldest] = addresses.keys();
    if (addresses.size > maxAddressesPerLeaf && oldest !== undefined) addresses.delete(oldest);
    this.#leaves.set(subnetId, leaf, { size: addresses.size });
    if (addresses.size > 1 && this.#touched.size < maxTouched) this.#touched.add(subnetId);
  }

  /** Takes leaves of several addresses with new times that are not resting. */
  takeTouched(nowMs: number): [SubnetId, WatchedLeaf][] {
    const touched = [...this.#touched];
    this.#touched.clear();
    return touched.flatMap((subnetId): [SubnetId, WatchedLeaf][] => {
      const leaf = this.#leaves.get(subnetId);
      return leaf === undefined || leaf.restsUntilMs > nowMs ? [] : [[subnetId, leaf]];
    });
  }
}

/**
 * GeoDNS: a host that resolves differently by place is delegated by itself, to the crawler nearest to the address that
 * this crawler sees. Suspicion comes from fetches to unexpected addresses, which costs nothing, and from a few hosts
 * per pass that the farthest crawler resolves, because a subnet's crawler is near the coordinator's answer and usually
 * gets the same. Then the coordinator and crawlers resolve the name several times, more than its TTL apart, until
 * `placeVerdict` is sure. A final round finds the nearest crawler.
 */

import { LRUCache } from "lru-cache";
import type { CrawlerId, HolderId, HostHash, SubnetId } from "#core/ids";
import type { NameResolver } from "#core/name-resolver";
import { growingTo } from "#core/small-collections";
import { urlKeyOf } from "#core/url-key";
import type { ResultBatch } from "../../crawlers/crawler.ts";
import type { CoordinatorState } from "../state.ts";
import { type HostPlace, reviewTimes, type SeenAnswer } from "./override.ts";
import type { FinerDelegationStore } from "./override-store.ts";
import { type FinerRoundPorts, finerRound } from "./round.ts";

export interface DelegateHostsPorts extends FinerRoundPorts {
  readonly finer: Pick<FinerDelegationStore, "saveRound" | "hostPlaces" | "setHost">;
  readonly resolver: NameResolver;
  readonly names: NameWatch;
}

const suspectsPerPass = 4;

const looksPerPass = 2;

/** Minimum time between two look-ups, unless the TTL is longer. */
const leastPauseMs = 60_000;

const mostPauseMs = 3_600_000;

/** Maximum look-ups of an unclear name. */
const mostAskings = 12;

/** Makes one pass. Returns the hosts newly delegated by themselves. */
export async function delegateHosts(ports: DelegateHostsPorts): Promise<string[]> {
  const nowMs = () => ports.now().getTime();
  const noted = ports.names.takeNoted(nowMs());
  let looks = looksPerPass;
  for (const place of noted.size === 0 ? [] : await ports.finer.hostPlaces([...noted.keys()])) {
    const { crawlerId, address } = noted.get(place.hostHash)!;
    if (place.byItself) continue;
    if (isElsewhere(address, place, ports.state)) ports.names.suspect(place, crawlerId);
    else if (looks > 0 && ports.names.mayLook(place.hostHash, nowMs())) {
      looks -= 1;
      await lookFromAfar(place, crawlerId, ports);
    }
  }
  const delegated: string[] = [];
  for (const suspect of ports.names.due(nowMs(), suspectsPerPass))
    if (await askAround(suspect, ports)) delegated.push(suspect.place.host);
  return delegated;
}

/** True if the address is in a subnet that the coordinator's answer did not contain. */
function isElsewhere(address: string, place: HostPlace, state: CoordinatorState): boolean {
  const [seen] = areasOf([address], state);
  return seen !== undefined && !share(areasOf(place.addresses, state), [seen], "subnetId");
}

async function lookFromAfar(place: HostPlace, fetcher: CrawlerId, ports: DelegateHostsPorts): Promise<void> {
  const full = ports.excluded();
  const rttMs = (one: CrawlerId) => ports.state.peerRtts.rttMs(fetcher, one) ?? 0;
  const others = ports.fleet.online().filter((one) => one !== fetcher && !full.has(one));
  const [farthest] = others.toSorted((a, b) => rttMs(b) - rttMs(a));
  const [address] = place.addresses;
  if (farthest === undefined || address === undefined) return;
  const outcome = await finerRound(
    { ...errandOf(place, address), first: [farthest], only: [farthest] },
    ports,
  );
  const seen = outcome?.seen[0]?.addresses[0];
  if (seen !== undefined && isElsewhere(seen, place, ports.state)) ports.names.suspect(place, farthest);
}

const errandOf = ({ url, host, subnetId }: HostPlace, address: string) => ({
  target: { url, host, address },
  withinSubnetId: subnetId,
  cause: "differs-by-place" as const,
  byName: true,
});

/** Returns whether the host is now delegated by itself. */
async function askAround(suspect: SuspectedHost, ports: DelegateHostsPorts): Promise<boolean> {
  const { place } = suspect;
  const heard = await hearVantages(place, [suspect.witness], ports);
  const nowMs = ports.now().getTime();
  suspect.timesAsked += 1;
  suspect.askAtMs = nowMs + Math.min(mostPauseMs, Math.max(leastPauseMs, (heard?.ttlSeconds ?? 0) * 1000));
  for (const { crawlerId, addresses } of heard?.seen ?? [])
    addAnswer(suspect, crawlerId, areasOf(addresses, ports.state));
  const verdict = placeVerdict([...suspect.answers.values()].map((answers) => ({ answers })));
  if (verdict === "unclear" && suspect.timesAsked < mostAskings) return false;
  const decision = heard?.outcome.decision ?? null;
  if (verdict === "differs" && heard !== null && decision === null) return false;
  ports.names.close(place.hostHash, nowMs);
  if (verdict !== "differs" || heard === null || decision === null) return false;
  const subnetCrawlerId = ports.state.ownerOf(place.subnetId);
  return await ports.finer.setHost(
    {
      ...decision,
      hostHash: place.hostHash,
      subnetId: place.subnetId,
      subnetRttMs: subnetCrawlerId === null ? null : (heard.outcome.rttsMs.get(subnetCrawlerId) ?? null),
      seen: heard.seen,
      reason: `${place.host} resolves differently by place; this crawler is nearest to what it sees`,
    },
    reviewTimes(ports.now()),
  );
}

/** Resolves the name by the coordinator and a dozen crawlers. Null if that is impossible now. */
export async function hearVantages(
  place: HostPlace,
  first: readonly (CrawlerId | null)[],
  ports: Omit<DelegateHostsPorts, "names">,
) {
  const answer = await ports.resolver.resolve(place.host);
  const address = "failed" in answer ? undefined : (answer.addresses[0] ?? place.addresses[0]);
  if ("failed" in answer || address === undefined) return null;
  const outcome = await finerRound({ ...errandOf(place, address), first }, ports);
  if (outcome === null) return null;
  const coordinator: SeenAnswer = { crawlerId: null, addresses: answer.addresses.slice(0, 16) };
  return { outcome, seen: [coordinator, ...outcome.seen], ttlSeconds: answer.ttlSeconds };
}

/** Registry areas of the addresses, without unregistered ones. */
export function areasOf(addresses: readonly string[], state: CoordinatorState): AnswerArea[] {
  return addresses.flatMap((address) => {
    const subnetId = state.subnetOf(address);
    return subnetId === null ? [] : [{ subnetId, holderId: state.tree.get(subnetId)?.holderId ?? null }];
  });
}

// Distinguishes names that resolve differently by place (GeoDNS) from servers that merely rotate answers. Several vantage
// points (the coordinator, crawlers) answer repeatedly, more than the TTL apart, so that no answer comes from a cache.
//
// Addresses are compared by registry area. Answers are *alike* if they share a subnet, so a different order or a different
// address of the same leaf makes no difference. GeoDNS requires two things:
// - Two vantage points, each queried at least twice, never had a subnet in common.
// - Vantage points repeat their answers. A repetition scores 1, a change costs 3. With answers drawn at random from two or
//   more places, the score drifts downward and ever reaches 8 with a probability under 1.839^-8 = 0.8 % (Wald's bound; 1.839
//   is the root of x/2 + 1/(2x³) = 1), and 16 with 0.006 %. Pools of one holder rotate most (load balancers, some of them
//   sticky), so a difference within one holder needs twice the score.

/** Smallest subnet of more than one address that contains an address, and its holder. */
export interface AnswerArea {
  readonly subnetId: SubnetId;
  readonly holderId: HolderId | null;
}

/** A vantage point's answers, oldest first, as areas of their addresses. */
interface VantageAnswers {
  readonly answers: readonly (readonly AnswerArea[])[];
}

/** `differs` is GeoDNS. `rotates`: answers change even at one place. `same`: every vantage point gets the same. */
type PlaceVerdict = "differs" | "rotates" | "same" | "unclear";

/** Score needed for GeoDNS, as explained above. Its negative ends the case as rotating. */
const scoreOfPlace = 8;

const scoreOfRotation = -6;
const costOfChange = 3;

/** Answers per vantage point needed to conclude that all are the same. */
const heardForSame = 3;

export function placeVerdict(vantages: readonly VantageAnswers[]): PlaceVerdict {
  const heard = vantages.filter(({ answers }) => answers.length >= 2);
  const difference = greatestDifference(heard);
  if (difference === "none") {
    const isSettled = heard.length >= 2 && heard.every(({ answers }) => answers.length >= heardForSame);
    return isSettled ? "same" : "unclear";
  }
  const score = heard.reduce((sum, { answers }) => sum + steadiness(answers), 0);
  if (score <= scoreOfRotation) return "rotates";
  return score >= (difference === "holder" ? scoreOfPlace : 2 * scoreOfPlace) ? "differs" : "unclear";
}

/** Repetitions increase it, changes decrease it. */
const steadiness = (answers: VantageAnswers["answers"]): number =>
  answers
    .slice(1)
    .reduce((score, next, at) => score + (share(answers[at]!, next, "subnetId") ? 1 : -costOfChange), 0);

/** The greatest difference over all pairs of vantage points and all their answers. */
function greatestDifference(vantages: readonly VantageAnswers[]): "none" | "subnet" | "holder" {
  const told = vantages.map(({ answers }) => answers.flat()).filter((areas) => areas.length > 0);
  let greatest: "none" | "subnet" = "none";
  for (const [index, a] of told.entries()) {
    for (const b of told.slice(index + 1)) {
      if (share(a, b, "subnetId")) continue;
      if (!share(a, b, "holderId")) return "holder";
      greatest = "subnet";
    }
  }
  return greatest;
}

export function share(a: readonly AnswerArea[], b: readonly AnswerArea[], by: keyof AnswerArea): boolean {
  const known = new Set(a.map((area) => area[by]).filter((id) => id !== null));
  return b.some((area) => area[by] !== null && known.has(area[by]));
}

// Evidence on names that may resolve by place: where fetches went, hosts found at unexpected addresses, and vantage points'
// answers. Bounded and in memory only. After a restart it is collected again.

/** Maximum hosts noted between two passes. Others are noted at their next fetch. */
const maxNoted = 5000;

const maxSuspects = 1000;

const maxAnswers = 12;

/** How long a name found not to be GeoDNS is left alone. */
const clearedMs = 86_400_000;

const maxCleared = 20_000;

/** Minimum time between two checks of a host from far away. */
const lookedMs = 7 * 86_400_000;

interface SuspectedHost {
  readonly place: HostPlace;
  /** The crawler that saw it elsewhere. */
  readonly witness: CrawlerId;
  /** Answers of each vantage point, oldest first. The key null is the coordinator. */
  readonly answers: Map<CrawlerId | null, (readonly AnswerArea[])[]>;
  timesAsked: number;
  askAtMs: number;
}

export class NameWatch {
  readonly #noted = new Map<HostHash, { readonly crawlerId: CrawlerId; readonly address: string }>();
  readonly #suspects = new LRUCache<HostHash, SuspectedHost>({ max: maxSuspects });
  readonly #clearedUntilMs = new LRUCache<HostHash, number>(growingTo(maxCleared));
  readonly #lookedUntilMs = new LRUCache<HostHash, number>(growingTo(maxCleared));

  /** Notes results, whose connections are examined in the next pass. */
  note(batch: ResultBatch): void {
    for (const { result } of batch.results) {
      if (result.address === null || result.timing.connectMs === null) continue;
      if (this.#noted.size >= maxNoted) return;
      const key = urlKeyOf(result.url);
      if (typeof key === "string" || this.#suspects.has(key.hostHash)) continue;
      this.#noted.set(key.hostHash, { crawlerId: batch.crawlerId, address: result.address });
    }
  }

  /** Takes hosts noted since the last pass, except recently cleared ones. */
  takeNoted(nowMs: number) {
    const noted = new Map(
      [...this.#noted].filter(([host]) => (this.#clearedUntilMs.get(host) ?? nowMs) <= nowMs),
    );
    this.#noted.clear();
    return noted;
  }

  mayLook(host: HostHash, nowMs: number): boolean {
    if ((this.#lookedUntilMs.get(host) ?? nowMs) > nowMs) return false;
    this.#lookedUntilMs.set(host, nowMs + lookedMs);
    return true;
  }

  suspect(place: HostPlace, witness: CrawlerId): void {
    if (this.#suspects.has(place.hostHash)) return;
    const unasked = { answers: new Map(), timesAsked: 0, askAtMs: Number.NEGATIVE_INFINITY };
    this.#suspects.set(place.hostHash, { place, witness, ...unasked });
  }

  /** Suspects due for another look-up, longest due first. */
  due(nowMs: number, most: number): SuspectedHost[] {
    return [...this.#suspects.values()]
      .filter(({ askAtMs }) => askAtMs <= nowMs)
      .sort((a, b) => a.askAtMs - b.askAtMs)
      .slice(0, most);
  }

  /** Closes the case: the host is delegated by itself or is no GeoDNS. */
  close(host: HostHash, nowMs: number): void {
    this.#suspects.delete(host);
    this.#clearedUntilMs.set(host, nowMs + clearedMs);
  }
}

/** Adds an answer and drops the oldest beyond the limit. */
export function addAnswer(
  suspect: SuspectedHost,
  vantage: CrawlerId | null,
  areas: readonly AnswerArea[],
): void {
  if (areas.length === 0) return;
  const answers = suspect.answers.get(vantage) ?? [];
  answers.push(areas);
  suspect.answers.set(vantage, answers.slice(-maxAnswers));
}

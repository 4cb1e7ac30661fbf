/**
 * GeoDNS: a host that resolves differently by place is delegated by itself, to the crawler that is nearest to
 * what it sees. Two things raise the suspicion: a fetch went where the coordinator would not have gone, which
 * costs nothing; and of the hosts that are fetched where the coordinator sees them, a few a pass are looked at
 * by the crawler that is farthest from there, since a subnet's crawler is near to what the coordinator sees
 * and most often sees the same. Then the coordinator and crawlers are asked for the name several times, with
 * more than its TTL in between, until `placeVerdict` is sure. The last asking has measured who is nearest.
 */

import { LRUCache } from "lru-cache";
import type { CrawlerId, HolderId, HostHash, SubnetId } from "#core/ids";
import type { NameResolver } from "#core/name-resolver";
import { growingTo } from "#core/small-collections";
import { urlKeyOf } from "#core/url-key";
import type { ResultBatch } from "../../crawlers/result-batch.ts";
import type { CoordinatorState } from "../state.ts";
import { type HostPlace, reviewTimes, type SeenAnswer } from "./override.ts";
import type { FinerDelegationStore } from "./override-store.ts";
import { type FinerOutcome, type FinerRoundPorts, finerRound } from "./round.ts";

export interface DelegateHostsPorts extends FinerRoundPorts {
  readonly finer: Pick<FinerDelegationStore, "saveRound" | "hostPlaces" | "setHost">;
  readonly resolver: NameResolver;
  readonly names: NameWatch;
}

/** Hosts that are asked about in one pass. */
const suspectsPerPass = 4;

/** Hosts that are looked at from elsewhere in one pass. */
const looksPerPass = 2;

/** Between two askings, where the TTL is not longer. */
const leastPauseMs = 60_000;

const mostPauseMs = 3_600_000;

/** A name that is not clear by then is let be. */
const mostAskings = 12;

/** One pass; returns the hosts that are delegated by themselves now. */
export async function delegateHosts(ports: DelegateHostsPorts): Promise<string[]> {
  await findSuspects(ports);
  const delegated: string[] = [];
  for (const suspect of ports.names.due(ports.now().getTime(), suspectsPerPass)) {
    if (await askAround(suspect, ports)) delegated.push(suspect.place.host);
  }
  return delegated;
}

async function findSuspects(ports: DelegateHostsPorts): Promise<void> {
  const noted = ports.names.takeNoted(ports.now().getTime());
  if (noted.size === 0) return;
  let looks = looksPerPass;
  for (const place of await ports.finer.hostPlaces([...noted.keys()])) {
    const { crawlerId, address } = noted.get(place.hostHash)!;
    if (place.byItself) continue;
    if (isElsewhere(address, place, ports.state)) ports.names.suspect(place, crawlerId);
    else if (looks > 0 && ports.names.mayLook(place.hostHash, ports.now().getTime())) {
      looks -= 1;
      await lookFromAfar(place, crawlerId, ports);
    }
  }
}

/** In a subnet of which the coordinator was not told. */
function isElsewhere(address: string, place: HostPlace, state: CoordinatorState): boolean {
  const [seen] = areasOf([address], state);
  if (seen === undefined) return false;
  return !areasOf(place.addresses, state).some(({ subnetId }) => subnetId === seen.subnetId);
}

async function lookFromAfar(place: HostPlace, fetcher: CrawlerId, ports: DelegateHostsPorts): Promise<void> {
  const farthest = farthestFrom(fetcher, ports);
  const [address] = place.addresses;
  if (farthest === null || address === undefined) return;
  const only = [farthest];
  const target = { url: place.url, host: place.host, address };
  const within = { withinSubnetId: place.subnetId, cause: "differs-by-place" } as const;
  const outcome = await finerRound({ target, ...within, first: only, only, byName: true }, ports);
  const seen = outcome?.seen[0]?.addresses[0];
  if (seen !== undefined && isElsewhere(seen, place, ports.state)) ports.names.suspect(place, farthest);
}

function farthestFrom(fetcher: CrawlerId, { fleet, state, excluded }: DelegateHostsPorts): CrawlerId | null {
  const full = excluded();
  let farthest: CrawlerId | null = null;
  let farthestMs = -1;
  for (const crawlerId of fleet.online()) {
    if (crawlerId === fetcher || full.has(crawlerId)) continue;
    const rttMs = state.peerRtts.rttMs(fetcher, crawlerId) ?? 0;
    if (rttMs > farthestMs) [farthest, farthestMs] = [crawlerId, rttMs];
  }
  return farthest;
}

/** True when the host is delegated by itself now. */
async function askAround(suspect: SuspectedHost, ports: DelegateHostsPorts): Promise<boolean> {
  const { place } = suspect;
  const heard = await hearVantages(place, [suspect.witness], ports);
  const nowMs = ports.now().getTime();
  suspect.timesAsked += 1;
  suspect.askAtMs = nowMs + Math.min(mostPauseMs, Math.max(leastPauseMs, (heard?.ttlSeconds ?? 0) * 1000));
  for (const { crawlerId, addresses } of heard?.seen ?? []) {
    addAnswer(suspect, crawlerId, areasOf(addresses, ports.state));
  }
  const verdict = placeVerdict([...suspect.answers.values()].map((answers) => ({ answers })));
  if (verdict === "unclear" && suspect.timesAsked < mostAskings) return false;
  if (verdict === "differs" && heard !== null && heard.outcome.decision === null) return false;
  ports.names.close(place.hostHash, nowMs);
  if (verdict !== "differs" || heard === null) return false;
  return await delegate(place, heard, ports);
}

interface HeardVantages {
  readonly outcome: FinerOutcome;
  /** What the coordinator and each crawler were told. */
  readonly seen: readonly SeenAnswer[];
  /** Of the coordinator's answer. */
  readonly ttlSeconds: number;
}

/** Asks the coordinator's resolver and a dozen crawlers for the name; null when that cannot be done now. */
export async function hearVantages(
  place: HostPlace,
  first: readonly (CrawlerId | null)[],
  ports: Omit<DelegateHostsPorts, "names">,
): Promise<HeardVantages | null> {
  const answer = await ports.resolver.resolve(place.host);
  if ("failed" in answer) return null;
  const address = answer.addresses[0] ?? place.addresses[0];
  if (address === undefined) return null;
  const outcome = await finerRound(
    {
      target: { url: place.url, host: place.host, address },
      withinSubnetId: place.subnetId,
      cause: "differs-by-place",
      first: first.filter((crawlerId) => crawlerId !== null),
      byName: true,
    },
    ports,
  );
  if (outcome === null) return null;
  const coordinator = { crawlerId: null, addresses: answer.addresses.slice(0, 16) };
  return { outcome, seen: [coordinator, ...outcome.seen], ttlSeconds: answer.ttlSeconds };
}

async function delegate(place: HostPlace, heard: HeardVantages, ports: DelegateHostsPorts): Promise<boolean> {
  const { decision, rttsMs } = heard.outcome;
  if (decision === null) return false;
  const subnetCrawlerId = ports.state.delegationOf(place.subnetId)?.crawlerId ?? null;
  return await ports.finer.setHost(
    {
      ...decision,
      hostHash: place.hostHash,
      subnetId: place.subnetId,
      subnetRttMs: subnetCrawlerId === null ? null : (rttsMs.get(subnetCrawlerId) ?? null),
      seen: heard.seen,
      reason: `${place.host} resolves differently by place; this crawler is nearest to what it sees`,
    },
    reviewTimes(ports.now()),
  );
}

/** Where addresses lie in the registry; those that lie nowhere are left out. */
export function areasOf(addresses: readonly string[], state: CoordinatorState): AnswerArea[] {
  return addresses.flatMap((address) => {
    const subnetId = state.subnetOf(address);
    return subnetId === null ? [] : [{ subnetId, holderId: state.tree.get(subnetId)?.holderId ?? null }];
  });
}

// Does a name resolve differently by place (GeoDNS), or does its name server merely rotate its answers? Asked
// of what several vantage points (the coordinator, crawlers) were told, each of them more than once, with more
// than the answer's TTL between two times, so that no cache repeats itself.
//
// Addresses are compared by where they lie in the registry: two answers are *alike* when they share a subnet.
// So one answer with all of the addresses in another order, or another address of the same leaf, is no
// difference at all. Two conditions make GeoDNS:
// - two vantage points, each heard at least twice, never had a subnet in common;
// - vantage points keep to what they said before. Each repeated answer scores 1; each answer unlike its
// predecessor costs 3. Were the answers drawn at random from two or more places, a repeat would be a coin
// flip at best, and the score a walk that drifts downward: it ever reaches 8 with a probability under
// 1.839^-8 = 0.8 % (Wald's bound; 1.839 is the root of x/2 + 1/(2x³) = 1), and 16 with 0.006 %.
// Pools of one holder rotate most (load balancers, some of which stick to whom they know), so a difference
// within one holder alone needs twice the score.

/** Where an address lies: its most specific subnet of more than one address, and who holds that. */
export interface AnswerArea {
  readonly subnetId: SubnetId;
  readonly holderId: HolderId | null;
}

/** What one vantage point was told, oldest answer first; each answer as the areas of its addresses. */
interface VantageAnswers {
  readonly answers: readonly (readonly AnswerArea[])[];
}

type PlaceVerdict =
  /** GeoDNS. */
  | "differs"
  /** The answers change of themselves, at one place too. */
  | "rotates"
  /** Everybody who was heard often enough is told the same. */
  | "same"
  | "unclear";

/** Scores as the header explains; a rotating name is given up for such a one. */
const scoreOfPlace = 8;

const scoreOfRotation = -6;
const costOfChange = 3;

/** Everybody heard so often, and no two apart: the same everywhere. */
const heardForSame = 3;

export function placeVerdict(vantages: readonly VantageAnswers[]): PlaceVerdict {
  const heard = vantages.filter(({ answers }) => answers.length >= 2);
  const score = heard.reduce((sum, { answers }) => sum + steadiness(answers), 0);
  const difference = greatestDifference(heard);
  if (difference === "none") {
    const isSettled = heard.length >= 2 && heard.every(({ answers }) => answers.length >= heardForSame);
    return isSettled ? "same" : "unclear";
  }
  if (score <= scoreOfRotation) return "rotates";
  const needed = difference === "holder" ? scoreOfPlace : 2 * scoreOfPlace;
  return score >= needed ? "differs" : "unclear";
}

/** Repeats count up, changes count down. */
function steadiness(answers: VantageAnswers["answers"]): number {
  let score = 0;
  for (let index = 1; index < answers.length; index++) {
    score += share(answers[index - 1]!, answers[index]!, "subnetId") ? 1 : -costOfChange;
  }
  return score;
}

type Difference = "none" | "subnet" | "holder";

/** Over all pairs of vantage points and all that each was ever told. */
function greatestDifference(vantages: readonly VantageAnswers[]): Difference {
  const told = vantages.map(({ answers }) => answers.flat()).filter((areas) => areas.length > 0);
  let greatest: Difference = "none";
  for (const [index, a] of told.entries()) {
    for (const b of told.slice(index + 1)) {
      if (share(a, b, "subnetId")) continue;
      if (!share(a, b, "holderId")) return "holder";
      greatest = "subnet";
    }
  }
  return greatest;
}

function share(a: readonly AnswerArea[], b: readonly AnswerArea[], by: keyof AnswerArea): boolean {
  const known = new Set(a.map((area) => area[by]).filter((id) => id !== null));
  return b.some((area) => area[by] !== null && known.has(area[by]));
}

// What is noticed of names that may resolve differently by place: where fetches went, which hosts were found
// at an address that the coordinator was not told of, and what vantage points were told since. In memory only
// and bounded; after a restart it is noticed again.

/** Hosts noted between two passes; the others are noted when they are fetched again. */
const maxNoted = 5000;

const maxSuspects = 1000;

/** Answers of one vantage point that count. */
const maxAnswers = 12;

/** A name that was found to be no GeoDNS is left alone for so long. */
const clearedMs = 86_400_000;

const maxCleared = 20_000;

/** A host that was looked at from elsewhere once is not for so long, whatever was seen. */
const lookedMs = 7 * 86_400_000;

interface NotedFetch {
  readonly crawlerId: CrawlerId;
  readonly address: string;
}

interface SuspectedHost {
  readonly place: HostPlace;
  /** Who saw it where the coordinator does not. */
  readonly witness: CrawlerId;
  /** Per vantage point, oldest first; null is the coordinator. */
  readonly answers: Map<CrawlerId | null, (readonly AnswerArea[])[]>;
  timesAsked: number;
  askAtMs: number;
}

export class NameWatch {
  readonly #noted = new Map<HostHash, NotedFetch>();
  readonly #suspects = new LRUCache<HostHash, SuspectedHost>({ max: maxSuspects });
  readonly #clearedUntilMs = new LRUCache<HostHash, number>(growingTo(maxCleared));

  readonly #lookedUntilMs = new LRUCache<HostHash, number>(growingTo(maxCleared));

  /** Results came in: where their connections went is looked at in the next pass. */
  note(batch: ResultBatch): void {
    for (const { result } of batch.results) {
      if (result.address === null || result.timing.connectMs === null) continue;
      if (this.#noted.size >= maxNoted) return;
      const key = urlKeyOf(result.url);
      if (typeof key === "string" || this.#suspects.has(key.hostHash)) continue;
      this.#noted.set(key.hostHash, { crawlerId: batch.crawlerId, address: result.address });
    }
  }

  /** Those noted since the last pass, without those that were cleared a short while ago. */
  takeNoted(nowMs: number): Map<HostHash, NotedFetch> {
    const noted = new Map([...this.#noted].filter(([host]) => !this.#isCleared(host, nowMs)));
    this.#noted.clear();
    return noted;
  }

  /** True, once in a week, for a host that is to be looked at from elsewhere. */
  mayLook(host: HostHash, nowMs: number): boolean {
    if ((this.#lookedUntilMs.get(host) ?? Number.NEGATIVE_INFINITY) > nowMs) return false;
    this.#lookedUntilMs.set(host, nowMs + lookedMs);
    return true;
  }

  suspect(place: HostPlace, witness: CrawlerId): void {
    if (this.#suspects.has(place.hostHash)) return;
    this.#suspects.set(place.hostHash, {
      place,
      witness,
      answers: new Map(),
      timesAsked: 0,
      askAtMs: Number.NEGATIVE_INFINITY,
    });
  }

  /** Suspects whose vantage points are to be asked (again), longest due first. */
  due(nowMs: number, most: number): SuspectedHost[] {
    return [...this.#suspects.values()]
      .filter(({ askAtMs }) => askAtMs <= nowMs)
      .sort((a, b) => a.askAtMs - b.askAtMs)
      .slice(0, most);
  }

  /** The case is closed: it was delegated by itself, or is no GeoDNS. */
  close(host: HostHash, nowMs: number): void {
    this.#suspects.delete(host);
    this.#clearedUntilMs.set(host, nowMs + clearedMs);
  }

  #isCleared(host: HostHash, nowMs: number): boolean {
    return (this.#clearedUntilMs.get(host) ?? Number.NEGATIVE_INFINITY) > nowMs;
  }
}

/** Adds what a vantage point was told; the oldest answer is forgotten for it. */
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

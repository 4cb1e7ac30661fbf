/**
 * What is noticed of names that may resolve differently by place: where fetches went, which hosts were found
 * at an address that the coordinator was not told of, and what vantage points were told since. In memory only
 * and bounded; after a restart it is noticed again.
 */
import { LRUCache } from "lru-cache";
import type { CrawlerId, HostHash } from "#core/ids";
import { urlKeyOf } from "#core/url-key";
import type { ResultBatch } from "../../results/take-results.ts";
import type { AnswerArea } from "./answers-by-place.ts";
import type { HostPlace } from "./override.ts";

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

export interface NotedFetch {
  readonly crawlerId: CrawlerId;
  readonly address: string;
}

export interface SuspectedHost {
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
  readonly #clearedUntilMs = new LRUCache<HostHash, number>({ max: maxCleared });

  readonly #lookedUntilMs = new LRUCache<HostHash, number>({ max: maxCleared });

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

/**
 * One request at a time per host, and none before the host's pace allows it. Remembers the pace of the
 * hosts met lately; what must outlive this memory travels with the results (`hostDelayMs`) and comes back
 * with the next lease (`waitMs`).
 */
import { LRUCache } from "lru-cache";
import {
  afterAnswer,
  type HostAnswer,
  type HostPace,
  newPace,
  notBefore,
  type PaceSettings,
  withCrawlDelay,
} from "./host-pace.ts";

const maxHosts = 20_000;

export class HostGates {
  readonly #settings: PaceSettings;
  readonly #paces = new LRUCache<string, HostPace>({ max: maxHosts });
  readonly #inUse = new Set<string>();

  constructor(settings: PaceSettings) {
    this.#settings = settings;
  }

  /** Takes the host for one slice; false when another slice of it is being crawled. */
  enter(host: string): boolean {
    if (this.#inUse.has(host)) return false;
    this.#inUse.add(host);
    return true;
  }

  leave(host: string): void {
    this.#inUse.delete(host);
  }

  /** Milliseconds until the host may be asked. */
  waitMs(host: string, nowMs: number): number {
    return Math.max(0, this.#pace(host).notBeforeMs - nowMs);
  }

  notBefore(host: string, atMs: number): void {
    this.#paces.set(host, notBefore(this.#pace(host), atMs));
  }

  crawlDelay(host: string, seconds: number | null): void {
    this.#paces.set(host, withCrawlDelay(this.#pace(host), seconds));
  }

  /** Notes an answer; returns the wait that it asks for. */
  answered(host: string, answer: HostAnswer, nowMs: number): number {
    const circumstances = { settings: this.#settings, nowMs, random: Math.random() };
    const pace = afterAnswer(this.#pace(host), answer, circumstances);
    this.#paces.set(host, pace);
    return pace.notBeforeMs - nowMs;
  }

  #pace(host: string): HostPace {
    return this.#paces.get(host) ?? newPace;
  }
}

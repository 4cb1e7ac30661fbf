/**
 * Allows one request at a time per host and per address, and none before their paces permit. The pace of recent hosts is
 * remembered across restarts. What another crawler needs to know about a host travels with the results (`hostDelayMs`, `pace`)
 * and returns with the next lease (`waitMs`, `pace`).
 */
import { LRUCache } from "lru-cache";
import { z } from "zod";
import { registrableDomain } from "#core/ip/registrable-domain";
import { timerMs } from "#core/timer-ms";
import type { HostPaceReport } from "#protocol/result";
import { steadyNowMs } from "../core/local-time.ts";
import {
  type AddressPace,
  addressAfterAnswer,
  addressAfterProbe,
  addressKey,
  addressPace,
  hadOf,
  newAddressPace,
} from "./address-pace.ts";
import {
  afterAnswer,
  answerSpeed,
  type HostAnswer,
  type HostPace,
  hostPace,
  newPace,
  notBefore,
  type PaceSettings,
  paceReport,
  slownessWords,
  withCrawlDelay,
  withReport,
} from "./host-pace.ts";
import { KeptFile, type KeptSettings } from "./state-file.ts";

const maxHosts = 20_000;
const maxAddresses = 20_000;

/** A request that takes longer no longer blocks the other hosts of its address, because some hosts never answer. */
const longestAddressTurnMs = 10_000;

const keptFile = { name: "host-paces.json", maxBytes: 4 * 1024 * 1024, everyMs: 5000 };

interface GateSettings extends PaceSettings {
  /** Maximum number of simultaneous requests to one address, over all its hosts. Default: 1. */
  readonly requestsPerAddress?: number;
  readonly kept?: KeptSettings;
}

interface Turn {
  /**
   * Records the outcome (null if no request was sent) and the address actually used, which differs if the first one did not
   * connect. Returns how long the host must be left alone. Must be called exactly once.
   */
  end(answer: HostAnswer | null, address: string | null): number;
}

export class HostGates {
  readonly #settings: GateSettings;
  readonly #paces = new LRUCache<string, HostPace>({ max: maxHosts });
  readonly #addresses = new LRUCache<string, AddressPace>({ max: maxAddresses });
  readonly #inUse = new Set<string>();
  readonly #hostTurns: TurnQueue;
  readonly #addressTurns: TurnQueue;
  readonly #file: KeptFile | null;

  constructor(settings: GateSettings) {
    this.#settings = settings;
    this.#hostTurns = new TurnQueue({
      atATime: 1,
      readyAtMs: (host) => this.#pace(host).notBeforeMs,
    });
    this.#addressTurns = new TurnQueue({
      atATime: settings.requestsPerAddress ?? 1,
      readyAtMs: (key) => this.#addresses.get(key)?.notBeforeMs ?? 0,
      longestMs: longestAddressTurnMs,
      hadMs: (key, domain) => hadOf(this.#addresses.get(key) ?? newAddressPace, domain),
    });
    const { kept } = settings;
    this.#file = kept ? new KeptFile({ ...kept, ...keptFile }) : null;
    const known = this.#file?.read((json) => pacesFrom(json, steadyNowMs()));
    for (const [host, pace] of known?.hosts ?? []) this.#paces.set(host, pace);
    for (const [key, pace] of known?.addresses ?? []) this.#addresses.set(key, pace);
  }

  /** Reserves the host for one slice. Returns false if another slice of it is being crawled. */
  enter(host: string): boolean {
    if (this.#inUse.has(host)) return false;
    this.#inUse.add(host);
    return true;
  }

  leave(host: string): void {
    this.#inUse.delete(host);
  }

  waitMs(host: string, nowMs: number): number {
    return Math.max(0, this.#pace(host).notBeforeMs - nowMs);
  }

  notBefore(host: string, atMs: number): void {
    if (atMs > this.#pace(host).notBeforeMs) this.#set(host, notBefore(this.#pace(host), atMs));
  }

  /** Sets the delay from a robots.txt that was fetched just now. The delay counts from that request. */
  crawlDelay(host: string, seconds: number | null): void {
    const pace = withCrawlDelay(this.#pace(host), seconds);
    this.#set(host, notBefore(pace, pace.crawlDelayMs === 0 ? 0 : steadyNowMs() + pace.crawlDelayMs));
  }

  /**
   * Applies a delay that was read within the last day. It can only raise the delay, since another crawler may have read a
   * newer file.
   */
  crawlDelayAtLeast(host: string, seconds: number | null): void {
    const read = withCrawlDelay(this.#pace(host), seconds);
    if (read.crawlDelayMs > this.#pace(host).crawlDelayMs) this.#set(host, read);
  }

  learn(host: string, report: HostPaceReport): void {
    const [settings, nowMs] = [this.#settings, steadyNowMs()];
    this.#set(host, withReport(this.#pace(host), report, { settings, nowMs }));
  }

  report(host: string): HostPaceReport | null {
    return paceReport(this.#pace(host), steadyNowMs());
  }

  /** Waits until the host and its address may be asked. Returns null if the bounds end first. */
  async take(target: { readonly host: string; readonly address: string | null }, bounds: TurnBounds) {
    const { host, address } = target;
    const key = address === null ? null : addressKey(address);
    const endTurns = await this.#takeTurns(host, key, bounds);
    if (endTurns === null) return null;
    const turn: Turn = {
      end: (answer, asked) => {
        const nowMs = steadyNowMs();
        const askedKey = asked === null ? key : addressKey(asked);
        if (answer !== null && askedKey !== null) this.#addressAnswered(askedKey, { host, answer }, nowMs);
        if (answer !== null) this.#answered(host, answer, nowMs);
        endTurns();
        return this.waitMs(host, nowMs);
      },
    };
    return turn;
  }

  /**
   * Queues a probe with the page requests, for the address and, if it is a request, for the host (otherwise null). Both rest
   * afterwards as usual. The returned function must be called exactly once to end the turn.
   */
  async takeProbe(
    { host, address }: { readonly host: string | null; readonly address: string },
    bounds: TurnBounds,
  ): Promise<(() => void) | null> {
    const key = addressKey(address);
    const endTurns = await this.#takeTurns(host, key, bounds);
    if (endTurns === null) return null;
    return () => {
      const [settings, nowMs] = [this.#settings, steadyNowMs()];
      const pace = this.#addresses.get(key) ?? newAddressPace;
      const domain = host === null ? "" : registrableDomain(host);
      this.#addresses.set(key, addressAfterProbe(pace, { settings, nowMs, domain }));
      if (host !== null)
        this.notBefore(host, nowMs + Math.max(settings.floorMs, this.#pace(host).crawlDelayMs));
      endTurns();
    };
  }

  /** No turn is needed for a null host or key. */
  async #takeTurns(host: string | null, key: string | null, bounds: TurnBounds): Promise<EndTurn | null> {
    const endHost = host === null ? noTurn : await this.#hostTurns.take(host, bounds);
    if (endHost === null) return null;
    const domain = host === null ? "" : registrableDomain(host);
    const endAddress = key === null ? noTurn : await this.#addressTurns.take(key, bounds, domain);
    if (endAddress === null) {
      endHost();
      return null;
    }
    return () => {
      endAddress();
      endHost();
    };
  }

  failures(host: string): number {
    return this.#pace(host).failures;
  }

  slowHosts(most: number, nowMs = steadyNowMs()): { readonly host: string; readonly words: string }[] {
    const slow: { host: string; words: string }[] = [];
    for (const host of this.#inUse) {
      if (slow.length === most) break;
      const words = slownessWords(this.#pace(host), { settings: this.#settings, nowMs });
      if (words !== null) slow.push({ host, words });
    }
    return slow;
  }

  close(): void {
    this.#file?.close();
  }

  #answered(host: string, answer: HostAnswer, nowMs: number): void {
    const circumstances = { settings: this.#settings, nowMs, random: Math.random() };
    this.#set(host, afterAnswer(this.#pace(host), answer, circumstances));
  }

  /** Must be called before the host's own pace is updated, because the usual speed must not include this answer. */
  #addressAnswered(key: string, { host, answer }: { host: string; answer: HostAnswer }, nowMs: number): void {
    const pace = this.#addresses.get(key) ?? newAddressPace;
    const { status, tookMs } = answer;
    const domain = registrableDomain(host);
    const told = { host, domain, status, tookMs, speed: answerSpeed(this.#pace(host), answer) };
    this.#addresses.set(key, addressAfterAnswer(pace, told, { settings: this.#settings, nowMs }));
  }

  #set(host: string, pace: HostPace): void {
    this.#paces.set(host, pace);
    this.#hostTurns.changed(host);
    this.#file?.changed(() => {
      const shiftMs = Date.now() - steadyNowMs();
      return keptPaces(this.#paces.entries(), this.#addresses.entries(), shiftMs);
    });
  }

  #pace(host: string): HostPace {
    return this.#paces.get(host) ?? newPace;
  }
}

const noTurn: EndTurn = () => {};

// Stores host paces on disk. Invalid entries and impossible waits are dropped, so that a damaged file can neither stop the
// crawl nor speed it up beyond the floor and robots.txt.

const maxKeptHosts = 5000;
const maxKeptAddresses = 1000;

/** Retry-After may be long, but a wrong clock must not block a host for longer than this. */
const longestWaitMs = 366 * 86_400_000;

const keptPace = hostPace.extend({ host: z.string().min(1).max(253) });
const keptAddress = addressPace.extend({ key: z.string().min(1).max(60) });

const file = z.object({
  version: z.literal(1),
  hosts: z.array(z.unknown()).max(maxKeptHosts),
  addresses: z.array(z.unknown()).max(maxKeptAddresses).default([]),
});

interface KnownPaces {
  readonly hosts: [string, HostPace][];
  readonly addresses: [string, AddressPace][];
}

/** A domain's charge exceeds the virtual time by at most this much, since a single request cannot have cost more. */
const mostOwedMs = 600_000;

/** For each address, only the domains with the highest charge are saved. */
const maxKeptDomains = 8;

/**
 * Returns the most recent paces first as a JSON value, with the addresses that are limited or shared by several domains.
 * `shiftMs` is how far the machine's clock, which the next process uses, is ahead of these times.
 */
export function keptPaces(
  paces: Iterable<[string, HostPace]>,
  addressPaces: Iterable<[string, AddressPace]>,
  shiftMs = 0,
): unknown {
  const shifted = (ms: number) => (ms === 0 ? 0 : Math.max(0, ms + shiftMs));
  const hosts: (HostPace & { readonly host: string; readonly stretch: number })[] = [];
  for (const [host, pace] of paces) {
    if (hosts.length === maxKeptHosts) break;
    // Release 0.2.0, to which the crawler may be rolled back, rejects paces without `stretch`.
    hosts.push({
      ...{ host, ...pace, stretch: 1, rate: { ...pace.rate, refusedAtMs: shifted(pace.rate.refusedAtMs) } },
      ...{ notBeforeMs: shifted(pace.notBeforeMs), endedAtMs: shifted(pace.endedAtMs) },
      backedOffAtMs: shifted(pace.backedOffAtMs),
    });
  }
  const addresses: z.infer<typeof keptAddress>[] = [];
  for (const [key, pace] of addressPaces) {
    if (addresses.length === maxKeptAddresses) break;
    const had = Object.entries(pace.hadMs);
    if (pace.rate.perHour === 0 && had.length < 2) continue;
    addresses.push({ key, ...pace, hadMs: Object.fromEntries(had.slice(0, maxKeptDomains)) });
  }
  return { version: 1, hosts, addresses };
}

/** Returns the most recent entries last, ready for the cache, or null if the JSON is invalid. */
export function pacesFrom(json: unknown, nowMs: number): KnownPaces | null {
  const read = file.safeParse(json);
  if (!read.success) return null;
  const { hosts, addresses } = read.data;
  return {
    hosts: hosts.flatMap((entry) => paceOf(entry, nowMs)).reverse(),
    addresses: addresses.flatMap((entry) => addressOf(entry, nowMs)).reverse(),
  };
}

function paceOf(entry: unknown, nowMs: number): [string, HostPace][] {
  const read = keptPace.safeParse(entry);
  if (!read.success) return [];
  const { host, ...pace } = read.data;
  // An answer time in the future comes from a clock that was ahead. The host then rests for its full wait from now.
  const aheadMs = Math.max(0, pace.endedAtMs - nowMs);
  const [notBeforeMs, backedOffAtMs] = [pace.notBeforeMs - aheadMs, pace.backedOffAtMs - aheadMs];
  const latestMs = nowMs + longestWaitMs;
  if (notBeforeMs > latestMs || backedOffAtMs > latestMs) return [];
  const rate = { ...pace.rate, refusedAtMs: Math.min(nowMs, pace.rate.refusedAtMs) };
  const endedAtMs = Math.min(nowMs, pace.endedAtMs);
  return [[host, { ...pace, rate, endedAtMs, notBeforeMs, backedOffAtMs: Math.max(0, backedOffAtMs) }]];
}

/** Restores only the rate, since an address rests for only seconds. */
function addressOf(entry: unknown, nowMs: number): [string, AddressPace][] {
  const read = keptAddress.safeParse(entry);
  if (!read.success) return [];
  const { key, ...pace } = read.data;
  const rate = { ...pace.rate, refusedAtMs: Math.min(nowMs, pace.rate.refusedAtMs) };
  const upToNow = (ms: number) => Math.min(nowMs, ms);
  const [notBeforeMs, endedAtMs] = [upToNow(pace.notBeforeMs), upToNow(pace.endedAtMs)];
  const had = Object.entries(pace.hadMs).map(([domain, ms]) => {
    return [domain, Math.min(ms, pace.virtualMs + mostOwedMs)] as const;
  });
  const hadMs = Object.fromEntries(had);
  return [[key, { ...pace, rate, notBeforeMs, endedAtMs, refusedAtMs: upToNow(pace.refusedAtMs), hadMs }]];
}

/**
 * Hands out turns by key (a host or an address): a limited number at a time, none before the key is ready, first come first
 * served. If several parties (registrable domains) share a key, the one with the lowest charge goes first. Waiting costs one
 * queue entry. A key has at most one timer, and none when nobody waits.
 */

interface TurnBounds {
  readonly signal: AbortSignal;
  readonly endsAtMs: number;
}

/** Must be called exactly once, after recording when the key is next ready. */
type EndTurn = () => void;

interface Key {
  running: number;
  /** Maps the start function of each waiting caller to its party, in order of arrival. */
  readonly queue: Map<() => void, string>;
  /** Uncharged turns by party, including those that no longer block others. */
  readonly uncharged: Map<string, number>;
  timer: NodeJS.Timeout | null;
}

export class TurnQueue {
  readonly #keys = new Map<string, Key>();
  readonly #atATime: number;
  readonly #readyAtMs: (key: string) => number;
  readonly #longestMs: number;
  readonly #hadMs: ((key: string, party: string) => number) | null;

  /**
   * `longestMs`: a turn that lasts longer stops blocking the next one. `hadMs`: a party's charge on the key. If absent, all
   * callers are one party.
   */
  constructor(settings: {
    readonly atATime: number;
    readonly readyAtMs: (key: string) => number;
    readonly longestMs?: number;
    readonly hadMs?: (key: string, party: string) => number;
  }) {
    this.#atATime = settings.atATime;
    this.#readyAtMs = settings.readyAtMs;
    this.#longestMs = settings.longestMs ?? Number.POSITIVE_INFINITY;
    this.#hadMs = settings.hadMs ?? null;
  }

  take(name: string, bounds: TurnBounds, party = ""): Promise<EndTurn | null> {
    if (bounds.signal.aborted || steadyNowMs() >= bounds.endsAtMs) return Promise.resolve(null);
    const key = this.#key(name);
    return new Promise((resolve) => {
      const giveUp = () => {
        leave();
        this.#next(name, key);
        resolve(null);
      };
      const begin = () => {
        leave();
        resolve(this.#begin(name, key, party));
      };
      const late = setTimeout(giveUp, timerMs(bounds.endsAtMs - steadyNowMs()));
      const leave = () => {
        clearTimeout(late);
        key.queue.delete(begin);
        bounds.signal.removeEventListener("abort", giveUp);
      };
      bounds.signal.addEventListener("abort", giveUp);
      key.queue.set(begin, party);
      this.#next(name, key);
    });
  }

  changed(name: string): void {
    const key = this.#keys.get(name);
    if (key) this.#next(name, key);
  }

  #key(name: string): Key {
    const known = this.#keys.get(name);
    if (known) return known;
    const key: Key = { running: 0, queue: new Map(), uncharged: new Map(), timer: null };
    this.#keys.set(name, key);
    return key;
  }

  #begin(name: string, key: Key, party: string): EndTurn {
    key.running++;
    const count = (by: number) => {
      const turns = (key.uncharged.get(party) ?? 0) + by;
      if (turns === 0) key.uncharged.delete(party);
      else key.uncharged.set(party, turns);
    };
    count(1);
    let holds = true;
    const release = () => {
      if (!holds) return;
      holds = false;
      key.running--;
      this.#next(name, key);
    };
    const isBounded = this.#longestMs !== Number.POSITIVE_INFINITY;
    const tooLong = isBounded ? setTimeout(release, timerMs(this.#longestMs)) : undefined;
    return () => {
      clearTimeout(tooLong);
      count(-1);
      if (holds) release();
      else this.#next(name, key);
    };
  }

  #first(name: string, key: Key): (() => void) | undefined {
    const [first] = key.queue.keys();
    if (this.#hadMs === null || key.queue.size < 2) return first;
    const had = new Map<string, number>();
    let [least, leastMs] = [first, Number.POSITIVE_INFINITY];
    for (const [begin, party] of key.queue) {
      if (had.has(party)) continue;
      const uncharged = key.uncharged.get(party) ?? 0;
      const ms = this.#hadMs(name, party) + (uncharged === 0 ? 0 : uncharged * this.#longestMs);
      had.set(party, ms);
      if (ms < leastMs) [least, leastMs] = [begin, ms];
    }
    return least;
  }

  #next(name: string, key: Key): void {
    if (key.timer !== null) clearTimeout(key.timer);
    key.timer = null;
    for (;;) {
      if (key.queue.size === 0 || key.running >= this.#atATime) break;
      const waitMs = this.#readyAtMs(name) - steadyNowMs();
      if (waitMs > 0) {
        key.timer = setTimeout(() => this.#next(name, key), timerMs(waitMs));
        return;
      }
      this.#first(name, key)!();
    }
    if (key.queue.size === 0 && key.running === 0 && key.uncharged.size === 0) this.#keys.delete(name);
  }
}

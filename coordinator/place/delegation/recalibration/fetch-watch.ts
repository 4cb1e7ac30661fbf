/**
 * Watches all crawlers' fetches for hosts that turned slow (rule.ts), each against its own past and adjusted for the
 * crawler's current level (`CrawlerLevel`). Connect times are the path alone but come once per connection. First bytes come
 * with every fetch but include the server's time. If a new connection took its usual time, a slow first byte is the server's
 * fault and raises no alarm. If hosts of other subnets turned slow at the same time, the crawler's machine or network is
 * busy, which is no alarm either.
 *
 * The number of hosts is bounded: those seen longest ago are forgotten (the database has their past). A host that changes
 * crawlers starts over.
 */
import type { CrawlerId, SubnetId } from "#core/ids";
import { HostTimes, type RecalibrationRule, type TimesAlarm } from "./rule.ts";

const timeKinds = ["connect", "firstByte"] as const;
type TimeKind = (typeof timeKinds)[number];

interface WatchedFetch {
  readonly hostKey: string;
  readonly crawlerId: CrawlerId;
  /** Hosts of one subnet may turn slow together by one route. Unknown if null or absent. */
  readonly subnetId?: SubnetId | null;
  readonly atMs: number;
  /** When its crawler moved to its current location. Earlier times are ignored. */
  readonly placedAtMs?: number;
  /** Null if there was no new connection. */
  readonly connectMs: number | null;
  readonly firstByteMs: number | null;
}

export interface HostAlarm extends TimesAlarm {
  readonly kind: TimeKind;
  readonly hostKey: string;
  readonly crawlerId: CrawlerId;
  readonly atMs: number;
}

export interface CrawlerAlarm extends LevelAlarm {
  readonly kind: TimeKind;
  readonly crawlerId: CrawlerId;
  readonly atMs: number;
}

type WatchedHost = {
  crawlerId: CrawlerId;
  lastAtMs: number;
  /** Since when its times look like a change. Null if they do not. */
  readonly suspectSinceMs: Record<TimeKind, number | null>;
} & Readonly<Record<TimeKind, HostTimes>>;
type Levels = Readonly<Record<TimeKind, CrawlerLevel>>;

export class FetchWatch {
  readonly #rule: RecalibrationRule;
  readonly #mostHosts: number;
  readonly #hosts = new Map<string, WatchedHost>();
  readonly #levels = new Map<CrawlerId, Levels>();
  #crawlerAlarms: CrawlerAlarm[] = [];

  constructor(rule: RecalibrationRule, mostHosts: number) {
    this.#rule = rule;
    this.#mostHosts = mostHosts;
  }

  get size(): number {
    return this.#hosts.size;
  }

  /** Whether this host's past by this crawler is loaded. */
  knows(hostKey: string, crawlerId: CrawlerId): boolean {
    return this.#hosts.get(hostKey)?.crawlerId === crawlerId;
  }

  /** Expects fetches of a host in time order and drops others. */
  note(fetch: WatchedFetch): HostAlarm | null {
    const host = this.#hostOf(fetch);
    if (fetch.atMs <= host.lastAtMs) return null;
    host.lastAtMs = fetch.atMs;
    const connect = this.#noteKind(host, "connect", fetch);
    if (fetch.connectMs !== null && !host.connect.isSuspect && host.connect.usualMs(this.#rule) !== null) {
      host.firstByte.dismiss();
    }
    const firstByte = this.#noteKind(host, "firstByte", fetch);
    const alarm = connect ?? firstByte;
    // Both kinds measure one path, so the other one must not report the same change again.
    if (alarm) host[alarm.kind === "connect" ? "firstByte" : "connect"].startAnew();
    return alarm;
  }

  /** Returns crawlers whose own network turned slow since the last call. */
  takeCrawlerAlarms(): CrawlerAlarm[] {
    const alarms = this.#crawlerAlarms;
    this.#crawlerAlarms = [];
    return alarms;
  }

  #hostOf({ hostKey, crawlerId, placedAtMs = 0 }: WatchedFetch): WatchedHost {
    const known = this.#hosts.get(hostKey);
    this.#hosts.delete(hostKey);
    const host: WatchedHost =
      known?.crawlerId === crawlerId && known.lastAtMs >= placedAtMs
        ? known
        : {
            crawlerId,
            lastAtMs: Number.NEGATIVE_INFINITY,
            suspectSinceMs: { connect: null, firstByte: null },
            connect: new HostTimes(),
            firstByte: new HostTimes(),
          };
    this.#hosts.set(hostKey, host);
    if (this.#hosts.size > this.#mostHosts) this.#hosts.delete(this.#hosts.keys().next().value!);
    return host;
  }

  #noteKind(host: WatchedHost, kind: TimeKind, fetch: WatchedFetch): HostAlarm | null {
    const { hostKey, crawlerId, atMs, subnetId = null } = fetch;
    const timeMs = kind === "connect" ? fetch.connectMs : fetch.firstByteMs;
    if (timeMs === null) return null;
    const level = this.#levelsOf(crawlerId)[kind];
    const usualMs = host[kind].usualMs(this.#rule);
    const sinceMs = host.suspectSinceMs[kind] ?? atMs;
    const comparableMs = timeMs / level.factorAt(atMs);
    const alarm = host[kind].note(comparableMs, this.#rule, (found) =>
      this.#isOwnFault(found, fetch, sinceMs),
    );
    host.suspectSinceMs[kind] = host[kind].isSuspect ? sinceMs : null;
    const slowCrawler =
      usualMs === null
        ? null
        : level.note({ hostKey, subnetId, atMs, ratio: timeMs / usualMs, lateMs: comparableMs - usualMs });
    if (slowCrawler) this.#crawlerAlarms.push({ ...slowCrawler, kind, crawlerId, atMs });
    return alarm && { ...alarm, kind, hostKey, crawlerId, atMs };
  }

  /** True if most of the crawler's recent fetches in other subnets were late as well, by a relevant part of this delay. */
  #isOwnFault(
    { usualMs, nowMs }: TimesAlarm,
    { crawlerId, subnetId }: WatchedFetch,
    sinceMs: number,
  ): boolean {
    if (subnetId === null || subnetId === undefined) return false;
    const lateMs = Math.max(this.#rule.floorMs, (nowMs - usualMs) * leastPartOfLate);
    const levels = this.#levelsOf(crawlerId);
    const others = new Map<SubnetId, boolean>();
    for (const kind of timeKinds) {
      for (const other of levels[kind].since(sinceMs)) {
        if (other.subnetId === null || other.subnetId === subnetId) continue;
        others.set(other.subnetId, other.lateMs >= lateMs || (others.get(other.subnetId) ?? false));
      }
    }
    const late = [...others.values()].filter(Boolean).length;
    return late >= leastOthersLate && 2 * late > others.size;
  }

  #levelsOf(crawlerId: CrawlerId): Levels {
    const known = this.#levels.get(crawlerId);
    if (known) return known;
    const levels = { connect: new CrawlerLevel(), firstByte: new CrawlerLevel() };
    this.#levels.set(crawlerId, levels);
    return levels;
  }
}

/** A busy machine delays near and far hosts alike, but each fetch by a different amount. */
const leastPartOfLate = 1 / 8;

/** Minimum number of other late subnets, since a single one may be slow by chance. */
const leastOthersLate = 2;

// How slow a crawler currently is relative to its hosts' usual times. Evening congestion and trouble in the partner's network
// slow all its hosts, while a changed route slows some. So each time is divided by the level (the median ratio of time to
// usual time over hosts fetched within an hour) before it is compared with the host's past. If there are too few hosts, that
// hour's level of earlier days is used, if known.
//
// A jump of the level is one finding about the crawler's network instead of a thousand about routes.

const mostHosts = 64;

/** Minimum number of hosts. Of fewer, half may be behind one changed route. */
const leastHosts = 8;

const freshMs = 3_600_000;

/** The median is recomputed after this many notes. Each note moves it by at most one place in 64. */
const notesPerMedian = 4;

/** How often the hour's level is learned and judged. */
const judgeEveryMs = 300_000;

/** Share of the difference learned per judgement: some 70 % in an hour. */
const learningRate = 0.1;

/** A crawler slower by this factor is reported. A daily wave of 20 % is not. */
const crawlerSlowFactor = 1.35;

/** Consecutive judgements needed: a quarter of an hour. */
const looksInARow = 3;

const hourMs = 3_600_000;

const scratch = new Float64Array(mostHosts);

interface LevelAlarm {
  /** Ratio of the current times to the usual ones at this hour. */
  readonly factor: number;
  readonly hosts: number;
}

interface LeveledFetch extends Pick<WatchedFetch, "hostKey" | "atMs"> {
  readonly subnetId: SubnetId | null;
  readonly ratio: number;
  /** Delay beyond the usual time, adjusted for the level. */
  readonly lateMs: number;
}

class CrawlerLevel {
  /** `lateMs` includes earlier fetches with weights that halve each time. */
  readonly #latest = new Map<string, LeveledFetch & { readonly logRatio: number }>();
  /** Logarithm of the level by UTC hour. NaN before it is learned. */
  readonly #byHour = new Float64Array(24).fill(Number.NaN);
  #usualLog = Number.NaN;
  #judgedAtMs = Number.NEGATIVE_INFINITY;
  #slowLooks = 0;
  #median = 0;
  #medianIsOld = notesPerMedian;

  /** The factor by which times at this moment exceed the usual ones. */
  factorAt(atMs: number): number {
    this.#forgetBefore(atMs - freshMs);
    if (this.#latest.size >= leastHosts) return Math.exp(this.#medianLog());
    const learned = this.#byHour[hourOf(atMs)]!;
    return Number.isNaN(learned) ? 1 : Math.exp(learned);
  }

  since(atMs: number): LeveledFetch[] {
    return [...this.#latest.values()].filter((one) => one.atMs >= atMs);
  }

  /** Returns an alarm if the crawler itself turned slow. */
  note(fetch: LeveledFetch): LevelAlarm | null {
    const { hostKey, ratio, atMs } = fetch;
    if (!(ratio > 0) || !Number.isFinite(ratio)) return null;
    const lateMs = (fetch.lateMs + (this.#latest.get(hostKey)?.lateMs ?? fetch.lateMs)) / 2;
    this.#latest.delete(hostKey);
    this.#latest.set(hostKey, { ...fetch, lateMs, logRatio: Math.log(ratio) });
    this.#medianIsOld += 1;
    if (this.#latest.size > mostHosts) this.#latest.delete(this.#latest.keys().next().value!);
    if (atMs - this.#judgedAtMs < judgeEveryMs || this.#latest.size < leastHosts) return null;
    this.#judgedAtMs = atMs;
    return this.#judge(atMs);
  }

  #judge(atMs: number): LevelAlarm | null {
    const nowLog = this.#medianLog();
    const hour = hourOf(atMs);
    const learned = this.#byHour[hour]!;
    const usualLog = Number.isNaN(learned) ? this.#usualLog : learned;
    const above = nowLog - (Number.isNaN(usualLog) ? nowLog : usualLog);
    this.#slowLooks = above > Math.log(crawlerSlowFactor) ? this.#slowLooks + 1 : 0;
    if (this.#slowLooks >= looksInARow) {
      this.#shift(above);
      return { factor: Math.exp(above), hosts: this.#latest.size };
    }
    if (this.#slowLooks > 0) return null;
    this.#byHour[hour] = Number.isNaN(learned) ? nowLog : learned + learningRate * (nowLog - learned);
    this.#usualLog = Number.isNaN(this.#usualLog)
      ? nowLog
      : this.#usualLog + (learningRate / 24) * (nowLog - this.#usualLog);
    return null;
  }

  /** Makes the new level the usual one, so that it is reported once. */
  #shift(byLog: number): void {
    for (let hour = 0; hour < 24; hour++) this.#byHour[hour]! += byLog;
    this.#usualLog += byLog;
    this.#slowLooks = 0;
  }

  #forgetBefore(atMs: number): void {
    for (const [hostKey, known] of this.#latest) {
      if (known.atMs >= atMs) return;
      this.#latest.delete(hostKey);
      this.#medianIsOld = notesPerMedian;
    }
  }

  #medianLog(): number {
    if (this.#medianIsOld < notesPerMedian) return this.#median;
    let count = 0;
    for (const { logRatio } of this.#latest.values()) scratch[count++] = logRatio;
    const logs = scratch.subarray(0, count).sort();
    this.#median = (logs[(count - 1) >> 1]! + logs[count >> 1]!) / 2;
    this.#medianIsOld = 0;
    return this.#median;
  }
}

const hourOf = (atMs: number): number => Math.floor(atMs / hourMs) % 24;

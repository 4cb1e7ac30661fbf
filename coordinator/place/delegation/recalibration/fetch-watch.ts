/**
 * Watches the fetches of all crawlers for hosts that turned slow (rule.ts), each against its own past
 * and with the crawler's present level set aside (`CrawlerLevel`). Both kinds of times are followed:
 * connect times are the path alone but come once per connection; first bytes come with every fetch but
 * contain the server. Where a connection that was opened meanwhile took its usual time, a slow first byte is
 * the server's affair and raises no alarm. Where hosts of other subnets turned slow at the same time, the crawler's
 * machine or network is busy, and it is no alarm.
 *
 * Bounded: the hosts seen longest ago are forgotten (their past is in the database). A host that another
 * crawler fetches now starts anew.
 */
import type { CrawlerId, SubnetId } from "#core/ids";
import { HostTimes, type RecalibrationRule, type TimesAlarm } from "./rule.ts";

const timeKinds = ["connect", "firstByte"] as const;
type TimeKind = (typeof timeKinds)[number];

export interface WatchedFetch {
  readonly hostKey: string;
  readonly crawlerId: CrawlerId;
  /** Hosts of one subnet may turn slow together by one route; null or absent: not known. */
  readonly subnetId?: SubnetId | null;
  readonly atMs: number;
  /** Since when its crawler is where it is: what is older says nothing. Left out: it has never moved. */
  readonly placedAtMs?: number;
  /** Null: no new connection. */
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
  /** Since when its times look like a change; null: they do not. */
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

  /** Whether this host's past by this crawler is at hand. */
  knows(hostKey: string, crawlerId: CrawlerId): boolean {
    return this.#hosts.get(hostKey)?.crawlerId === crawlerId;
  }

  /** Takes a fetch; those of a host come in the order of time, and one that is not later than the last is dropped. */
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
    // Both kinds are of one path: what the other will show is the same change, told already.
    if (alarm) host[alarm.kind === "connect" ? "firstByte" : "connect"].startAnew();
    return alarm;
  }

  /** Crawlers whose own network turned slow since the last call. */
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

  /** Most of what the crawler fetched in other subnets meanwhile was late as well: by a part of this at least, and by what matters. */
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

/** A busy machine adds to near and far hosts alike, but to each fetch something else. */
const leastPartOfLate = 1 / 8;

/** Subnets besides: one alone may be slow by chance. */
const leastOthersLate = 2;

// How slow everything is right now that one crawler fetches, against what its hosts usually take: the time of
// day, set aside. Evening congestion and trouble in the partner's own network slow all of a crawler's hosts
// at once; a route that changed slows some. So each time is divided by the level (the median, over the hosts
// fetched within the last hour, of time over usual time) before it is held against the host's own past.
// Where too few hosts were fetched to tell, the level of that hour on earlier days is used, if it is known.
//
// A level that jumps is a finding of its own: the crawler's network, told once, not a thousand routes.

/** Hosts of which the latest ratio is kept. */
const mostHosts = 64;

/** Fewer hosts say nothing of the crawler: half of them may lie behind one changed route. */
const leastHosts = 8;

const freshMs = 3_600_000;

/** The median is found anew after so many notes: one of them moves it by a place in 64 at most. */
const notesPerMedian = 4;

/** How often the hour's level is learned and judged. */
const judgeEveryMs = 300_000;

/** Of the difference, how much one such look learns: some 70 % in an hour. */
const learningRate = 0.1;

/** A network that is so much slower than usual is told; a daily wave of 20 % is not. */
const crawlerSlowFactor = 1.35;

/** So many looks in a row: a quarter of an hour. */
const looksInARow = 3;

const hourMs = 3_600_000;

const scratch = new Float64Array(mostHosts);

interface LevelAlarm {
  /** Everything takes so many times what it usually takes at this hour. */
  readonly factor: number;
  /** Over so many hosts fetched within the last hour. */
  readonly hosts: number;
}

interface LeveledFetch extends Pick<WatchedFetch, "hostKey" | "atMs"> {
  readonly subnetId: SubnetId | null;
  /** Of its usual time. */
  readonly ratio: number;
  /** By which it was later than usual, the level set aside. */
  readonly lateMs: number;
}

class CrawlerLevel {
  /** `lateMs`: with that of the fetches before, each counting half of the one behind it. */
  readonly #latest = new Map<string, LeveledFetch & { readonly logRatio: number }>();
  /** Logarithm of the level by hour of the day (UTC); NaN: not learned. */
  readonly #byHour = new Float64Array(24).fill(Number.NaN);
  #usualLog = Number.NaN;
  #judgedAtMs = Number.NEGATIVE_INFINITY;
  #slowLooks = 0;
  #median = 0;
  #medianIsOld = notesPerMedian;

  /** What times have to be divided by at this moment to be comparable with the usual ones. */
  factorAt(atMs: number): number {
    this.#forgetBefore(atMs - freshMs);
    if (this.#latest.size >= leastHosts) return Math.exp(this.#medianLog());
    const learned = this.#byHour[hourOf(atMs)]!;
    return Number.isNaN(learned) ? 1 : Math.exp(learned);
  }

  /** The latest of each host, as far as they were fetched since then. */
  since(atMs: number): LeveledFetch[] {
    return [...this.#latest.values()].filter((one) => one.atMs >= atMs);
  }

  /** Returns an alarm when the crawler itself turned slow. */
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

  /** The new level is the usual one from now on: it is told once. */
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

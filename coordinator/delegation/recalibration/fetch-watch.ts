/**
 * Watches the fetches of all crawlers for hosts that turned slow (recalibration.ts), each against its own past
 * and with the crawler's present level set aside (crawler-level.ts). Both kinds of times are followed:
 * connect times are the path alone but come once per connection; first bytes come with every fetch but
 * contain the server. Where a connection that was opened meanwhile took its usual time, a slow first byte is
 * the server's affair and raises no alarm.
 *
 * Bounded: the hosts seen longest ago are forgotten (their past is in the database). A host that another
 * crawler fetches now starts anew.
 */
import type { CrawlerId } from "#core/ids";
import { CrawlerLevel, type LevelAlarm } from "./crawler-level.ts";
import { HostTimes, type RecalibrationRule, type TimesAlarm } from "./rule.ts";

export const timeKinds = ["connect", "firstByte"] as const;
export type TimeKind = (typeof timeKinds)[number];

export interface WatchedFetch {
  readonly hostKey: string;
  readonly crawlerId: CrawlerId;
  readonly atMs: number;
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

type WatchedHost = { crawlerId: CrawlerId; lastAtMs: number } & Readonly<Record<TimeKind, HostTimes>>;
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

  #hostOf({ hostKey, crawlerId }: WatchedFetch): WatchedHost {
    const known = this.#hosts.get(hostKey);
    this.#hosts.delete(hostKey);
    const host: WatchedHost =
      known?.crawlerId === crawlerId
        ? known
        : {
            crawlerId,
            lastAtMs: Number.NEGATIVE_INFINITY,
            connect: new HostTimes(),
            firstByte: new HostTimes(),
          };
    this.#hosts.set(hostKey, host);
    if (this.#hosts.size > this.#mostHosts) this.#hosts.delete(this.#hosts.keys().next().value!);
    return host;
  }

  #noteKind(host: WatchedHost, kind: TimeKind, fetch: WatchedFetch): HostAlarm | null {
    const { hostKey, crawlerId, atMs } = fetch;
    const timeMs = kind === "connect" ? fetch.connectMs : fetch.firstByteMs;
    if (timeMs === null) return null;
    const level = this.#levelsOf(crawlerId)[kind];
    const usualMs = host[kind].usualMs(this.#rule);
    const alarm = host[kind].note(timeMs / level.factorAt(atMs), this.#rule);
    const slowCrawler = usualMs === null ? null : level.note(hostKey, timeMs / usualMs, atMs);
    if (slowCrawler) this.#crawlerAlarms.push({ ...slowCrawler, kind, crawlerId, atMs });
    return alarm && { ...alarm, kind, hostKey, crawlerId, atMs };
  }

  #levelsOf(crawlerId: CrawlerId): Levels {
    const known = this.#levels.get(crawlerId);
    if (known) return known;
    const levels = { connect: new CrawlerLevel(), firstByte: new CrawlerLevel() };
    this.#levels.set(crawlerId, levels);
    return levels;
  }
}

import type { CrawlerId, HostHash, SubnetId } from "#core/ids";
import { urlKeyOf } from "#core/url-key";
import type { RecentFetch, ResultBatch, WireResult } from "../../crawlers/crawler.ts";
import type { FinishedRound } from "../delegation.ts";
import type { SlowFetches } from "../policies/reason.ts";
import type { FetchTimes } from "../present-owner.ts";
import type { OwnFetches } from "../probe-round.ts";
import type { CoordinatorState } from "../state.ts";
import type { DelegationStore } from "../store.ts";
import { type CrawlerAlarm, FetchWatch, type HostAlarm } from "./fetch-watch.ts";
import type { RecalibrationRule } from "./rule.ts";

interface RecalibrationPorts {
  readonly results: {
    recentFetches(hosts: readonly HostHash[], perHost: number): Promise<RecentFetch[]>;
  };
  readonly state: CoordinatorState;
  readonly now: () => Date;
}

/** Past fetches read per host: enough for a full window. */
const historyLength = 50;

const coolDownMs = 3_600_000;

/** Maximum fetches of a host that is not slow: as many as an alarm would need. */
const fetchesThatCount = 4;

/** Maximum fetches that count, for a day, if the subnet's crawler was never compared. */
const fetchesUncompared = 20;
const uncomparedMs = 86_400_000;

/** Hosts read per pass. The rest waits for the next. */
const hostsPerPass = 2000;

/** Maximum hosts that wait to be read. Others are noted at their next fetch. */
const mostWaiting = 100_000;

/** Maximum hosts kept in memory, 1.2 KB each. */
const mostWatched = 50_000;

/** Maximum alarms that wait for their round. When there are more, the oldest are dropped. */
const mostAlarms = 10_000;

export class RecalibrationQueue {
  readonly #ports: RecalibrationPorts;
  readonly #watch: FetchWatch;
  readonly #unread = new Set<HostHash>();
  readonly #alarms = new Map<HostHash, HostAlarm>();
  readonly #probed = new Map<SubnetId, ProbedSubnet>();

  constructor(ports: RecalibrationPorts, rule: RecalibrationRule) {
    this.#ports = ports;
    this.#watch = new FetchWatch(rule, mostWatched);
  }

  note(batch: ResultBatch): void {
    for (const { result } of batch.results) {
      const key = urlKeyOf(result.url);
      if (typeof key === "string" || !wasContacted(result)) continue;
      if (!this.#watch.knows(key.hostHash, batch.crawlerId)) this.#read(key.hostHash);
      else {
        const { connectMs, firstByteMs } = result.timing;
        const atMs = Math.min(Date.parse(result.fetchedAt), this.#nowMs());
        const subnetId = result.address === null ? null : this.#ports.state.subnetOf(result.address);
        const { hostHash } = key;
        this.#weigh({ hostHash, subnetId, crawlerId: batch.crawlerId, atMs, connectMs, firstByteMs });
      }
    }
  }

  /** Returns subnets to probe because a host in them turned slow. */
  async findSlow(): Promise<SubnetId[]> {
    await this.#readPasts();
    const hosts = [...this.#alarms.keys()].slice(0, hostsPerPass);
    if (hosts.length === 0) return [];
    const slow = new Set<SubnetId>();
    const places = new Map(
      (await this.#ports.results.recentFetches(hosts, 1)).map((one) => [one.hostHash, one]),
    );
    for (const hostHash of hosts) {
      const subnetId = this.#take(hostHash, places.get(hostHash));
      if (subnetId !== null) slow.add(subnetId);
    }
    return [...slow];
  }

  /** Crawlers whose own network turned slow since the last call. */
  takeSlowCrawlers(): CrawlerAlarm[] {
    return this.#watch.takeCrawlerAlarms();
  }

  /** Wraps the store so that rounds record the evidence that caused them. */
  explaining<Store extends Pick<DelegationStore, "saveRound">>(store: Store): Store {
    return { ...store, saveRound: async (round) => await store.saveRound(this.#explained(round)) };
  }

  /**
   * The quickest recent fetches by a subnet's crawler. After an alarm these are the slow ones and later ones, for a crawler
   * that was never compared those of the last day, otherwise the host's last few within the hour. Excludes fetches from
   * before the crawler moved.
   */
  async fetchTimes({ subnetId, crawlerId, url, cause }: OwnFetches): Promise<FetchTimes | null> {
    const key = urlKeyOf(url);
    const slow = cause === "slow-fetches" ? this.#probed.get(subnetId) : undefined;
    if (typeof key === "string") return null;
    const hosts = [...new Set([key.hostHash, ...(slow ? [slow.hostHash] : [])])];
    const isUncompared = cause === "joined" || cause === "retry";
    const most = Math.max(isUncompared ? fetchesUncompared : fetchesThatCount, slow?.evidence.fetches ?? 0);
    const fetches = await this.#ports.results.recentFetches(hosts, most);
    const slowSince = fetches
      .filter(({ hostHash }) => hostHash === slow?.hostHash)
      .at(-(slow?.evidence.fetches ?? 1));
    const asLongMs = isUncompared ? uncomparedMs : coolDownMs;
    const placedAtMs = this.#ports.state.crawler(crawlerId)?.placedAt?.getTime() ?? 0;
    const sinceMs = Math.max(placedAtMs, slowSince?.fetchedAt.getTime() ?? this.#nowMs() - asLongMs);
    const own = fetches.filter((one) => one.crawlerId === crawlerId && one.fetchedAt.getTime() >= sinceMs);
    if (own.length === 0) return null;
    const quickest = (kind: "connectMs" | "firstByteMs") =>
      own.reduce<number | null>(
        (best, { [kind]: ms }) => (ms === null ? best : Math.min(ms, best ?? ms)),
        null,
      );
    return { connectMs: quickest("connectMs"), firstByteMs: quickest("firstByteMs"), fetches: own.length };
  }

  #explained(round: FinishedRound): FinishedRound {
    const evidence = this.#probed.get(round.subnetId)?.evidence;
    if (round.cause !== "slow-fetches" || !evidence) return round;
    return { ...round, parameters: { ...round.parameters, evidence } };
  }

  #read(hostHash: HostHash): void {
    if (this.#unread.size < mostWaiting) this.#unread.add(hostHash);
  }

  async #readPasts(): Promise<void> {
    const hosts = [...this.#unread].slice(0, hostsPerPass);
    if (hosts.length === 0) return;
    for (const host of hosts) this.#unread.delete(host);
    const fetches = await this.#ports.results.recentFetches(hosts, historyLength);
    const hourAgoMs = this.#nowMs() - coolDownMs;
    // Time order over all hosts shows which slowed down at the same time.
    const past = this.#historiesByOwner(fetches)
      .flat()
      .sort((a, b) => a.fetchedAt.getTime() - b.fetchedAt.getTime());
    for (const fetch of past) this.#weigh({ ...fetch, atMs: fetch.fetchedAt.getTime() }, hourAgoMs);
  }

  #weigh(fetch: WeighedFetch, sinceMs = Number.NEGATIVE_INFINITY): void {
    const placedAtMs = this.#ports.state.crawler(fetch.crawlerId)?.placedAt?.getTime() ?? 0;
    if (fetch.atMs < placedAtMs) return;
    const alarm = this.#watch.note({ ...fetch, placedAtMs, hostKey: fetch.hostHash });
    if (!alarm || alarm.atMs < sinceMs) return;
    this.#alarms.set(fetch.hostHash, alarm);
    if (this.#alarms.size > mostAlarms) this.#alarms.delete(this.#alarms.keys().next().value!);
  }

  /** One history per host: fetches of the subnet's present owner since the last by another crawler or since a move. */
  #historiesByOwner(fetches: readonly RecentFetch[]): RecentFetch[][] {
    const histories = new Map<HostHash, RecentFetch[]>();
    for (const fetch of fetches) {
      if (fetch.subnetId === null) continue;
      if (this.#ports.state.delegationOf(fetch.subnetId)?.crawlerId !== fetch.crawlerId) {
        histories.delete(fetch.hostHash);
        continue;
      }
      const known = histories.get(fetch.hostHash);
      if (known) known.push(fetch);
      else histories.set(fetch.hostHash, [fetch]);
    }
    return [...histories.values()];
  }

  /**
   * The subnet of an alarm that causes a round now. Null if the host has moved, the subnet was probed for another host, or
   * the alarm waits for the cool-down.
   */
  #take(hostHash: HostHash, place: RecentFetch | undefined): SubnetId | null {
    const alarm = this.#alarms.get(hostHash);
    this.#alarms.delete(hostHash);
    const subnetId = place?.subnetId ?? null;
    if (!alarm || !place || subnetId === null) return null;
    if (this.#ports.state.delegationOf(subnetId)?.crawlerId !== alarm.crawlerId) return null;
    const nowMs = this.#nowMs();
    for (const [known, { atMs }] of this.#probed) {
      if (nowMs - atMs <= coolDownMs) break;
      this.#probed.delete(known);
    }
    const probed = this.#probed.get(subnetId);
    if (!probed) {
      this.#probed.set(subnetId, { atMs: nowMs, hostHash, evidence: evidenceOf(alarm, place.host) });
      return subnetId;
    }
    if (probed.atMs < nowMs) this.#alarms.set(hostHash, alarm);
    return null;
  }

  #nowMs(): number {
    return this.#ports.now().getTime();
  }
}

interface ProbedSubnet {
  readonly atMs: number;
  readonly hostHash: HostHash;
  readonly evidence: SlowFetches;
}

interface WeighedFetch {
  readonly hostHash: HostHash;
  readonly subnetId: SubnetId | null;
  readonly crawlerId: CrawlerId;
  readonly atMs: number;
  readonly connectMs: number | null;
  readonly firstByteMs: number | null;
}

/** Refusals, and some failed fetches, have no times. */
function wasContacted({ timing }: WireResult["result"]): boolean {
  return timing.connectMs !== null || timing.firstByteMs !== null;
}

function evidenceOf({ rule, kind, usualMs, nowMs, fetches }: HostAlarm, host: string): SlowFetches {
  return { type: "slow-fetches", host, rule, kind, usualMs, nowMs, fetches };
}

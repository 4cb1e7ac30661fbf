/**
 * How soon recalibration notices that a route changed, and how often it is mistaken, on fetch times drawn from
 * a model: one crawler, many hosts, quiet days (every alarm is false), then a change for a fifth of the hosts
 * at one moment and a last day to notice it. Deterministic for a seed.
 *
 * A time to the first byte = path · wave + noise + server; a connect time is the same without the server.
 *   path    log-normal over the hosts, median 40 ms, 4 to 300 ms
 *   noise   exponential; spikes: 1 % of fetches + 200 ms; loss: 1 % + 1000 ms (a SYN sent again)
 *   wave    raised cosine over the day, its peak shifted by up to ± 3 h from host to host
 *   server  log-normal from page to page, about a median of the host's own
 */

import { FetchWatch } from "#coordinator/delegation/recalibration/fetch-watch";
import type { RecalibrationRule } from "#coordinator/delegation/recalibration/rule";
import { asCrawlerId } from "#core/ids";
import { seededRandom } from "#core/random";

export interface CalibrationOptions {
  readonly hosts: number;
  /** Quiet days before the day of the change. */
  readonly days: number;
  readonly fetchesPerDay: number;
  /** Mean of the exponential noise. */
  readonly noiseMs: number;
  /** Shares of fetches, 0 to 1. */
  readonly spikeShare: number;
  readonly lossShare: number;
  /** 0.2: at its peak the path takes 20 % longer than at its best. */
  readonly dailyWave: number;
  /** Median of the servers' own time, 0: none; and its spread from page to page (sigma of the logarithm). */
  readonly serverMs: number;
  readonly pageSpread: number;
  /** Every so manyth fetch opens a connection. */
  readonly fetchesPerConnection: number;
  /** The path becomes so many times as long, and so many ms longer. */
  readonly changeFactor: number;
  readonly changeMs: number;
  readonly seed: number;
}

interface CalibrationResult {
  readonly hostDays: number;
  readonly falseAlarms: number;
  /** False alarms for 100 host-days. */
  readonly falseAlarmPct: number;
  /** Findings about the crawler itself: false too, in this model. */
  readonly crawlerAlarms: number;
  /** Alarms of all days, right or wrong: each would be a probe round. */
  readonly rounds: number;
  readonly changedHosts: number;
  /** Per changed host, the fetches from the change to the alarm, that one included; null: not within the day. */
  readonly delays: readonly (number | null)[];
  /** Of all changed hosts, and of those whose path became at least 10 ms longer. */
  readonly foundWithin10Pct: number;
  readonly foundWithin10Of10msPct: number;
  readonly medianDelay: number | null;
  readonly p95Delay: number | null;
}

const crawlerId = asCrawlerId(1);
const dayMs = 86_400_000;
const hourMs = 3_600_000;
const changedShare = 0.2;
const spikeMs = 200;
const synRetryMs = 1000;
/** A change by less is within the noise, and hardly worth a probe. */
const largeChangeMs = 10;

/** `onDay` hears of each day that is done, counted from 1. */
export function simulateCalibration(
  options: CalibrationOptions,
  rule: RecalibrationRule,
  onDay: (day: number) => void = () => {},
): CalibrationResult {
  const run = new CalibrationRun(options, rule);
  for (let day = 0; day <= options.days; day++) {
    run.day(day);
    onDay(day + 1);
  }
  return run.result();
}

interface ModelHost {
  readonly key: string;
  readonly pathMs: number;
  readonly serverMs: number;
  readonly peakMs: number;
  /** When within its interval it is fetched, 0 to 1. */
  readonly phase: number;
  readonly changes: boolean;
  /** Fetches since the change; and how many it took, null: not noticed yet. */
  since: number;
  delay: number | null;
}

class CalibrationRun {
  readonly #options: CalibrationOptions;
  readonly #draw: () => number;
  readonly #hosts: readonly ModelHost[];
  readonly #watch: FetchWatch;
  #falseAlarms = 0;
  #rounds = 0;
  #crawlerAlarms = 0;

  constructor(options: CalibrationOptions, rule: RecalibrationRule) {
    this.#options = options;
    this.#draw = seededRandom(options.seed);
    this.#watch = new FetchWatch(rule, options.hosts);
    const peakMs = this.#draw() * dayMs;
    this.#hosts = Array.from({ length: options.hosts }, (_, index) => this.#host(index, peakMs)).sort(
      (a, b) => a.phase - b.phase,
    );
  }

  day(day: number): void {
    const { fetchesPerDay, days } = this.#options;
    const changed = day === days;
    for (let fetch = 0; fetch < fetchesPerDay; fetch++) {
      const number = day * fetchesPerDay + fetch;
      for (const host of this.#hosts) this.#fetch(host, number, changed);
    }
    this.#crawlerAlarms += this.#watch.takeCrawlerAlarms().length;
  }

  result(): CalibrationResult {
    const { hosts, days } = this.#options;
    const changed = this.#hosts.filter((host) => host.changes);
    const large = changed.filter((host) => this.#addedMs(host) >= largeChangeMs);
    const sorted = changed.map((host) => host.delay ?? Number.POSITIVE_INFINITY).sort((a, b) => a - b);
    const finite = (delay: number | undefined) => (Number.isFinite(delay) ? (delay ?? null) : null);
    return {
      hostDays: hosts * days,
      falseAlarms: this.#falseAlarms,
      falseAlarmPct: (100 * this.#falseAlarms) / Math.max(1, hosts * days),
      crawlerAlarms: this.#crawlerAlarms,
      rounds: this.#rounds,
      changedHosts: changed.length,
      delays: changed.map((host) => host.delay),
      foundWithin10Pct: withinTenPct(changed),
      foundWithin10Of10msPct: withinTenPct(large),
      medianDelay: finite(sorted[Math.floor((sorted.length - 1) / 2)]),
      p95Delay: finite(sorted[Math.ceil(0.95 * sorted.length) - 1]),
    };
  }

  #fetch(host: ModelHost, number: number, changed: boolean): void {
    const atMs = ((number + host.phase) / this.#options.fetchesPerDay) * dayMs;
    const isChanged = changed && host.changes;
    const pathMs = (host.pathMs + (isChanged ? this.#addedMs(host) : 0)) * this.#wave(host, atMs);
    const opens = number % this.#options.fetchesPerConnection === 0;
    const serverMs = host.serverMs * Math.exp(this.#options.pageSpread * this.#normal());
    const alarm = this.#watch.note({
      hostKey: host.key,
      crawlerId,
      atMs,
      connectMs: opens ? pathMs + this.#noiseMs() : null,
      firstByteMs: pathMs + this.#noiseMs() + serverMs,
    });
    if (alarm) this.#rounds += 1;
    if (isChanged && host.delay === null) {
      host.since += 1;
      if (alarm) host.delay = host.since;
    } else if (alarm && !isChanged) this.#falseAlarms += 1;
  }

  #host(index: number, peakMs: number): ModelHost {
    const { hosts, serverMs } = this.#options;
    return {
      key: String(index),
      pathMs: Math.min(300, Math.max(4, 40 * Math.exp(0.9 * this.#normal()))),
      serverMs: serverMs * Math.exp(0.5 * this.#normal()),
      peakMs: peakMs + (this.#draw() - 0.5) * 6 * hourMs,
      phase: this.#draw(),
      changes: index < Math.max(1, Math.round(hosts * changedShare)),
      since: 0,
      delay: null,
    };
  }

  #addedMs(host: ModelHost): number {
    return host.pathMs * (this.#options.changeFactor - 1) + this.#options.changeMs;
  }

  #wave(host: ModelHost, atMs: number): number {
    const angle = (2 * Math.PI * (atMs - host.peakMs)) / dayMs;
    return 1 + (this.#options.dailyWave * (1 + Math.cos(angle))) / 2;
  }

  #noiseMs(): number {
    const { noiseMs, spikeShare, lossShare } = this.#options;
    const spike = this.#draw() < spikeShare ? spikeMs : 0;
    const loss = this.#draw() < lossShare ? synRetryMs : 0;
    return -noiseMs * Math.log(1 - this.#draw()) + spike + loss;
  }

  #normal(): number {
    return Math.sqrt(-2 * Math.log(1 - this.#draw())) * Math.cos(2 * Math.PI * this.#draw());
  }
}

function withinTenPct(hosts: readonly ModelHost[]): number {
  const found = hosts.filter(({ delay }) => delay !== null && delay <= 10).length;
  return hosts.length === 0 ? 0 : (100 * found) / hosts.length;
}

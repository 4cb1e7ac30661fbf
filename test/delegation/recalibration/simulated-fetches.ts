/**
 * How soon recalibration notices that a route changed, and how often it is mistaken, on fetch times drawn from
 * a model: one crawler, many hosts, four quiet days (every alarm is false), then the route of a fifth of the hosts
 * gets half as long again, and a last day to notice it. Deterministic for a seed.
 *
 * A connect time, and a time to the first byte = path · wave + noise
 *   path    log-normal over the hosts, median 40 ms, 4 to 300 ms
 *   noise   exponential, 4 ms; spikes: 200 ms more; loss: 1000 ms (a SYN sent again)
 *   wave    raised cosine over the day, its peak shifted by up to ± 3 h from host to host
 */
import { FetchWatch } from "#coordinator/place/delegation/recalibration/fetch-watch";
import { defaultRecalibrationRule } from "#coordinator/place/delegation/recalibration/rule";
import { asCrawlerId } from "#core/ids";
import { seededRandom } from "#core/random";

export interface FetchModel {
  readonly hosts: number;
  readonly fetchesPerDay?: number;
  /** Shares of fetches, 0 to 1. */
  readonly spikeShare?: number;
  readonly lossShare?: number;
  /** 0.2: at its peak the path takes 20 % longer than at its best. */
  readonly dailyWave?: number;
}

const crawlerId = asCrawlerId(1);
const hourMs = 3_600_000;
const dayMs = 24 * hourMs;
const quietDays = 4;
const fetchesPerConnection = 10;
const changedShare = 0.2;
/** A change by less is within the noise, and hardly worth a probe. */
const largeChangeMs = 10;

export function simulateFetches(model: FetchModel) {
  const { hosts: count, fetchesPerDay = 24, spikeShare = 0, lossShare = 0, dailyWave = 0 } = model;
  const draw = seededRandom(1);
  const normal = () => Math.sqrt(-2 * Math.log(1 - draw())) * Math.cos(2 * Math.PI * draw());
  const watch = new FetchWatch(defaultRecalibrationRule, count);
  const peakMs = draw() * dayMs;
  const hosts = Array.from({ length: count }, (_, index) => ({
    key: String(index),
    pathMs: Math.min(300, Math.max(4, 40 * Math.exp(0.9 * normal()))),
    peakMs: peakMs + (draw() - 0.5) * 6 * hourMs,
    /** When within its interval it is fetched, 0 to 1. */
    phase: draw(),
    changes: index < Math.max(1, Math.round(count * changedShare)),
    fetchesSince: 0,
    foundAfter: null as number | null,
  })).sort((a, b) => a.phase - b.phase);
  const noiseMs = () => {
    const [spike, loss] = [draw() < spikeShare ? 200 : 0, draw() < lossShare ? 1000 : 0];
    return -4 * Math.log(1 - draw()) + spike + loss;
  };
  let [falseAlarms, crawlerAlarms] = [0, 0];
  for (let fetch = 0; fetch < (quietDays + 1) * fetchesPerDay; fetch++) {
    for (const host of hosts) {
      const atMs = ((fetch + host.phase) / fetchesPerDay) * dayMs;
      const isChanged = host.changes && fetch >= quietDays * fetchesPerDay;
      const wave = 1 + (dailyWave * (1 + Math.cos((2 * Math.PI * (atMs - host.peakMs)) / dayMs))) / 2;
      const pathMs = host.pathMs * (isChanged ? 1.5 : 1) * wave;
      const alarm = watch.note({
        ...{ hostKey: host.key, crawlerId, atMs },
        connectMs: fetch % fetchesPerConnection === 0 ? pathMs + noiseMs() : null,
        firstByteMs: pathMs + noiseMs(),
      });
      if (isChanged) host.fetchesSince += 1;
      if (alarm && isChanged) host.foundAfter ??= host.fetchesSince;
      else if (alarm) falseAlarms += 1;
    }
    if ((fetch + 1) % fetchesPerDay === 0) crawlerAlarms += watch.takeCrawlerAlarms().length;
  }
  const large = hosts.filter(({ changes, pathMs }) => changes && pathMs / 2 >= largeChangeMs);
  const found = large.filter(({ foundAfter }) => foundAfter !== null && foundAfter <= 10).length;
  return {
    /** For 100 host-days. */
    falseAlarmPct: (100 * falseAlarms) / (count * quietDays),
    /** Findings about the crawler itself: false too, in this model. */
    crawlerAlarms,
    /** Of the hosts whose route became at least 10 ms longer. */
    foundWithin10FetchesPct: (100 * found) / large.length,
  };
}

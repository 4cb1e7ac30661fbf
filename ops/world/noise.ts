/**
 * Delay on top of a flight (a handshake or a request), three kinds that add up: exponential noise on every
 * one, rare spikes, and a daily wave that is highest in the evening where the site is (UTC where its place is
 * not known). The wave follows the world's clock, which is the machine's until somebody sets it.
 */
import type { World } from "./model.ts";
import { SeededRandom } from "./seeded-random.ts";

export interface Spikes {
  /** Of the flights, those that are late; 0 to 1. */
  readonly share: number;
  /** By how much, in ms. */
  readonly spikeMs: number;
}

export interface DailyWave {
  /** Added at the peak, in ms; nothing is added twelve hours from it. */
  readonly waveMs: number;
  /** Local hour of the peak; default 20. */
  readonly peakHour?: number;
}

const mostMs = 10_000;
const hourMs = 3_600_000;

export class Noise {
  readonly #random: SeededRandom;
  readonly #hourOffsets: ReadonlyMap<string, number>;
  #meanMs = 0;
  #spikes: Spikes = { share: 0, spikeMs: 0 };
  #wave: Required<DailyWave> = { waveMs: 0, peakHour: 20 };
  /** World's time minus the machine's. */
  #clockOffsetMs = 0;

  constructor(world: World) {
    this.#random = new SeededRandom(world.seed ^ 0x6e6f6973);
    this.#hourOffsets = hourOffsets(world);
  }

  /** Mean of the exponential part in ms. */
  setMean(meanMs: number): void {
    this.#meanMs = allowed("noise", meanMs, mostMs);
  }

  setSpikes(spikes: Spikes): void {
    allowed("a spike's share", spikes.share, 1);
    allowed("a spike", spikes.spikeMs, mostMs);
    this.#spikes = spikes;
  }

  setDailyWave({ waveMs, peakHour = 20 }: DailyWave): void {
    this.#wave = { waveMs: allowed("a wave", waveMs, mostMs), peakHour: allowed("a peak", peakHour, 24) };
  }

  /** From now on the world's clock goes on from this time, in ms since the epoch. */
  setClock(nowMs: number): void {
    if (!Number.isFinite(nowMs)) throw new RangeError(`clock at ${nowMs}: ms since the epoch expected`);
    this.#clockOffsetMs = nowMs - Date.now();
  }

  /** Delay of one flight to an address, in ms. */
  drawMs(address: string): number {
    const exponential = this.#meanMs === 0 ? 0 : this.#random.exponential(this.#meanMs);
    const { share, spikeMs } = this.#spikes;
    const spike = share > 0 && this.#random.chance(share) ? spikeMs : 0;
    return exponential + spike + this.#waveAtMs(address);
  }

  #waveAtMs(address: string): number {
    const { waveMs, peakHour } = this.#wave;
    if (waveMs === 0) return 0;
    const hour = (Date.now() + this.#clockOffsetMs) / hourMs + (this.#hourOffsets.get(address) ?? 0);
    return (waveMs * (1 + Math.cos(((hour - peakHour) * Math.PI) / 12))) / 2;
  }
}

/** Hours by which the sun is ahead of UTC at each address: 15 degrees of longitude are one. */
function hourOffsets({ sites, crawlers, places }: World): ReadonlyMap<string, number> {
  const offsetAt = (place: number | null) =>
    place === null ? 0 : Math.round((places[place]?.longitude ?? 0) / 15);
  return new Map([...sites, ...crawlers].map(({ address, place }) => [address, offsetAt(place)]));
}

function allowed(what: string, value: number, most: number): number {
  if (value >= 0 && value <= most) return value;
  const unit = most === mostMs ? " ms" : "";
  throw new RangeError(`${what} of ${value}${unit}: 0 to ${most.toLocaleString("en")} allowed`);
}

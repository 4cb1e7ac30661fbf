/**
 * What disturbs the emulated Internet while it runs, injected from outside: noise on every flight,
 * handshakes that are lost, routes that changed, crawlers that are cut off. Without any of it round trips take
 * what the world says.
 */
import { parseAddress } from "#core/ip/address";
import { type IpRange, rangeHolds } from "#core/ip/range";
import type { World } from "./model.ts";
import { SeededRandom } from "./seeded-random.ts";

export interface RouteChange {
  readonly crawlerIndex: number;
  /** Which targets: a site's host name, or every site and crawler in a range. */
  readonly to: { readonly host: string } | { readonly range: IpRange };
  /** Times the world's RTT; 1 ends the change. */
  readonly factor: number;
}

export interface Loss {
  /** Of the handshakes, those whose first packet is lost; 0 to 1. */
  readonly share: number;
  /** Of these, those that are never answered; the others are answered a second late. */
  readonly neverShare: number;
}

/** When a lost SYN is sent again (RFC 6298 section 2). */
const retransmitAfterMs = 1000;

export class NetworkConditions {
  readonly noise: Noise;
  readonly #world: World;
  readonly #random: SeededRandom;
  readonly #factors = new Map<string, number>();
  readonly #cutOff = new Set<number>();
  #loss: Loss = { share: 0, neverShare: 0 };

  constructor(world: World) {
    this.#world = world;
    this.#random = new SeededRandom(world.seed ^ 0x6c6f7373);
    this.noise = new Noise(world);
  }

  setLoss(loss: Loss): void {
    for (const share of [loss.share, loss.neverShare]) {
      if (!(share >= 0 && share <= 1)) throw new RangeError(`loss of ${share}: 0 to 1 allowed`);
    }
    this.#loss = loss;
  }

  /** How late the handshake is for packets that were lost, in ms: mostly 0; null: it is never answered. */
  drawLossMs(): number | null {
    const { share, neverShare } = this.#loss;
    if (share === 0 || !this.#random.chance(share)) return 0;
    return this.#random.chance(neverShare) ? null : retransmitAfterMs;
  }

  /** Takes effect at once, on open connections too. Returns how many addresses it concerns. */
  changeRoute({ crawlerIndex, to, factor }: RouteChange): number {
    if (!(factor > 0 && factor <= 1000))
      throw new RangeError(`route factor ${factor}: above 0, at most 1000 allowed`);
    const addresses = this.#addressesOf(to);
    for (const address of addresses) {
      if (factor === 1) this.#factors.delete(`${crawlerIndex} ${address}`);
      else this.#factors.set(`${crawlerIndex} ${address}`, factor);
    }
    return addresses.length;
  }

  /** A crawler that is cut off gets no answers until it is connected again. */
  setOutage(crawlerIndex: number, isCutOff: boolean): void {
    if (isCutOff) this.#cutOff.add(crawlerIndex);
    else this.#cutOff.delete(crawlerIndex);
  }

  isCutOff(crawlerIndex: number): boolean {
    return this.#cutOff.has(crawlerIndex);
  }

  /** The round trip as it is now, without noise; null when nobody has the address. */
  rttMs(crawlerIndex: number, address: string): number | null {
    const rttMs = this.#world.rttMs(crawlerIndex, address);
    if (rttMs === null || this.#factors.size === 0) return rttMs;
    return rttMs * (this.#factors.get(`${crawlerIndex} ${address}`) ?? 1);
  }

  #addressesOf(to: RouteChange["to"]): string[] {
    const { sites, crawlers } = this.#world;
    if ("host" in to) return sites.filter((site) => site.host === to.host).flatMap((site) => site.addresses);
    const all = new Set([...sites.flatMap((site) => site.addresses), ...crawlers.map((one) => one.address)]);
    return [...all].filter((text) => {
      const address = parseAddress(text);
      return address !== null && rangeHolds(to.range, address);
    });
  }
}

// Delay on top of a flight (a handshake or a request), three kinds that add up: exponential noise on every
// one, rare spikes, and a daily wave that is highest in the evening where the site is (UTC where its place is
// not known). The wave follows the world's clock, which is the machine's until somebody sets it.

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

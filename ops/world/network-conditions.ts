/**
 * What disturbs the emulated Internet while it runs, injected from outside: noise on every flight, routes
 * that changed, crawlers that are cut off. Without any of it round trips take what the world says.
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

export class NetworkConditions {
  readonly #world: World;
  readonly #random: SeededRandom;
  readonly #factors = new Map<string, number>();
  readonly #cutOff = new Set<number>();
  #noiseMs = 0;

  constructor(world: World, noiseMs = 0) {
    this.#world = world;
    this.#random = new SeededRandom(world.seed ^ 0x6e6f6973);
    this.setNoise(noiseMs);
  }

  /** Mean of an exponential delay on top of every handshake and every request. */
  setNoise(noiseMs: number): void {
    if (!(noiseMs >= 0 && noiseMs <= 10_000))
      throw new RangeError(`noise of ${noiseMs} ms: 0 to 10,000 allowed`);
    this.#noiseMs = noiseMs;
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

  /** The noise of one flight. */
  drawNoiseMs(): number {
    return this.#noiseMs === 0 ? 0 : this.#random.exponential(this.#noiseMs);
  }

  #addressesOf(to: RouteChange["to"]): string[] {
    const { sites, crawlers } = this.#world;
    if ("host" in to) return sites.filter((site) => site.host === to.host).map((site) => site.address);
    const all = new Set([...sites, ...crawlers].map((host) => host.address));
    return [...all].filter((text) => {
      const address = parseAddress(text);
      return address !== null && rangeHolds(to.range, address);
    });
  }
}

/**
 * What disturbs the emulated Internet while it runs, injected from outside: noise on every flight (noise.ts),
 * handshakes that are lost, routes that changed, crawlers that are cut off. Without any of it round trips take
 * what the world says.
 */
import { parseAddress } from "#core/ip/address";
import { type IpRange, rangeHolds } from "#core/ip/range";
import type { World } from "./model.ts";
import { Noise } from "./noise.ts";
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

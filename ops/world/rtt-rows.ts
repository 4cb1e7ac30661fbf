/**
 * Round trips from every crawler to one host at once. What belongs to a pair of networks or countries is kept
 * for each network and country that was asked for, as rows over the crawlers; the sums are those of
 * network-model.ts, to the last digit.
 */
import {
  arcKm,
  detourKm,
  type Endpoint,
  inflationOf,
  type NetworkModel,
  ownMsOf,
  sumMs,
} from "./network-model.ts";

interface PeeringRow {
  readonly factors: Float64Array;
  readonly meetingsMs: Float64Array;
  readonly detourRanks: Int8Array;
}

export class RttRows {
  readonly #model: NetworkModel;
  readonly #crawlers: readonly Endpoint[];
  readonly #exchangesKm: readonly Float64Array[];
  readonly #ownHashes: Int32Array;
  readonly #peerings = new Map<number, PeeringRow>();
  readonly #countries = new Map<number, Float64Array>();

  /** The crawlers' ids are smaller than those of any other host. */
  constructor(model: NetworkModel, crawlers: readonly Endpoint[]) {
    this.#model = model;
    this.#crawlers = crawlers;
    this.#exchangesKm = crawlers.map((crawler) => model.exchangesKm(crawler));
    this.#ownHashes = Int32Array.from(crawlers, ({ id }) => model.ownHash(id));
  }

  /** RTT in ms from each crawler to the nearest of these ends, by the crawlers' positions. */
  fill(ends: readonly Endpoint[], into: Float64Array): void {
    into.fill(Number.POSITIVE_INFINITY, 0, this.#crawlers.length);
    for (const end of ends) this.#least(end, into);
  }

  #least(to: Endpoint, into: Float64Array): void {
    const crawlers = this.#crawlers;
    const { factors, meetingsMs, detourRanks } = this.#peeringRow(to.network);
    const countryFactors = this.#countryRow(to.country);
    let exchangesKm: Float64Array | null = null;
    for (let index = 0; index < crawlers.length; index++) {
      const from = crawlers[index]!;
      const rank = detourRanks[index]!;
      let km: number;
      if (rank < 0) km = arcKm(from, to);
      else {
        exchangesKm ??= this.#model.exchangesKm(to);
        km = detourKm(this.#exchangesKm[index]!, exchangesKm, rank);
      }
      const inflation = inflationOf(countryFactors[index]!, factors[index]!);
      const hostsMs = from.lastMileMs + to.lastMileMs + ownMsOf(this.#ownHashes[index]!, to.id);
      const rttMs = sumMs(km * inflation, meetingsMs[index]!, hostsMs);
      if (rttMs < into[index]!) into[index] = rttMs;
    }
  }

  #peeringRow(network: number): PeeringRow {
    const known = this.#peerings.get(network);
    if (known) return known;
    const peerings = this.#crawlers.map((crawler) => this.#model.peering(crawler.network, network));
    const row = {
      factors: Float64Array.from(peerings, ({ factor }) => factor),
      meetingsMs: Float64Array.from(peerings, ({ meetingMs }) => meetingMs),
      detourRanks: Int8Array.from(peerings, ({ detourRank }) => detourRank),
    };
    this.#peerings.set(network, row);
    return row;
  }

  #countryRow(country: number): Float64Array {
    const known = this.#countries.get(country);
    if (known) return known;
    const row = Float64Array.from(this.#crawlers, (crawler) =>
      this.#model.countryFactor(crawler.country, country),
    );
    this.#countries.set(country, row);
    return row;
  }
}

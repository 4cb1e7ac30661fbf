/**
 * What live code must cope with besides ordinary organisations: addresses announced from several places, names
 * that resolve by who asks, ranges used in two places, sites that treat probes in their own way. Each is off
 * unless asked for, as a share of the world's sites from 0 to 1.
 */
export interface WorldOddities {
  /** At an address that is announced from several places; holders have whole ranges of them. */
  readonly anycast: number;
  /** Under a name with two to four addresses in different subnets. */
  readonly geoDns: number;
  /** In a range whose halves are used in different cities. */
  readonly splitLeaves: number;
  /** HEAD is answered by an edge near the crawler. */
  readonly headFromEdge: number;
  /** HEAD is answered with 405. */
  readonly headRefused: number;
  /** HEAD gets no answer. */
  readonly headSilent: number;
  /** Connections from some crawlers are reset or get no answer. */
  readonly blocking: number;
}

export const noOddities: WorldOddities = {
  anycast: 0,
  geoDns: 0,
  splitLeaves: 0,
  headFromEdge: 0,
  headRefused: 0,
  headSilent: 0,
  blocking: 0,
};

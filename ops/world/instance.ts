/**
 * The form in which the delegation simulator takes a world or a measured matrix: no addresses, only the
 * names on the way down the registry, holder, country and the round-trip times. One that comes from a file is
 * checked by ops/simulate/read-fixture.
 */
export interface LatencyInstance {
  readonly name: string;
  /** What the RTTs are: `ms RTT`. */
  readonly unit: string;
  readonly crawlers: readonly InstanceHost[];
  /** Between crawlers, in ms. */
  readonly crawlerRtt: readonly (readonly number[])[];
  readonly targets: readonly InstanceTarget[];
}

export interface InstanceHost {
  /** Names of the subnets from the root to the leaf. */
  readonly path: readonly string[];
  readonly org: string;
  readonly cc: string;
}

export interface InstanceTarget extends InstanceHost {
  /** From each crawler, in ms. */
  readonly rtt: readonly number[];
}

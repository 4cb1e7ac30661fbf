/** The transport problem that min-cost-flow solves: crawlers and subnets by index, costs on demand. */
export interface FlowProblem {
  /** What each crawler may carry. Together they hold all loads. */
  readonly capacities: Float64Array;
  /** How many subnets there are; `loadOf` and `costsInto` take indexes below it. */
  readonly subnets: number;
  /** True for an index that no longer stands for a subnet. */
  isGone(subnet: number): boolean;
  loadOf(subnet: number): number;
  /** Writes the cost (ms) of a unit of the subnet's load at each crawler; all finite. */
  costsInto(subnet: number, costs: Float64Array): void;
}

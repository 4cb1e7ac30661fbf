/** Names of the jobs that other rooms than their own hurry (core/scheduler). */
export const jobs = {
  resolveHosts: "resolve-hosts",
  delegate: "delegate-subnets",
  measurePeers: "measure-crawlers",
  handOver: "hand-over-subnets",
  settle: "settle-newcomers",
  rebalance: "rebalance-load",
} as const;

/** What an origin's log says of a crawl. */
import type { RunningWorld } from "#ops/world/main";

type Requests = ReturnType<RunningWorld["requestLog"]["entries"]>;

/** Between two requests to one host, over all hosts, ms. */
export function shortestPause(requests: Requests): number {
  const lastAt = new Map<string, number>();
  let shortest = Number.POSITIVE_INFINITY;
  for (const { host, atMs } of requests) {
    shortest = Math.min(shortest, atMs - (lastAt.get(host) ?? Number.NEGATIVE_INFINITY));
    lastAt.set(host, atMs);
  }
  return shortest;
}

/** Hosts that were asked before `from` and after `to`. */
export function hostsOver(
  requests: Requests,
  { from, to }: { readonly from: number; readonly to: number },
): number {
  const before = new Set(requests.filter(({ atMs }) => atMs < from).map(({ host }) => host));
  return new Set(requests.filter(({ atMs, host }) => atMs > to && before.has(host)).map(({ host }) => host))
    .size;
}

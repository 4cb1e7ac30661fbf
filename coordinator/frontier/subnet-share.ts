/**
 * Subnets of one crawler take turns: of the hosts that it gets in a row, a subnet with very many of them gets a quarter
 * at most, as long as others have something due. Fair queueing over counts of what was handed out, since the time that
 * hosts take is not known beforehand.
 */

/** So many hosts in a row are looked at together, when fewer are asked for at a time. */
export const hostsInARow = 20;
const shares = 4;

/** Hosts of one subnet, at most, of `wanted` hosts and those before them. */
export function largestShare(wanted: number): number {
  return Math.floor(Math.max(wanted, hostsInARow) / shares);
}

/**
 * The hosts within their subnets' shares, at most `wanted`, and those beyond them; both in the order given, which says
 * who goes first. `recent` are the subnets of the hosts that the crawler got before, the latest last.
 */
export function splitByShare<Host extends { readonly subnet: string }>(
  hosts: readonly Host[],
  { wanted, recent }: { readonly wanted: number; readonly recent: readonly string[] },
): { readonly within: Host[]; readonly beyond: Host[] } {
  const before = Math.max(0, hostsInARow - wanted);
  const counts = countEach(before === 0 ? [] : recent.slice(-before));
  const within: Host[] = [];
  const beyond: Host[] = [];
  for (const host of hosts) {
    const count = counts.get(host.subnet) ?? 0;
    const isWithin = within.length < wanted && count < largestShare(wanted);
    if (isWithin) counts.set(host.subnet, count + 1);
    (isWithin ? within : beyond).push(host);
  }
  return { within, beyond };
}

function countEach(subnets: readonly string[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const subnet of subnets) counts.set(subnet, (counts.get(subnet) ?? 0) + 1);
  return counts;
}

/**
 * SQL for hosts that only IPv6 reaches. A host is placed by its first address, and IPv4 addresses come first. A
 * crawler whose hello has not said otherwise counts as speaking IPv6.
 */

/** SQL: the host has only IPv6 addresses and no online crawler speaks IPv6. */
export const needsUnspokenIpv6 = (host: string): string => `(family(${host}.addresses[1]) = 6 and not exists (
    select from crawler speaker
    where speaker.state <> 'offline' and speaker.revoked_at is null and speaker.speaks_ipv6 is distinct from false
  ))`;

/** SQL: the crawler cannot reach the host, so its subnet goes to another. */
export const isBeyondReach = (host: string, crawler: string): string =>
  `(family(${host}.addresses[1]) = 6 and ${crawler}.speaks_ipv6 is not distinct from false)`;

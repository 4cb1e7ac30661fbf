/**
 * Hosts that it takes IPv6 to reach, in statements: a host is where its first address is, and IPv4 addresses come first.
 * What a crawler's hello has not said yet counts as spoken.
 */

/** SQL: the host's addresses are IPv6 alone, and no crawler that is online speaks that. */
export const needsUnspokenIpv6 = (host: string): string => `(family(${host}.addresses[1]) = 6 and not exists (
    select from crawler speaker
    where speaker.state <> 'offline' and speaker.revoked_at is null and speaker.speaks_ipv6 is distinct from false
  ))`;

/** SQL: the crawler cannot reach the host; its subnet goes to another. */
export const isBeyondReach = (host: string, crawler: string): string =>
  `(family(${host}.addresses[1]) = 6 and ${crawler}.speaks_ipv6 is not distinct from false)`;

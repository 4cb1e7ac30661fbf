/**
 * A subnet is a node of the registry hierarchy: a range of addresses, who holds it and where it is
 * registered (paper section 4.1). The identity of a subnet across imports is its range.
 */
import type { HolderId, SubnetId } from "#core/ids";
import type { IpRange } from "#core/ip/range";

/** The five Regional Internet Registries, and IANA for the top level. */
export const registries = ["iana", "afrinic", "apnic", "arin", "lacnic", "ripencc"] as const;
export type Registry = (typeof registries)[number];

export interface Subnet {
  readonly id: SubnetId;
  readonly range: IpRange;
  /** The next less specific subnet; null for a subnet directly under the root of its family. */
  readonly parentId: SubnetId | null;
  readonly holderId: HolderId | null;
  /** ISO 3166-1 alpha-2 in upper case, as the registry states it, or null. */
  readonly country: string | null;
  readonly registry: Registry;
  /** The registry's own name for the range (netname, NetHandle …); may be empty. */
  readonly name: string;
}

/** An RDAP network as the record that an import would have made of the same registration. */
import type { Registry } from "#coordinator/subnets/subnet";
import { type HolderReference, maxTextLength, type NetworkRecord } from "../formats/record.ts";
import type { RdapNetwork } from "./rdap-network.ts";

/** `line` is 1: the answer is one object. */
export function toNetworkRecord(network: RdapNetwork, registry: Registry | null): NetworkRecord {
  const { range, name, country } = network;
  return {
    type: "network",
    line: 1,
    source: "whois",
    range,
    registry,
    name: name.slice(0, maxTextLength),
    country: country === "ZZ" ? null : country,
    holder: holderReference(network, registry),
  };
}

function holderReference(
  { holder, country }: RdapNetwork,
  registry: Registry | null,
): HolderReference | null {
  if (holder === null) return null;
  const { handle, name } = holder;
  if (handle !== null) return { type: "handle", handle: handle.slice(0, maxTextLength), registry, name };
  return name === null ? null : { type: "name", name, registry, country };
}

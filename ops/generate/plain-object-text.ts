/** A short object in the format of any registry, for what stands beside the hierarchy. */
import { readIpv4 } from "#rir-import/formats/registry-range";
import { paddedIpv4Text, shortBlockText } from "./address-text.ts";
import { organisationHandle, rpslSources } from "./handles.ts";
import { countryOf } from "./places.ts";
import type { RegistryPlan } from "./registry-plan.ts";
import { attribute } from "./rpsl-attributes.ts";
import { element, netBlockText } from "./xml-text.ts";

export interface PlainObject {
  readonly family: 4 | 6;
  /** First and last address. */
  readonly first: string;
  readonly last: string;
  readonly prefixLength: number;
  readonly name: string;
  readonly holder: string;
  /** ARIN only. */
  readonly netType: string;
  readonly organisation: number | null;
}

/** With the empty line behind it. */
export function plainObjectText(plan: RegistryPlan, object: PlainObject): string {
  if (plan.registry === "arin") return plainNet(object);
  return plan.registry === "lacnic" ? plainLacnic(object) : plainRpsl(plan, object);
}

function plainRpsl({ registry }: RegistryPlan, object: PlainObject): string {
  const { family, first, last, prefixLength, name, holder, organisation } = object;
  const range = family === 4 ? `${first} - ${last}` : `${first}/${prefixLength}`;
  const handle = organisation === null ? "" : attribute("org", organisationHandle(registry, organisation));
  return (
    attribute(family === 4 ? "inetnum" : "inet6num", range) +
    attribute("netname", name) +
    attribute("descr", holder) +
    attribute("country", countryOf(registry, 0)) +
    handle +
    attribute("status", "LEGACY") +
    attribute("mnt-by", "RIR-HM-MNT") +
    `${attribute("source", rpslSources[registry])}\n`
  );
}

function plainLacnic({ family, first, prefixLength, holder, organisation }: PlainObject): string {
  const range = family === 4 ? shortBlockText(readIpv4(first), prefixLength) : `${first}/${prefixLength}`;
  const id = organisation === null ? "" : attribute("ownerid", organisationHandle("lacnic", organisation));
  return (
    attribute("inetnum", range) +
    attribute("status", "allocated") +
    attribute("owner", holder) +
    id +
    attribute("country", countryOf("lacnic", 0)) +
    attribute("created", "20020101") +
    `${attribute("source", "LACNIC")}\n`
  );
}

function plainNet(object: PlainObject): string {
  const { family, first, last, prefixLength, name, netType, organisation } = object;
  const written = (address: string) =>
    family === 4 ? paddedIpv4Text(readIpv4(address)) : address.toUpperCase();
  const block = netBlockText({
    startAddress: written(first),
    endAddress: written(last),
    prefixLength,
    lengthName: "cidrLenth",
    type: netType,
  });
  const owner = organisation === null ? "" : element("orgHandle", organisationHandle("arin", organisation));
  return `<net>
  <handle>NET-${first.replace(/[.:]+/g, "-")}-9</handle>
  <name>${name}</name>
  <netBlocks>${block}</netBlocks>
  ${owner}
  <version>${family}</version>
</net>
`;
}

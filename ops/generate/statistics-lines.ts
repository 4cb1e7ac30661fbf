/** Lines of the statistics of delegated resources (RIR statistics exchange format, version 2.3, extended). */

/** `2.3|registry|serial|records|startdate|enddate|UTCoffset`; days are compact. */
export function versionLine(facts: {
  readonly registry: string;
  readonly day: string;
  readonly records: number;
}): string {
  const { registry, day, records } = facts;
  return `2.3|${registry}|${day}|${records}|19960101|${day}|+0000\n`;
}

export function summaryLine(registry: string, type: "asn" | "ipv4" | "ipv6", count: number): string {
  return `${registry}|*|${type}|*|${count}|summary\n`;
}

export interface DelegationFields {
  readonly registry: string;
  /** Alpha-2, or empty where nobody has it. */
  readonly country: string;
  readonly type: "asn" | "ipv4" | "ipv6";
  readonly start: string;
  /** IPv4: a number of addresses; IPv6: a prefix length; asn: a number of them. */
  readonly value: number | null;
  readonly day: string;
  readonly status: string;
  readonly opaqueId: string;
}

export function delegationLine(fields: DelegationFields): string {
  const { registry, country, type, start, value, day, status, opaqueId } = fields;
  return `${registry}|${country}|${type}|${start}|${value ?? ""}|${day}|${status}|${opaqueId}\n`;
}

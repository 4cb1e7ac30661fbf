/** The text of IANA's two XML registries of address space. */

const whoisServers: Readonly<Record<string, string>> = {
  afrinic: "whois.afrinic.net",
  apnic: "whois.apnic.net",
  arin: "whois.arin.net",
  lacnic: "whois.lacnic.net",
  ripencc: "whois.ripe.net",
};

export interface IanaRecord {
  /** `002/8`, `2a00::/12`. */
  readonly prefix: string;
  readonly designation: string;
  /** Whose WHOIS server answers for it; null for none. */
  readonly registry: string | null;
  readonly status: "ALLOCATED" | "LEGACY" | "RESERVED";
}

export function ianaRecordText({ prefix, designation, registry, status }: IanaRecord): string {
  const name = prefix.includes(":") ? "description" : "designation";
  const whois = registry === null ? "" : `\n    <whois>${whoisServers[registry]}</whois>`;
  return `  <record>\n    <prefix>${prefix}</prefix>\n    <${name}>${designation}</${name}>\n    <date>2005-01</date>${whois}\n    <status>${status}</status>\n  </record>`;
}

export interface IanaFile {
  readonly id: "ipv4-address-space" | "ipv6-unicast-address-assignments";
  readonly title: string;
  /** ISO day. */
  readonly updated: string;
  readonly records: readonly IanaRecord[];
}

export function ianaFileText({ id, title, updated, records }: IanaFile): string {
  return `<?xml version="1.0" encoding="UTF-8"?>
<registry xmlns="http://www.iana.org/assignments" id="${id}">
  <title>${title}</title>
  <updated>${updated}</updated>
${records.map(ianaRecordText).join("\n")}
</registry>
`;
}

/** One malformed record of every kind, for each format: what `--faults` adds, and what the importer must count. */

export interface FaultyRecord {
  /** The kind it is written as. */
  readonly kind: string;
  readonly text: string;
}

const rest = "netname:        BROKEN\ncountry:        NL\nsource:         RIPE\n\n";
const network = (kind: "inetnum" | "inet6num", range: string): FaultyRecord => ({
  kind,
  text: `${kind}:        ${range}\n${rest}`,
});

export function faultyNetworks(family: 4 | 6): readonly FaultyRecord[] {
  if (family === 6) {
    return [
      network("inet6num", "2a00:zz::/32"),
      network("inet6num", "2a00::/129"),
      network("inet6num", "2a00::2 - 2a00::1"),
      network("inet6num", "2a00::1::/64"),
    ];
  }
  return [
    network("inetnum", "45.255.255.255 - 45.0.0.0"),
    network("inetnum", "45.0.0.0/33"),
    network("inetnum", "45.0.0.256 - 45.0.1.0"),
    network("inetnum", "forty-five"),
    network("inetnum", ""),
    { kind: "inetnum", text: `inetnum:        45.0.0.0 - 45.0.0.255\nthis line has no attribute\n${rest}` },
    {
      kind: "inetnum",
      text: `inetnum:        45.0.1.0 - 45.0.1.255\ndescr:          ${"long ".repeat(14_000)}\n${rest}`,
    },
  ];
}

export const faultyOrganisations: readonly FaultyRecord[] = [
  { kind: "organisation", text: "organisation:   ORG-NAMELESS1-TEST\nsource:         RIPE\n\n" },
  {
    kind: "organisation",
    text: "organisation:   # no handle\norg-name:       Handleless\nsource:         RIPE\n\n",
  },
];

const net = (inside: string): FaultyRecord => ({
  kind: "net",
  text: `<net><handle>NET-BROKEN</handle><name>BROKEN</name>${inside}</net>\n`,
});
const block = (inside: string) => `<netBlocks><netBlock>${inside}<type>S</type></netBlock></netBlocks>`;

export const faultyArinElements: readonly FaultyRecord[] = [
  net(""),
  net(block("<startAddress>045.000.000.256</startAddress><endAddress>045.000.001.000</endAddress>")),
  net(block("<startAddress>045.000.001.000</startAddress><endAddress>045.000.000.000</endAddress>")),
  net(block("<startAddress>045.000.000.000</startAddress>")),
  net(block("<endAddress>045.000.000.000</endAddress>")),
  net("<netBlocks><netBlock></netBlocks>"),
  { kind: "org", text: "<org><handle>NAMELESS-1</handle></org>\n" },
  { kind: "customer", text: "<customer><name>Handleless</name></customer>\n" },
];

/** Those that name a known type count for the summary lines, as they do for the reader. */
export function faultyStatistics(
  registry: string,
): readonly (FaultyRecord & { readonly isCounted: boolean })[] {
  const line = (kind: string, fields: string, isCounted: boolean) => ({
    kind,
    isCounted,
    text: `${fields}\n`,
  });
  return [
    line("ipv4", `${registry}|NL|ipv4|45.0.0.0`, false),
    line("ipv4", "foonic|NL|ipv4|45.0.0.0|256|20200101|allocated|X1", false),
    line("ipv5", `${registry}|NL|ipv5|45.0.0.0|256|20200101|allocated|X1`, false),
    line("ipv4", `${registry}|NL|ipv4|45.0.0.0|0|20200101|allocated|X1`, true),
    line("ipv4", `${registry}|NL|ipv4|255.255.255.0|512|20200101|allocated|X1`, true),
    line("ipv4", `${registry}|NL|ipv4|45.0.0|256|20200101|allocated|X1`, true),
    line("ipv6", `${registry}|NL|ipv6|2a00::|129|20200101|allocated|X1`, true),
    line("ipv6", `${registry}|NL|ipv6|2a00|32|20200101|allocated|X1`, true),
  ];
}

/**
 * Writes a world's registry as the files that the registries publish, so that the importer reads the
 * demonstration through the same readers as the real thing: IANA's XML, extended statistics of all five
 * registries, RPSL (RIPE split by object class, the others whole, LACNIC in its own dialect), ARIN's XML.
 * Some are compressed. The same world gives the same bytes.
 */
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import type { Registry } from "#coordinator/subnets/subnet";
import { arinXml } from "./arin-xml-text.ts";
import type { World } from "./model.ts";
import type { RegionalRegistry } from "./places.ts";
import { fileDay } from "./registry-names.ts";
import { lacnicText, type RpslClass, type RpslRegistry, rpslText } from "./rpsl-text.ts";
import { delegatedText, ianaIpv4Xml, ianaIpv6Xml } from "./statistics-text.ts";

/**
 * Returns the paths of the files written into the folder (made if need be; files of the same name are
 * replaced). A registry that holds nothing in this world has no file.
 */
export async function writeRegistryFiles(world: World, folder: string): Promise<string[]> {
  await mkdir(folder, { recursive: true });
  const paths: string[] = [];
  for (const { name, registry, families, text } of registryFiles) {
    if (!holdsAny(world, registry, families)) continue;
    const path = join(folder, name);
    const content = Buffer.from(text(world), "utf8");
    await writeFile(path, name.endsWith(".gz") ? gzipSync(content) : content);
    paths.push(path);
  }
  return paths;
}

interface RegistryFile {
  /** As at the registry; `.gz` is compressed. */
  readonly name: string;
  /** Whose ranges it holds. */
  readonly registry: Registry;
  readonly families: readonly (4 | 6)[];
  readonly text: (world: World) => string;
}

const day = fileDay.replaceAll("-", "");
const both = [4, 6] as const;

const registryFiles: readonly RegistryFile[] = [
  { name: "ipv4-address-space.xml", registry: "iana", families: [4], text: ianaIpv4Xml },
  { name: "ipv6-unicast-address-assignments.xml", registry: "iana", families: [6], text: ianaIpv6Xml },
  statistics("afrinic", ""),
  statistics("apnic", ".gz"),
  statistics("arin", ""),
  statistics("lacnic", ""),
  statistics("ripencc", ".gz"),
  rpsl("afrinic.db.gz", "afrinic", ["organisation", "inetnum", "inet6num"]),
  rpsl("apnic.db", "apnic", ["inetnum", "inet6num", "organisation"]),
  { name: "arin_db.xml.gz", registry: "arin", families: both, text: arinXml },
  { name: "lacnic.db", registry: "lacnic", families: both, text: lacnicText },
  rpsl("ripe.db.inetnum.gz", "ripencc", ["inetnum"]),
  rpsl("ripe.db.inet6num", "ripencc", ["inet6num"]),
  rpsl("ripe.db.organisation.gz", "ripencc", ["organisation"]),
];

function statistics(registry: RegionalRegistry, ending: string): RegistryFile {
  const name = `delegated-${registry}-extended-${day}${ending}`;
  return { name, registry, families: both, text: (world) => delegatedText(world, registry) };
}

function rpsl(name: string, registry: RpslRegistry, classes: readonly RpslClass[]): RegistryFile {
  const families = both.filter(
    (family) => classes.length > 1 || classes[0] !== (family === 4 ? "inet6num" : "inetnum"),
  );
  return { name, registry, families, text: (world) => rpslText(world, registry, classes) };
}

function holdsAny(world: World, registry: Registry, families: readonly (4 | 6)[]): boolean {
  return world.subnets.some(
    (subnet) =>
      families.includes(subnet.range.family) &&
      (registry === "iana" ? subnet.kind === "iana" : subnet.kind !== "iana" && subnet.registry === registry),
  );
}

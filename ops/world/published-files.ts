/**
 * What the networks of a world publish of where their ranges lie, as files for the importer: a geofeed (RFC 8805) that
 * every second allocation of RIPE's part names (`geofeed:`, rpsl-text.ts), and a cloud's list of ranges by region in
 * Google's form. Networks publish what they intend, not what they measure: one line in twelve is of another place.
 * The same world gives the same bytes.
 */
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { formatRange, prefixLengthOf } from "#core/ip/range";
import { geofeedFileOf } from "#rir-import/formats/geofeed";
import type { World, WorldSite } from "./model.ts";
import type { Place } from "./places.ts";
import { fileDay, geofeedUrl, namesGeofeed } from "./rpsl-text.ts";
import { hashText } from "./seeded-random.ts";

/** Returns the paths of the files written into the folder: none where the world has no places. */
export async function writePublishedFiles(world: World, folder: string): Promise<string[]> {
  await mkdir(folder, { recursive: true });
  const feed = publishing(world, (site) => isUnderGeofeed(world, site.subnet));
  const cloud = publishing(
    world,
    (site) => site.range.family === 4 && hashText(world.seed, site.name) % 6 === 0,
  );
  const files = [
    { name: geofeedFileOf(geofeedUrl(world)), lines: feed.length, text: geofeedText(world, feed) },
    { name: "cloud.json", lines: cloud.length, text: cloudText(cloud) },
  ].filter(({ lines }) => lines > 0);
  for (const { name, text } of files) await writeFile(join(folder, name), text);
  return files.map(({ name }) => join(folder, name));
}

interface PublishedSubnet {
  readonly subnet: number;
  readonly range: World["subnets"][number]["range"];
  readonly name: string;
  readonly place: Place;
}

/** The subnets of sites that are in one place, each once. */
function publishing(
  world: World,
  isPublished: (subnet: Omit<PublishedSubnet, "place">) => boolean,
): readonly PublishedSubnet[] {
  const found = new Map<number, PublishedSubnet>();
  for (const site of world.sites) {
    const subnet = world.subnets[site.subnet];
    const place = placeOf(world, site);
    if (subnet === undefined || place === null || found.has(site.subnet)) continue;
    const { range, name } = subnet;
    const one = { subnet: site.subnet, range, name };
    if (prefixLengthOf(range) !== null && isPublished(one)) found.set(site.subnet, { ...one, place });
  }
  return [...found.values()];
}

function placeOf(world: World, { place, subnet }: WorldSite): Place | null {
  if (place === null) return null;
  const hash = hashText(world.seed, `published ${subnet}`);
  const isWrong = hash % 12 === 0;
  return world.places[isWrong ? hash % world.places.length : place] ?? null;
}

function isUnderGeofeed(world: World, subnet: number): boolean {
  for (let at: number | null = subnet; at !== null; at = world.subnets[at]?.parent ?? null) {
    const above = world.subnets[at];
    if (above !== undefined && namesGeofeed(above)) return true;
  }
  return false;
}

function geofeedText(world: World, subnets: readonly PublishedSubnet[]): string {
  const lines = subnets.map(({ range, place }) => `${formatRange(range)},${place.country},,${place.name},`);
  return `# geofeed of ${world.name}, ${fileDay}\n${lines.join("\n")}\n`;
}

function cloudText(subnets: readonly PublishedSubnet[]): string {
  const prefixes = subnets.map(({ range, place }) => ({
    ipv4Prefix: formatRange(range),
    service: "Emulated Cloud",
    scope: `${place.country}-${place.name}1`.toLowerCase().replaceAll(" ", ""),
  }));
  const list = { syncToken: "1", creationTime: `${fileDay}T00:00:00`, prefixes };
  return `${JSON.stringify(list, null, 2)}\n`;
}

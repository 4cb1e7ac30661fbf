/** A world's registry, written in the registries' formats and read by the importer. */
import { readFile, rm } from "node:fs/promises";
import { basename, join } from "node:path";
import { gunzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { formatRange, type IpRange, parseRange } from "#core/ip/range";
import { generateWorld } from "#ops/world/generate-world";
import type { World } from "#ops/world/model";
import { writePublishedFiles, writeRegistryFiles } from "#ops/world/registry-files";
import { readState } from "#rir-import/check";
import { wantedSubnets } from "../../rir-import/source-folder.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";

const world = generateWorld({ seed: 5, sites: 250, crawlers: 20 });
let folder: string;
let files: string[];

beforeAll(async () => {
  folder = temporaryFolder("nearcrawl-registry-");
  files = await writeRegistryFiles(world, join(folder, "generated"));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

interface ReadSubnet {
  readonly parent: string | null;
  readonly holder: string | null;
  readonly country: string | null;
  readonly registry: string;
}

async function readBack(paths: readonly string[]) {
  const { files: reports, state } = await readState(paths, () => {});
  const subnets = [...wantedSubnets(state)];
  const byRange = new Map<string, ReadSubnet>();
  for (const { range, parentOrdinal, holder, country, registry } of subnets) {
    const parent = parentOrdinal === null ? null : formatRange(subnets[parentOrdinal]!.range);
    const name = holder === null ? null : state.holders.at(holder).name;
    byRange.set(formatRange(range), { parent, holder: name, country, registry });
  }
  const holders = [...state.holders.all()].map(({ name }) => name);
  return { reports, byRange, summary: state.summary, holders };
}

function expected(of: World): Map<string, ReadSubnet> {
  const subnets = of.subnets.map((subnet) => {
    const parent = subnet.parent === null ? null : formatRange(of.subnets[subnet.parent]!.range);
    const holder = subnet.holder === null || subnet.kind === "iana" ? null : of.holders[subnet.holder]!.name;
    const { country } = subnet;
    const registry = subnet.kind === "iana" ? "iana" : subnet.registry;
    return [formatRange(subnet.range), { parent, holder, country, registry }] as const;
  });
  return new Map(subnets);
}

describe("the registry files of a generated world", () => {
  it("are read back as the same tree, without a malformed record, and with each holder once", async () => {
    const { byRange, reports, summary, holders } = await readBack(files);

    expect(byRange).toEqual(expected(world));
    expect(summary.crossings).toBe(0);
    expect(reports).toHaveLength(files.length);
    expect(reports.filter(({ malformed }) => malformed > 0)).toEqual([]);
    expect(holders.length).toBe(new Set(holders).size);
  });

  it("are the same bytes for the same world", async () => {
    const again = await writeRegistryFiles(world, join(folder, "again"));

    for (const [index, file] of files.entries())
      expect((await readFile(again[index]!)).equals(await readFile(file)), basename(file)).toBe(true);
  });

  it("are written in each registry's own manner", async () => {
    const text = async (name: string) => {
      const bytes = await readFile(files.find((file) => basename(file) === name)!);
      return (name.endsWith(".gz") ? gunzipSync(bytes) : bytes).toString();
    };

    expect(await text("lacnic.db")).toMatch(/^inetnum: +\d+(\.\d+){0,2}\/\d+\n/m);
    expect(await text("arin_db.xml.gz")).toMatch(/<startAddress>0\d\d\.\d{3}\.\d{3}\.\d{3}<\/startAddress>/);
    expect(await text("arin_db.xml.gz")).toMatch(/<netBlocks><netBlock>.*<\/netBlock><netBlock>/);
    expect(await text("arin_db.xml.gz")).toContain("<customerHandle>");
    expect(await text("ripe.db.inetnum.gz")).toMatch(/^inetnum: +\S+ - \S+\n(.+\n)*org: +ORG-\w+-RIPE\n/m);
    expect(await text("ripe.db.organisation.gz")).toMatch(/^organisation: +ORG-\w+-RIPE\norg-name: /m);
    expect(await text("delegated-arin-extended-20261001")).toMatch(/^2\.3\|arin\|20261001\|\d+\|/);
    expect(await text("ipv4-address-space.xml")).toContain("<prefix>002/8</prefix>");
  });
});

it("the networks' published places are read back: most sites are there, and some are not", async () => {
  const published = await writePublishedFiles(world, join(folder, "published"));
  const { files: reports, published: ranges } = await readState([...files, ...published], () => {});

  expect(reports.filter(({ format }) => /geofeeds|google/.test(format))).toMatchObject([
    { format: "google-ranges", malformed: 0 },
    { format: "geofeeds", malformed: 0 },
  ]);
  const verdicts = world.sites.flatMap(({ address, place }) => {
    const range = parseRange(address) as IpRange;
    const { country, name } = world.places[place ?? 0]!;
    const here = new Set([
      `${country} ${name}`,
      `google ${country}-${name.replaceAll(" ", "")}1`.toLowerCase(),
    ]);
    return ranges.of(range).map((word) => here.has(word.place ?? ""));
  });
  expect(verdicts.length).toBeGreaterThan(50);
  const right = verdicts.filter((verdict) => verdict).length / verdicts.length;
  expect(right).toBeGreaterThan(0.7);
  expect(right).toBeLessThan(1);
});

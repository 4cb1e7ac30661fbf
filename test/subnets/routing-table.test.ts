import { readFileSync } from "node:fs";
import { gunzipSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import { nest } from "#coordinator/subnets/nest";
import { buildSubnetTree } from "#coordinator/subnets/subnet-tree";
import { asSubnetId } from "#core/ids";
import { type IpAddress, parseAddress } from "#core/ip/address";
import { formatRange, type IpRange, parseRange } from "#core/ip/range";
import { sharedData } from "../support/shared-data.ts";

const suites = [
  { family: "IPv4", table: "routeviews-rv2-20160202-1200.pfx2as.gz", queries: "queries-v4.json" },
  { family: "IPv6", table: "routeviews-rv6-20160202-1200.pfx2as.gz", queries: "queries-v6.json" },
] as const;

type Query = readonly [address: string, prefix: string | null, origin: string | null];

describe.each(suites)("a real $family routing table", ({ table, queries }) => {
  const tablePath = sharedData(`suites/ip/lpm/${table}`);
  const queriesPath = sharedData(`suites/ip/lpm/${queries}`);

  it.skipIf(tablePath === null || queriesPath === null)(
    "nests without crossings and gives each address its longest prefix",
    () => {
      const ranges = readPrefixes(tablePath as string);
      const asked = JSON.parse(readFileSync(queriesPath as string, "utf8")) as Query[];

      const { parents, crossings } = nest(ranges);
      const tree = buildSubnetTree(
        ranges.map((range, index) => ({
          id: asSubnetId(index + 1),
          range,
          parentId: (parents[index] as number) < 0 ? null : asSubnetId((parents[index] as number) + 1),
          holderId: null,
          country: null,
          registry: "iana",
          name: "",
        })),
      );

      const wrong = asked.filter(([text, prefix]) => {
        const found = tree.mostSpecific(parseAddress(text) as IpAddress);
        return (found && formatRange(found.range)) !== prefix;
      });
      expect(crossings).toEqual([]);
      expect(asked.length).toBeGreaterThan(1000);
      expect(wrong).toEqual([]);
    },
    60_000,
  );
});

/** Lines of address, prefix length, origin; each prefix once. */
function readPrefixes(path: string): IpRange[] {
  const lines = gunzipSync(readFileSync(path)).toString("latin1").split("\n");
  const prefixes = new Set(
    lines.filter((line) => line !== "").map((line) => line.split("\t").slice(0, 2).join("/")),
  );
  return [...prefixes].map((prefix) => parseRange(prefix) as IpRange);
}

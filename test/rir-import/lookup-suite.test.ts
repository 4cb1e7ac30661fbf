/**
 * Another project's longest-prefix test data: a routing table of 2016 with the expected prefix and autonomous system of
 * tens of thousands of addresses. The prefixes become subnets named after their system.
 */
import { readFileSync } from "node:fs";
import { gunzipSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import { nest } from "#coordinator/place/subnets/nest";
import { buildSubnetTree } from "#coordinator/place/subnets/subnet-tree";
import { asSubnetId } from "#core/ids";
import { parseAddress } from "#core/ip/address";
import { formatRange, type IpRange, parseRange } from "#core/ip/range";
import { sharedData } from "../support/shared-data.ts";

const suite = sharedData("suites/ip/lpm");

interface Announced {
  readonly range: IpRange;
  readonly system: string;
}

/** Lines of `prefix ⇥ length ⇥ system`. */
function announcedIn(file: string): readonly Announced[] {
  const text = gunzipSync(readFileSync(`${suite}/${file}`)).toString("latin1");
  return text
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => {
      const [prefix, length, system] = line.split("\t") as [string, string, string];
      return { range: parseRange(`${prefix}/${length}`)!, system };
    });
}

type Query = readonly [address: string, prefix: string | null, system: string | null];
const queriesIn = (file: string) => JSON.parse(readFileSync(`${suite}/${file}`, "utf8")) as readonly Query[];

/** The suite does not always write `2001:590::/32` as this project does, so ranges are compared. */
const canonical = (prefix: string | null) => prefix && formatRange(parseRange(prefix)!);

function treeOf(announced: readonly Announced[]) {
  const { parents, crossings } = nest(announced.map(({ range }) => range));
  expect(crossings).toEqual([]);
  return buildSubnetTree(
    announced.map(({ range, system }, index) => {
      const parent = parents[index] as number;
      return {
        id: asSubnetId(index),
        range,
        parentId: parent < 0 ? null : asSubnetId(parent),
        holderId: null,
        country: null,
        registry: "iana",
        name: system,
      };
    }),
  );
}

const families = [
  ["IPv4", "routeviews-rv2-20160202-1200.pfx2as.gz", "queries-v4.json"],
  ["IPv6", "routeviews-rv6-20160202-1200.pfx2as.gz", "queries-v6.json"],
] as const;

describe.skipIf(suite === null).each(families)("%s", (_, table, queries) => {
  it("the tree has no crossings, and answers every query as the suite does", () => {
    const tree = treeOf(announcedIn(table));
    const wrong: unknown[] = [];
    let asked = 0;

    for (const [address, prefix, system] of queriesIn(queries)) {
      const found = tree.mostSpecific(parseAddress(address)!);
      asked += 1;
      const answer = found && [formatRange(found.range), found.name];
      const expected = prefix === null ? null : [canonical(prefix), system];
      if (JSON.stringify(answer) !== JSON.stringify(expected)) wrong.push({ address, answer, expected });
    }

    expect(wrong.slice(0, 5)).toEqual([]);
    expect(asked).toBeGreaterThan(9_000);
  });
});

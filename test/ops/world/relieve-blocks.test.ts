import { describe, expect, it } from "vitest";
import { relieveBlocks } from "#ops/world/finish-world";
import { layOut, type PlannedBlock, type PlannedSubnet, sizeOf } from "#ops/world/lay-out";

function planned(name: string, of: Partial<PlannedSubnet>): PlannedSubnet {
  return {
    name,
    kind: "allocation",
    holder: null,
    country: null,
    registry: "ripencc",
    size: 0,
    children: [],
    hosts: [],
    ...of,
  };
}

const block = (firstOctet: number, children: PlannedSubnet[]): PlannedBlock => ({
  firstOctet,
  subnet: planned(`RIPENCC-${firstOctet}`, { kind: "iana", size: 2 ** 24, children }),
});
const allocation = (name: string, bits: number) => planned(name, { size: 2 ** bits });
const namesIn = ({ subnet }: PlannedBlock) => subnet.children.map(({ name }) => name);

describe("blocks of a registry", () => {
  it("stay as they are while each has room", () => {
    const blocks = [block(2, [allocation("a", 13), allocation("b", 22)]), block(5, [])];

    relieveBlocks(blocks);

    expect(blocks.map(namesIn)).toEqual([["a", "b"], []]);
  });

  it("share anew what one of them cannot hold", () => {
    const children = ["a", "b", "c", "d", "e"].map((name) => allocation(name, 22));
    const blocks = [block(2, children), block(5, []), block(31, [])];
    expect(() => layOut([block(2, children)])).toThrow(/more than a \/8/);

    relieveBlocks(blocks);

    expect(blocks.map(namesIn)).toEqual([["a", "d"], ["b", "e"], ["c"]]);
    expect(layOut(blocks).subnets).toHaveLength(8);
  });

  it("split a national registry's part that is too large, and lose nothing of it", () => {
    const children = Array.from({ length: 12 }, (_, index) => allocation(`n${index}`, 20));
    const national = planned("JP-NIR", { kind: "national", children });
    const blocks = [block(2, [national]), block(5, [])];

    relieveBlocks(blocks);

    const parts = blocks.flatMap(({ subnet }) => subnet.children);
    expect(parts.length).toBeGreaterThan(4);
    expect(new Set(parts.map(({ name }) => name)).size).toBe(parts.length);
    expect(parts.flatMap((part) => part.children.map(({ name }) => name)).sort()).toEqual(
      children.map(({ name }) => name).sort(),
    );
    for (const part of parts) expect(sizeOf(part)).toBeLessThanOrEqual(2 ** 22);
  });
});

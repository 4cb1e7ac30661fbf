import { describe, expect, it } from "vitest";
import { columnsOf, sortedOrder } from "#coordinator/subnets/range-columns";
import { cutSegments } from "#coordinator/subnets/segments";
import { formatAddress } from "#core/ip/address";
import { type IpRange, parseRange } from "#core/ip/range";

/** Start of each segment with its owner's position in the list, -1 for nobody. */
function segmentsOf(texts: readonly string[]): [start: string, owner: number][] {
  const columns = columnsOf(texts.map((text) => parseRange(text) as IpRange));
  const { starts, owners } = cutSegments(columns, sortedOrder(columns));
  return [...owners].map((owner, index) => [
    formatAddress({ family: 4, value: starts[index] as number }),
    owner,
  ]);
}

describe("the address space is cut", () => {
  it("where the most specific range changes", () => {
    expect(segmentsOf(["10.0.0.0 - 10.0.0.99", "10.0.0.10 - 10.0.0.49", "10.0.0.20 - 10.0.0.29"])).toEqual([
      ["10.0.0.0", 0],
      ["10.0.0.10", 1],
      ["10.0.0.20", 2],
      ["10.0.0.30", 1],
      ["10.0.0.50", 0],
      ["10.0.0.100", -1],
    ]);
  });

  it("once where one range ends and the next begins", () => {
    expect(segmentsOf(["10.0.0.0/25", "10.0.0.128/25"])).toEqual([
      ["10.0.0.0", 0],
      ["10.0.0.128", 1],
      ["10.0.1.0", -1],
    ]);
  });

  it("not where a range starts or ends under a smaller one that crosses it", () => {
    expect(segmentsOf(["10.0.0.0 - 10.0.0.9", "10.0.0.5 - 10.0.0.255"])).toEqual([
      ["10.0.0.0", 0],
      ["10.0.0.10", 1],
      ["10.0.1.0", -1],
    ]);
  });

  it("never behind its last address", () => {
    expect(segmentsOf(["255.255.255.0/24"])).toEqual([["255.255.255.0", 0]]);
  });
});

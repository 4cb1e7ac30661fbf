import { rmSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { SourceFileError } from "#core/errors";
import { maxFixtureBytes, parseFixture, readFixture } from "#ops/world/read-fixture";
import { temporaryFolder } from "../../support/temporary-folder.ts";

const host = { path: ["root", "10", "leaf"], org: "", cc: "" };
const good = {
  crawlers: [host, host],
  crawlerRtt: [
    [0, 5],
    [5, 0],
  ],
  targets: [{ ...host, rtt: [1, 2] }],
};

function faultOf(text: string): string {
  try {
    parseFixture(text, "f.json");
  } catch (error) {
    if (error instanceof SourceFileError) return error.message;
    throw error;
  }
  return "none";
}
const faultWith = (changes: object) => faultOf(JSON.stringify({ ...good, ...changes }));

describe("a fixture", () => {
  it("is read when it is whole", () => {
    expect(faultWith({})).toBe("none");
  });

  it.each([
    [
      "a ragged row between crawlers",
      { crawlerRtt: [[0, 5], [5]] },
      "crawlerRtt[1]: 1 values for 2 crawlers",
    ],
    ["a missing row", { crawlerRtt: [[0, 5]] }, "crawlerRtt: 1 values for 2 crawlers"],
    [
      "a target with too many RTTs",
      { targets: [{ ...host, rtt: [1, 2, 3] }] },
      "targets[0].rtt: 3 values for 2 crawlers",
    ],
    ["a negative RTT", { targets: [{ ...host, rtt: [1, -2] }] }, "targets[0].rtt[1]:"],
    ["an RTT that is text", { targets: [{ ...host, rtt: [1, "2"] }] }, '(found "2")'],
    [
      "an RTT that is null, as JSON writes NaN",
      { targets: [{ ...host, rtt: [1, Number.NaN] }] },
      "(found null)",
    ],
    ["an RTT of years", { targets: [{ ...host, rtt: [1, 1e12] }] }, "targets[0].rtt[1]:"],
    ["no crawlers", { crawlers: [], crawlerRtt: [] }, "crawlers:"],
    ["no targets", { targets: [] }, "targets:"],
    ["a path without a leaf", { targets: [{ ...host, path: ["root"], rtt: [1, 2] }] }, "targets[0].path:"],
    ["a path without end", { targets: [{ ...host, path: new Array(33).fill("x"), rtt: [1, 2] }] }, "path:"],
    ["a name without end", { targets: [{ ...host, org: "x".repeat(201), rtt: [1, 2] }] }, "targets[0].org:"],
    ["another unit", { unit: "s" }, "unit:"],
  ])("with %s is refused, and the field is named", (_, changes, expected) => {
    const fault = faultWith(changes);

    expect(fault).toContain("f.json: ");
    expect(fault).toContain(expected);
    expect(fault.length).toBeLessThan(300);
  });

  it.each([
    ["an HTML page", "<!doctype html>", "is not JSON"],
    ["half a file", '{"crawlers":[', "is not JSON"],
    ["a number that is none", '{"crawlers": NaN}', "is not JSON"],
    ["an infinite RTT", JSON.stringify(good).replace("[1,2]", "[1,1e999]"), "targets[0].rtt[1]"],
    ["a list", "[]", "the whole file"],
    ["null", "null", "the whole file"],
    ["brackets a million deep", "[".repeat(1_000_000), "f.json: "],
  ])("that is %s is refused", (_, text, expected) => {
    expect(faultOf(text)).toContain(expected);
  });

  it("larger than 64 MiB is refused before it is read", async () => {
    const folder = temporaryFolder("nearcrawl-fixture-");
    const file = join(folder, "huge.json");
    writeFileSync(file, "");
    truncateSync(file, maxFixtureBytes + 1);

    await expect(readFixture(file)).rejects.toThrow(/huge\.json: 67108865 bytes/);
    rmSync(folder, { recursive: true });
  });
});

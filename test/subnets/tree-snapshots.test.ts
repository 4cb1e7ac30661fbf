/** The tree on disk: the same tree comes back, and any fault of the file costs one line in the log. */
import { readdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type SubnetTree, treeOfRows } from "#coordinator/place/subnets/subnet-tree";
import { SubnetRows } from "#coordinator/place/subnets/tree-columns";
import { createTreeSnapshots } from "#coordinator/place/subnets/tree-snapshot-store";
import { type IpAddress, parseAddress } from "#core/ip/address";
import { type IpRange, parseRange } from "#core/ip/range";
import { silentLog } from "#core/log";
import { temporaryFolder } from "../support/temporary-folder.ts";

const registry = { generation: 7, appliedAt: "2026-03-01T12:00:00.000001Z" };

let folder: string;
let lines: {
  readonly fields: { readonly error?: Error; readonly reason?: string };
  readonly message: string;
}[];
beforeEach(async () => {
  folder = temporaryFolder("nearcrawl-snapshot-");
  lines = [];
});
afterEach(async () => await rm(folder, { recursive: true, force: true }));

const log = {
  ...silentLog,
  info: (fields: object, message: string) => {
    lines.push({ fields, message });
  },
  warn: (fields: object, message: string) => {
    lines.push({ fields, message });
  },
};
const snapshots = () =>
  createTreeSnapshots({ folder: join(folder, "snapshots"), schema: "world", log, fewestSubnets: 1 });
const file = () => join(folder, "snapshots", "world.tree");

function treeOf(texts: readonly string[]): SubnetTree {
  const rows = new SubnetRows();
  texts.forEach((text, index) => {
    const facts = { holderId: 3, country: "CY", registry: "ripencc", name: `Δίκτυο ${index}` } as const;
    rows.addRange(parseRange(text) as IpRange, { id: index + 1, ...facts });
  });
  return treeOfRows(rows);
}

const tree = treeOf([
  "10.0.0.0/8",
  "10.1.0.0/16",
  "10.1.2.0 - 10.1.2.8",
  "10.1.2.5 - 10.1.2.9",
  "2001:db8::/32",
  "2001:db8::1",
]);

/** The file of the tree, written and closed. */
async function kept(): Promise<string> {
  const first = snapshots();
  first.keep(tree, registry);
  await first.idle();
  return file();
}

/** Changes one byte; a negative position counts from the end. */
async function changeByte(at: number): Promise<void> {
  const bytes = await readFile(file());
  const index = at < 0 ? bytes.length + at : at;
  bytes[index] = (bytes[index] as number) ^ 0x55;
  await writeFile(file(), bytes);
}

describe("a snapshot", () => {
  it("gives the same tree back", async () => {
    await kept();

    const copy = await snapshots().read(registry);

    expect(lines).toEqual([]);
    expect(copy?.size).toBe(6);
    for (const text of [
      "10.1.2.4",
      "10.1.2.7",
      "10.1.2.9",
      "10.9.9.9",
      "2001:db8::1",
      "2001:db8::2",
      "11.0.0.0",
    ]) {
      const address = parseAddress(text) as IpAddress;
      expect(copy?.mostSpecific(address), text).toEqual(tree.mostSpecific(address));
      expect(copy?.mostSpecificNonUnaryId(address), text).toEqual(tree.mostSpecificNonUnaryId(address));
    }
  });

  it("is replaced by that of a later registry, without other files left", async () => {
    const later = { ...registry, generation: 8 };
    await kept();
    const second = snapshots();

    second.keep(treeOf(["192.0.2.0/24"]), later);
    await second.idle();

    expect((await snapshots().read(later))?.size).toBe(1);
    expect(await readdir(join(folder, "snapshots"))).toEqual(["world.tree"]);
  });

  it("of a registry without subnets is one of an empty tree", async () => {
    const empty = createTreeSnapshots({ folder, schema: "empty", log, fewestSubnets: 0 });
    empty.keep(treeOf([]), registry);
    await empty.idle();

    expect((await empty.read(registry))?.size).toBe(0);
  });

  it("may be missing, without a line in the log", async () => {
    expect(await snapshots().read(registry)).toBeNull();
    expect(lines).toEqual([]);
  });

  it("is not written for a small tree", async () => {
    const usual = createTreeSnapshots({ folder, schema: "world", log });

    usual.keep(tree, registry);
    await usual.idle();

    expect(await readdir(folder)).toEqual([]);
  });

  it("that cannot be written costs one line", async () => {
    await writeFile(join(folder, "snapshots"), "a file where the folder should be");
    const unlucky = snapshots();

    unlucky.keep(tree, registry);
    await unlucky.idle();

    expect(lines.map(({ message }) => message)).toEqual([
      "snapshot of the tree could not be written; the next start takes longer",
    ]);
  });

  it("that a killed process left half-written is never read, and the next writer replaces it", async () => {
    await kept();
    await writeFile(`${file()}.partial`, "half of it");

    expect((await snapshots().read(registry))?.size).toBe(6);
    await kept();

    expect(await readdir(join(folder, "snapshots"))).toEqual(["world.tree"]);
  });
});

/** Changes to the file, and the expected words in the log. */
const damages: readonly [what: string, damage: () => Promise<void>, words: RegExp][] = [
  ["is empty", async () => await writeFile(file(), ""), /no snapshot/],
  [
    "is a web page",
    async () => await writeFile(file(), "<!doctype html><title>302</title>\n"),
    /no snapshot/,
  ],
  ["ends in its header", async () => await cutTo(40), /no snapshot/],
  ["ends in its arrays", async () => await cutTo(-40), /bytes, its header says/],
  [
    "has bytes behind its end",
    async () => await writeFile(file(), await readFileWith(Buffer.from("x"))),
    /bytes, its header says/,
  ],
  ["has another byte in an array", async () => await changeByte(-100), /checksum/],
  ["has another checksum", async () => await changeByte(-1), /checksum/],
  ["has a damaged header", async () => await changeByte(0), /no snapshot/],
  ["is of another byte order", async () => await changeHeader(/"[LB]E"/, '"XE"'), /version 2XE/],
  ["has another version", async () => await changeHeader(/"version":\d/, '"version":9'), /version 9/],
  [
    "is of another generation",
    async () => await changeHeader(/"generation":7/, '"generation":6'),
    /generation 6/,
  ],
  [
    "is of another database",
    async () => await changeHeader(/2026-03/, "2025-03"),
    /2025-03.*not 7 \(2026-03/,
  ],
  ["lists no lengths", async () => await changeHeader(/lengths/, "lenghts"), /does not list/],
  ["states a length that is none", async () => await changeHeader(/\[\d/, "[-"), /no snapshot|does not list/],
  [
    "states more than it contains",
    async () => await changeHeader(/,\d+,\d+\]/, (lengths) => lengths.replace(/\d/g, "9")),
    /header says/,
  ],
];

describe("a file that", () => {
  it.each(damages)("%s is unusable, and the log says why", async (_, damage, words) => {
    await kept();
    await damage();

    expect(await snapshots().read(registry)).toBeNull();

    expect(lines.length).toBe(1);
    expect(lines[0]?.message).toMatch(/; the tree is built from the database$/);
    expect(lines[0]?.fields.error?.message ?? lines[0]?.fields.reason).toMatch(words);
  });

  it("is damaged in any single byte is unusable", async () => {
    const whole = await readFile(await kept());

    for (let at = 0; at < whole.length; at += 7) {
      const damaged = Buffer.from(whole);
      damaged[at] = (damaged[at] as number) ^ 0x10;
      await writeFile(file(), damaged);
      expect(await snapshots().read(registry), `byte ${at}`).toBeNull();
    }
  });
});

const readFileWith = async (more: Buffer) => Buffer.concat([await readFile(file()), more]);

/** Cuts the file to a length; a negative one is cut off the end. */
async function cutTo(bytes: number): Promise<void> {
  await writeFile(file(), (await readFile(file())).subarray(0, bytes));
}

/** The header as text, changed without a change of its length. */
async function changeHeader(
  pattern: RegExp,
  replacement: string | ((found: string) => string),
): Promise<void> {
  const text = (await readFile(file())).toString("latin1");
  const changed = text.replace(pattern, replacement as string);
  if (changed === text || changed.length !== text.length)
    throw new Error(`${pattern} did not change the header`);
  await writeFile(file(), Buffer.from(changed, "latin1"));
}

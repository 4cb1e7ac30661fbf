/** The tree on disk: the same tree comes back, and whatever is wrong with the file costs one line in the log. */
import { spawnSync } from "node:child_process";
import { open, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { SubnetRows } from "#coordinator/subnets/subnet-rows";
import { type SubnetTree, treeOfRows } from "#coordinator/subnets/subnet-tree";
import { createTreeSnapshots } from "#coordinator/subnets/tree-snapshot-store";
import { type IpAddress, parseAddress } from "#core/ip/address";
import { type IpRange, parseRange } from "#core/ip/range";
import { silentLog } from "#core/log";
import { temporaryFolder } from "../support/temporary-folder.ts";

const registry = { generation: 7, appliedAt: "2026-03-01T12:00:00.000001Z" };
const headerStart = 16;

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

async function change(at: number, bytes: Uint8Array): Promise<void> {
  const handle = await open(file(), "r+");
  await handle.write(bytes, 0, bytes.length, at);
  await handle.close();
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
      expect(copy?.mostSpecificNonUnary(address), text).toEqual(tree.mostSpecificNonUnary(address));
    }
  });

  it("is replaced by that of a later registry, and leaves nothing else behind", async () => {
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

  it("is not there before the first, which nobody needs to be told", async () => {
    expect(await snapshots().read(registry)).toBeNull();
    expect(lines).toEqual([]);
  });

  it("is not made of a small tree", async () => {
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

  it("that a killed process left half-written is never read, and the next writer clears it away", async () => {
    await kept();
    const gone = spawnSync(process.execPath, ["--version"]).pid;
    await writeFile(`${file()}.${gone}.partial`, "NCTREE");
    await writeFile(`${file()}.${process.ppid}.partial`, "of a process that runs");

    expect((await snapshots().read(registry))?.size).toBe(6);
    await kept();

    expect((await readdir(join(folder, "snapshots"))).sort()).toEqual([
      "world.tree",
      `world.tree.${process.ppid}.partial`,
    ]);
  });
});

/** What is done to the file, and the words that the log must have. */
const damages: readonly [what: string, damage: () => Promise<void>, words: RegExp][] = [
  ["is empty", async () => await writeFile(file(), ""), /ends early/],
  [
    "is a web page",
    async () => await writeFile(file(), "<!doctype html><title>302 Found</title>"),
    /no snapshot/,
  ],
  ["ends in its header", async () => await cutTo(40), /ends early/],
  ["ends in its arrays", async () => await cutTo(-40), /arrays take/],
  ["lacks its last byte", async () => await cutTo(-1), /arrays take/],
  [
    "has bytes behind its end",
    async () => await writeFile(file(), await readFileWith(Buffer.from("x"))),
    /arrays take/,
  ],
  [
    "has another byte in an array",
    async () => await change((await sizeOf()) - 100, Buffer.from([0x55])),
    /checksum/,
  ],
  ["has another checksum", async () => await change((await sizeOf()) - 1, Buffer.from([0])), /checksum/],
  ["has a damaged header", async () => await change(headerStart, Buffer.from("?")), /header is damaged/],
  [
    "has a header of 4 GB",
    async () => await change(12, Buffer.from([255, 255, 255, 255])),
    /header has 4294967295 bytes/,
  ],
  [
    "is of another byte order",
    async () => await change(8, (await readFile(file())).subarray(8, 12).reverse()),
    /another byte order/,
  ],
  ["has another version", async () => await changeHeader(/"version":\d/, '"version":9'), /version 9, not 1/],
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
  ["lists other parts", async () => await changeHeader(/ipv4\.keys/, "ipv4.kays"), /does not list the parts/],
  ["states a size that is none", async () => await changeHeader(/"bytes":\d/, '"bytes":-'), /does not list/],
];

describe("a file that", () => {
  it.each(damages)("%s is of no use, and the log says why", async (_, damage, words) => {
    await kept();
    await damage();

    expect(await snapshots().read(registry)).toBeNull();

    expect(lines.length).toBe(1);
    expect(lines[0]?.message).toMatch(/; the tree is built from the database$/);
    expect(lines[0]?.fields.error?.message ?? lines[0]?.fields.reason).toMatch(words);
  });

  it("is damaged in any single byte is of no use", async () => {
    const whole = await readFile(await kept());

    for (let at = 0; at < whole.length; at += 7) {
      const damaged = Buffer.from(whole);
      damaged[at] = (damaged[at] as number) ^ 0x10;
      await writeFile(file(), damaged);
      expect(await snapshots().read(registry), `byte ${at}`).toBeNull();
    }
  });
});

const sizeOf = async () => (await readFile(file())).length;
const readFileWith = async (more: Buffer) => Buffer.concat([await readFile(file()), more]);

/** So many bytes remain; below 0: so many are taken off. */
async function cutTo(bytes: number): Promise<void> {
  await writeFile(file(), (await readFile(file())).subarray(0, bytes));
}

/** The header as text, changed without a change of its length. */
async function changeHeader(pattern: RegExp, replacement: string): Promise<void> {
  const text = (await readFile(file())).toString("latin1");
  const changed = text.replace(pattern, replacement);
  if (changed === text || changed.length !== text.length)
    throw new Error(`${pattern} did not change the header`);
  await writeFile(file(), Buffer.from(changed, "latin1"));
}

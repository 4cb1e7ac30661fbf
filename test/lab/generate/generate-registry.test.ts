/** A generated registry against its own account: the importer must find every number, exactly. */
import { readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { formatRange } from "#core/ip/range";
import { checkSources, readState } from "#rir-import/check";
import { wantedSubnets } from "../../rir-import/wanted-subnets.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";
import {
  accountFileName,
  type GenerateOptions,
  generateRegistry,
  type RegistryAccount,
} from "./generate-registry.ts";

let root: string;
beforeAll(() => {
  root = temporaryFolder("nearcrawl-generate-");
});
afterAll(() => rmSync(root, { recursive: true, force: true }));

let folders = 0;
const newFolder = () => join(root, String(folders++));

async function generated(options: Omit<GenerateOptions, "folder">) {
  const folder = newFolder();
  return { folder, account: await generateRegistry({ ...options, folder }) };
}

/** What the importer reports, in the words of the account. */
async function found(folder: string) {
  const { files, state } = await checkSources([folder]);
  const { crossingSamples: _, ...numbers } = state;
  return {
    state: numbers,
    files: files.map((file) => ({
      file: file.file.slice(folder.length + 1),
      format: file.format,
      registry: file.registry,
      read: file.read,
      kept: file.kept,
      ignored: file.ignored,
      malformed: file.malformed,
      warnings: file.warnings.length,
      textBytes: file.textBytes,
      bytesOnDisk: file.bytesOnDisk,
    })),
  };
}

const byName = (a: { readonly file: string }, b: { readonly file: string }) => (a.file < b.file ? -1 : 1);

function promised({ files, state }: RegistryAccount) {
  const shown = files.map(({ written: _w, faulty: _f, fileDate: _d, ...file }) => file);
  return { state, files: shown.toSorted(byName) };
}

describe("the importer finds what the account promises, to the last record", () => {
  it.each([
    { objects: 20_000, seed: 1, faults: true },
    { objects: 20_000, seed: 2, isPlain: true, generation: 3, changedShare: 0.05 },
    { objects: 3000, seed: 3, generation: 12, changedShare: 1, faults: true },
    { objects: 1, seed: 4 },
    { objects: 37, seed: 5, isPlain: true },
    { objects: 900, seed: 6 },
  ])("with %o", async (options) => {
    const { folder, account } = await generated(options);

    const { state, files } = await found(folder);

    expect(files.toSorted(byName)).toEqual(promised(account).files);
    expect(state).toEqual(account.state);
  });
});

describe("a count by other means", () => {
  /** Every record of a kind starts a line so, in whatever case; nothing else does. */
  const starts: Readonly<Record<string, RegExp>> = {
    inetnum: /^inetnum[ \t]*:/gim,
    inet6num: /^inet6num[ \t]*:/gim,
    organisation: /^organisation[ \t]*:/gim,
    "aut-num": /^aut-num: +AS/gm,
    net: /^<net>/gm,
    org: /^<org>/gm,
    customer: /^<customer>/gm,
    asn: /^<asn>|^[a-z]+\|[A-Z]{2}\|asn\|/gm,
    poc: /^<poc>/gm,
    ipv4: /^[a-z]+\|[A-Z]{0,2}\|ipv4\|/gm,
    ipv6: /^[a-z]+\|[A-Z]{0,2}\|ipv6\|/gm,
    record: /^ {2}<record>/gm,
  };

  it("by regular expressions gives the records written, and the objects asked for", async () => {
    const { folder, account } = await generated({ objects: 20_000, seed: 8, faults: true });

    for (const { file, written, faulty } of account.files) {
      const bytes = readFileSync(join(folder, file));
      const text = (file.endsWith(".gz") ? gunzipSync(bytes) : bytes).toString("latin1");
      for (const [kind, pattern] of Object.entries(starts)) {
        const count = text.match(pattern)?.length ?? 0;
        expect([file, kind, count]).toEqual([file, kind, (written[kind] ?? 0) + (faulty[kind] ?? 0)]);
      }
    }
    expect(account.objects).toBe(20_000);
  });
});

describe("the next quarter's registry", () => {
  const options = { objects: 8000, seed: 11, changedShare: 0.03, isPlain: true };

  async function seenSubnets(folder: string): Promise<ReadonlyMap<string, string>> {
    const { state } = await readState([folder], () => {});
    return new Map(
      Array.from(wantedSubnets(state), ({ range, holder, country, registry, name }) => {
        const key = holder === null ? "" : state.holders.at(holder).key;
        return [formatRange(range), [key, country, registry, name].join(" | ")];
      }),
    );
  }

  it("differs from the one before in as many ranges as the account says", async () => {
    const before = await seenSubnets((await generated({ ...options, generation: 4 })).folder);
    const { folder, account } = await generated({ ...options, generation: 5 });
    const after = await seenSubnets(folder);

    const added = [...after.keys()].filter((range) => !before.has(range)).length;
    const removed = [...before.keys()].filter((range) => !after.has(range)).length;
    const changed = [...after].filter(([range, seen]) => (before.get(range) ?? seen) !== seen).length;
    expect({ added, removed, changed }).toEqual(account.changes);
    expect(added + removed + changed).toBeGreaterThan(0.02 * 8000);
    expect(added + removed + changed).toBeLessThan(0.04 * 8000);
    expect(Math.min(added, removed, changed)).toBeGreaterThan(0);
  });

  it("has every object that had no event in the very same words", async () => {
    const objectsIn = ({ folder }: { folder: string }) =>
      readFileSync(join(folder, "ripe.db.inetnum"), "latin1").split("\n\n").slice(1);
    const before = new Set(objectsIn(await generated(options)));

    const later = await generated({ ...options, generation: 1 });

    const others = objectsIn(later).filter((object) => !before.has(object));
    expect(others.length).toBeGreaterThan(0);
    expect(others.length / before.size).toBeLessThan(0.045);
  });

  it("of a share of nothing is the same registry with a later date", async () => {
    const first = await generated({ ...options, changedShare: 0 });
    const later = await generated({ ...options, changedShare: 0, generation: 7 });

    expect(later.account.state).toEqual(first.account.state);
    expect(later.account.changes).toEqual({ added: 0, removed: 0, changed: 0 });
    expect(later.account.files.map(({ fileDate }) => fileDate)).toContain("2027-10-01");
  });
});

describe("the same settings", () => {
  const bytesOf = (folder: string) =>
    Object.fromEntries(
      readdirSync(folder)
        .filter((name) => name !== accountFileName)
        .map((name) => [name, readFileSync(join(folder, name)).toString("base64")]),
    );

  it("give the same bytes, another seed gives others", async () => {
    const options = { objects: 2500, seed: 21, generation: 2 };
    const first = bytesOf((await generated(options)).folder);

    const second = bytesOf((await generated(options)).folder);
    const third = bytesOf((await generated({ ...options, seed: 22 })).folder);

    expect(second).toEqual(first);
    expect(Object.keys(third)).toEqual(Object.keys(first));
    expect(third["ripe.db.inetnum.gz"]).not.toEqual(first["ripe.db.inetnum.gz"]);
  });
});

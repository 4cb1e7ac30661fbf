/** Where a registry is generated to: nothing that was there is lost, nothing half-written bears a real name. */
import { existsSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { UsageError } from "#core/errors";
import { temporaryFolder } from "../../support/temporary-folder.ts";
import { accountFileName, generateRegistry, writeTextFile } from "./generate-registry.ts";

let root: string;
beforeAll(() => {
  root = temporaryFolder("nearcrawl-output-folder-");
});
afterAll(() => rmSync(root, { recursive: true, force: true }));

let folders = 0;
const newFolder = () => join(root, String(folders++));

describe("the folder", () => {
  it("is refused when anything is in it, and the file there stays", async () => {
    const folder = newFolder();
    await generateRegistry({ objects: 10, folder });
    const download = newFolder();
    await generateRegistry({ objects: 10, folder: download });
    rmSync(join(download, accountFileName));
    const downloaded = readFileSync(join(download, "ipv4-address-space.xml"));

    await expect(generateRegistry({ objects: 10, folder })).rejects.toThrow(UsageError);
    await expect(generateRegistry({ objects: 10, folder })).rejects.toThrow(/is not empty/);
    await expect(generateRegistry({ objects: 10, folder: download, mayReplace: true })).rejects.toThrow(
      /was not made by this command/,
    );
    expect(readFileSync(join(download, "ipv4-address-space.xml"))).toEqual(downloaded);
  });

  it("is replaced on demand when all in it was generated, and only then", async () => {
    const folder = newFolder();
    await generateRegistry({ objects: 5000, folder, isPlain: true });

    const account = await generateRegistry({ objects: 40, folder, mayReplace: true });

    const names = account.files.map(({ file }) => file);
    expect(readdirSync(folder).sort()).toEqual([accountFileName, ...names].sort());
    writeFileSync(join(folder, "notes.txt"), "mine");
    await expect(generateRegistry({ objects: 40, folder, mayReplace: true })).rejects.toThrow(
      /holds more than a generated registry \(notes\.txt\): nothing is removed/,
    );
    expect(readdirSync(folder)).toContain("ripe.db.inetnum.gz");
  });

  it.each([
    [{ objects: 0 }, "objects is 0"],
    [{ objects: 100_000_001 }, "objects is 100000001"],
    [{ objects: 1.5 }, "objects is 1.5"],
    [{ objects: 1, generation: 101 }, "generation is 101"],
    [{ objects: 1, changedShare: Number.NaN }, "the changed share is NaN"],
    [{ objects: 1, seed: -1 }, "seed is -1"],
  ])("is not even made for settings out of range: %o", async (options, words) => {
    const folder = newFolder();

    await expect(generateRegistry({ ...options, folder })).rejects.toThrow(words);
    expect(existsSync(folder)).toBe(false);
  });
});

describe("a file that cannot be finished", () => {
  const options = { isGzip: false, encoding: "latin1", isCrLf: false } as const;
  const megabytes = Array.from({ length: 3000 }, () => "x".repeat(10_000));

  it.skipIf(!existsSync("/dev/full")).each([false, true])(
    "because the disk is full is not there at all; compressed: %s",
    async (isGzip) => {
      const path = join(root, `full-${isGzip}`);
      symlinkSync("/dev/full", `${path}.part`);

      await expect(writeTextFile(megabytes, { ...options, isGzip, path }, () => {})).rejects.toThrow(
        /ENOSPC/,
      );
      expect(readdirSync(root).filter((name) => name.startsWith("full-"))).toEqual([]);
    },
  );

  it("because its text ends in an error is not there either", async () => {
    const path = join(root, "broken");
    function* texts() {
      yield* megabytes;
      throw new Error("no more text");
    }

    await expect(writeTextFile(texts(), { ...options, path }, () => {})).rejects.toThrow("no more text");
    expect(readdirSync(root).filter((name) => name.startsWith("broken"))).toEqual([]);
  });
});

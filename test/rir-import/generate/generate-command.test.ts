/** `nearcrawl rir generate` as a person gives it: what it prints and how it ends. */
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it, vi } from "vitest";
import { UsageError } from "#core/errors";
import { generateCommand } from "#ops/nearcrawl/rir/generate-command";
import { temporaryFolder } from "../../support/temporary-folder.ts";

let root: string;
beforeAll(() => {
  root = temporaryFolder("nearcrawl-generate-command-");
});
afterAll(() => rmSync(root, { recursive: true, force: true }));

async function printed(...words: readonly string[]): Promise<string> {
  let text = "";
  const write = vi.spyOn(process.stdout, "write").mockImplementation((chunk) => {
    text += chunk;
    return true;
  });
  try {
    await generateCommand().exitOverride().parseAsync(words, { from: "user" });
  } finally {
    write.mockRestore();
  }
  return text;
}

it("says for people what an import must find", async () => {
  const out = await printed(
    "--objects",
    "2k",
    "--generation",
    "2",
    "--changed",
    "0.1",
    "--out",
    join(root, "a"),
  );

  expect(out).toContain("an import must find:\nfile ");
  expect(out).toMatch(/^ripe\.db\.inetnum\.gz +rpsl +ripencc +\d/m);
  expect(out).toMatch(/\d+ subnets \(\d.*\), at most \d+ deep; \d+ holders/);
  expect(out).toMatch(/^against generation 1: \d+ added, \d+ removed, \d+ changed$/m);
});

it("gives programs the account", async () => {
  const account = JSON.parse(
    await printed("--objects", "500", "--json", "--plain", "--out", join(root, "b")),
  );

  expect(account).toMatchObject({ objects: 500, seed: 1, generation: 0, changes: null });
  expect(account.files[0]).toMatchObject({ file: "ipv4-address-space.xml", kept: 221 });
});

it("refuses a folder with anything in it", async () => {
  writeFileSync(join(root, "a-file"), "");

  await expect(printed("--objects", "5", "--out", root)).rejects.toThrow(UsageError);
});

it.each(["0", "1e3", "101M", "-5", "12kk", ""])(
  "does not take %j for a number of objects",
  async (objects) => {
    vi.spyOn(process.stderr, "write").mockReturnValue(true);
    await expect(printed("--objects", objects, "--out", join(root, "c"))).rejects.toThrow(
      /a whole number from 1/,
    );
    vi.restoreAllMocks();
  },
);

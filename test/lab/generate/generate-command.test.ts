/** `nearcrawl rir generate` as a person gives it: what it prints and how it ends. */
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { inProcess, said } from "../../support/command-in-process.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";
import { generateCommand } from "./generate-command.ts";

let root: string;
beforeAll(() => {
  root = temporaryFolder("nearcrawl-generate-command-");
});
afterAll(() => rmSync(root, { recursive: true, force: true }));

const printed = (...words: readonly string[]) => said(generateCommand(), words);

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

  const { code, err } = await inProcess(generateCommand(), ["--objects", "5", "--out", root]);

  expect(code).toBe(2);
  expect(err).toMatch(/^nearcrawl: .* is not empty/);
});

it.each(["0", "1e3", "101M", "-5", "12kk", ""])(
  "does not take %j for a number of objects",
  async (objects) => {
    const args = ["--objects", objects, "--out", join(root, "c")];

    const { code, err } = await inProcess(generateCommand(), args);

    expect(code).toBe(2);
    expect(err).toMatch(/a whole number from 1/);
  },
);

/** Findings of the machine check about the machine, and what follows a failed check. */
import { chmodSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { keepCheck, lastCheckFailed } from "#crawler/check/machine-check";
import { factsOfThisMachine, type MachineFacts, machineFindings } from "#crawler/check/machine-findings";
import { quietLog } from "#crawler/core/log";
import { writeMembership } from "#crawler/core/membership";
import { openIdentity } from "#crawler/membership/identity";
import { SigningKeys, signingKeysFile } from "#crawler/membership/signing-keys";
import { temporaryFolder } from "../../support/temporary-folder.ts";

const mebibyte = 1024 * 1024;
const goodFacts: MachineFacts = {
  nodeVersion: "20.19.0",
  memoryBytes: 2048 * mebibyte,
  openFiles: 1024,
  mayPing: async () => true,
};

let home = "";
beforeEach(() => {
  home = temporaryFolder("nearcrawl-check-");
});
afterEach(() => rmSync(home, { recursive: true, force: true }));

async function statesOf(
  changes: Partial<MachineFacts>,
  spoolBytes = mebibyte,
): Promise<Record<string, string>> {
  const findings = await machineFindings({ ...goodFacts, ...changes }, { home, spoolBytes, icmp: true });
  return Object.fromEntries(findings.map(({ subject, state }) => [subject, state]));
}

const allWell = { node: "ok", memory: "ok", "open files": "ok", folder: "ok", disk: "ok", ping: "ok" };

describe("a machine", () => {
  it("with everything needed is ok", async () => {
    expect(await statesOf({})).toEqual(allWell);
    expect(readdirSync(home)).toEqual([]);
  });

  it.each([
    [{ nodeVersion: "20.18.1" }, { node: "fix" }],
    [{ nodeVersion: "18.20.0" }, { node: "fix" }],
    [{ nodeVersion: "24.0.0" }, {}],
    [{ memoryBytes: 200 * mebibyte }, { memory: "fix" }],
    [{ memoryBytes: 512 * mebibyte }, { memory: "note" }],
    [{ openFiles: 256 }, { "open files": "fix" }],
    [{ openFiles: null }, {}],
    [{ mayPing: async () => false }, { ping: "note" }],
  ])("with %o: %o", async (facts, states) => {
    expect(await statesOf(facts)).toEqual({ ...allWell, ...states });
  });

  it("with too small a disk must be fixed", async () => {
    expect(await statesOf({}, 1e15)).toEqual({ ...allWell, disk: "fix" });
  });

  it("with a readable key gets the command that fixes it", async () => {
    writeMembership(home, {
      coordinatorUrl: "wss://search.example/crawler",
      name: "amber",
      certificatePin: null,
      releaseKeys: [],
      releaseThreshold: 1,
      key: "a-key-of-its-own-0123",
      ticket: null,
    });
    chmodSync(join(home, "membership.json"), 0o644);

    const findings = await machineFindings(goodFacts, { home, spoolBytes: mebibyte, icmp: false });

    expect(findings.find(({ subject }) => subject === "keys")).toMatchObject({
      state: "fix",
      words: `${join(home, "membership.json")} can be read by others: run \`chmod 600 ${join(home, "membership.json")}\`.`,
    });
  });

  it("with readable signing keys gets it, too", async () => {
    const identity = openIdentity(home);
    new SigningKeys({ home, identity, log: quietLog, send: () => {} }).onWelcome(true);
    chmodSync(signingKeysFile(home), 0o640);

    const findings = await machineFindings(goodFacts, { home, spoolBytes: mebibyte, icmp: false });

    expect(findings.filter(({ subject }) => subject === "keys")).toMatchObject([
      { state: "fix", words: expect.stringContaining(`chmod 600 ${signingKeysFile(home)}`) },
    ]);
  });

  it("reports its own facts", () => {
    const facts = factsOfThisMachine();

    expect(facts.nodeVersion).toBe(process.versions.node);
    expect(facts.memoryBytes).toBeGreaterThan(0);
    if (process.platform === "linux") expect(facts.openFiles).toBeGreaterThan(0);
  });
});

describe("the last check", () => {
  const report = { at: new Date(), findings: [], isConnected: true, neededProxy: null };

  it("is saved as failed or not, and its absence is no failure", () => {
    const never = lastCheckFailed(home);
    keepCheck(home, { ...report, isUsable: false });
    const failed = lastCheckFailed(home);
    keepCheck(home, { ...report, isUsable: true });

    expect([never, failed, lastCheckFailed(home)]).toEqual([false, true, false]);
  });

  it("that is damaged is ignored", () => {
    writeFileSync(join(home, "last-check.json"), "{");

    expect(lastCheckFailed(home)).toBe(false);
  });
});

/** `nearcrawl policy` over a real database, once in its own process: output and exit codes. */

import { beforeAll, expect, it } from "vitest";
import { createAuditLog } from "#coordinator/database/audit-log";
import { nearcrawl } from "../../support/built-command.ts";
import { commandNamed, inProcess } from "../../support/command-in-process.ts";
import { testDatabase } from "../../support/database.ts";
import { forThisFile } from "../../support/for-this-file.ts";
import { seedWorld } from "../../support/seed-world.ts";

const database = await forThisFile(testDatabase());
beforeAll(async () => await seedWorld(database.pool));

const policy = (...args: readonly string[]) =>
  inProcess(commandNamed("policy"), [...args, "--database-url", database.url, "--schema", database.schema]);

it("previews, changes and takes back, and the audit log has who did it", { timeout: 120_000 }, async () => {
  const preview = await policy("preview", "recrawl.intervalHours=24", "--json");
  const set = await policy("set", "recrawl.intervalHours=24", "scope.admitNewHosts=yes", "--why", "news");
  const shown = await nearcrawl(["policy", "show"], { database });
  const back = await policy("take-back", "1", "--json");

  expect([preview.code, set.code, shown.code, back.code]).toEqual([0, 0, 0, 0]);
  expect(JSON.parse(preview.out)).toMatchObject({
    basedOn: 0,
    changes: [{ name: "recrawl.intervalHours", before: 168, after: 24, toFile: false }],
  });
  expect(set.out).toContain("recrawl.intervalHours: 168 h → 24 h; scope.admitNewHosts: no → yes");
  expect(shown.out).toMatch(/recrawl\.intervalHours +24 h +168 h +\S+/);
  expect(JSON.parse(back.out)).toMatchObject({ version: 2, changes: [{ toFile: true }, { toFile: true }] });
  const { entries } = await createAuditLog(database.pool).list({ limit: 9 });
  expect(entries.map(({ action, via, words }) => [action, via, words])).toEqual([
    [
      "policy-changed",
      "command",
      "reverts version 1: recrawl.intervalHours: 24 h → 168 h; scope.admitNewHosts: yes → no",
    ],
    ["policy-changed", "command", "recrawl.intervalHours: 168 h → 24 h; scope.admitNewHosts: no → yes; news"],
  ]);
});

it("the probe method is changed while all runs, and a preview says from when it holds", async () => {
  const preview = await policy("preview", "probe.method=icmp");
  const set = await policy("set", "probe.method=icmp");
  const wrong = await policy("set", "probe.method=pigeon");

  expect([preview.code, set.code, wrong.code]).toEqual([0, 0, 2]);
  expect(preview.out).toContain("It holds from the moment it is saved, for what begins after that.");
  expect(set.out).toContain("probe.method: connect → icmp");
  expect(wrong.err).toContain('probe.method: "pigeon" is not one of head, connect, icmp');
});

it("ends with 2 for what cannot be and with 3 for what is not there", { timeout: 120_000 }, async () => {
  const outcomes = await Promise.all([
    policy("set", "recrawl.longestDays=0.001"),
    policy("set", "lease.seconds=10"),
    policy("set", "delegation.moon=1"),
    policy("show", "delegation.moon"),
  ]);

  expect(outcomes.map(({ code }) => code)).toEqual([2, 2, 2, 3]);
  expect(outcomes.map(({ err }) => err)).toEqual([
    expect.stringContaining("no page may be fetched again within 1 h are over"),
    expect.stringContaining("lease.seconds: it is read at the start, from the coordinator's file"),
    expect.stringContaining("delegation.moon: there is no such policy"),
    "",
  ]);
});

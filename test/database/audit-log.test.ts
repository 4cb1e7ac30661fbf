/** The audit log on a real database: what it keeps, what it drops, and how it is searched. */
import { hostname, userInfo } from "node:os";
import { afterEach, beforeAll, expect, it } from "vitest";
import { createAuditLog } from "#coordinator/database/audit-log";
import type { AuditEntry, AuditLog } from "#core/audit";
import { recordCommand } from "#ops/cli/audit-command-change";
import { testDatabase } from "../support/database.ts";
import { forThisFile } from "../support/for-this-file.ts";

const database = await forThisFile(testDatabase());
let log: AuditLog;
beforeAll(async () => {
  log = createAuditLog(database.pool);
});
afterEach(async () => void (await database.pool.query("truncate audit_entry")));

const drained: Omit<AuditEntry, "entryId"> = {
  at: new Date("2026-03-01T12:00:00.000Z"),
  actor: "anna",
  via: "page",
  action: "crawler-drained",
  target: "athens",
  words: "athens gets no more work.",
  before: { state: "online" },
  after: { state: "draining" },
  remoteAddress: "192.0.2.7",
};

it("returns what was recorded, the latest first", async () => {
  await log.record(drained);
  await log.record({ ...drained, action: "crawler-resumed", target: null, before: undefined });

  const { entries, more } = await log.list({ limit: 10 });

  expect(more).toBe(false);
  expect(entries.map(({ action }) => action)).toEqual(["crawler-resumed", "crawler-drained"]);
  expect(entries[1]).toEqual({ ...drained, entryId: expect.any(Number) });
  expect(entries[0]).not.toHaveProperty("before");
});

it("is filtered by actor, action, target and time, a page at a time", async () => {
  for (const day of [1, 2, 3]) {
    await log.record({ ...drained, at: new Date(`2026-03-0${day}T12:00:00Z`) });
    await log.record({ ...drained, actor: "ben", action: "policy-changed", target: "lambda" });
  }
  const countOf = async (query: object) => (await log.list({ limit: 10, ...query })).entries.length;

  const first = await log.list({ actor: "anna", limit: 2 });
  const second = await log.list({ actor: "anna", limit: 2, beforeId: first.entries[1]?.entryId ?? 0 });

  expect([first.entries.length, first.more, second.entries.length, second.more]).toEqual([2, true, 1, false]);
  expect(await countOf({ action: "policy-changed" })).toBe(3);
  expect(await countOf({ target: "athens" })).toBe(3);
  expect(await countOf({ target: "athens", since: new Date("2026-03-02T00:00:00Z") })).toBe(2);
  expect(await countOf({ target: "athens", until: new Date("2026-03-02T00:00:00Z") })).toBe(1);
});

it("keeps no secrets and no long values, and accepts any characters", async () => {
  const after = { token: "nco_1", nested: { keyHash: "abc", secrets: 2 }, half: "\ud800", nul: "a\0b" };
  await log.record({ ...drained, words: `${"x".repeat(5000)}\0`, after });
  await log.record({ ...drained, before: { list: Array.from({ length: 5000 }, () => "long") } });

  const [long, odd] = (await log.list({ limit: 2 })).entries;

  expect(odd?.words).toHaveLength(1000);
  expect(JSON.stringify(odd?.after)).not.toMatch(/nco_1|abc/);
  expect(odd?.after).toMatchObject({ token: "(not kept)", nul: "a\ufffdb" });
  expect(long?.before).toMatchObject({ cutOff: true, beginning: expect.stringMatching(/^{"list":\["long"/) });
});

it("names the system's user and the machine for what a command did", async () => {
  await recordCommand(database.pool, { action: "crawler-drained", target: "athens", words: "It drains." });

  const [entry] = (await log.list({ limit: 1 })).entries;

  expect(entry).toMatchObject({ actor: `${userInfo().username} on ${hostname()}`, via: "command" });
});

it("says that a change is made even when it could not be recorded", async () => {
  const away = { query: async () => await Promise.reject(new Error("the server is away")) };
  const recording = recordCommand(away as never, { action: "crawler-drained", target: null, words: "" });

  await expect(recording).rejects.toThrow(/it is done \(crawler-drained\).*the server is away/);
});

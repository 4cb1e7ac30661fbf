/** A change is confirmed when it is in the journal, and fails while the journal cannot be written. */
import { mkdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { readCoordinatorConfig } from "#coordinator/config";
import { type RunningCoordinator, startCoordinator } from "#coordinator/main";
import { currentEpoch } from "#coordinator/run/journal/epoch-store";
import { JournalFolder } from "#coordinator/run/journal/journal-file-store";
import { createOptOutStore } from "#coordinator/run/opt-outs/store";
import { silentLog } from "#core/log";
import { softwareVersion } from "#protocol/software-version";
import { testDatabase } from "../support/database.ts";
import { forThisFile } from "../support/for-this-file.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const journalRoot = temporaryFolder("nearcrawl-journal-");
const database = await forThisFile(testDatabase());
let coordinator: RunningCoordinator;
let folder: string;
const start = async () =>
  await startCoordinator({
    ...{ database, journalRoot, log: silentLog, version: softwareVersion },
    config: readCoordinatorConfig({ listen: { port: 0 }, access: { anonymous: "read" } }),
  });
beforeAll(async () => {
  coordinator = await start();
  folder = join(journalRoot, (await currentEpoch(database.pool)).databaseId);
});
afterAll(async () => await coordinator?.stop());

const optOut = async (site: string) =>
  await fetch(`${coordinator.webUrl}/about-crawler/opt-out`, {
    method: "POST",
    headers: { accept: "application/json", "content-type": "application/x-www-form-urlencoded" },
    body: new URLSearchParams({ site }),
  });
const journaled = async () =>
  (await new JournalFolder(folder).read()).entries
    .map(({ value }) => value.site)
    .filter((site) => site !== undefined);
const alerts = async () =>
  (
    (await (await fetch(`${coordinator.webUrl}/api/alerts`)).json()) as { alerts: { name: string }[] }
  ).alerts.map(({ name }) => name);

it("answers once the change is on the disk", async () => {
  const { status } = await optOut("one.example");
  const there = await journaled();

  expect([status, there]).toEqual([201, ["one.example"]]);
});

it("answers with an error while the files cannot be written, raises an alert, and writes the missing entries later", async () => {
  renameSync(folder, `${folder}.away`);
  writeFileSync(folder, "");
  const refused = await optOut("two.example");
  const told = await alerts();
  const page = await fetch(`${coordinator.webUrl}/about-crawler`);
  rmSync(folder);
  renameSync(`${folder}.away`, folder);
  mkdirSync(folder, { recursive: true });

  const again = await optOut("three.example");

  expect([refused.status, page.status, again.status]).toEqual([500, 200, 201]);
  expect(told).toContain("journal-cannot-write");
  expect(await journaled()).toEqual(["one.example", "two.example", "three.example"]);
  expect(await alerts()).not.toContain("journal-cannot-write");
});

it("writes at its end what others recorded while it received no notices", async () => {
  const { rowCount } = await database.pool.query(
    `select pg_terminate_backend(pid, 5000) from pg_stat_activity
     where datname = current_database() and query ilike 'listen %journal%'`,
  );
  await createOptOutStore(database.pool).request(
    {
      target: { site: "four.example", network: null },
      ...{ source: "operator", words: "", replyTo: null, requester: null, confirmed: true },
    },
    new Date(),
  );
  await coordinator.stop();

  const there = await journaled();
  coordinator = await start();

  expect(rowCount).toBe(1);
  expect(there).toContain("four.example");
});

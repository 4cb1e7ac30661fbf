/** A whole coordinator follows an operator's change without a restart. */
import { expect, it } from "vitest";
import { readCoordinatorConfig } from "#coordinator/config";
import { startCoordinator } from "#coordinator/main";
import { createPolicyStore } from "#coordinator/run/settings/settings-store";
import { silentLog } from "#core/log";
import { testDatabase } from "../support/database.ts";
import { seedWorld, worldNow } from "../support/seed-world.ts";
import { until } from "../support/until.ts";

it("a host at its limit gets room when the limit is raised", async () => {
  const database = await testDatabase();
  await seedWorld(database.pool);
  await database.pool.query("update frontier_host set url_count = 100 where host = 'www.example.org'");
  const config = readCoordinatorConfig({ listen: { host: "127.0.0.1", port: 0 } });
  const coordinator = await startCoordinator({ config, database, log: silentLog, version: "test" });
  const answer = async () =>
    await (await fetch(`${coordinator.webUrl}/api/who?q=https://www.example.org/new`)).text();
  const isFull = async () => (await answer()).includes("the most that the settings allow per host");

  expect(await isFull()).toBe(true);
  await createPolicyStore(database.pool).save(
    {
      changedAt: worldNow,
      changedBy: "anna",
      words: "",
      takesBack: null,
      changes: [{ name: "scope.pagesPerHost", before: null, after: 120 }],
    },
    0,
  );
  await until(async () => !(await isFull()), 10_000);

  const { rows } = await database.pool.query(
    "select settings -> 'scope' -> 'pagesPerHost' as pages from policy_file",
  );
  expect(rows).toEqual([{ pages: 100 }]);
  await coordinator.stop();
  await database.close();
});

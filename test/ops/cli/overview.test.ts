/** The operators' commands: texts over a seeded database, exit codes, and watched answers. */
import { beforeAll, describe, expect, it } from "vitest";
import { alertFacts } from "#coordinator/tell/overview/alert-reads";
import { alertsOf } from "#coordinator/tell/overview/alert-rules";
import { nearcrawl } from "../../support/built-command.ts";
import { commandNamed, inProcess } from "../../support/command-in-process.ts";
import { testDatabase } from "../../support/database.ts";
import { everyRead } from "../../support/every-read.ts";
import { forThisFile } from "../../support/for-this-file.ts";
import { seedOperation } from "../../support/seed-operation.ts";
import { seedWorld, worldNow } from "../../support/seed-world.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";

const database = await forThisFile(testDatabase());
beforeAll(async () => {
  await seedWorld(database.pool);
  await seedOperation(database.pool);
});

/** Its clock stands still, because response times of a busy machine are no facts of this world. */
const reads = () => everyRead(database.pool, () => 0);

describe("nearcrawl overview", () => {
  it("prints the same value as the API with --json, and alerts end with 4", async () => {
    const place = ["--database-url", database.url, "--schema", database.schema];
    const overview = await inProcess(commandNamed("overview"), ["--json", ...place]);
    // A home of its own, because a coordinator on this machine would be asked otherwise.
    const home = temporaryFolder("nearcrawl-alerts-");
    const alerts = await nearcrawl(["alerts", "--home", home], { database });

    expect(overview.code).toBe(0);
    // Crawlers that were connected when the last coordinator ended count as not crawling.
    expect(JSON.parse(overview.out)).toMatchObject({
      ...{ startedAt: null, phase: "no coordinator runs", sessions: 0 },
      fleet: [{ name: "athens" }, {}, {}],
    });
    expect(alerts.code).toBe(4);
    expect(alerts.out).toMatch(/^critical .*No coordinator has written its figures for \d+ minutes\./m);
  });
});

it("a slow database is measured by the clock given to the reads", async () => {
  const clock = { readings: 0 };
  const nowMs = () => 300 * clock.readings++;

  const facts = await alertFacts(database.pool, reads(), { now: worldNow, nowMs });

  expect(facts.databaseMs).toBe(300);
  expect(alertsOf(facts).map(({ name }) => name)).toContain("database-slow");
});

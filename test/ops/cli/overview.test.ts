/** The operators' commands: texts over a seeded database, exit codes as people get them, and answers that are watched. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { alertFacts } from "#coordinator/overview/alert-reads";
import { alertsOf } from "#coordinator/overview/alert-rules";
import { showOverview } from "#coordinator/overview/overview";
import { createReports } from "#coordinator/who/reads";
import { timeRange } from "#core/time-range";
import type { Database } from "#db/server-database";
import { overviewCommand, overviewText } from "#ops/cli/commands/overview";
import { barLine } from "#ops/cli/history-text";
import { watchAnswer } from "#ops/cli/watch-answer";
import { nearcrawl } from "../../support/built-command.ts";
import { inProcess } from "../../support/command-in-process.ts";
import { testDatabase } from "../../support/database.ts";
import { seedOperation } from "../../support/seed-operation.ts";
import { seedWorld, worldNow } from "../../support/seed-world.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";

let database: Database;
beforeAll(async () => {
  database = await testDatabase();
  await seedWorld(database.pool);
  await seedOperation(database.pool);
});
afterAll(async () => await database?.close());

/** Its clock stands still: how long a busy machine takes to answer is no fact of this world. */
const reads = () => createReports(database.pool, () => 0);

describe("nearcrawl overview", () => {
  it("says on a terminal what the page says, without a coordinator", async () => {
    const overview = await showOverview(reads(), null, {
      range: timeRange(() => "", worldNow, "1h"),
      now: worldNow,
    });

    const text = overviewText(overview);

    expect(overview).toMatchObject({ startedAt: null, sessions: 2, rates: { pagesPerMinute: 718 } });
    expect(text).toContain("Nothing needs attention.");
    expect(text).toContain("too few yet (20 of 30)");
    expect(text).toContain("1/26.7 in 24 hours");
    expect(text).toMatch(/a crawler for their subnet +2 +60 s/);
    expect(text).toMatch(/the site +108 +0\.3 %/);
    expect(text).toMatch(/berlin +offline .* it was stopped by its host, seen 60 min ago/);
    expect(text).toMatch(/Pages per minute +[▁-█]+··[▁-█]+/);
  });

  it("prints the same value as the API with --json, and alerts end with 4", async () => {
    const place = ["--database-url", database.url, "--schema", database.schema];
    const overview = await inProcess(overviewCommand(), ["--json", ...place]);
    // Of its own: a coordinator that runs on this machine, or was killed, would be asked.
    const home = temporaryFolder("nearcrawl-alerts-");
    const alerts = await nearcrawl(["alerts", "--home", home], { database });

    expect(overview.code).toBe(0);
    // Crawlers that were connected when the last coordinator ended are not crawling.
    expect(JSON.parse(overview.out)).toMatchObject({
      ...{ startedAt: null, phase: "no coordinator runs", sessions: 0 },
      fleet: [{ name: "athens" }, {}, {}],
    });
    expect(alerts.code).toBe(4);
    expect(alerts.out).toMatch(/^critical {2}No coordinator has written its figures for \d+ minutes\./);
  });
});

it("a slow database is told of by the clock that the reads were given", async () => {
  const clock = { readings: 0 };
  const nowMs = () => 300 * clock.readings++;

  const facts = await alertFacts(database.pool, reads(), { now: worldNow, nowMs });

  expect(facts.databaseMs).toBe(300);
  expect(alertsOf(facts).map(({ name }) => name)).toContain("database-slow");
});

it("a history in one line has eight heights, and a dot where nothing is known", () => {
  expect(barLine([0, 1, null, 7, 8])).toBe("▁▂·██");
  expect(barLine([0, 0])).toBe("▁▁");
});

describe("watching", () => {
  const watched = async (isTTY: boolean, answers: readonly (() => Promise<string>)[]) => {
    const stop = new AbortController();
    const written: string[] = [];
    const left = [...answers];
    const render = async () => {
      const next = left.shift();
      if (left.length === 0) stop.abort();
      return (await next?.()) ?? "";
    };
    const stream = { isTTY, rows: 3, write: (text: string) => written.push(text) };
    await watchAnswer(render, { everySeconds: 0.001, signal: stop.signal, stream });
    return { text: written.join(""), code: process.exitCode };
  };

  it("in a pipe each answer is a block of its own, and the end is an interruption", async () => {
    const { text, code } = await watched(false, [async () => "one", async () => "two"]);

    expect(text).toBe("one\n\ntwo\n\n");
    expect(code).toBe(130);
  });

  it("on a terminal each takes the other's place, as far as it fits, and the first screen comes back", async () => {
    const { text } = await watched(true, [async () => "a\nb\nc\nd"]);

    expect(text).toBe("\x1b[?1049h\x1b[?25l\x1b[Ha\x1b[K\nb\x1b[K\n\x1b[J\x1b[?25h\x1b[?1049l");
  });

  it("an answer that fails is said, and the next is tried", async () => {
    const away = () => Promise.reject(new Error("the database is away"));

    expect((await watched(false, [away, async () => "back"])).text).toBe(
      "no answer: the database is away\n\nback\n\n",
    );
  });
});

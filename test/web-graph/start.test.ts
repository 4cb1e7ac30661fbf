/** One coordinator ranks once a day, however many there are, and skips what is too large. */
import { beforeAll, beforeEach, describe, expect, it } from "vitest";
import { scheduleRanking } from "#coordinator/crawl/web-graph/start";
import type { Log } from "#core/log";
import { isAdvisoryLockHeld } from "#db/advisory-lock";
import { testDatabase } from "../support/database.ts";
import { forThisFile } from "../support/for-this-file.ts";
import { until } from "../support/until.ts";
import { seedGraph } from "./graph-in-database.ts";

const noon = new Date("2030-01-01T12:00:00Z");
const hoursAfter = (hours: number) => new Date(noon.getTime() + hours * 3_600_000);

const database = await forThisFile(testDatabase());
let said: string[];
beforeAll(async () => {
  await seedGraph(database.pool, 3, 0.85);
  await database.pool.query("analyze out_link");
});
beforeEach(() => {
  said = [];
});

/** What the coordinator does in its turn. */
async function turn(at: Date, mostLinks?: number, stopping = new AbortController().signal): Promise<void> {
  const works: (() => Promise<unknown>)[] = [];
  const say = (_facts: unknown, words: string) => void said.push(words);
  scheduleRanking({
    database,
    timekeeper: { every: (_name, _everyMs, work) => void works.push(work), stopping },
    log: { info: say, warn: say } as Pick<Log, "info" | "warn">,
    now: () => at,
    ...(mostLinks === undefined ? {} : { mostLinks }),
  });
  for (const work of works) await work();
}

const rankedAt = async () =>
  (await database.pool.query<{ at: Date | null }>("select max(ranked_at) as at from url_rank")).rows[0]!.at;

describe("scheduled ranking", () => {
  it("skips a graph that is too large, and says what to do", async () => {
    await turn(noon, 10);

    expect(said).toEqual([
      "too many links to rank here: run nearcrawl graph export --format parquet, another engine, and nearcrawl rank --from",
    ]);
    expect(await rankedAt()).toBeNull();
  });

  it("stops with the coordinator, with nothing written", async () => {
    const stop = new AbortController();

    const work = turn(noon, undefined, stop.signal);
    await until(() => isAdvisoryLockHeld(database.pool, "nearcrawl ranks pages", database.schema), 5000);
    stop.abort();
    await work;
    await turn(noon, undefined, stop.signal);

    expect(said).toEqual([]);
    expect(await rankedAt()).toBeNull();
  });

  it("runs once a day, and again after the clock was ahead", async () => {
    await Promise.all([turn(hoursAfter(0)), turn(hoursAfter(0))]);
    await turn(hoursAfter(23));
    const first = await rankedAt();
    await database.pool.query("update url_rank set ranked_at = $1", [hoursAfter(1000)]);
    await turn(hoursAfter(1));

    expect(first).toEqual(noon);
    expect(said).toEqual(["pages are ranked", "pages are ranked"]);
    expect(await rankedAt()).toEqual(hoursAfter(1));
  });
});

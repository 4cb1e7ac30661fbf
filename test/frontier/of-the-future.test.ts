/** What a clock that was a day ahead wrote, and what becomes of it when it is right. */
import { expect, it } from "vitest";
import { bringBack, wasAhead } from "#coordinator/crawl/frontier/of-the-future-writes";
import { defaultRecrawlSettings } from "#coordinator/crawl/recrawl/visit-findings";
import { takeResults } from "#coordinator/crawl/results/take-results";
import { asLeaseId } from "#core/ids";
import {
  arrivedResult,
  noon,
  scope,
  secondsAfterNoon,
  seeds,
  spoolId,
  storeWorld,
} from "../support/store-world.ts";

const day = 86_400;

const world = storeWorld();

it("hosts rest as long as they were to, counted from now; what was found meanwhile is due, and nothing else is touched", async () => {
  const north = await world.delegatedHost("north", "http://a.example/0", "http://a.example/1");
  const [lease] = await world.lease(north, secondsAfterNoon(day));
  const { result } = arrivedResult({ sequence: 1, leaseId: lease!.leaseId, url: "http://a.example/0" });
  const at = secondsAfterNoon(day + 5);
  await takeResults(
    {
      ...{ crawlerId: north, spoolId },
      results: [
        {
          ...{ sequence: 1, leaseId: asLeaseId(lease!.leaseId), wireBytes: 100 },
          result: { ...result, fetchedAt: at.toISOString(), hostDelayMs: 20_000 },
        },
      ],
    },
    world.results,
    { scope, recrawl: defaultRecrawlSettings },
    at,
  );
  await world.frontier.admit(seeds("http://b.example/"), scope, at);
  await world.frontier.admit(seeds("http://c.example/"), scope, noon);
  await world.pool.query(
    "update frontier_host set not_before = $1, resolve_at = $1 where host = 'c.example'",
    [secondsAfterNoon(2 * day)],
  );
  await world.frontier.returnExpired(secondsAfterNoon(day + 100));
  const now = secondsAfterNoon(60);
  const state = async () =>
    await world.rows<Record<string, unknown>>(
      `select host, extract(epoch from not_before - '${now.toISOString()}')::float8 as rests,
         extract(epoch from due_at - '${now.toISOString()}')::float8 as due,
         extract(epoch from resolve_at - '${now.toISOString()}')::float8 as resolves
       from frontier_host order by host`,
    );
  expect(await world.lease(north, secondsAfterNoon(100))).toEqual([]);
  expect(await wasAhead(world.pool, now)).toBe(true);

  expect(await bringBack(world.pool, now)).toBe(2);

  const [a, b, c] = await state();
  expect(a).toMatchObject({ host: "a.example", rests: 20, due: -60 });
  expect(b).toMatchObject({ host: "b.example", due: 0, resolves: 0 });
  expect(c).toMatchObject({ rests: 2 * day - 60, due: -60, resolves: 2 * day - 60 });
  const [fetched] = await world.rows<{ planned: number; fetched: string }>(
    `select extract(epoch from next_fetch_at - last_fetched_at)::float8 as planned,
       extract(epoch from last_fetched_at - '${now.toISOString()}')::text as fetched
     from frontier_url where url like '%/0'`,
  );
  expect(fetched).toEqual({ planned: defaultRecrawlSettings.intervalSeconds, fetched: "0.000000" });
  const [again] = await world.lease(north, secondsAfterNoon(100));
  expect(again?.urls.map(({ url }) => url)).toEqual(["http://a.example/1"]);
  expect(await wasAhead(world.pool, now)).toBe(false);
  expect(await bringBack(world.pool, secondsAfterNoon(100))).toBe(0);
});

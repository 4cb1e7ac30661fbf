/** When the outbox is applied: soon in a small crawl, every second under load; and what is reported. */
import { beforeEach, expect, it } from "vitest";
import { NewHostBudget } from "#coordinator/crawl/frontier/budgets";
import type { CrawlScope } from "#coordinator/crawl/frontier/frontier";
import { effectsOf } from "#coordinator/crawl/frontier/link-outbox";
import { defaultOutboxBounds, postEffects } from "#coordinator/crawl/frontier/link-outbox-store";
import { outboxDuties } from "#coordinator/crawl/frontier/start";
import { inTransaction } from "#coordinator/database/transaction";
import { Counters } from "#coordinator/tell/overview/metrics";
import type { CrawlerId } from "#core/ids";
import type { Incident } from "#core/incidents";
import { silentLog } from "#core/log";
import { keyOf, noon, scope, storeWorld } from "../support/store-world.ts";

const world = storeWorld();
let north: CrawlerId;
beforeEach(async () => {
  north = await world.crawler("north");
});

/** With a manual clock: `turn` does what is otherwise done every second. */
function duties(newHosts = new NewHostBudget(100), scopeOf: CrawlScope = scope) {
  const hurried: [string, number | undefined][] = [];
  const incidents: Incident[] = [];
  const turns: (() => Promise<unknown>)[] = [];
  const applying = outboxDuties(
    {
      pool: world.pool,
      timekeeper: {
        every: (_name, _everyMs, work) => void turns.push(work),
        hurry: (name, delayMs) => void hurried.push([name, delayMs]),
        stopping: new AbortController().signal,
      },
      counters: new Counters(),
      incidents: { note: (one: Incident) => void incidents.push(one) },
      log: silentLog,
      now: () => noon,
    },
    { ...defaultOutboxBounds, scope: scopeOf, newHosts },
  );
  applying.start();
  return { applying, hurried, incidents, turn: async () => await turns[0]!() };
}

const post = async (...urls: string[]) =>
  await inTransaction(world.pool, async (client) => {
    const named = urls.map((url) => ({ key: keyOf(url), depth: 1 }));
    await postEffects(client, north, effectsOf(named, []));
  });

it("is applied soon after results, and starts look-ups of new hosts, under low load", async () => {
  const { applying, hurried, turn } = duties();

  await post("http://new.example/");
  applying.onPosted();
  await turn();
  await post("http://new.example/x");
  applying.onPosted();
  await turn();

  expect(hurried).toEqual([
    ["apply-links", 100],
    ["resolve-hosts", undefined],
    ["wake-idle-crawlers", 100],
    ["apply-links", 100],
    ["wake-idle-crawlers", 100],
  ]);
  expect(await world.rows("select url from frontier_url order by url")).toEqual([
    { url: "http://new.example/" },
    { url: "http://new.example/x" },
  ]);
});

it("waits for the next second under high load", async () => {
  const { applying, hurried, turn } = duties();

  await post(...Array.from({ length: 2000 }, (_, n) => `http://large.example/${n}`));
  await turn();
  hurried.length = 0;
  applying.onPosted();
  expect(hurried).toEqual([]);
  await turn();
  applying.onPosted();

  expect(hurried).toEqual([["apply-links", 100]]);
});

it("reports a crawler whose results name too many new hosts", async () => {
  const { incidents, turn } = duties(new NewHostBudget(2));

  await post(...Array.from({ length: 5 }, (_, n) => `http://h${n}.example/`));
  await turn();

  expect(incidents).toMatchObject([{ kind: "link-flood", crawlerId: north, count: 1 }]);
  expect(await world.rows("select from frontier_host")).toHaveLength(2);
});

it("reports the domain with too many new hosts, and not the crawler", async () => {
  const limited = { ...scope, newHostsPerDomainAndDay: 50, newHostsPerLinkingSiteAndDay: 500 };
  const { incidents, turn } = duties(new NewHostBudget(1000), limited);

  await post(...Array.from({ length: 130 }, (_, n) => `http://h${n}.wild.example/`));
  await turn();

  expect(incidents).toMatchObject([{ kind: "domain-flood", crawlerId: null, count: 1 }]);
  expect(incidents[0]!.words).toBe(
    "wild.example has more new hosts than are let in a day: 100 URLs on them wait for later days, 10 are left out",
  );
});

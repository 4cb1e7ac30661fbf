/** One plan of recrawls for the fleet, whether its pages lie in one slice or in four on two servers. */
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { oneSlice, type Slices, upOf } from "#coordinator/database/slices";
import type { RecrawlGroups, RecrawlPlan } from "#coordinator/recrawl/make-plan";
import { planRecrawls } from "#coordinator/recrawl/plan-recrawls";
import type { RecrawlStrategy } from "#coordinator/recrawl/recrawl-plan";
import { groupEnds, recrawlPlansOver } from "#coordinator/recrawl/sliced-plan-store";
import { recrawlDuties } from "#coordinator/recrawl/start";
import { policySections } from "#coordinator/settings/schema";
import { silentLog } from "#core/log";
import { seedManySites } from "../support/seed-many-sites.ts";
import { worldNow } from "../support/seed-world.ts";
import { SpreadServers } from "../support/spread-slices.ts";

const strategies = ["optimal", "ncis", "iir"] as const;
const later = new Date(worldNow.getTime() + 6 * 3_600_000);

interface Planned {
  readonly plan: RecrawlPlan | null;
  readonly hosts: readonly object[];
  readonly records: RecrawlGroups | null;
  readonly next: RecrawlPlan | null;
}

let world: SpreadServers;
const whole = new Map<string, Planned>();
beforeAll(async () => {
  world = await SpreadServers.begin(4);
  await seedManySites(world.shared.pool);
  // Each host changes at a rate of its own; two of them ask for a pause of minutes, so that they have multipliers of their own.
  await world.shared.pool.query(`
    update frontier_url u set visits = 9, compared_visits = 9, last_fetched_at = '2026-03-01T09:00:00Z', last_outcome = 'fetched',
      changes_per_day = 0.02 * power(1.3, substring(url from 'site-(\\d+)')::int), back_links = 1 + (url_hash & 15)
    where url like 'https://site-%';
    update frontier_host set fetched_urls = 3, crawl_delay_ms = case when host in ('site-10.example.org', 'site-12.example.org') then 1000000000 else 0 end
    where host like 'site-%';
    insert into host_signals (host_hash, signals, true_signals, missed_changes, evidence)
    select host_hash, 20, 18, 2, 30 from frontier_host where host like 'site-1%';
    insert into channel (host_hash, host, directories, created_at, settled)
    select host_hash, host, '{/ferry}', '2026-02-01T00:00:00Z', true from frontier_host where host = 'site-7.example.org'`);
  const one = oneSlice(world.shared.pool);
  for (const strategy of strategies) whole.set(strategy, await planned(one, strategy));
  await forget(one);
  await world.spread();
}, 300_000);
afterEach(async () => {
  world.slices.down = [];
});
afterAll(async () => await world?.close());

const policiesOf = (strategy: RecrawlStrategy) => policySections.recrawl.parse({ strategy, groups: 5 });

async function planned(slices: Slices, strategy: RecrawlStrategy): Promise<Planned> {
  await forget(slices);
  await handOut(slices, "2026-03-01T12:40:00Z");
  const store = recrawlPlansOver(slices);
  const policies = policiesOf(strategy);
  const plan = await planRecrawls({ store, policies, now: worldNow });
  const hosts = await hostsOf(slices);
  await crawlOn(slices);
  const records = plan !== null && plan.groups.length > 0 ? await store.groupRecords(plan, later) : null;
  return { plan, hosts, records, next: await planRecrawls({ store, policies, now: later }) };
}

async function hostsOf(slices: Slices): Promise<object[]> {
  const answers = await Promise.all(
    upOf(slices).map(
      async ({ pool }) =>
        (
          await pool.query<{ host: string }>(
            `select host, channel_id, changes_per_day, pages, recrawl_group, multiplier
             from recrawl_host join frontier_host using (host_hash)`,
          )
        ).rows,
    ),
  );
  const nameOf = ({ host, channel_id }: { host: string; channel_id?: number }) => `${host} ${channel_id}`;
  return answers.flat().sort((a, b) => (nameOf(a) < nameOf(b) ? -1 : 1));
}

async function handOut(slices: Slices, at: string): Promise<void> {
  for (const { pool } of slices.open)
    await pool.query(
      `insert into lease (crawler_id, host_hash, host, granted_at, expires_at, closed_at, url_count, open_urls, ending, addresses, open_url_hashes)
       select 1, host_hash, host, $1, '2026-03-01T14:00:00Z', '2026-03-01T13:30:00Z', 20 + (host_hash & 3), 0, 'done', '{}', '{}'
       from frontier_host where host like 'site-%'`,
      [at],
    );
}

/** What is fetched and handed out after the plan. */
async function crawlOn(slices: Slices): Promise<void> {
  await handOut(slices, "2026-03-01T13:00:00Z");
  for (const { pool } of slices.open)
    await pool.query(`
      insert into page_fetch (host_hash, url_hash, crawler_id, fetched_at, outcome, status, total_ms, wire_bytes, body_bytes, shipped_bytes, gap_seconds)
      select host_hash, url_hash, 1, '2026-03-01T13:00:00Z'::timestamptz + n * interval '10 min', 'fetched', 200, 100 + (url_hash & 63), 1, 1, 1, 1000 + (url_hash & 1023)
      from frontier_url cross join generate_series(1, 7) n where url like 'https://site-%'`);
}

async function forget(slices: Slices): Promise<void> {
  await slices.shared.query("delete from recrawl_plan");
  for (const { pool } of slices.open)
    await pool.query(
      `delete from recrawl_host; delete from lease where granted_at > '2026-03-01T12:30:00Z'; delete from page_fetch where fetched_at > '2026-03-01T12:30:00Z'`,
    );
}

/** Sums of floating-point numbers are of another order; leases have other numbers. */
const rounded = (value: unknown): unknown =>
  JSON.parse(
    JSON.stringify(value, (name, one) => {
      if (name.startsWith("lastLease")) return undefined;
      return typeof one === "number" ? Number(one.toPrecision(6)) : one;
    }),
  );

describe("a plan over four slices on two servers", () => {
  it.each(strategies)("is that of one database: %s", async (strategy) => {
    const one = whole.get(strategy)!;
    const over = await planned(world.slices, strategy);

    expect(one.plan).not.toBeNull();
    expect(one.hosts).toHaveLength(25);
    expect(rounded(over)).toEqual(rounded(one));
    if (strategy === "iir") {
      expect(new Set(one.hosts.map((host) => (host as { recrawl_group: number }).recrawl_group)).size).toBe(
        5,
      );
      expect(one.records!.withEnoughUpdates[0]).toBeGreaterThan(0);
    } else
      expect(
        one.hosts.filter((host) => (host as { multiplier: number | null }).multiplier !== null),
      ).toHaveLength(2);
    expect(one.next).not.toBeNull();
  });

  it("is made of a sample of each slice's own hosts where there are too many pages", async () => {
    await planned(world.slices, "optimal");
    const store = recrawlPlansOver(world.slices);
    const [sample, all] = [await store.pages(24), await store.pages(1000)];

    const hostsIn = ({ hosts }: typeof sample) =>
      world.slices.open.map(
        ({ number }) =>
          hosts.filter(({ hostHash }) => world.slices.ofHost(hostHash).number === number).length,
      );
    const [some, every] = [hostsIn(sample), hostsIn(all)];
    for (const [slice, hosts] of some.entries()) {
      expect(hosts).toBeGreaterThan(0);
      expect(hosts).toBeLessThan(every[slice]!);
    }
    expect(sample.changesPerDay.length / sample.share).toBeCloseTo(72);
  });

  it("is kept as it was while a slice does not answer", async () => {
    const { next } = await planned(world.slices, "optimal");
    world.slices.down = [2];
    const turns: (() => Promise<void>)[] = [];
    const timekeeper = {
      every: (_name: string, _ms: unknown, work: () => Promise<void>) => void turns.push(work),
    };
    const duties = recrawlDuties(
      {
        slices: world.slices,
        timekeeper: timekeeper as never,
        log: silentLog,
        now: () => new Date("2026-03-02T00:00:00Z"),
      },
      { recrawl: policiesOf("optimal") },
    );
    await duties.start();
    for (const turn of turns) await turn();

    expect((await recrawlPlansOver(world.slices).latest())?.madeAt).toEqual(next!.madeAt);
    expect(duties.plan().multiplier).toBe(next!.multiplier);
    await expect(
      planRecrawls({ store: recrawlPlansOver(world.slices), policies: policiesOf("optimal"), now: later }),
    ).rejects.toThrow("slice 2 of the web does not answer");
  });
});

describe("groups of equal size over slices", () => {
  const rate = (rate: number, channels: number) => ({ rate, channels });

  it("have as many channels as ntile gives them, those that change most first", () => {
    expect(
      groupEnds(
        [
          [rate(9, 2), rate(5, 1)],
          [rate(7, 3), rate(1, 1)],
        ],
        3,
      ),
    ).toEqual([
      [2, 2, 3],
      [1, 3, 4],
    ]);
  });

  it("are filled slice by slice where all change as often, and are empty where there are too few", () => {
    expect(groupEnds([[rate(5, 3)], [], [rate(5, 2)]], 2)).toEqual([
      [3, 3],
      [0, 0],
      [0, 2],
    ]);
    expect(groupEnds([[rate(5, 1)], []], 3)).toEqual([
      [1, 1, 1],
      [0, 0, 0],
    ]);
    expect(groupEnds([[], []], 2)).toEqual([
      [0, 0],
      [0, 0],
    ]);
  });
});

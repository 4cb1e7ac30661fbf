/** Closed leases, old rounds, delegation changes and rejected URLs: what is deleted, what stays, and what is counted. */
import { beforeEach, expect, it } from "vitest";
import { createRejectedUrlStore, forgetRejectedUrls } from "#coordinator/crawl/frontier/frontier-store";
import { forgetClosedLeases } from "#coordinator/crawl/frontier/lease-end-writes";
import {
  forgetDelegationChanges,
  historyOf,
  latestRoundOf,
  OldRounds,
} from "#coordinator/place/delegation/round-store";
import type { CrawlerId } from "#core/ids";
import { newFlowWorld } from "../support/flow-world.ts";
import { noon, roundOf, secondsAfterNoon, worldOfFile } from "../support/store-world.ts";

const world = worldOfFile(newFlowWorld);
beforeEach(async () => {
  await world.pool.query("delete from day_figures; delete from rejected_url");
});

const turn = { nowMs: () => performance.now(), turnMs: 60_000 };
const daysAfter = (days: number) => secondsAfterNoon(86_400 * days);

async function leased(
  crawlerId: CrawlerId,
  ended: readonly (readonly [string | null, Date])[],
): Promise<void> {
  await world.pool.query(
    `insert into lease (crawler_id, host_hash, host, granted_at, expires_at, closed_at, url_count, open_urls, ending,
       addresses)
     select $1, ordinal, 'a.example', at, at + interval '1 hour', case when ending is not null then at end, 3, 0,
       ending, array['198.51.100.7'::cidr]
     from unnest($2::text[], $3::timestamptz[]) with ordinality as given (ending, at, ordinal)
     order by ordinal`,
    [crawlerId, ended.map(([ending]) => ending), ended.map(([, at]) => at)],
  );
}

it("closed leases go after a while, counted by the day and by how they ended; open ones stay", async () => {
  const crawlerId = await world.arrived("north");
  await world.pool.query(
    `insert into address_turn (address, crawler_id, leases, rest_seconds, since, expires_at)
     values ('198.51.100.7', $1, 1, 1, $2, 'infinity')`,
    [crawlerId, noon],
  );
  await leased(crawlerId, [
    [null, daysAfter(-3)],
    ["done", daysAfter(-3)],
    ["expired", daysAfter(-3)],
    ["done", daysAfter(-2)],
    ["returned", daysAfter(-2)],
    ["done", noon],
  ]);

  const gone = await Promise.all([
    forgetClosedLeases(world.pool, daysAfter(-1), turn),
    forgetClosedLeases(world.pool, daysAfter(-1), turn),
  ]);
  await forgetClosedLeases(world.pool, daysAfter(-1), turn);

  expect(gone.reduce((sum: number, one) => sum + (one ?? 0), 0)).toBe(4);
  expect(await world.rows("select ending, granted_at from lease order by lease_id")).toEqual([
    { ending: null, granted_at: daysAfter(-3) },
    { ending: "done", granted_at: noon },
  ]);
  expect(
    await world.rows(
      `select day::text, leases_done::int as done, leases_expired::int as expired, leases_returned::int as returned,
         leased_urls::int as urls
       from day_figures order by day`,
    ),
  ).toEqual([
    { day: "2029-12-29", done: 1, expired: 1, returned: 0, urls: 6 },
    { day: "2029-12-30", done: 1, expired: 0, returned: 1, urls: 6 },
  ]);
  // The open one still has the turn at its address.
  expect(await world.rows("select leases from address_turn")).toEqual([{ leases: 1 }]);
});

it("old leases are found behind any number of open ones, and young ones are not walked through", async () => {
  const crawlerId = await world.arrived("north");
  const open = Array.from({ length: 5000 }, () => [null, daysAfter(-3)] as const);
  await leased(crawlerId, [...open, ["done", daysAfter(-3)], ["done", noon]]);

  expect(await forgetClosedLeases(world.pool, daysAfter(-1), turn)).toBe(1);
  expect(await world.rows("select count(*)::int as leases from lease")).toEqual([{ leases: 5001 }]);
});

it("a round goes when it is old, decides nothing, and a later one of its subnet is known", async () => {
  const north = await world.arrived("north");
  const south = await world.arrived("south");
  const [one, two] = [await world.site(1), await world.site(2)];
  const save = async (subnetId: typeof one, at: Date, crawlerId = north) =>
    await world.delegations.saveRound(
      roundOf(subnetId, [[crawlerId, 10]], { startedAt: at, decidedAt: at, crawlerId }),
    );
  const first = await save(one, daysAfter(-300));
  const second = await save(one, daysAfter(-200), south);
  const third = await save(one, daysAfter(-1));
  const only = await save(two, daysAfter(-300));
  const rounds = new OldRounds(world.pool);

  const gone = await rounds.forget(daysAfter(-90), turn);

  expect(gone).toBe(2);
  expect(await world.rows("select round_id from probe_round order by round_id")).toEqual([
    { round_id: third },
    { round_id: only },
  ]);
  expect(await world.rows("select distinct round_id from probe order by round_id")).toEqual([
    { round_id: third },
    { round_id: only },
  ]);
  expect((await latestRoundOf(world.pool, two))?.roundId).toBe(only);
  // The delegation changes stay, without a link to the deleted round.
  const told = await historyOf(world.pool, one, 10);
  expect(told.map(({ from, to }) => [from, to])).toContainEqual(["north", "south"]);
  expect(told.map(({ roundId }) => roundId)).not.toContain(second);
  expect(first).toBeLessThan(third);

  // The remaining one is deleted once another has replaced it, because the walk begins again.
  await save(two, daysAfter(-1));
  expect(await rounds.forget(daysAfter(-90), turn)).toBe(1);
});

it("changes of delegations go by their age", async () => {
  const [north, south] = [await world.arrived("north"), await world.arrived("south")];
  const subnetId = await world.site(1);
  await world.delegations.saveRound(roundOf(subnetId, [[north, 10]]));
  const move = { subnetId, cause: "overload" as const, reason: "full", rttMs: 10 };
  await world.delegations.move([{ ...move, from: north, to: south }], daysAfter(1));
  await world.delegations.move([{ ...move, from: south, to: north }], daysAfter(9));

  const gone = await forgetDelegationChanges(world.pool, daysAfter(5), turn);

  expect(gone).toBe(2);
  expect((await historyOf(world.pool, subnetId, 10)).map(({ from, to }) => [from, to])).toEqual([
    ["south", "north"],
  ]);
});

it("a rejected URL goes so long after it was last named", async () => {
  const store = createRejectedUrlStore(world.pool);
  const fault = (url: string) => ({ url, reason: "no http URL" });
  await store.record([fault("mailto:a"), fault("mailto:b")], "operator", noon);
  await store.record([fault("mailto:b")], "operator", daysAfter(80));

  const gone = await forgetRejectedUrls(world.pool, daysAfter(50), turn);

  expect(gone).toBe(1);
  expect(await world.rows("select url, times from rejected_url")).toEqual([{ url: "mailto:b", times: 2 }]);
});

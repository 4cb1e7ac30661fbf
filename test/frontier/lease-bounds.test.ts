/** What the coordinator accepts from a crawler that sends more, other or earlier results than it was leased. */
import { beforeEach, describe, expect, it } from "vitest";
import { NewHostBudget } from "#coordinator/crawl/frontier/budgets";
import { defaultRecrawlSettings } from "#coordinator/crawl/recrawl/visit-findings";
import { type TakeResultsSettings, takeResults } from "#coordinator/crawl/results/take-results";
import { asLeaseId, type CrawlerId } from "#core/ids";
import type { FetchResult, PageExtract } from "#protocol/result";
import { arrivedResult, noon, scope, secondsAfterNoon, spoolId, storeWorld } from "../support/store-world.ts";

const world = storeWorld();
let sequence = 0;
beforeEach(async () => {
  sequence = 0;
});

const hostUrls = (host: string, count = 1) => Array.from({ length: count }, (_, n) => `http://${host}/${n}`);
const resultOf = (url: string, changes: Partial<FetchResult> = {}): FetchResult => ({
  ...arrivedResult({ sequence: 1, leaseId: "1", url }).result,
  fetchedAt: secondsAfterNoon(30).toISOString(),
  ...changes,
});
const withLinks = (url: string, links: readonly string[]): FetchResult => {
  const { page, ...rest } = resultOf(url);
  const named = links.map((to) => ({ url: to, anchor: "", nofollow: false }));
  return { ...rest, page: { ...(page as PageExtract), links: named } };
};

async function send(
  crawlerId: CrawlerId,
  sent: readonly (readonly [leaseId: string, result: FetchResult])[],
  { settings = {}, at = secondsAfterNoon(30) }: { settings?: Partial<TakeResultsSettings>; at?: Date } = {},
) {
  const results = sent.map(([leaseId, result]) => {
    sequence += 1;
    return { sequence, leaseId: asLeaseId(leaseId), result, wireBytes: 100 };
  });
  const taking = { scope, recrawl: defaultRecrawlSettings, ...settings };
  return await takeResults({ crawlerId, spoolId, results }, world.results, taking, at);
}

const kinds = ({ refused = [] }: Awaited<ReturnType<typeof send>>) =>
  refused.map(({ kind, count }) => [kind, count]);
const hosts = async () =>
  (await world.rows<{ host: string }>("select host from frontier_host order by host")).map(
    ({ host }) => host,
  );

describe("a result counts only under a lease", () => {
  it("of its own crawler; another's lease is reported and closes nothing", async () => {
    const north = await world.delegatedHost("north", ...hostUrls("a.example"));
    const south = await world.crawler("south");
    const [lease] = await world.lease(north);

    const stolen = await send(south, [[lease!.leaseId, resultOf("http://a.example/0")]]);
    const own = await send(north, [[lease!.leaseId, resultOf("http://a.example/0")]]);

    expect([stolen.stored, kinds(stolen)]).toEqual([0, [["foreign-lease", 1]]]);
    expect([own.stored, kinds(own)]).toEqual([1, []]);
  });

  it("of its host, and for a URL that was leased", async () => {
    const north = await world.delegatedHost("north", ...hostUrls("a.example"), ...hostUrls("b.example"));
    const leases = await world.lease(north);
    const { leaseId } = leases.find(({ host }) => host === "a.example")!;

    const taken = await send(north, [
      [leaseId, resultOf("http://b.example/0")],
      [leaseId, resultOf("http://victim.example/")],
      [leaseId, resultOf("http://a.example/never-leased")],
      [leaseId, resultOf("http://a.example/0")],
    ]);

    expect(taken).toMatchObject({ stored: 1, withoutLease: 3 });
    expect(kinds(taken)).toEqual([
      ["wrong-host", 2],
      ["wrong-url", 1],
    ]);
  });

  it("and a comparison's repeated result is no incident", async () => {
    const north = await world.delegatedHost("north", ...hostUrls("a.example"));
    const [lease] = await world.lease(north);
    await world.pool.query("update lease set is_check = true, open_url_hashes = '{}'");

    const again = await send(north, [[lease!.leaseId, resultOf("http://a.example/0")]]);

    expect([again.withoutLease, kinds(again)]).toEqual([1, []]);
  });

  it("and being late is no incident", async () => {
    const north = await world.delegatedHost("north", ...hostUrls("a.example"));
    const [lease] = await world.lease(north);
    await world.frontier.returnExpired(secondsAfterNoon(60));

    const late = await send(north, [[lease!.leaseId, resultOf("http://a.example/0")]], {
      at: secondsAfterNoon(61),
    });
    const lost = await send(north, [["0", resultOf("http://lost.invalid/")]]);

    expect([late.withoutLease, kinds(late), lost.withoutLease, kinds(lost)]).toEqual([1, [], 1, []]);
  });
});

describe("a result's numbers", () => {
  it("have a time within the lease, whatever the crawler's clock says", async () => {
    const north = await world.delegatedHost("north", ...hostUrls("a.example", 3));
    const [lease] = await world.lease(north);
    const at = (iso: string, n: number) =>
      [lease!.leaseId, resultOf(`http://a.example/${n}`, { fetchedAt: iso })] as const;

    const taken = await send(north, [
      at("2001-01-01T00:00:00.000Z", 0),
      at("2999-01-01T00:00:00.000Z", 1),
      at(secondsAfterNoon(20).toISOString(), 2),
    ]);

    expect([taken.stored, kinds(taken)]).toEqual([3, [["wrong-clock", 2]]]);
    const times = await world.rows<{ at: Date }>(
      "select fetched_at as at from page_fetch order by fetched_at",
    );
    expect(times.map(({ at: time }) => time)).toEqual([noon, secondsAfterNoon(20), secondsAfterNoon(30)]);
  });

  it("cannot be faster than a host can be requested", async () => {
    const north = await world.delegatedHost("north", ...hostUrls("a.example", 30));
    const [lease] = await world.lease(north, noon, { hosts: 1, urlsPerHost: 30 });
    const all = lease!.urls.map(({ url }) => [lease!.leaseId, resultOf(url)] as const);

    const atOnce = await send(north, all.slice(0, 20), { at: noon });
    const later = await send(north, all.slice(20), { at: secondsAfterNoon(1) });

    expect([atOnce.stored, kinds(atOnce)]).toEqual([10, [["impossible-pace", 10]]]);
    expect([later.stored, kinds(later)]).toEqual([10, []]);
  });

  it("cannot exceed what is read of a page, and there is no page without a fetch", async () => {
    const north = await world.delegatedHost("north", ...hostUrls("a.example", 3));
    const [lease] = await world.lease(north);
    const { leaseId } = lease!;

    const taken = await send(north, [
      [leaseId, resultOf("http://a.example/0", { wireBytes: 1e12 })],
      [leaseId, resultOf("http://a.example/1", { outcome: { type: "unchanged", status: 304 } })],
      [leaseId, resultOf("http://a.example/2")],
    ]);

    expect([taken.stored, kinds(taken)]).toEqual([3, [["impossible-result", 2]]]);
    expect(await world.rows("select url from page")).toEqual([{ url: "http://a.example/2" }]);
    expect(await world.rows("select from lease where closed_at is null")).toEqual([]);
  });
});

describe("a result's links", () => {
  const linksTo = (host: string, count: number) =>
    Array.from({ length: count }, (_, n) => `http://${host}/${n}`);

  it("are at most as many as a page may ship, or none of it counts", async () => {
    const north = await world.delegatedHost("north", ...hostUrls("a.example"));
    const [lease] = await world.lease(north);

    const taken = await send(north, [
      [lease!.leaseId, withLinks("http://a.example/0", linksTo("victim.example", 10_000))],
    ]);

    expect([taken.stored, kinds(taken), await hosts()]).toEqual([
      1,
      [["impossible-result", 1]],
      ["a.example"],
    ]);
  });

  it("to one victim are crawled no further than those of any new host", async () => {
    const north = await world.delegatedHost("north", ...hostUrls("a.example"));
    const [lease] = await world.lease(north);

    await send(north, [[lease!.leaseId, withLinks("http://a.example/0", linksTo("victim.example", 2000))]]);

    const [victim] = await world.rows<{ due: number }>(
      "select count(*)::int as due from frontier_url where url like 'http://victim.example/%' and state = 'due'",
    );
    expect(victim!.due).toBeLessThanOrEqual(50);
  });

  it("name a limited number of new hosts a day, apart from known hosts, other crawlers and the next day", async () => {
    const north = await world.delegatedHost("north", ...hostUrls("a.example", 3));
    const south = await world.crawler("south");
    const [lease] = await world.lease(north);
    const newHosts = new NewHostBudget(5);
    const naming = (page: number, from: number, to: number) => {
      const links = Array.from({ length: to - from }, (_, n) => `http://new-${from + n}.example/`);
      return [
        lease!.leaseId,
        withLinks(`http://a.example/${page}`, [...links, "http://a.example/more"]),
      ] as const;
    };

    const floods: CrawlerId[][] = [];
    for (const named of [naming(0, 0, 3), naming(1, 3, 20), naming(2, 20, 40)]) {
      await send(north, [named]);
      floods.push((await world.applyOutbox(noon, { newHosts })).flatMap((bite) => bite.floods));
    }

    expect(floods).toEqual([[], [north], [north]]);
    expect((await hosts()).filter((host) => host.startsWith("new-")).length).toBe(5);
    expect(await world.rows("select from frontier_url where url = 'http://a.example/more'")).toHaveLength(1);
    const tomorrow = new Date(noon.getTime() + 86_400_000);
    expect([newHosts.left(south, noon), newHosts.left(north, tomorrow)]).toEqual([5, 5]);
  });
});

/** Domain sets in the database: who is leased what, which hosts are misplaced, and where they go. */
import { beforeEach, describe, expect, it } from "vitest";
import { createMisplacedHostStore } from "#coordinator/place/delegation/overrides/misplaced-host-store";
import { createFinerDelegationStore } from "#coordinator/place/delegation/overrides/override-store";
import { createDomainSetStore } from "#coordinator/place/domain-sets/domain-set-store";
import {
  heldSql,
  type Partition,
  partitionHolds,
  partitionOf,
} from "#coordinator/place/domain-sets/partition";
import type { CrawlerId, SubnetId } from "#core/ids";
import { forThisFile } from "../support/for-this-file.ts";
import { arrivedResult, keyOf, newWorld, noon, roundOf, secondsAfterNoon } from "../support/store-world.ts";

const world = await forThisFile(newWorld());
beforeEach(async () => await world.reset());

const hosts = ["a.com", "b.gr", "c.org"];
const store = () => createDomainSetStore(world.pool);
const misplacedHosts = () => createMisplacedHostStore(world.pool);
const leased = async (crawlerId: CrawlerId) => (await world.lease(crawlerId)).map(({ host }) => host).sort();
const partition = (...sets: string[]): Partition => partitionOf(sets);

/** north has the subnet of all three hosts, and of more. */
async function mixedSubnet(...more: readonly string[]) {
  const all = [...hosts, ...more];
  const north = await world.delegatedHost("north", ...all.map((host) => `http://${host}/`));
  const south = await world.crawler("south");
  const [{ subnet_id: subnetId }] = (await world.rows<{ subnet_id: SubnetId }>(
    "select subnet_id from delegation",
  )) as [{ subnet_id: SubnetId }];
  const finer = createFinerDelegationStore(world.pool);
  const { subnetId: _, ...round } = roundOf(subnetId, [[south, 20]], { cause: "domain-set" });
  const roundId = await finer.saveRound({ ...round, withinSubnetId: subnetId });
  for (const [at, host] of all.entries()) await world.resolve(host, `198.51.100.${at + 1}`, subnetId);
  return { north, south, subnetId, roundId };
}

describe("a lease", () => {
  it("holds no host that the crawler's sets do not", async () => {
    const { north } = await mixedSubnet();
    await store().give("north", [".com", ".org"]);

    expect(await leased(north)).toEqual(["a.com", "c.org"]);
  });

  it("keeps within the operator's sets, the partner's and the coordinator's, all three", async () => {
    const { north } = await mixedSubnet("d.net");
    await store().give("north", ["not .gr"]);
    await world.rows("update crawler set partner_domain_sets = '{not .org}' where name = 'north'");

    const leases = await world.frontier.leaseHosts({
      ...{ crawlerId: north, hosts: 10, urlsPerHost: 10, leaseSeconds: 60, addressRestSeconds: 0, now: noon },
      partition: partition("not a.com"),
    });

    expect(leases.map(({ host }) => host)).toEqual(["d.net"]);
  });

  it("that is open when the sets change is finished by whoever has it", async () => {
    const { north } = await mixedSubnet();
    const open = await world.lease(north);
    await store().give("north", [".net"]);

    const lease = open.find(({ host }) => host === "a.com")!;
    const taken = await world.take(north, [
      arrivedResult({ sequence: 1, leaseId: lease.leaseId, url: "http://a.com/" }),
    ]);

    expect(taken.stored).toBe(1);
    expect(await leased(north)).toEqual([]);
  });
});

describe("the SQL of a partition", () => {
  it.each([
    [[".com not a.com", "lang:el"]],
    [["not .com"]],
    [["not lang:en"]],
    [[".gr lang:el", "b.gr"]],
    [[".org my.c.org not c.org"]],
  ])("%j holds what the partition holds", async (sets) => {
    const given = partition(...sets);
    const names = [
      "com",
      "a.com",
      "x.a.com",
      "xcom",
      "b.gr",
      "c.org",
      "my.c.org",
      "192.0.2.1",
      "2001:db8::1",
    ];
    const places = names.flatMap((host) => [null, "el", "en"].map((language) => ({ host, language })));
    const { condition, values } = heldSql(given, "h", 3);

    const { rows } = await world.pool.query<{ held: boolean }>(
      `select (${condition}) as held from unnest($1::text[], $2::text[]) with ordinality h (host, language, place) order by place`,
      [places.map(({ host }) => host), places.map(({ language }) => language), ...values],
    );

    expect(rows.map(({ held }) => held)).toEqual(places.map((place) => partitionHolds(given, place)));
  });
});

describe("misplaced hosts", () => {
  it("are those that their crawler may not have and another may", async () => {
    const { north } = await mixedSubnet();
    const crawler = { crawlerId: north, partition: partition(".com") };

    const forGreek = await misplacedHosts().misplaced(crawler, [partition(".com"), partition(".gr")], 10);
    const forAny = await misplacedHosts().misplaced(crawler, [[]], 10);
    const forNobody = await misplacedHosts().misplaced(crawler, [], 10);

    expect(forGreek.map(({ host, address }) => [host, address])).toEqual([["b.gr", "198.51.100.2"]]);
    expect(forAny.map(({ host }) => host).sort()).toEqual(["b.gr", "c.org"]);
    expect(forNobody).toEqual([]);
  });

  it("are found, too, where many crawlers have as many sets and names as there may be", async () => {
    const { north } = await mixedSubnet();
    const names = (set: number) =>
      Array.from({ length: 60 }, (_, labels) => `${"a.".repeat(labels % 30)}s${set}-${labels}.gr`).join(" ");
    const others = Array.from({ length: 140 }, (_, crawler) =>
      partition(...Array.from({ length: 16 }, (_, set) => names(16 * crawler + set))),
    );

    const found = await misplacedHosts().misplaced(
      { crawlerId: north, partition: partition(".com") },
      others,
      10,
    );

    expect(found.map(({ host }) => host)).toContain("b.gr");
  });

  it("go to another crawler, who alone is leased them, until the subnet's own may have them again", async () => {
    const { north, south, subnetId, roundId } = await mixedSubnet();
    await store().give("north", [".com"]);
    const { hostHash } = keyOf("http://b.gr/");
    const decided = { subnetId, roundId, crawlerId: south, rttMs: 20, runnerUpId: null, runnerUpRttMs: null };

    const moved = await misplacedHosts().delegate(
      { ...decided, hosts: [hostHash], reason: "by its set" },
      { now: noon, reviewAt: secondsAfterNoon(60) },
    );
    const still = await misplacedHosts().misplaced(
      { crawlerId: north, partition: partition(".com") },
      [[]],
      10,
    );
    const kept = await misplacedHosts().endNeedless({ crawlerId: north, partition: partition(".com") }, noon);
    const ofSouth = await leased(south);
    const ofNorth = await leased(north);
    const ended = await misplacedHosts().endNeedless({ crawlerId: north, partition: [] }, noon);

    expect([moved, kept, ended]).toEqual([1, 0, 1]);
    expect(still.map(({ host }) => host)).toEqual(["c.org"]);
    expect([ofSouth, ofNorth]).toEqual([["b.gr"], ["a.com"]]);
    expect(await misplacedHosts().hasDelegated()).toBe(false);
    const history = await world.rows<{ cause: string }>(
      "select cause from delegation_history order by cause",
    );
    expect(history.map(({ cause }) => cause)).toEqual(["domain-set", "joined-again", "own-subnet"]);
  });
});

describe("the sets of a crawler", () => {
  it("are told with those before them, and nobody's are null", async () => {
    await world.crawler("north");
    await store().give("north", [".com"]);

    expect(await store().give("north", [".gr"])).toEqual({
      ...{ name: "north", operator: [".gr"], partner: [], before: [".com"] },
    });
    expect(await store().of("north")).toEqual({ name: "north", operator: [".gr"], partner: [] });
    expect(await store().give("nobody", [".gr"])).toBeNull();
    expect((await world.crawlers.list())[0]?.partition).toEqual(partition(".gr"));
  });
});

describe("the language of a host", () => {
  it("is that of most of its pages, and unknown before any", async () => {
    const north = await world.delegatedHost("north", ...[1, 2, 3].map((page) => `http://b.gr/${page}`));
    const [lease] = await world.lease(north);
    const languages = ["el", "en", "el"];
    await world.take(
      north,
      lease!.urls.map(({ url }, at) =>
        arrivedResult({ sequence: at + 1, leaseId: lease!.leaseId, url, page: { language: languages[at]! } }),
      ),
    );
    const { hostHash } = keyOf("http://b.gr/");

    const before = await world.rows<{ language: string | null }>("select language from frontier_host");
    const found = await store().hostsWithPages(null, 10);
    const without = await store().hostsWithoutLanguage([hostHash]);
    const changed = [await store().refreshLanguages([hostHash]), await store().refreshLanguages([hostHash])];

    expect(before).toEqual([{ language: null }]);
    expect([found, without]).toEqual([[hostHash], [hostHash]]);
    expect(await store().hostsWithoutLanguage([hostHash])).toEqual([]);
    expect(changed).toEqual([1, 0]);
    expect(await world.rows("select language from frontier_host")).toEqual([{ language: "el" }]);
  });
});

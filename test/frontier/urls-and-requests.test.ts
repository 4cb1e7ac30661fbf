/** URLs from people: what is admitted, in which subnet it is, what is refused and why; and what crawlers get. */
import { beforeEach, describe, expect, it } from "vitest";
import { admitUrls } from "#coordinator/crawl/frontier/admit-urls";
import { createRejectedUrlStore } from "#coordinator/crawl/frontier/frontier-store";
import { handOutTasks, withoutWork } from "#coordinator/crawl/frontier/hand-out-tasks";
import { resolveHosts } from "#coordinator/crawl/frontier/resolve-hosts";
import { refreshTree } from "#coordinator/load-state";
import type { CrawlerId } from "#core/ids";
import type { NameResolver } from "#core/name-resolver";
import { newFlowWorld } from "../support/flow-world.ts";
import { noon, scope, secondsAfterNoon, seeds, worldOfFile } from "../support/store-world.ts";

const world = worldOfFile(newFlowWorld);
beforeEach(async () => {
  await world.pool.query("delete from rejected_url");
});

const urlsByDepth = async () =>
  await world.rows<{ url: string; depth: number }>("select url, depth from frontier_url order by depth, url");

describe("URLs from people", () => {
  const admit = async (texts: string[], scopeNow = scope) =>
    await admitUrls(
      texts,
      { frontier: world.frontier, rejected: createRejectedUrlStore(world.pool) },
      { scope: scopeNow, now: noon },
    );

  it("are admitted once each by their canonical form, at depth 0", async () => {
    const admitted = await admit([" http://a.example ", "http://A.example/#top", "https://a.example/"]);

    expect(admitted).toEqual({ admitted: 3, newUrls: 2, rejected: [] });
    expect(await urlsByDepth()).toEqual([
      { url: "http://a.example/", depth: 0 },
      { url: "https://a.example/", depth: 0 },
    ]);
  });

  it("bring in new hosts even when links may not", async () => {
    expect(await admit(["http://a.example/"], { ...scope, admitNewHosts: false })).toMatchObject({
      newUrls: 1,
    });
  });

  it("may be more than one batch of 2,000, and are then admitted batch by batch", async () => {
    const urls = Array.from({ length: 2001 }, (_, index) => `http://h${index % 40}.example/${index}`);

    expect(await admit(urls)).toMatchObject({ admitted: 2001, newUrls: 2001 });
  });

  it("that are invalid are recorded with the reason, and counted when repeated", async () => {
    const bad = [
      "no url",
      "ftp://a.example/",
      `http://a.example/${"x".repeat(2048)}`,
      "http://a..b/",
      "a\0b",
    ];

    const { rejected } = await admit([...bad, "no url"]);
    await admit(["ftp://user:secret@files.example/a@b"]);
    await admit(["no url"]);

    expect(rejected.map(({ reason }) => reason)).toEqual([
      "it cannot be parsed as an absolute URL",
      "only http and https are crawled",
      "it is longer than 2048 characters",
      "it names no host",
      "it cannot be parsed as an absolute URL",
      "it cannot be parsed as an absolute URL",
    ]);
    expect(await world.rows("select reason, source, times from rejected_url where url = 'no url'")).toEqual([
      { reason: "it cannot be parsed as an absolute URL", source: "operator", times: 2 },
    ]);
    expect(await world.rows("select url from rejected_url where url like 'ftp://%'")).toContainEqual({
      url: "ftp://files.example/a@b",
    });
    expect(await world.rows("select max(length(url)) as longest from rejected_url")).toEqual([
      { longest: 500 },
    ]);
    expect(await urlsByDepth()).toEqual([]);
  });
});

describe("hosts", () => {
  async function resolved(answer: Awaited<ReturnType<NameResolver["resolve"]>>, allowSpecialPurpose = false) {
    const subnetId = await world.subnet("5.1.1.0", "5.1.1.255");
    const unary = await world.subnet("5.1.1.7", "5.1.1.7");
    await world.pool.query("update subnet set parent_id = $1 where subnet_id = $2", [subnetId, unary]);
    const state = await world.state();
    await world.frontier.admit(seeds("http://a.example/"), scope, noon);
    const ports = {
      ...world,
      resolver: { resolve: async () => answer },
      subnetOf: (address: string) => state.subnetOf(address),
    };
    const settled = await resolveHosts(ports, { batch: 10, allowSpecialPurpose }, () => noon);
    const [host] = await world.rows<Record<string, unknown>>(
      `select state, state_reason, subnet_id, resolve_at,
         array(select host(a) from unnest(addresses) a) as addresses from frontier_host`,
    );
    return { settled, subnetId, host };
  }

  it("are in the most specific subnet with more than one address, and resolved again after their TTL", async () => {
    const { settled, subnetId, host } = await resolved({ addresses: ["5.1.1.7"], ttlSeconds: 600 });

    expect(settled).toBe(1);
    expect(host).toEqual({
      state: "resolved",
      state_reason: "",
      subnet_id: subnetId,
      resolve_at: secondsAfterNoon(600),
      addresses: ["5.1.1.7"],
    });
  });

  const special = "10.1.2.3 is a special-purpose address (10.0.0.0/8 private use (RFC 1918))";
  const ofTtl = (...addresses: string[]) => ({ addresses, ttlSeconds: 60 });
  it.each<[string, Parameters<typeof resolved>[0], boolean, string, string, string[]]>([
    [
      "at private addresses alone are refused with the reason",
      ofTtl("10.1.2.3", "::1"),
      false,
      "refused",
      special,
      ["10.1.2.3", "::1"],
    ],
    [
      "with private and public addresses keep the public ones",
      ofTtl("10.1.2.3", "5.1.1.9", "127.0.0.1"),
      false,
      "resolved",
      "",
      ["5.1.1.9"],
    ],
    [
      "at private addresses are kept where the settings allow it",
      ofTtl("10.1.2.3"),
      true,
      "resolved",
      "",
      ["10.1.2.3"],
    ],
    [
      "that cannot be resolved say why",
      { failed: "the name does not exist" },
      false,
      "unresolvable",
      "the name does not exist",
      [],
    ],
    [
      "without an address are looked up again, not refused for good",
      ofTtl(),
      false,
      "unresolvable",
      "the name has no address",
      [],
    ],
  ])("%s", async (_, answer, allowed, state, reason, addresses) => {
    const { subnetId, host } = await resolved(answer, allowed);
    const [url] = await world.rows("select state, last_outcome, last_reason from frontier_url");

    expect(host).toMatchObject({ state, state_reason: reason, addresses });
    expect(host!.subnet_id).toBe(addresses.includes("5.1.1.9") ? subnetId : null);
    if (state === "unresolvable") expect(host!.resolve_at).toEqual(secondsAfterNoon(30));
    expect(url).toEqual(
      state === "refused"
        ? { state, last_outcome: "refused-address", last_reason: reason }
        : { state: "due", last_outcome: null, last_reason: null },
    );
  });

  it("get other subnets when the registry changes, and other delegations stay", async () => {
    const wide = await world.subnet("5.1.0.0", "5.1.255.255");
    const { subnetId } = await resolved({ addresses: ["5.1.1.9"], ttlSeconds: 60 });
    const state = await world.state();
    const narrow = await world.subnet("5.1.1.0", "5.1.1.15");
    const north = await world.crawler("north");
    await world.delegations.delegateOwnSubnet(wide, north, noon);
    await world.delegations.readEach((delegation) => state.setDelegation(delegation));

    const refreshed = await refreshTree({ ...world, state });

    expect(refreshed).toEqual({ subnets: 4, movedHosts: 1 });
    expect(await world.rows("select subnet_id from frontier_host")).toEqual([{ subnet_id: narrow }]);
    expect([state.subnetOf("5.1.1.9"), state.subnetOf("5.1.1.99")]).toEqual([narrow, subnetId]);
    expect(state.delegationOf(wide)?.crawlerId).toBe(north);
    expect(state.knowledge.owners({ kind: "subnet", key: wide })).toEqual([{ crawlerId: north, count: 1 }]);
  });
});

describe("a crawler that asks for work", () => {
  const settings = { leaseSeconds: 60, urlsPerHost: 20, hostsPerRequest: 5, linkTypeChecks: 0 };
  const asks = async (crawlerId: CrawlerId, differences: object = {}, given = settings) => {
    const request = { crawlerId, freeHosts: 10, draining: false, pagesLeftToday: 1000, ...differences };
    return withoutWork(request) ?? (await handOutTasks(request, world.frontier, given, noon));
  };
  const pagesOf = (tasks: Awaited<ReturnType<typeof asks>>) =>
    tasks.leases.reduce((sum, { urls }) => sum + urls.length, 0);

  it("gets slices of the hosts in its subnets", async () => {
    const crawlerId = await world.delegatedHost("north", "http://a.example/", "http://a.example/1");

    const tasks = await asks(crawlerId);

    expect(tasks).toMatchObject({ type: "coordinator:tasks", reason: "", leases: [{ host: "a.example" }] });
    expect(pagesOf(tasks)).toBe(2);
  });

  it("gets the reason when there is no work", async () => {
    const other = await world.crawler("other");
    const north = await world.delegatedHost("north", "http://a.example/");

    expect(await asks(other)).toMatchObject({ leases: [], reason: "no URL of its subnets is due" });
    expect(await asks(north, { draining: true })).toMatchObject({
      leases: [],
      reason: "this crawler is being drained",
    });
    expect(await asks(north, { pagesLeftToday: 0 })).toMatchObject({
      leases: [],
      reason: "the pages or bytes of this day are used up",
    });
  });

  it("gets no more hosts than it has room for, or than one request may have", async () => {
    const urls = Array.from({ length: 8 }, (_, index) => `http://h${index}.example/`);
    const crawlerId = await world.delegatedHost("north", ...urls);

    expect((await asks(crawlerId, { freeHosts: 2 })).leases).toHaveLength(2);
    expect((await asks(crawlerId)).leases).toHaveLength(5);
  });

  /** Anansi, section 4.2 */
  it("learns with every lease how many links of a page to check for their type", async () => {
    const crawlerId = await world.delegatedHost("north", "http://a.example/", "http://b.example/");
    const checks = async (linkTypeChecks: number) => {
      const { leases } = await asks(crawlerId, {}, { ...settings, linkTypeChecks });
      await world.frontier.returnLeasesOf(crawlerId, noon);
      return leases.map((lease) => lease.linkTypeChecks);
    };

    expect([await checks(3), await checks(0)]).toEqual([
      [3, 3],
      [undefined, undefined],
    ]);
  });

  it("gets no more pages than its day has left, over all hosts", async () => {
    const urls = Array.from({ length: 12 }, (_, index) => `http://h${index % 4}.example/${index}`);
    const crawlerId = await world.delegatedHost("north", ...urls);

    expect(pagesOf(await asks(crawlerId, { pagesLeftToday: 2 }))).toBeLessThanOrEqual(2);
  });
});

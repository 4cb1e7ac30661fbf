/** GeoDNS: names that answer by place are distinguished from names that rotate, and delegated by themselves. */
import { beforeEach, describe, expect, it } from "vitest";
import type { Fleet } from "#coordinator/place/crawlers/crawler";
import { delegateHosts, NameWatch } from "#coordinator/place/delegation/overrides/hosts";
import { reviewFiner } from "#coordinator/place/delegation/overrides/review";
import type { CrawlerId, SubnetId } from "#core/ids";
import { flowWorld } from "../../support/flow-world.ts";
import { noon } from "../../support/store-world.ts";
import { fetchesBy, finerWorld } from "./override-world.ts";

const world = flowWorld();
let hosts: Awaited<ReturnType<typeof finerWorld>>;
let names: NameWatch;
let athens: CrawlerId;
let tokyo: CrawlerId;
let lima: CrawlerId;
let leaf: SubnetId;

/** What each crawler's name server says, and how far that address is from it. */
let sees: Map<CrawlerId, readonly [address: string, rttMs: number]>;
let coordinatorSees: readonly string[];
const asked: { crawlerId: CrawlerId; byName: boolean }[] = [];
const heldBack = new Set<CrawlerId>();

const fleet: Fleet = {
  online: () => [athens, tokyo, lima],
  async probe(crawlerId, { method, byName, tries }) {
    asked.push({ crawlerId, byName: byName === true });
    const [address, rttMs] = sees.get(crawlerId) ?? [];
    if (address === undefined || rttMs === undefined) {
      if (heldBack.has(crawlerId))
        return { type: "failed", code: "held-back", method, reason: "no turn in time" };
      return { type: "timed-out", method, reason: "3000 ms" };
    }
    return { type: "measured", method, rttMs, tries, address };
  },
};

beforeEach(async () => {
  hosts = await finerWorld(world);
  names = new NameWatch();
  athens = await world.arrived("athens");
  tokyo = await world.arrived("tokyo");
  lima = await world.arrived("lima");
  leaf = await hosts.host("www.example", "5.1.1.7");
  for (const third of [2, 3, 4]) await world.subnet(`5.1.${third}.0`, `5.1.${third}.255`);
  await hosts.delegated(leaf, athens, 20);
  asked.length = 0;
  heldBack.clear();
  coordinatorSees = ["5.1.1.7"];
  sees = new Map([
    [athens, ["5.1.2.7", 30]],
    [tokyo, ["5.1.3.7", 8]],
    [lima, ["5.1.1.7", 90]],
  ]);
});

const ports = async () => ({
  ...(await hosts.ports(fleet)),
  names,
  resolver: { resolve: async () => ({ addresses: coordinatorSees, ttlSeconds: 300 }) },
});
const pass = async () => await delegateHosts(await ports());
const fetchedElsewhere = () => names.note(fetchesBy(athens, ["www.example", "5.1.2.7", 30]));

/** Runs passes, each after the answer's TTL. */
const passes = async (count: number, before: (index: number) => void = () => {}) => {
  const delegated: string[] = [];
  for (let index = 0; index < count; index++) {
    before(index);
    delegated.push(...(await pass()));
    hosts.clock.seconds += 301;
  }
  return delegated;
};

const byThemselves = async () =>
  await world.rows<{ host: string; crawler_id: number }>(
    "select h.host, f.crawler_id from finer_delegation f join frontier_host h using (host_hash)",
  );

describe("a host that resolves differently by place", () => {
  it("is delegated by itself, to whoever is nearest to what it sees", async () => {
    fetchedElsewhere();

    // Three crawlers and the coordinator, each repeating itself twice: a score of 8.
    expect(await passes(3)).toEqual(["www.example"]);
    expect(await byThemselves()).toEqual([{ host: "www.example", crawler_id: tokyo }]);
    expect(await hosts.leased(tokyo)).toEqual(["www.example"]);
    expect(await hosts.leased(athens)).toEqual([]);
    expect(asked.every(({ byName }) => byName)).toBe(true);
    expect(await world.rows("select seen, subnet_rtt_ms from finer_delegation")).toEqual([
      {
        subnet_rtt_ms: 30,
        seen: [
          { crawlerId: null, addresses: ["5.1.1.7"] },
          { crawlerId: athens, addresses: ["5.1.2.7"] },
          { crawlerId: tokyo, addresses: ["5.1.3.7"] },
          { crawlerId: lima, addresses: ["5.1.1.7"] },
        ],
      },
    ]);
  });

  it("is not asked about again before the answer's TTL is over", async () => {
    fetchedElsewhere();
    await pass();
    const once = asked.length;

    hosts.clock.seconds += 299;
    await pass();
    const tooEarly = asked.length;
    hosts.clock.seconds += 2;
    await pass();

    expect([once, tooEarly, asked.length]).toEqual([3, 3, 6]);
  });

  it("stays with its subnet while nobody can measure it", async () => {
    fetchedElsewhere();
    const answers = new Map(sees);

    const delegated = await passes(3, (index) => {
      if (index === 2) sees = new Map();
      else sees = answers;
    });

    expect(delegated).toEqual([]);
    expect(await hosts.leased(athens)).toEqual(["www.example"]);
  });
});

describe("a host that is fetched where the coordinator sees it", () => {
  const fetchedThere = () => names.note(fetchesBy(athens, ["www.example", "5.1.1.99", 30]));
  const distances = async () =>
    await world.crawlers.saveRtts(
      [
        { from: athens, to: tokyo, rttMs: 200, method: "connect" },
        { from: athens, to: lima, rttMs: 90, method: "connect" },
      ],
      noon,
    );

  it("is resolved once by the farthest crawler, and suspected when that sees another place", async () => {
    await distances();
    fetchedThere();

    expect(await passes(3)).toEqual(["www.example"]);
    expect(asked[0]).toEqual({ crawlerId: tokyo, byName: true });
  });

  it("is not suspected when that crawler sees the same, and not checked again for a week", async () => {
    await distances();
    sees.set(tokyo, ["5.1.1.8", 90]);
    for (let again = 0; again < 3; again++) {
      fetchedThere();
      await passes(1);
    }

    expect(asked).toEqual([{ crawlerId: tokyo, byName: true }]);
    hosts.clock.seconds += 7 * 86_400;
    fetchedThere();
    await passes(1);
    expect(asked).toHaveLength(2);
  });
});

describe("what is not suspected at all", () => {
  it("is a host fetched at another address of the coordinator's answer", async () => {
    const addresses = ["5.1.1.7", "5.1.2.7"];
    const resolved = {
      type: "resolved",
      host: "www.example",
      addresses,
      subnetId: leaf,
      ttlSeconds: 300,
    } as const;
    await world.frontier.saveResolutions([resolved], noon);
    sees = new Map([athens, tokyo, lima].map((id) => [id, ["5.1.2.7", 20]]));
    fetchedElsewhere();

    await passes(2);

    expect(asked).toHaveLength(1);
    expect(await byThemselves()).toEqual([]);
  });

  it("is an address that no registry knows", async () => {
    sees = new Map([athens, tokyo, lima].map((id) => [id, ["9.9.9.9", 20]]));
    names.note(fetchesBy(athens, ["www.example", "9.9.9.9", 30]));

    await passes(2);

    expect(asked).toHaveLength(1);
  });
});

describe("a name that rotates", () => {
  it("is cleared, and not checked again for a day", async () => {
    fetchedElsewhere();
    const places = ["5.1.1.7", "5.1.2.7", "5.1.3.7"];
    const turn = (index: number) => {
      coordinatorSees = [places[index % 3]!];
      sees = new Map([athens, tokyo, lima].map((id, own) => [id, [places[(index + own) % 3]!, 20]]));
    };

    const delegated = await passes(4, turn);
    const given = asked.length;
    fetchedElsewhere();
    await passes(2, turn);

    expect(delegated).toEqual([]);
    expect(asked.length).toBe(given);
    expect(await byThemselves()).toEqual([]);
  });
});

describe("a host by itself", () => {
  beforeEach(async () => {
    fetchedElsewhere();
    await passes(3);
  });

  const review = async (afterSeconds = 7 * 3600) => {
    hosts.clock.seconds = afterSeconds;
    return await reviewFiner(await ports());
  };

  it.each([
    ["goes to another crawler that is nearer to what it sees", 80, 3, "lima"],
    ["stays with its crawler for a difference of 5 ms", 8, 4, "tokyo"],
  ] as const)("%s", async (_, tokyoMs, limaMs, then) => {
    sees.set(lima, ["5.1.4.7", limaMs]).set(tokyo, ["5.1.3.7", tokyoMs]);

    expect(await review()).toEqual({ reviewed: 1, ended: 0 });
    expect(await byThemselves()).toEqual([{ host: "www.example", crawler_id: { lima, tokyo }[then] }]);
  });

  it("stays with its crawler when that was held back twice", async () => {
    sees.set(lima, ["5.1.4.7", 60]).delete(tokyo);
    heldBack.add(tokyo);
    asked.length = 0;

    await review();

    expect(await byThemselves()).toEqual([{ host: "www.example", crawler_id: tokyo }]);
    expect(asked.filter(({ crawlerId }) => crawlerId === tokyo)).toHaveLength(2);
  });

  it("goes with its subnet again when everybody sees the same", async () => {
    sees = new Map([athens, tokyo, lima].map((id) => [id, ["5.1.1.7", 20]]));

    expect(await review()).toEqual({ reviewed: 1, ended: 1 });
    expect(await byThemselves()).toEqual([]);
    expect(await hosts.leased(athens)).toEqual(["www.example"]);
  });

  it("ends when it has nothing left to fetch", async () => {
    await world.pool.query("update frontier_url set state = 'gone'");

    expect(await review()).toEqual({ reviewed: 1, ended: 1 });
  });

  it("is not suspected again", async () => {
    names = new NameWatch();
    asked.length = 0;
    fetchedElsewhere();

    await passes(2);

    expect(asked).toEqual([]);
  });
});

it("asks a dozen crawlers at most, including those that fetched it", async () => {
  const many: CrawlerId[] = [];
  for (let index = 0; index < 17; index++) many.push(await world.arrived(`crawler-${index}`));
  const large: Fleet = { online: () => [athens, tokyo, lima, ...many], probe: fleet.probe };
  fetchedElsewhere();

  await delegateHosts({ ...(await ports()), fleet: large });

  const heard = new Set(asked.map(({ crawlerId }) => crawlerId));
  expect(heard.size).toBe(12);
  expect(heard.has(athens)).toBe(true);
});

it("does not take the answer of a crawler that cannot measure by name", async () => {
  const old: Fleet = {
    online: () => [athens, tokyo],
    probe: async (_, { method, tries }) => ({ type: "measured", method, rttMs: 1, tries }),
  };
  fetchedElsewhere();

  const delegated = await delegateHosts({ ...(await ports()), fleet: old });

  expect(delegated).toEqual([]);
  expect(hosts.rounds[0]!.probes[0]!.outcome).toMatchObject({
    type: "failed",
    reason: "its software does not measure by name",
  });
});

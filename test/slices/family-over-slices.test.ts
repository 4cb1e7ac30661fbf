/**
 * A coordinator above another, each with its web in four slices on two servers, beside two that have one database each: what either
 * knows in the end is the same, though transactions of the shared tables are lost at their end again and again, and hosts move
 * while URLs wait.
 */
import type { Pool, PoolClient } from "pg";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type Slices, slicesOf } from "#coordinator/database/slices";
import { settleClaims } from "#coordinator/federation/claim-store";
import { createChildExchangeStore, createParentExchangeStore } from "#coordinator/federation/exchange-store";
import { createCoordinatorStore, stateParent } from "#coordinator/federation/related-store";
import type { FrontierStore } from "#coordinator/frontier/frontier";
import type { ResultStore } from "#coordinator/results/accepted-result";
import { drainSlice } from "#coordinator/slices/slice-writes";
import { asLeaseId, type CrawlerId, type SubnetId } from "#core/ids";
import { seededRandom } from "#core/random";
import type { ExchangedUrl } from "#protocol/exchange";
import { SliceServers } from "../support/slice-servers.ts";
import { addSlices, slicedWorld } from "../support/sliced-world.ts";
import {
  arrivedResult,
  keyOf,
  newWorld,
  noon,
  scope,
  secondsAfterNoon,
  seeds,
  spoolId,
  subnet,
} from "../support/store-world.ts";
import { until } from "../support/until.ts";

const greek = Array.from({ length: 25 }, (_, index) => `http://host-${index}.gr/`);
const others = Array.from({ length: 25 }, (_, index) => `http://host-${index}.example/`);
/** Of every page. */
const links = [...greek, ...others, "http://host-0.gr/new", "http://host-0.example/new"];
const draw = seededRandom(4);

interface Member {
  readonly slices: Slices;
  readonly frontier: Pick<FrontierStore, "admit" | "hostsToResolve" | "saveResolutions" | "leaseHosts">;
  readonly results: Pick<ResultStore, "take">;
  readonly carry: (at: Date) => Promise<void>;
  /** Hosts go to other slices, with what waits of their URLs for somebody else. */
  readonly moveHosts: () => Promise<void>;
  readonly crawlerId: CrawlerId;
  readonly subnetId: SubnetId;
}

const closing: (() => Promise<void>)[] = [];
afterAll(async () => {
  for (const close of closing.reverse()) await close();
});

async function plain(): Promise<Member> {
  const world = await newWorld();
  closing.push(async () => await world.close());
  const crawlerId = await world.crawler("athens");
  const subnetId = await world.subnet("198.51.100.0", "198.51.100.255");
  await world.delegations.delegateOwnSubnet(subnetId, crawlerId, noon);
  const carry = async (at: Date) => void (await world.applyOutbox(at));
  return { slices: slicesOf(world.pool), ...world, carry, moveHosts: async () => {}, crawlerId, subnetId };
}

async function sliced(): Promise<Member> {
  const servers = await SliceServers.begin();
  closing.push(async () => await servers.close());
  const world = await slicedWorld(servers.shared);
  closing.push(async () => await world.close());
  await addSlices(servers, 4);
  await world.moveAll();
  const crawlerId = await world.crawlers.register({ name: "athens", keyHash: "key" });
  const subnetId = await subnet(servers.shared.pool, "198.51.100.0", "198.51.100.255");
  await world.delegations.delegateOwnSubnet(subnetId, crawlerId, noon);
  await replicated(world.slices, "select from delegation");
  /** All hosts of the last slice that has any, each time. */
  const drained = [3, 2];
  const moveHosts = async () => {
    await drainSlice(servers.shared, drained.shift()!, "test");
    await world.moveAll();
  };
  const carry = async (at: Date) => void (await world.carryAll(at));
  return { ...world, carry, moveHosts, crawlerId, subnetId };
}

async function replicated({ open }: Slices, sql: string): Promise<void> {
  const isThere = async (pool: Pool) => ((await pool.query(sql)).rowCount ?? 0) > 0;
  await until(async () => (await Promise.all(open.map(({ pool }) => isThere(pool)))).every(Boolean), 20_000);
}

let second = 0;
let sequence = 0;

/** All that is due, until nothing is. */
async function crawl({ frontier, results, carry, crawlerId, subnetId }: Member): Promise<number> {
  for (let fetched = 0; ; ) {
    second += 10;
    const now = secondsAfterNoon(second);
    const hosts = await frontier.hostsToResolve(500, now);
    await frontier.saveResolutions(
      hosts.map((host, index) => ({
        ...{ type: "resolved", host, addresses: [`198.51.100.${index + 1}`], subnetId, ttlSeconds: 86_400 },
      })),
      now,
    );
    const terms = { hosts: 100, urlsPerHost: 10, leaseSeconds: 600, addressRestSeconds: 0 };
    const leases = await frontier.leaseHosts({ crawlerId, ...terms, now });
    if (leases.length === 0) return fetched;
    const arrived = leases.flatMap(({ leaseId, urls }) =>
      urls.map(({ url }) => arrivedResult({ sequence: ++sequence, leaseId: asLeaseId(leaseId), url, links })),
    );
    fetched += arrived.length;
    await results.take({ crawlerId, spoolId, results: arrived, scope, now, lastSequence: sequence });
    await carry(now);
  }
}

const given = (urls: readonly ExchangedUrl[]) => ({
  urls: urls.map((url) => ({ ...url, key: keyOf(url.url) })),
  highest: urls.at(-1)?.number ?? 0,
  faulty: 0,
});

const lostAtEnd = "the transaction is lost at its end";

/** All slices, with a server of the shared tables that dies whenever it is to commit. */
function dying(slices: Slices): Slices {
  const connect = async () => {
    const client = await slices.shared.connect();
    const query = (...asked: unknown[]) =>
      asked[0] === "commit"
        ? Promise.reject(new Error(lostAtEnd))
        : (client.query as (...all: unknown[]) => unknown)(...asked);
    return Object.assign(Object.create(client) as PoolClient, {
      query,
      release: (error?: boolean | Error) => client.release(error),
    });
  };
  const shared = Object.assign(Object.create(slices.shared) as Pool, { connect });
  const { open, down } = slices;
  return { shared, open, down, ofHost: (hash) => slices.ofHost(hash), ofNumber: (n) => slices.ofNumber(n) };
}

let lost = 0;

/** Once lost at its end as often as not, and then done. */
async function survives<T>(slices: Slices, work: (slices: Slices) => Promise<T>): Promise<T> {
  if (draw() < 0.5) {
    await expect(work(dying(slices))).rejects.toThrow(lostAtEnd);
    lost += 1;
  }
  return await work(slices);
}

/** Until nothing waits on either side. */
async function exchangeAll(top: Member, low: Member, childId: number): Promise<void> {
  const taking = { scope, mostNewHosts: 1_000_000, now: secondsAfterNoon(second) };
  for (let quiet = 0, rounds = 0; quiet < 2; rounds++) {
    if (rounds > 100) throw new Error("the exchange never ends");
    const message = (await survives(low.slices, (slices) =>
      createParentExchangeStore(slices).message(false),
    ))!;
    const answered = await survives(top.slices, (slices) =>
      createChildExchangeStore(slices).answer(childId, { ...message, given: given(message.urls) }, taking),
    );
    if ("refused" in answered) throw new Error(answered.refused);
    const { answer } = answered;
    const taken = await survives(low.slices, (slices) =>
      createParentExchangeStore(slices).take({ ...answer, given: given(answer.urls) }, taking),
    );
    if ("refused" in taken) throw new Error(taken.refused);
    quiet = message.urls.length + answer.urls.length === 0 ? quiet + 1 : 0;
  }
  await top.carry(taking.now);
  await low.carry(taking.now);
}

async function settle({ slices, carry }: Member): Promise<number> {
  let handedOver = 0;
  const taking = { scope, mostNewHosts: 1_000_000, now: secondsAfterNoon(second) };
  for (const { pool } of slices.open)
    for (let more = true; more; ) {
      const piece = await settleClaims(pool, taking);
      handedOver += piece.handedOver;
      more = piece.more;
    }
  await carry(taking.now);
  return handedOver;
}

async function rowsOf<Row extends object>({ slices }: Member, sql: string): Promise<Row[]> {
  return (await Promise.all(slices.open.map(async ({ pool }) => (await pool.query<Row>(sql)).rows))).flat();
}

const frontierOf = async (member: Member) =>
  Object.fromEntries(
    (
      await rowsOf<{ url: string; links: number; visits: number }>(
        member,
        "select url, back_links as links, visits from frontier_url",
      )
    )
      .sort((a, b) => (a.url < b.url ? -1 : 1))
      .map(({ url, links: count, visits }) => [url, `${count} links, ${visits} visits`]),
  );

/** The lower one joins when the upper one has crawled everything, and takes over what is Greek. */
async function familyStory(top: Member, low: Member) {
  second = 0;
  sequence = 0;
  await top.frontier.admit(seeds(...greek, ...others), scope, noon);
  const first = await crawl(top);

  const keyHash = "hash of the child's key";
  const store = createCoordinatorStore(top.slices);
  await store.invite({ name: "greek", keyHash, createdBy: "test", now: noon });
  const { childId } = (await store.childOf(keyHash))!;
  await stateParent(low.slices.shared, { url: "https://top.example", owns: [".gr"] }, noon);
  await replicated(low.slices, "select from related_coordinator");
  await exchangeAll(top, low, childId);
  await replicated(top.slices, "select from related_coordinator where claims <> '{}'");
  const isSettling = (await store.list(noon)).settling;
  const handedOver = await settle(top);
  const { settling, children } = await store.list(noon);
  // While URLs wait for the child.
  await top.moveHosts();
  await exchangeAll(top, low, childId);

  sequence = 1000;
  const second_ = await crawl(low);
  await low.moveHosts();
  await exchangeAll(top, low, childId);
  const third = await crawl(top);
  await exchangeAll(top, low, childId);
  return {
    ...{ first, handedOver, second: second_, third, isSettling, settling, waiting: children[0]!.waiting },
    top: await frontierOf(top),
    low: await frontierOf(low),
    left: await rowsOf(
      top,
      "select url from foreign_url where waits_since is not null or number is not null",
    ),
    leftBelow: await rowsOf(
      low,
      "select url from foreign_url where waits_since is not null or number is not null",
    ),
  };
}

let expected: Awaited<ReturnType<typeof familyStory>>;
let upper: Member;
let lower: Member;
beforeAll(async () => {
  expected = await familyStory(await plain(), await plain());
  [upper, lower] = [await sliced(), await sliced()];
}, 240_000);

it("takes over, tells and counts the same over slices, whatever is lost on the way", async () => {
  lost = 0;

  const found = await familyStory(upper, lower);

  expect(found).toEqual(expected);
  expect(lost).toBeGreaterThan(5);
  expect(expected).toMatchObject({
    first: 52,
    handedOver: 25,
    isSettling: true,
    settling: false,
    waiting: 26,
  });
  expect(Object.keys(expected.low)).toEqual([...greek, "http://host-0.gr/new"].sort());
  expect(expected.left).toEqual([]);
  // In all slices that are not drained.
  const spread = await Promise.all(
    lower.slices.open.map(async ({ pool }) => (await pool.query("select from frontier_url")).rowCount),
  );
  expect(spread.map((count) => count! > 0)).toEqual([true, true, true, false]);
}, 240_000);

it("admits nothing where rows are left of a host that another slice holds by now", async () => {
  const { slices } = upper;
  const key = keyOf("http://left-behind.example/");
  const elsewhere = slices.open.find(({ number }) => number !== slices.ofHost(key.hostHash).number)!;
  await elsewhere.pool.query(
    "insert into foreign_url (host_hash, url_hash, url, peer_id, waits_since) values ($1, $2, $3, 1, $4)",
    [key.hostHash, key.urlHash, key.url, noon],
  );
  await elsewhere.pool.query("update claims_settling set settled_claims = ''");

  await settle(upper);

  expect(await rowsOf(upper, "select from frontier_host where host = 'left-behind.example'")).toEqual([]);
});

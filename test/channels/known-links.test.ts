/** Links to other sites that are known of a channel travel by name: nothing that is kept differs by that. */
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { readChannel } from "#coordinator/channels/channel";
import { createChannelStore } from "#coordinator/channels/channel-store";
import { linksThatPay, ToldLinks } from "#coordinator/channels/known-links";
import { defaultRecrawlSettings } from "#coordinator/recrawl/visit-findings";
import { takeResults } from "#coordinator/results/take-results";
import { asCrawlerId, asLeaseId, type CrawlerId } from "#core/ids";
import { KnownLinkSets, withKnownLinks } from "#crawler/fetch/shorten-known-links";
import { keptLinkSets, type Lease, linkHashOf, linkNameOf } from "#protocol/lease";
import type { FetchResult, PageLink } from "#protocol/result";
import {
  arrivedResult,
  newWorld,
  noon,
  scope,
  secondsAfterNoon,
  seeds,
  spoolId,
  type World,
} from "../support/store-world.ts";

let world: World;
let crawlerId: CrawlerId;
let sequence = 0;
beforeAll(async () => {
  world = await newWorld();
});
beforeEach(begin);
afterAll(async () => await world.close());

async function begin(): Promise<void> {
  await world.reset();
  await world.rows("delete from channel");
  sequence = 0;
}

const at = (path: string) => `http://a.example/${path}`;
const abroad = (number: number) => `http://other.example/a/long/path/to/page-${number}.html`;
const link = (url: string, anchor = "there", nofollow = false): PageLink => ({ url, anchor, nofollow });

interface Page {
  readonly url: string;
  readonly links: readonly PageLink[];
  readonly digest?: string;
}

/** Pages 1 to 4 have links 1 to 3 abroad; the crawl has seen them, and the channel has counted. Gives the next lease. */
async function knownChannel(): Promise<Lease> {
  crawlerId = await world.delegatedHost("north", ...["1", "2", "3", "4"].map(at));
  const rules = { prefixes: ["a.example"], seeds: [], include: [], exclude: [], maxDepth: null };
  await createChannelStore(world.pool).add(readChannel(rules), noon);
  const [lease] = await world.lease(crawlerId);
  const links = [1, 2, 3].map((number) => link(abroad(number)));
  const pages = ["1", "2", "3", "4"].map((path) => ({
    url: at(path),
    links: [...links, link(at(`${path}/next`))],
  }));
  await send(
    pages.map((page) => resultOf(page, noon)),
    lease!,
    noon,
  );
  await createChannelStore(world.pool).settle(noon);
  return (await world.lease(crawlerId, secondsAfterNoon(3700)))[0]!;
}

const later = secondsAfterNoon(3701);

function resultOf({ url, links, digest = "0".repeat(64) }: Page, fetchedAt: Date): FetchResult {
  const page = { links: [...links], digest };
  return arrivedResult({
    sequence: 1,
    leaseId: "1",
    url,
    page,
    result: { fetchedAt: fetchedAt.toISOString() },
  }).result;
}

async function send(results: readonly FetchResult[], { leaseId }: Lease, now: Date) {
  const wire = results.map((result) => {
    sequence += 1;
    return { sequence, leaseId: asLeaseId(leaseId), result, wireBytes: 100 };
  });
  const settings = { scope, recrawl: defaultRecrawlSettings };
  return await takeResults({ crawlerId, spoolId, results: wire }, world.results, settings, now);
}

/** As a crawler does that knows of the set. */
function asNamed(result: FetchResult, lease: Lease): FetchResult {
  return { ...result, ...withKnownLinks(result, lease.host, new KnownLinkSets().of(lease, 0)) };
}

const urlsShipped = ({ page }: FetchResult) => page!.links.map(({ url }) => url);

/** All that links and URLs leave behind. */
async function graph() {
  return {
    links: await world.rows(
      "select host_hash, url_hash, to_host_hash, to_url_hash, anchor, nofollow from link order by 1, 2, 3, 4",
    ),
    visits: await world.rows(
      "select url_hash, visit, link_count, encode(adjacency, 'hex') as packed from page_links order by 1, 2",
    ),
    urls: await world.rows(
      `select url, state, depth, back_links, visits, out_links, etag, encode(digest, 'hex') as digest
       from frontier_url order by url`,
    ),
    hosts: await world.rows("select host, url_count, outside_links from frontier_host order by host"),
  };
}

/** Two known links, one that changed its text, one that nobody knows, one within the site, and the known ones again. */
const secondRound = (): Page[] => [
  {
    url: at("1/next"),
    links: [
      link(abroad(1)),
      link(abroad(2), "another text", true),
      link(abroad(9)),
      link(at("2")),
      link(abroad(3)),
    ],
  },
  { url: at("2/next"), links: [link(abroad(3)), link("http://third.example/"), link(abroad(1))] },
];

test("the graph, the back-links and the frontier are the same with names, in full, and from a crawler that knows of neither", async () => {
  const states: unknown[] = [];
  const shipped: string[][] = [];
  for (const way of ["named", "full", "ignoring"] as const) {
    await begin();
    const lease = await knownChannel();
    if (way === "full") expect(lease.knownLinks).toBeDefined();
    const pages = secondRound().map((page) => resultOf(page, later));

    const sent = way === "named" ? pages.map((page) => asNamed(page, lease)) : pages;
    // A crawler of before drops what its schema does not know, and ships the text of a known body, too.
    const { known: _, knownLinks: __, ...old } = lease;
    await send(sent, way === "ignoring" ? old : lease, later);

    shipped.push(urlsShipped(sent[0]!));
    states.push(await graph());
  }

  const name = (number: number) => linkNameOf(linkHashOf(abroad(number)));
  expect(shipped[0]).toEqual([name(1), name(2), abroad(9), at("2"), name(3)]);
  expect(states[0]).toEqual(states[1]);
  expect(states[2]).toEqual(states[1]);
  expect((states[0] as Awaited<ReturnType<typeof graph>>).links).toHaveLength(4 * 4 + 5 + 3);
});

test("names of no known link are dropped with nothing written for them, and the page travels whole next time", async () => {
  const lease = await knownChannel();
  const invented = Array.from({ length: 500 }, (_, index) =>
    link(linkNameOf(linkHashOf(`http://x.example/${index}`))),
  );
  const before = await graph();

  const links = [link(linkNameOf(linkHashOf(abroad(1)))), ...invented];
  const taken = await send([resultOf({ url: at("1/next"), links }, later)], lease, later);

  const after = await graph();
  const page = after.urls.find((row) => (row as { url: string }).url === at("1/next"));
  expect(taken).toMatchObject({ stored: 1, newUrls: 0 });
  expect(after.links).toHaveLength(before.links.length + 1);
  expect(after.urls).toHaveLength(before.urls.length);
  expect(page).toMatchObject({ visits: 1, etag: null, digest: null, out_links: 1 });
});

test("names are those of the page's own host: a link that another host's channel knows is none of its", async () => {
  await knownChannel();
  const root = "http://b.example/";
  await world.frontier.admit(seeds(root), scope, noon);
  const subnetId = await world.subnet("198.51.100.0", "198.51.100.255");
  await world.resolve("b.example", "198.51.100.8", subnetId);
  const [lease] = await world.lease(crawlerId, later);
  const before = await graph();

  const named = link(linkNameOf(linkHashOf(abroad(1))));
  await send([resultOf({ url: root, links: [named] }, later)], lease!, later);

  expect((await graph()).links).toEqual(before.links);
});

test("two known links of one name are told in full or lost, never taken for one another", async () => {
  const lease = await knownChannel();
  const [row] = await world.rows<{ to_url_hash: string; to_host_hash: string }>(
    `select to_host_hash, to_url_hash from channel_link order by to_url_hash limit 1`,
  );
  const twin = BigInt(row!.to_url_hash) ^ 1n;
  await world.rows(
    `insert into frontier_url (host_hash, url_hash, url, state, depth, discovered_at, next_fetch_at)
       values (${row!.to_host_hash}, ${twin}, 'http://other.example/twin', 'due', 0, now(), now());
     insert into channel_link select channel_id, to_host_hash, ${twin}, page_share, url_length, turn from channel_link
       where to_url_hash = ${row!.to_url_hash}`,
  );
  const hash = BigInt.asUintN(64, twin).toString(16).padStart(16, "0");
  const before = await graph();

  await send([resultOf({ url: at("1/next"), links: [link(linkNameOf(hash))] }, later)], lease, later);

  expect((await graph()).links).toEqual(before.links);
});

test("links of a channel are told with its own pages alone", async () => {
  const lease = await knownChannel();
  await world.rows("update channel set directories = '{/docs/}'");
  await world.frontier.returnLeasesOf(crawlerId, later);

  const [next] = await world.lease(crawlerId, secondsAfterNoon(7200));

  expect([lease.knownLinks === undefined, next!.urls.length > 0, next!.knownLinks]).toEqual([
    false,
    true,
    undefined,
  ]);
});

test("links that are no longer counted are understood for a day's turns, and told no more", async () => {
  await knownChannel();
  await world.rows("delete from link");
  const store = createChannelStore(world.pool);
  const known = async () => (await world.rows("select from channel_link")).length;

  await store.settle(secondsAfterNoon(4000));
  const kept = await known();
  await world.frontier.returnLeasesOf(crawlerId, later);
  const [lease] = await world.lease(crawlerId, secondsAfterNoon(4001));
  await world.rows("update channel set known_turn = known_turn + 30");
  await store.settle(secondsAfterNoon(8000));

  expect([kept, lease!.knownLinks, await known()]).toEqual([3, undefined, 0]);
});

test("a link is told where it saves more than it costs: long ones, on pages that will ship, that many pages have", () => {
  const lease = { newPages: 20, knownPages: 0, changedShare: 0 };
  const link = (pageShare: number, urlLength = 80) => ({ pageShare, urlLength });
  const told = (links: ReturnType<typeof link>[], changes: object = {}) =>
    linksThatPay(links, { ...lease, ...changes }).length;

  expect(told([link(1), link(0.001), link(0.1), link(1, 30)])).toBe(2);
  expect(told([link(1), link(1)], { newPages: 0, knownPages: 20 })).toBe(0);
  expect(told([link(1), link(1)], { newPages: 0, knownPages: 20, changedShare: 0.5 })).toBe(2);
  expect(told([link(1, 42)])).toBe(0);
  expect(told([link(1, 42), link(1, 42), link(1, 42)])).toBe(3);
});

test("a crawler is told a set once in a connection, again when it may have lost it, and again in the next", () => {
  const told = new ToldLinks();
  const [one, other] = [asCrawlerId(1), asCrawlerId(2)];
  const lease = { host: "a.example", knownLinks: "AAAA" } as Lease;
  const isTold = (crawlerId: CrawlerId, seconds: number, host = "a.example") =>
    told.once(crawlerId, [{ ...lease, host }], secondsAfterNoon(seconds))[0]!.knownLinks !== undefined;

  const first = [isTold(one, 0), isTold(one, 60), isTold(other, 60), isTold(one, 6 * 3600)];
  const others = (from: number, to: number) => {
    for (let host = from; host < to; host += 1) isTold(one, 6 * 3600, `h${host}.example`);
  };
  others(0, keptLinkSets - 1);
  const stillKept = isTold(one, 6 * 3600 + 1);
  others(keptLinkSets - 1, 2 * keptLinkSets - 2);
  const keptAsOneOfTheLatest = isTold(one, 6 * 3600 + 2);
  others(2 * keptLinkSets - 2, 3 * keptLinkSets - 2);
  const pushedOut = isTold(one, 6 * 3600 + 3);
  told.forget(one);

  expect(first).toEqual([true, false, true, true]);
  expect([stillKept, keptAsOneOfTheLatest]).toEqual([false, false]);
  expect([pushedOut, isTold(one, 6 * 3600 + 4)]).toEqual([true, true]);
});

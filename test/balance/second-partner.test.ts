/**
 * A fleet that grows from one crawler, and one of whose crawlers moves, over real stores: north is alone and gets every
 * subnet without a comparison. Then others come, each to a country of its own: a crawler is 1 ms from the sites of its
 * country and 200 from all others. Rounds run as the coordinator runs them, and time passes by passes of five seconds.
 */
import { beforeEach, expect, it } from "vitest";
import { NewcomerSettling } from "#coordinator/place/balance/join";
import { welcomeCrawler } from "#coordinator/place/balance/presence";
import { AnycastRanges } from "#coordinator/place/delegation/anycast";
import { DeniedTargets } from "#coordinator/place/delegation/denied-targets";
import type { DelegationQueue } from "#coordinator/place/delegation/queue";
import { RecalibrationQueue } from "#coordinator/place/delegation/recalibration/recalibrate";
import { defaultRecalibrationRule } from "#coordinator/place/delegation/recalibration/rule";
import type { CoordinatorState } from "#coordinator/place/delegation/state";
import type { CrawlerId, SubnetId } from "#core/ids";
import { silentLog } from "#core/log";
import { crawlerIn, nearestRound, queueOver, registeredIn } from "../delegation/round-world.ts";
import { flowWorld, hello, TableFleet } from "../support/flow-world.ts";
import { arrivedResult, secondsAfterNoon } from "../support/store-world.ts";

const countries = ["NL", "JP", "BR", "ZA"] as const;
type Country = (typeof countries)[number] | "FR" | "DE" | "IT" | "ES" | "PL" | "SE";

const world = flowWorld();
let north: CrawlerId;
let state: CoordinatorState;
let seconds: number;
let sites: Map<SubnetId, Country>;
/** Where crawlers are. */
let places: Map<CrawlerId, Country>;
let answers: Record<string, Map<CrawlerId, number>>;
let fleet: TableFleet;
let queue: DelegationQueue;
let settling: NewcomerSettling;
let denied: DeniedTargets;

beforeEach(async () => {
  [sites, places, answers, seconds] = [new Map(), new Map(), {}, 0];
});

const now = () => secondsAfterNoon(seconds);

/** Sites by turns in each of these countries; north is alone with them. */
async function alone(count: number, ...in_: readonly Country[]): Promise<void> {
  for (let number = 0; number < count; number += 1) {
    const country = in_[number % in_.length]!;
    const subnetId = await world.site(number);
    await registeredIn(world, country, subnetId);
    sites.set(subnetId, country);
    answers[`5.1.${number}.7`] = new Map();
  }
  north = await arrives("north", "NL");
  await start();
  await lives(5);
}

async function arrives(name: string, country: Country, pagesPerDay?: number): Promise<CrawlerId> {
  const crawlerId = await crawlerIn(world, name, country, pagesPerDay);
  const own = await world.subnet(`6.1.${places.size}.0`, `6.1.${places.size}.255`);
  await registeredIn(world, country, own);
  await world.delegations.delegateOwnSubnet(own, crawlerId, now());
  await world.pool.query("update crawler set subnet_id = $2, address = $3 where crawler_id = $1", [
    ...[crawlerId, own, `6.1.${places.size}.9`],
  ]);
  await isIn(crawlerId, country);
  return crawlerId;
}

/** As everybody measures it from now on. */
async function isIn(crawlerId: CrawlerId, country: Country): Promise<void> {
  for (const [other, where] of places) {
    if (other === crawlerId) continue;
    const rttMs = where === country ? 2 : 200;
    await world.crawlers.saveRtts([{ from: crawlerId, to: other, rttMs, method: "connect" }], now());
  }
  places.set(crawlerId, country);
  for (const [at, where] of [...sites.values()].entries())
    answers[`5.1.${at}.7`]!.set(crawlerId, where === country ? 1 : 200);
}

/** It comes from an address in another country. */
async function moves(crawlerId: CrawlerId, name: string, country: Country): Promise<void> {
  await registeredIn(world, country, await world.subnet("6.2.1.0", "6.2.1.255"));
  state.setTree((await world.state()).tree, 1);
  const spoken = hello(name, { publicAddress: "6.2.1.9" });
  await welcomeCrawler({ crawlerId, hello: spoken, remoteAddress: "6.2.1.9" }, { ...world, state }, now());
  await isIn(crawlerId, country);
  await joined();
}

/** A coordinator begins with what the database knows. */
async function start(): Promise<void> {
  state = await world.state();
  state.setCrawlers(state.crawlers.map((crawler) => ({ ...crawler, state: "online" })));
  fleet = new TableFleet([...places.keys()], answers);
  denied = new DeniedTargets();
  const anycast = new AnycastRanges();
  const full = () =>
    new Set(
      state.crawlers
        .filter(({ crawlerId, pagesPerDay }) => state.subnetCountOf(crawlerId) > pagesPerDay)
        .map(({ crawlerId }) => crawlerId),
    );
  const recalibration = new RecalibrationQueue(
    { results: world.results, state, now },
    defaultRecalibrationRule,
  );
  const fetchTimes = recalibration.fetchTimes.bind(recalibration);
  const ports = { state, fleet, now, denied, anycast, excluded: full, fetchTimes };
  ({ queue } = queueOver(world, ports, { concurrentRounds: 100, retryMs: 1000 }));
  settling = new NewcomerSettling({
    ...{ ...world, state, fleet, denied, anycast, now, log: silentLog, rounds: queue },
    probe: () => nearestRound.probe,
    recrawlDays: () => 7,
    onMoved: () => {},
  });
}

/** Whoever has come meanwhile is known. */
async function joined(...arrivals: readonly Promise<CrawlerId>[]): Promise<CrawlerId[]> {
  const crawlerIds: CrawlerId[] = [];
  for (const arrival of arrivals) crawlerIds.push(await arrival);
  state.setTree((await world.state()).tree, 1);
  const listed = await world.crawlers.list();
  state.setCrawlers(listed.map((crawler) => ({ ...crawler, state: "online" })));
  for (const delegation of await world.delegations.readAll())
    if (state.delegationOf(delegation.subnetId) === null) state.setDelegation(delegation);
  state.learnRtts(await world.crawlers.rtts());
  fleet.goOnline(...places.keys());
  return crawlerIds;
}

async function lives(forSeconds: number): Promise<void> {
  for (const end = seconds + forSeconds; seconds < end; seconds += 5) {
    await settling.pass();
    await queue.fill();
    await queue.idle();
    await retry();
  }
}

/** As the coordinator does by the clock. */
async function retry(): Promise<void> {
  if (fleet.online().length < 2) return;
  const due = await world.delegations.unmeasured({ limit: 2, dueBy: now(), except: [], recrawlDays: 7 });
  queue.request(
    due.map(({ subnetId }) => subnetId),
    "retry",
  );
  await queue.fill();
  await queue.idle();
}

const ownedBy = (crawlerId: CrawlerId) =>
  state.subnetsOf(crawlerId).flatMap((subnetId) => sites.get(subnetId) ?? []);
const joining = async () => (await world.crawlers.list()).filter(({ joiningSince }) => joiningSince !== null);
const subnetsIn = (country: Country) =>
  [...sites].flatMap(([subnetId, of]) => (of === country ? [subnetId] : []));

it("what a lone crawler gets is unmeasured and teaches nothing; the second partner has its own in two minutes", async () => {
  await alone(20, ...countries);
  expect(ownedBy(north)).toHaveLength(20);
  expect(fleet.asked).toEqual([]);
  expect(
    await world.rows(
      "select distinct measured, unanswered_rounds, retry_at from delegation where cause = 'probe-round'",
    ),
  ).toEqual([{ measured: false, unanswered_rounds: 0, retry_at: null }]);
  expect(state.knowledge.owners({ kind: "country", key: "JP" })).toEqual([]);
  await lives(75);

  const [tokyo] = await joined(arrives("tokyo", "JP"));
  await settling.pass();
  // A coordinator that is restarted in between goes on where it was.
  await start();
  await lives(120);

  expect(ownedBy(tokyo!)).toEqual(Array(5).fill("JP"));
  expect(ownedBy(north)).toHaveLength(15);
  expect(await joining()).toEqual([]);
  expect(await world.rows("select distinct measured from delegation")).toEqual([{ measured: true }]);
});

it("the first crawler's fetches answer for it: only the newcomer is probed", async () => {
  await alone(4, "NL", "JP");
  const leases = await world.lease(north);
  const results = leases.map(({ leaseId, urls }, at) => {
    const number = Number(/s(\d+)\./.exec(urls[0]!.url)![1]);
    const connectMs = number % 2 === 0 ? 1 : 200;
    const timing = { dnsMs: 1, connectMs, tlsMs: null, firstByteMs: 20, totalMs: 30 };
    const result = { timing, fetchedAt: now().toISOString() };
    return arrivedResult({ sequence: at + 1, leaseId, url: urls[0]!.url, result });
  });
  await world.take(north, results);
  const [tokyo] = await joined(arrives("tokyo", "JP"));
  await lives(120);

  const probes = await world.rows<{ how: string; crawler_id: number }>(
    "select distinct how, crawler_id from probe",
  );
  expect(ownedBy(tokyo!)).toEqual(["JP", "JP"]);
  expect(probes).toContainEqual({ how: "get", crawler_id: north });
  // A single fetch is one try: of what it would lose, the first is probed as well.
  expect(fleet.asked.filter(({ crawlerId }) => crawlerId === north)).toHaveLength(2);
});

it("four that start together each get their own, although one was seconds earlier", async () => {
  await alone(40, ...countries);

  const others = await joined(arrives("tokyo", "JP"), arrives("recife", "BR"), arrives("durban", "ZA"));
  await lives(120);

  for (const [at, crawlerId] of [north, ...others].entries())
    expect(ownedBy(crawlerId)).toEqual(Array(10).fill(countries[at]));
});

it("while the first is gone, none of its subnets is decided without it", async () => {
  await alone(20, ...countries);
  const [tokyo] = await joined(arrives("tokyo", "JP"));
  fleet.goOnline(tokyo!);
  await lives(60);
  expect(ownedBy(tokyo!)).toEqual([]);

  const [osaka] = await joined(arrives("osaka", "JP"));
  await lives(120);

  expect([...ownedBy(tokyo!), ...ownedBy(osaka!)]).toEqual(Array(5).fill("JP"));
  expect(ownedBy(north)).toHaveLength(15);
});

it("a newcomer gets no more than its partner allows, and nothing that its partner denies", async () => {
  await alone(20, "NL", "JP");
  const [tokyo] = await joined(arrives("tokyo", "JP", 4));
  const [forbidden] = subnetsIn("JP");
  denied.noteRefusal(tokyo!, forbidden!, now().getTime());

  await lives(120);

  expect(ownedBy(tokyo!).length).toBeGreaterThan(0);
  expect(state.subnetCountOf(tokyo!)).toBeLessThanOrEqual(5);
  expect(state.ownerOf(forbidden!)).toBe(north);
});

it("what a crawler got because the other was full is asked about when that has room again", async () => {
  await alone(0);
  const [tokyo] = await joined(arrives("tokyo", "JP", 0));
  await lives(60);
  for (let number = 0; number < 4; number += 1) {
    const subnetId = await world.site(number);
    sites.set(subnetId, "JP");
    answers[`5.1.${number}.7`] = new Map(
      [north, tokyo!].map((crawlerId, at) => [crawlerId, at === 0 ? 200 : 1]),
    );
  }
  await joined();
  await lives(10);
  expect(ownedBy(north)).toHaveLength(4);

  await world.pool.query("update crawler set pages_per_day = 1000");
  await joined();
  await lives(60);

  expect(ownedBy(tokyo!)).toHaveLength(4);
});

it("the first gets back what is near to it, although all went to the second unmeasured", async () => {
  await alone(20, "NL", "JP");
  const [tokyo] = await joined(arrives("tokyo", "JP"));
  fleet.goOnline(tokyo!);
  queue.request([...sites.keys()], "crawler-left");
  await queue.fill();
  await queue.idle();
  expect(ownedBy(tokyo!)).toHaveLength(20);

  await world.crawlers.mustJoin(north, now());
  await joined();
  await lives(120);

  expect(ownedBy(north)).toEqual(Array(10).fill("NL"));
  expect(ownedBy(tokyo!)).toEqual(Array(10).fill("JP"));
});

it("a subnet with a single possible crawler causes no repeated rounds", async () => {
  await alone(1, "JP");
  const [tokyo] = await joined(arrives("tokyo", "JP"));
  denied.noteRefusal(tokyo!, subnetsIn("JP")[0]!, now().getTime());

  await lives(60);
  queue.request(subnetsIn("JP"), "retry");
  await lives(5);

  expect(await world.rows("select cause from probe_round")).toEqual([{ cause: "new-subnet" }]);
});

it("a crawler that moves to another country gives up what is no longer near, and gets what is near there", async () => {
  await alone(20, ...countries);
  const [tokyo, delft] = await joined(arrives("tokyo", "JP"), arrives("delft", "NL"));
  await lives(120);
  expect([...ownedBy(north), ...ownedBy(delft!)].filter((country) => country === "NL")).toHaveLength(5);

  await moves(north, "north", "BR");
  await lives(240);

  expect(ownedBy(tokyo!)).toEqual(Array(5).fill("JP"));
  expect(ownedBy(north).filter((country) => country === "BR")).toHaveLength(5);
  expect(ownedBy(north)).not.toContain("NL");
  expect(ownedBy(delft!).filter((country) => country === "NL")).toHaveLength(5);
  expect(await world.rows("select distinct measured from delegation where cause <> 'crawler-moved'")).toEqual(
    [{ measured: true }],
  );
});

it("of a moved crawler's subnets those fetched most are asked about first", async () => {
  await alone(6, "NL");
  await joined(arrives("tokyo", "JP"));
  await lives(120);
  const byPages = subnetsIn("NL").toReversed();
  const pages = "update frontier_host set url_count = $2 where subnet_id = $1";
  for (const [at, subnetId] of byPages.entries()) await world.pool.query(pages, [subnetId, 100 - at]);

  await moves(north, "north", "BR");
  const before = fleet.asked.length;
  await retry();

  expect(await world.delegations.unmeasuredBy(now())).toEqual(byPages.slice(2));
  expect(new Set(fleet.asked.slice(before).map(({ address }) => address))).toEqual(
    new Set(["5.1.5.7", "5.1.4.7"]),
  );
});

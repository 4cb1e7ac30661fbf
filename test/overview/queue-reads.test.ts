/** The queue: one host for each reason, each due one minute longer than the former one. */

import { beforeAll, describe, expect, it } from "vitest";
import { crawlTotals } from "#coordinator/tell/overview/overview-reads";
import { waitReasons } from "#coordinator/tell/overview/queue-api";
import { gatedHosts, leftOutUrls, longestWaiting, queueAges } from "#coordinator/tell/overview/queue-reads";
import { waitWords } from "#coordinator/tell/overview/queue-words";
import type { SubnetId } from "#core/ids";
import { newFlowWorld } from "../support/flow-world.ts";
import { forThisFile } from "../support/for-this-file.ts";
import { noon, scope, secondsAfterNoon, seeds } from "../support/store-world.ts";

/** What has IPv6 addresses alone is in delegation/ipv6.test.ts. */
const reasons = waitReasons.filter((reason) => reason !== "no-ipv6");

const world = await forThisFile(newFlowWorld());
beforeAll(async () => {
  for (const [index, reason] of reasons.entries()) await waitingFor(reason, index);
  await inTheWay();
});

/** s<n>.example at 5.1.<n>.7, of a crawler of the reason's name, due n + 1 minutes before noon. */
async function waitingFor(reason: string, number: number): Promise<SubnetId> {
  const subnetId = await world.site(number);
  if (reason !== "no-delegation" && reason !== "no-address") {
    const crawlerId = await world.arrived(reason);
    await world.delegations.delegateOwnSubnet(subnetId, crawlerId, noon);
  }
  await world.pool.query("update frontier_host set due_at = $1 where host = $2", [
    secondsAfterNoon(-60 * (number + 1)),
    `s${number}.example`,
  ]);
  if (reason === "no-address")
    await world.pool.query(
      "update frontier_host set state = 'unresolved', subnet_id = null, addresses = '{}' where host = $1",
      [`s${number}.example`],
    );
  return subnetId;
}

async function inTheWay(): Promise<void> {
  await world.pool.query(
    `update crawler set state = 'offline' where name = 'crawler-offline';
     update crawler set draining_since = '2030-01-01T11:00:00Z' where name = 'crawler-draining';
     update crawler set heartbeat = '{"holdingBack": ["its disk is full"]}' where name = 'crawler-full';
     update crawler set heartbeat = '{"holdingBack": ["no URL of its subnets is due"]}' where name = 'in-line';
     update frontier_host
     set not_before = '2030-01-01T12:00:20Z', crawl_delay_ms = 30000, tolerated = '{"perHour": 90, "limitedBy": "refused",
       "refusedPerHour": 180, "refusedAt": "2030-01-01T10:00:00Z", "at": "2030-01-01T11:00:00Z"}'
     where host = 's5.example';
     insert into crawler_figures (quarter, crawler_id, fetches)
     select '2030-01-01T08:00:00Z', crawler_id, 1000 from crawler where name = 'budget';
     insert into crawler_figures (quarter, crawler_id, fetches)
     select '2029-12-31T23:45:00Z', crawler_id, 5000 from crawler where name = 'in-line'`,
  );
}

const all = { reason: null, most: 100 };

it("each host has the first reason that applies, and the longest waiting come first", async () => {
  const hosts = await longestWaiting(world.pool, all, noon);

  expect(hosts.map(({ host, reason }) => [host, reason])).toEqual(
    [...reasons.entries()].reverse().map(([index, reason]) => [`s${index}.example`, reason]),
  );
  expect(hosts.map((host) => waitWords(host, noon))).toEqual([
    "nothing is in the way; in-line will ask for it",
    "crawler-full holds back: its disk is full",
    "the host is left alone for another 20 s: its robots.txt asks for 30 s between requests (Crawl-delay); " +
      "and it tolerates 1.5 requests per minute: it answered 429 or 503 at 3 requests per minute, 2 hours ago",
    "budget has fetched today what its partner allows",
    "crawler-draining is being emptied; the subnet goes to another",
    "crawler-offline is offline",
    "no crawler was found for its subnet yet",
    "DNS has not been asked for its address yet, or has given none",
  ]);
});

it("a host that asks for payment does not wait while it rests", async () => {
  const resting = async (payments: number | null) => {
    await world.pool.query("update frontier_host set payments_asked = $1 where host = 's5.example'", [
      payments,
    ]);
    return (await longestWaiting(world.pool, all, noon)).some(({ host }) => host === "s5.example");
  };

  expect([await resting(5), await resting(4), await resting(null)]).toEqual([false, true, true]);
});

it("skipped URLs are counted by host, most first", async () => {
  expect(await leftOutUrls(world.pool, 10)).toEqual({
    urls: 0,
    hosts: 0,
    more: false,
    most: [],
    domains: [],
  });
  await world.pool.query(
    "update frontier_host set left_out_urls = 10 * right(split_part(host, '.', 1), 1)::int where host < 's3'",
  );

  const leftOut = await leftOutUrls(world.pool, 1);

  expect(leftOut).toEqual({
    urls: 30,
    hosts: 2,
    more: false,
    most: [{ host: "s2.example", urls: 20 }],
    domains: [],
  });
});

it("ages are given for all hosts and for each reason", async () => {
  const ages = await queueAges(world.pool, noon);

  expect(ages).toMatchObject({
    hosts: 8,
    medianSeconds: 240,
    p95Seconds: 480,
    oldestSeconds: 480,
    isEstimate: false,
  });
  expect(ages.reasons.map(({ reason, oldestSeconds }) => [reason, oldestSeconds])).toEqual(
    reasons.map((reason, index) => [reason, 60 * (index + 1)]),
  );
});

it("the verdict counts resting hosts by what makes them rest", async () => {
  await world.pool.query(
    `update frontier_host set not_before = '2030-01-01T12:00:20Z', crawl_delay_ms = 30000
     where host in ('s5.example', 's6.example', 's7.example')`,
  );

  const { verdict } = await queueAges(world.pool, noon);
  await world.pool.query(
    `update frontier_host set not_before = '-infinity', crawl_delay_ms = null
     where host in ('s6.example', 's7.example')`,
  );

  expect(verdict).toEqual({
    limitedBy: "crawl-delay",
    hosts: 3,
    words: "limited by 3 hosts' Crawl-delay",
  });
});

// Issue 41: 4,000 hosts without an address yet, 20,000 due URLs, and "nothing waits".
it("hosts without an address wait for one, and limit the crawl", async () => {
  const many = Array.from({ length: 20 }, (_, index) => `http://unasked${index}.example/`);
  await world.frontier.admit(seeds(...many), scope, secondsAfterNoon(-30));

  // A resolver that answers nothing, and a name that has had no address for a day.
  const failures = { "unasked1.example": 1, "unasked2.example": 30 };
  for (const [host, count] of Object.entries(failures))
    await world.pool.query(
      "update frontier_host set state = 'unresolvable', resolve_failures = $2 where host = $1",
      [host, count],
    );

  const { verdict, reasons } = await queueAges(world.pool, noon);
  const hosts = await longestWaiting(world.pool, { reason: "no-address", most: 100 }, noon);
  await world.pool.query("update frontier_host set due_at = null where host like 'unasked%'");

  expect(verdict).toEqual({
    limitedBy: "no-address",
    hosts: 20,
    words: "limited by DNS: 20 hosts wait for an address",
  });
  expect(reasons.find(({ reason }) => reason === "no-address")?.hosts).toBe(20);
  expect(hosts.map(({ host }) => host)).toHaveLength(20);
});

it("a list of one reason has no other, and is limited", async () => {
  expect(await longestWaiting(world.pool, { reason: "politeness", most: 5 }, noon)).toMatchObject([
    { host: "s5.example", notBefore: "2030-01-01T12:00:20.000Z", crawler: "politeness" },
  ]);
  expect(await longestWaiting(world.pool, { reason: null, most: 2 }, noon)).toHaveLength(2);
});

it("hosts that are leased, not due, or opted out do not wait", async () => {
  const at = secondsAfterNoon(-8 * 60);
  expect(await queueAges(world.pool, at)).toMatchObject({ hosts: 1 });

  await world.pool.query("update frontier_host set opt_out_id = 1 where host = 's7.example'");
  expect(await queueAges(world.pool, at)).toMatchObject({
    hosts: 0,
    medianSeconds: null,
    oldestSeconds: null,
  });
  await world.pool.query("update frontier_host set opt_out_id = null");
});

describe("large tables", () => {
  it("are sampled, and say so; the longest wait is exact", async () => {
    const many = Array.from({ length: 3000 }, (_, index) => `http://h${index}.example/`);
    await world.frontier.admit(seeds(...many), scope, noon);
    await world.pool.query(
      "update frontier_host set state = 'resolved', due_at = $1::timestamptz - interval '2 min' where host like 'h%'",
      [noon],
    );
    const bytes = 400_000;

    const ages = await queueAges(world.pool, noon, bytes);
    const totals = await crawlTotals(world.pool, bytes);

    expect(ages.isEstimate).toBe(true);
    expect(totals.isEstimate).toBe(true);
    for (const hosts of [ages.hosts, totals.hosts]) {
      expect(hosts).toBeGreaterThan(1000);
      expect(hosts).toBeLessThan(9000);
    }
    expect(ages.medianSeconds).toBe(120);
    expect(ages.oldestSeconds).toBe(480);
    expect(await queueAges(world.pool, noon, bytes)).toEqual(ages);
  });
});

it("a host behind a bot gate does not wait while it rests, and is listed apart", async () => {
  const day = 86_400_000;
  const [since, nextTry] = [new Date(noon.getTime() - 3 * day), new Date(noon.getTime() + day)];
  const challenged = async (host: string, provider: string, at: Date, notBefore: Date) =>
    await world.pool.query(
      `update frontier_host set challenges = 2, challenge_provider = $2, challenge_of = 'page', challenged_since = $3,
         challenged_at = $3, not_before = $4 where host = $1`,
      [host, provider, at, notBefore],
    );
  const waits = async () =>
    (await longestWaiting(world.pool, all, noon)).some(({ host }) => host === "s4.example");

  await challenged("s4.example", "cloudflare", since, nextTry);
  await challenged("s5.example", "anubis", new Date(noon.getTime() - day / 2), nextTry);
  const [whileItRests, gated] = [await waits(), await gatedHosts(world.pool, noon)];
  await challenged("s4.example", "cloudflare", since, noon);
  const afterwards = await waits();
  expect([whileItRests, afterwards]).toEqual([false, true]);
  expect(gated).toMatchObject({
    hosts: 2,
    providers: [
      { provider: "anubis", hosts: 1, newHosts: 1 },
      { provider: "cloudflare", hosts: 1, newHosts: 0 },
    ],
    longest: [
      {
        host: "s4.example",
        provider: "cloudflare",
        since: since.toISOString(),
        tries: 2,
        nextTryAt: nextTry.toISOString(),
      },
      { host: "s5.example" },
    ],
  });
});

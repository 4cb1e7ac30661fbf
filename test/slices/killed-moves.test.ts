/**
 * Hosts move to and fro between four slices on two servers while they are crawled, and at random moments somebody is killed: the
 * coordinator at its work, one of the servers, or whoever moves and carries. After each time every host is with one slice and no
 * visit has counted twice; in the end every URL, link, visit and change is there once.
 */
import { type ChildProcess, fork } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, expect, it } from "vitest";
import { bucketOf } from "#coordinator/database/slices";
import { balanceSlices, moveBuckets } from "#coordinator/slices/slice-writes";
import type { CrawlerId, HostHash } from "#core/ids";
import type { Lease } from "#protocol/lease";
import { SliceServers } from "../support/slice-servers.ts";
import { addSlices, type SlicedWorld, slicedWorld } from "../support/sliced-world.ts";
import { keyOf, scope, seeds, subnet } from "../support/store-world.ts";
import { until } from "../support/until.ts";
import type { Answer, Ask, Role, Visit } from "./working-process.ts";

/** A night: NEARCRAWL_KILLS=50. */
const kills = Number(process.env.NEARCRAWL_KILLS ?? 3);

const victims = ["coordinator", "server", "mover"] as const;

const hosts = Array.from({ length: 40 }, (_, index) => `host-${index}.example`);
const roots = hosts.map((host) => `http://${host}/`);
const urls = [...roots, ...roots.map((root) => `${root}second`)];

let servers: SliceServers;
let world: SlicedWorld;
let crawler: Crawler;
const workers: Worker[] = [];

beforeAll(async () => {
  servers = await SliceServers.begin();
  world = await slicedWorld(servers.shared, { stalledMs: 500 });
  const { pool } = servers.shared;
  const crawlerId = await world.crawlers.register({ name: "athens", keyHash: "key" });
  const subnetId = await subnet(pool, "16.0.0.0", "16.0.0.255");
  await world.delegations.delegateOwnSubnet(subnetId, crawlerId, new Date());
  await world.frontier.admit(seeds(...roots), scope, new Date());
  await world.frontier.saveResolutions(
    hosts.map((host, index) => ({
      ...{ type: "resolved", host, addresses: [`16.0.0.${index + 1}`], subnetId, ttlSeconds: 864_000 },
    })),
    new Date(),
  );
  await addSlices(servers, 4);
  await world.slices.refresh();
  await until(
    async () => (await world.rows("select from delegation join crawler using (crawler_id)")).length === 4,
    10_000,
  );
  crawler = new Crawler(crawlerId);
}, 180_000);
afterAll(async () => {
  await crawler?.stop();
  for (const worker of workers) await worker.kill();
  await world?.close();
  await servers?.close();
});

/** Of numbers that a seed gives: a run that failed can be had again. */
function* random(seed: number) {
  for (let state = seed; ; ) {
    state = (state * 1_103_515_245 + 12_345) % 2 ** 31;
    yield state / 2 ** 31;
  }
}

/** A process of ours, which can be killed and asked. */
class Worker {
  readonly #child: ChildProcess;
  readonly #asked = new Map<
    number,
    { resolve(leases: readonly Lease[]): void; reject(error: Error): void }
  >();
  #number = 0;

  private constructor(role: Role) {
    this.#child = fork(
      join(import.meta.dirname, "working-process.ts"),
      [role, servers.url(0), servers.shared.schema],
      {
        execArgv: ["--conditions=nearcrawl-source", "--import", "tsx"],
        stdio: ["ignore", "ignore", "inherit", "ipc"],
      },
    );
    this.#child.on("message", (answer: Answer) => {
      const asked = this.#asked.get(answer.number);
      this.#asked.delete(answer.number);
      if ("fault" in answer) asked?.reject(new Error(answer.fault));
      else asked?.resolve(answer.leases);
    });
    this.#child.on("exit", () => {
      for (const { reject } of this.#asked.values()) reject(new Error("it was killed"));
      this.#asked.clear();
    });
  }

  /** Resolves when it works. */
  static async start(role: Role): Promise<Worker> {
    const worker = new Worker(role);
    workers.push(worker);
    await once(worker.#child, "message");
    return worker;
  }

  async ask(ask: Ask): Promise<readonly Lease[]> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) throw new Error("it was killed");
    this.#number += 1;
    const number = this.#number;
    return await new Promise((resolve, reject) => {
      this.#asked.set(number, { resolve, reject });
      this.#child.send({ number, ask });
    });
  }

  async kill(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const gone = once(this.#child, "exit");
    this.#child.kill("SIGKILL");
    await gone;
  }
}

/**
 * A crawler whose coordinator may be killed: what was not acknowledged is sent again, under the same numbers, and a session begins
 * with what it holds. Each visit of a page finds another body, and other links.
 */
class Crawler {
  readonly id: CrawlerId;
  #coordinator: Worker | null = null;
  #isGreeted = false;
  #turn: Promise<void> = Promise.resolve();
  #state: "works" | "rests" | "stopped" = "rests";
  #sequence = 0;
  #spool: Visit[] = [];
  #stored = 0;
  /** By URL, in their order. */
  readonly visits = new Map<string, Visit[]>();

  constructor(id: CrawlerId) {
    this.id = id;
    void this.#crawl();
  }

  /** From now on. */
  connect(coordinator: Worker): void {
    this.#coordinator = coordinator;
    this.#isGreeted = false;
  }

  work(): void {
    this.#state = "works";
  }

  /** Resolves when so many visits more are stored; on a busy machine, after so long. */
  async crawled(visits: number, withinMs: number): Promise<void> {
    const end = this.#stored + visits;
    const endMs = performance.now() + withinMs;
    while (this.#stored < end && performance.now() < endMs) await delay(5);
  }

  /** Resolves when nothing of it is under way. */
  async rest(): Promise<void> {
    this.#state = "rests";
    await this.#turn;
  }

  async stop(): Promise<void> {
    await this.rest();
    this.#state = "stopped";
  }

  /** What it has found is stored. */
  async empty(): Promise<void> {
    while (this.#spool.length > 0 || !this.#isGreeted) {
      await this.#step(this.#coordinator!, { isLast: true });
    }
  }

  async #crawl(): Promise<void> {
    while (this.#state !== "stopped") {
      const coordinator = this.#coordinator;
      if (this.#state === "works" && coordinator !== null)
        this.#turn = this.#step(coordinator).catch(() => {
          this.#isGreeted = false;
        });
      await this.#turn;
      await delay(this.#isGreeted ? 1 : 50);
    }
  }

  async #step(coordinator: Worker, { isLast = false } = {}): Promise<void> {
    const crawlerId = this.id;
    if (!this.#isGreeted) {
      const held = [...new Set(this.#spool.map(({ leaseId }) => leaseId))];
      await coordinator.ask({ type: "hello", crawlerId, held });
      this.#isGreeted = true;
    }
    const visits = this.#spool.slice(0, 20);
    if (visits.length > 0) {
      await coordinator.ask({ type: "take", crawlerId, visits });
      this.#spool = this.#spool.slice(visits.length);
      this.#stored += visits.length;
    } else if (!isLast)
      for (const lease of await coordinator.ask({ type: "lease", crawlerId, hosts: 8 })) this.#fetch(lease);
  }

  #fetch({ leaseId, urls: leased }: Lease): void {
    for (const { url } of leased) {
      const before = this.visits.get(url) ?? [];
      this.visits.set(url, before);
      const at = before.length;
      this.#sequence += 1;
      const digest = createHash("sha256").update(`${url} ${at}`).digest("hex");
      const fetchedAt = new Date().toISOString();
      const visit = { sequence: this.#sequence, leaseId, url, links: linksOf(url, at), digest, fetchedAt };
      before.push(visit);
      this.#spool.push(visit);
    }
  }
}

/**
 * Two thirds of all roots, others on each visit, and the second pages of its own host and the next one. A link that comes and goes
 * while its page's host moves may be told in the other order, and nothing counts less than 0 links: of pages that many link to that
 * makes no difference.
 */
function linksOf(url: string, visit: number): string[] {
  const own = urls.indexOf(url) % hosts.length;
  const seconds = [own, own + 1].map((index) => urls[hosts.length + (index % hosts.length)]!);
  const found = roots.filter((_, index) => (own + index + visit) % 3 !== 0);
  return [...found, ...seconds].filter((link) => link !== url);
}

it(`loses and doubles nothing when a coordinator, a server and the mover are killed in turns, ${kills} times`, async () => {
  const numbers = random(Number(process.env.NEARCRAWL_SEED ?? 7));
  const next = () => numbers.next().value as number;
  const processes = { coordinator: await Worker.start("coordinator"), mover: await Worker.start("mover") };
  crawler.connect(processes.coordinator);
  let named = 0;
  for (let kill = 0; kill < kills; kill++) {
    const victim = victims[kill % victims.length]!;
    await planMove(kill);
    crawler.work();
    if (victim !== "server") {
      // People name the same URLs again, as links: each counts once more, wherever its host is at the moment.
      for (const root of roots)
        await world.frontier.admit([{ key: keyOf(root), depth: 1 }], scope, new Date());
      named += 1;
    }
    await crawler.crawled(next() * 100, 5000);
    await delay(next() * 500);
    if (victim === "server") {
      const server = next() < 0.5 ? 0 : 1;
      await servers.kill(server);
      await delay(next() * 300);
      await servers.start(server);
    } else {
      await processes[victim].kill();
      processes[victim] = await Worker.start(victim);
      if (victim === "coordinator") crawler.connect(processes.coordinator);
    }
    await delay(next() * 500);
    await crawler.rest();
    await Promise.all(Object.values(processes).map(async (one) => await one.ask({ type: "pause" })));
    expect(await faults(), `after ${kill + 1} kills, the last one of the ${victim}`).toEqual([]);
    await Promise.all(Object.values(processes).map(async (one) => await one.ask({ type: "resume" })));
  }
  crawler.connect(processes.coordinator);
  await crawler.empty();
  await until(async () => (await world.slices.refresh()).moves.length === 0, 60_000);
  for (const one of Object.values(processes)) await one.kill();
  // What they were killed over is anybody's a moment later.
  await until(async () => {
    await world.carryAll(new Date());
    return (await world.rows("select from link_outbox")).length === 0;
  }, 60_000);

  expect(await faults()).toEqual([]);
  expect((await found()).map(wordsOf)).toEqual(expected(named).map(wordsOf));
  expect(await changes()).toEqual(
    [...crawler.visits.values()]
      .flat()
      .map(({ digest }) => digest)
      .sort(),
  );
  expect(await world.rows("select from lease where closed_at is null")).toEqual([]);
  const leases = await world.frontier.leaseHosts({
    ...{
      crawlerId: crawler.id,
      hosts: 100,
      urlsPerHost: 10,
      leaseSeconds: 60,
      addressRestSeconds: 0,
      // Turns at addresses that a coordinator had taken when it was killed have run out by then (address-turn-writes).
      now: new Date(Date.now() + 2 * 3_600_000),
    },
  });
  expect(leases.map(({ host }) => host).sort()).toEqual([...hosts].sort());
}, 900_000);

/** Of a whole slice to the next one, where nothing moves. */
async function planMove(turn: number): Promise<void> {
  const { moves, slices, ranges } = await world.slices.refresh();
  if (moves.length > 0) return;
  const from = turn % slices.length;
  const range = ranges.find(({ slice }) => slice === from);
  if (range === undefined) return void (await balanceSlices(servers.shared, "test"));
  const buckets = { first: range.first, end: range.end };
  await moveBuckets(servers.shared, { buckets, from, to: (from + 1) % slices.length }, "test");
}

/** What must not be at any moment, while nobody writes. */
async function faults(): Promise<string[]> {
  const { moves, slices } = await world.slices.refresh();
  const held = await world.rows<{ held: string }>("select held::text as held from slice_self");
  const rows = await world.rows<{ host: string; host_hash: HostHash }>(
    "select host, host_hash from frontier_host",
  );
  const pages = await world.rows<{ host_hash: HostHash; url: string; visits: number; fetches: number }>(
    `select u.host_hash, u.url, u.visits,
       (select count(*)::int from page_fetch f where f.host_hash = u.host_hash and f.url_hash = u.url_hash) as fetches
     from frontier_url u`,
  );
  const leases = await world.rows<{ host_hash: HostHash }>(
    "select host_hash from lease where closed_at is null",
  );
  return hosts.flatMap((host) => {
    const { hostHash } = keyOf(`http://${host}/`);
    const bucket = bucketOf(hostHash);
    const holders = held.filter((one) =>
      rangesOf(one.held).some(([first, end]) => first <= bucket && bucket < end),
    );
    const move = moves.find(({ buckets }) => buckets.first <= bucket && bucket < buckets.end);
    const owner = holders[0]?.slice ?? move?.from;
    const there = rows.filter((row) => row.host_hash === hostHash).map(({ slice }) => slice);
    const strangers = there.filter((slice) => slice !== owner && slice !== move?.from && slice !== move?.to);
    const own = pages.filter((page) => page.slice === owner && page.host_hash === hostHash);
    return [
      ...(holders.length > 1 ? [`${host}: held by ${holders.map(({ slice }) => slice)}`] : []),
      ...(owner === undefined ? [`${host}: held by none of ${slices.length}, and does not move`] : []),
      ...(owner !== undefined && !there.includes(owner)
        ? [`${host}: not in slice ${owner}, but in ${there}`]
        : []),
      ...(strangers.length > 0 ? [`${host}: of slice ${owner}, in ${strangers} as well`] : []),
      ...(leases.filter((lease) => lease.host_hash === hostHash).length > 1 ? [`${host}: leased twice`] : []),
      ...own.flatMap(({ url, visits, fetches }) => {
        const made = crawler.visits.get(url)?.length ?? 0;
        return visits === fetches && visits <= made
          ? []
          : [`${url}: ${visits} visits, ${fetches} fetches, ${made} made`];
      }),
    ];
  });
}

const rangesOf = (held: string) =>
  [...held.matchAll(/\[(\d+),(\d+)\)/g)].map(([, first, end]) => [Number(first), Number(end)] as const);

interface Found {
  readonly url: string;
  /** Where it lies, which is where its owner is. */
  readonly slice: number;
  readonly visits: number;
  readonly fetches: number;
  readonly digest: string | null;
  readonly links: number;
}

const wordsOf = (one: Found) => JSON.stringify(one, ["url", "slice", "visits", "fetches", "digest", "links"]);

async function found(): Promise<Found[]> {
  const rows = await world.rows<Omit<Found, "slice">>(
    `select u.url, u.visits, u.back_links as links, p.digest,
       (select count(*)::int from page_fetch f where f.host_hash = u.host_hash and f.url_hash = u.url_hash) as fetches
     from frontier_url u
     left join page p using (host_hash, url_hash)`,
  );
  return rows.sort((a, b) => urls.indexOf(a.url) - urls.indexOf(b.url));
}

/** `named`: how often people named the roots. */
function expected(named: number): Found[] {
  const last = [...crawler.visits.values()].map((visits) => visits.at(-1)!);
  return urls.map((url) => {
    const visits = crawler.visits.get(url) ?? [];
    const linking = last.filter(({ links }) => links.includes(url)).length;
    return {
      ...{
        url,
        slice: world.slices.ownerOf(keyOf(url).hostHash),
        visits: visits.length,
        fetches: visits.length,
      },
      digest: visits.at(-1)?.digest ?? null,
      links: linking + (roots.includes(url) ? named : 0),
    };
  });
}

/** The body that each change told of found. */
async function changes(): Promise<string[]> {
  const rows = await world.rows<{ digest: string }>(
    `select digest_after as digest from page_change where kind in ('first-seen', 'changed')
     union all
     select digest_after from page_change_inbox where kind in ('first-seen', 'changed')`,
  );
  return rows.map(({ digest }) => digest).sort();
}

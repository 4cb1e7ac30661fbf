/**
 * Hosts move to and fro between four slices on two servers while URLs come in, and whoever moves and carries is killed at random
 * moments; so is a server. In the end each host lies where the catalogue says, with every URL and every link once.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, expect, it } from "vitest";
import { balanceSlices, moveBuckets } from "#coordinator/slices/slice-writes";
import { SliceServers } from "../support/slice-servers.ts";
import { addSlices, type SlicedWorld, slicedWorld } from "../support/sliced-world.ts";
import { keyOf, noon, scope, seeds } from "../support/store-world.ts";

/** A night: NEARCRAWL_KILLS=50. */
const kills = Number(process.env.NEARCRAWL_KILLS ?? 4);

let servers: SliceServers;
let world: SlicedWorld;
beforeAll(async () => {
  servers = await SliceServers.begin();
  world = await slicedWorld(servers.shared);
  await world.frontier.admit(seeds(...hosts.map((host) => `http://${host}/`)), scope, noon);
  await addSlices(servers, 4);
}, 120_000);
afterAll(async () => {
  await world?.close();
  await servers?.close();
});

const hosts = Array.from({ length: 60 }, (_, index) => `host-${index}.example`);

function startMover(): ChildProcess {
  const script = join(import.meta.dirname, "moving-process.ts");
  const { schema } = servers.shared;
  return spawn(
    process.execPath,
    ["--conditions=nearcrawl-source", "--import", "tsx", script, servers.url(0), schema],
    { stdio: ["ignore", "pipe", "ignore"] },
  );
}

/** Of numbers that a seed gives: a run that failed can be had again. */
function* random(seed: number) {
  for (let state = seed; ; ) {
    state = (state * 1_103_515_245 + 12_345) % 2 ** 31;
    yield state / 2 ** 31;
  }
}

it(`loses and doubles nothing when the mover is killed ${kills} times, and a server now and then`, async () => {
  const numbers = random(7);
  const next = () => numbers.next().value as number;
  let rounds = 0;
  for (let kill = 0; kill < kills; kill++) {
    // People name the same URLs again, as links: each counts once more, wherever its host is at the moment.
    const links = hosts.map((host) => ({ key: keyOf(`http://${host}/`), depth: 1 }));
    const mover = startMover();
    await once(mover.stdout!, "data");
    const isServers = kill % 4 === 3;
    const killing = isServers ? null : delay(next() * 1500).then(() => mover.kill("SIGKILL"));
    await world.slices.refresh();
    for (const link of links) await world.frontier.admit([link], scope, noon);
    rounds += 1;
    await killing;
    if (isServers) {
      // Nobody else writes, for whom a commit would be in doubt.
      await delay(next() * 1500);
      await servers.kill(1);
      await delay(next() * 300);
      mover.kill("SIGKILL");
      await servers.start(1);
    }
    const { moves, slices } = await world.slices.refresh();
    if (moves.length === 0 && kill < kills - 1) {
      const from = kill % slices.length;
      const [range] = world.slices.catalogue.ranges.filter((one) => one.slice === from);
      if (range === undefined) await balanceSlices(servers.shared, "test");
      else {
        const buckets = { first: range.first, end: range.end };
        await moveBuckets(servers.shared, { buckets, from, to: (from + 1) % slices.length }, "test");
      }
    }
  }
  await world.moveAll();
  await world.carryAll();

  const { owners, moves } = await world.slices.refresh();
  const found = await world.rows<{ host: string; host_hash: string; lease_id: string | null }>(
    "select host, host_hash, lease_id from frontier_host",
  );
  const urls = await world.rows<{ url: string; back_links: number }>(
    "select url, back_links from frontier_url",
  );
  expect(moves).toEqual([]);
  expect(found.map(({ host }) => host).sort()).toEqual([...hosts].sort());
  expect(found.filter((row) => owners.ofHost(row.host_hash as never) !== row.slice)).toEqual([]);
  expect(found.filter((row) => row.lease_id !== null)).toEqual([]);
  expect(urls.map(({ url }) => url).sort()).toEqual(hosts.map((host) => `http://${host}/`).sort());
  expect(new Set(urls.map(({ back_links }) => back_links))).toEqual(new Set([rounds]));
  expect(await world.rows("select from link_outbox")).toEqual([]);
}, 600_000);

/**
 * A small world for flows: real stores, a registry of /24s in 5.1.0.0/16 with one host each, and a fleet that answers probes
 * from a table.
 */

import { readWhatIsKnown } from "#coordinator/load-state";
import { DayBudget, type Fleet } from "#coordinator/place/crawlers/crawler";
import { CoordinatorState } from "#coordinator/place/delegation/state";
import { createSubnetStore } from "#coordinator/place/subnets/subnet-store";
import type { CrawlerId, SubnetId } from "#core/ids";
import type { CrawlerHello, ProbeOutcome } from "#protocol/messages";
import { newWorld, noon, scope, seeds, worldOfFile } from "./store-world.ts";

export const hello = (name: string, differences: Partial<CrawlerHello> = {}): CrawlerHello => ({
  type: "crawler:hello",
  protocolVersions: [1],
  name,
  key: "k".repeat(32),
  softwareVersion: "0.1.0",
  spoolId: "00000000-0000-4000-8000-000000000001",
  heldLeases: [],
  publicAddress: null,
  place: null,
  capabilities: { probeMethods: ["head", "connect"], ipv6: false },
  limits: { pagesPerDay: 1000, bytesPerDay: 1e12, concurrentHosts: 10 },
  ...differences,
});

export async function newFlowWorld() {
  const world = await newWorld();
  const subnets = createSubnetStore(world.pool);

  /** Adds the /24 with this number, with http://s<number>.example/ at 5.1.<number>.7 resolved and due. */
  const site = async (number: number, ...paths: string[]): Promise<SubnetId> => {
    const subnetId = await world.subnet(`5.1.${number}.0`, `5.1.${number}.255`);
    const urls = ["", ...paths].map((path) => `http://s${number}.example/${path}`);
    await world.frontier.admit(seeds(...urls), scope, noon);
    await world.resolve(`s${number}.example`, `5.1.${number}.7`, subnetId);
    return subnetId;
  };

  /** The memory of a coordinator that starts now. */
  const state = async (budget = new DayBudget()): Promise<CoordinatorState> => {
    const known = new CoordinatorState();
    await readWhatIsKnown({ ...world, subnets, state: known, budget }, noon);
    return known;
  };

  /** Adds an online crawler of 1000 pages a day. */
  const arrived = async (name: string, pagesPerDay = 1000): Promise<CrawlerId> => {
    const crawlerId = await world.crawler(name);
    const limits = { pagesPerDay, bytesPerDay: 1e12, concurrentHosts: 10 };
    const spoken = hello(name, { limits });
    await world.crawlers.arrive({ crawlerId, hello: spoken, address: null, subnetId: null, now: noon });
    return crawlerId;
  };

  return { ...world, subnets, site, state, arrived };
}

/** Created before the file's tests, emptied before each of them, closed after them. */
export const flowWorld = (): FlowWorld => worldOfFile(newFlowWorld);

export type FlowWorld = Awaited<ReturnType<typeof newFlowWorld>>;

export type Answer = number | ProbeOutcome;

/** Answers by address and crawler, several in order; whoever is not in the table stays silent. */
export class TableFleet implements Fleet {
  readonly asked: { readonly crawlerId: CrawlerId; readonly address: string }[] = [];
  readonly targets: Parameters<Fleet["probe"]>[1][] = [];
  /** Awaited before each answer. */
  before: () => Promise<void> = async () => {};
  readonly #table: Readonly<Record<string, ReadonlyMap<CrawlerId, Answer | readonly Answer[]>>>;
  #online: readonly CrawlerId[];

  constructor(
    online: readonly CrawlerId[],
    table: Readonly<Record<string, ReadonlyMap<CrawlerId, Answer | readonly Answer[]>>> = {},
  ) {
    this.#online = online;
    this.#table = table;
  }

  online(): readonly CrawlerId[] {
    return this.#online;
  }

  goOnline(...crawlerIds: readonly CrawlerId[]): void {
    this.#online = crawlerIds;
  }

  async probe(crawlerId: CrawlerId, target: Parameters<Fleet["probe"]>[1]): Promise<ProbeOutcome> {
    this.asked.push({ crawlerId, address: target.address });
    this.targets.push(target);
    await this.before();
    const told = this.#table[target.address]?.get(crawlerId);
    const times = this.asked.filter(
      (one) => one.crawlerId === crawlerId && one.address === target.address,
    ).length;
    const answer = Array.isArray(told)
      ? told[Math.min(times, told.length) - 1]
      : (told as Answer | undefined);
    if (answer === undefined) return { type: "timed-out", method: target.method, reason: "3000 ms" };
    if (typeof answer !== "number") return answer;
    return { type: "measured", method: target.method, rttMs: answer, tries: target.tries };
  }
}

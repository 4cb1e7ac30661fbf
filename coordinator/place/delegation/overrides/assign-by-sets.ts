/**
 * Assigns hosts by domain sets: a host's crawler must both be near (own its subnet) and hold the host by its sets (WEB-SAILOR
 * section 3.1). A subnet goes to the nearest crawler that may have any of its hosts. Its other hosts go to the nearest
 * crawlers that hold them, by one probe round per group of hosts with the same possible crawlers. If a subnet's crawler may
 * no longer have any of its hosts, the whole subnet is probed again.
 *
 * A host's language is known once its pages are fetched. Until then every language's set may hold it, so the nearest crawler
 * by name gets it. Afterwards the nearest that holds the language gets it.
 *
 * Hosts that no set holds wait, because no host is leased to a crawler that does not hold it (frontier/due-host-reads). When
 * sets change, open leases finish and hosts move with the next passes.
 */

import type { RoundCause } from "#core/explanation";
import type { CrawlerId, HostHash, SubnetId } from "#core/ids";
import type { DomainSetStore } from "../../domain-sets/domain-set-store.ts";
import { type Partition, partitionHolds, partitionOf } from "../../domain-sets/partition.ts";
import type { HeldHosts } from "../denied-targets.ts";
import type { CoordinatorState } from "../state.ts";
import type { MisplacedHost, MisplacedHostStore } from "./misplaced-host-store.ts";
import { type FinerRoundPorts, finerRound } from "./round.ts";

export interface DelegateBySetsPorts extends FinerRoundPorts {
  readonly misplacedHosts: MisplacedHostStore;
  readonly request: (subnetIds: readonly SubnetId[], cause: RoundCause) => void;
  /** The crawler's domain sets combined with the coordinator's. */
  readonly partitionOf: (crawlerId: CrawlerId) => Partition;
}

/** Maximum hosts of one crawler, and probe rounds, per pass. */
const hostsPerPass = 500;

const roundsPerPass = 32;

/** The same as the subnets' refresh interval (recalibration.refreshDays). */
const reviewMs = 30 * 86_400_000;

/** Makes one pass. Returns how many hosts got a crawler of their own and how many returned to that of their subnet. */
export async function delegateBySets(
  ports: DelegateBySetsPorts,
): Promise<{ readonly moved: number; readonly ended: number }> {
  const { misplacedHosts, fleet, state } = ports;
  const crawlers = state.crawlers.map(({ crawlerId }) => ({
    crawlerId,
    partition: ports.partitionOf(crawlerId),
  }));
  const hadSome = await misplacedHosts.hasDelegated();
  if (!hadSome && crawlers.every(({ partition }) => partition.length === 0)) return { moved: 0, ended: 0 };
  let ended = 0;
  for (const crawler of hadSome ? crawlers : [])
    ended += await misplacedHosts.endNeedless(crawler, ports.now());
  const full = ports.excluded();
  const able = fleet
    .online()
    .filter((crawlerId) => !full.has(crawlerId) && state.crawler(crawlerId)?.drainingSince == null);
  const others = distinctPartitions(able.map(ports.partitionOf));
  let rounds = roundsPerPass;
  let moved = 0;
  for (const crawler of crawlers) {
    if (crawler.partition.length === 0 || rounds === 0) continue;
    const hosts = await misplacedHosts.misplaced(crawler, others, hostsPerPass);
    const useless = await uselessSubnets(hosts, crawler, ports);
    const apart = hosts.filter(({ subnetId }) => !useless.includes(subnetId));
    const chosen = groups(apart, able, ports).slice(0, rounds);
    rounds -= chosen.length;
    // The rounds run concurrently, since each probe is paced by itself (delegation/probe-pacing).
    const given = await Promise.all(chosen.map(async (together) => await delegateTogether(together, ports)));
    moved += given.reduce((sum, hostsGiven) => sum + hostsGiven, 0);
  }
  return { moved, ended };
}

/** Requests new rounds for subnets of which the crawler may have no host. */
async function uselessSubnets(
  hosts: readonly MisplacedHost[],
  crawler: { readonly crawlerId: CrawlerId; readonly partition: Partition },
  { misplacedHosts, request }: DelegateBySetsPorts,
): Promise<readonly SubnetId[]> {
  if (hosts.length === 0) return [];
  const subnetIds = [...new Set(hosts.map(({ subnetId }) => subnetId))];
  const useless = await misplacedHosts.holdsNothingOf(crawler, subnetIds);
  if (useless.length > 0) request(useless, "domain-set");
  return useless;
}

/** Hosts of one subnet that the same crawlers may have. */
interface HostsTogether {
  readonly hosts: MisplacedHost[];
  readonly crawlers: readonly CrawlerId[];
}

function groups(
  hosts: readonly MisplacedHost[],
  able: readonly CrawlerId[],
  { partitionOf, denied }: DelegateBySetsPorts,
): HostsTogether[] {
  const found = new Map<string, HostsTogether>();
  for (const host of hosts) {
    const crawlers = able.filter(
      (crawlerId) =>
        partitionHolds(partitionOf(crawlerId), host) && !denied?.lacksFamily(crawlerId, host.address),
    );
    if (crawlers.length === 0) continue;
    const key = `${host.subnetId}/${crawlers.join()}`;
    const together = found.get(key) ?? { hosts: [], crawlers };
    together.hosts.push(host);
    found.set(key, together);
  }
  return [...found.values()];
}

async function delegateTogether(
  { hosts, crawlers }: HostsTogether,
  ports: DelegateBySetsPorts,
): Promise<number> {
  const [{ host, url, address, subnetId }] = hosts as [MisplacedHost];
  const errand = { target: { url, host, address }, withinSubnetId: subnetId, only: crawlers };
  const outcome = await finerRound({ ...errand, cause: "domain-set" }, ports);
  if (outcome === null) return 0;
  // If no crawler could measure, any crawler that holds the hosts gets them.
  const unmeasured = { crawlerId: crawlers[0]!, rttMs: null, runnerUpId: null, runnerUpRttMs: null };
  const now = ports.now();
  return await ports.misplacedHosts.delegate(
    {
      ...(outcome.decision ?? unmeasured),
      roundId: outcome.roundId,
      subnetId,
      hosts: hosts.map(({ hostHash }) => hostHash),
      reason: reasonOf(hosts.length, outcome.decision !== null),
    },
    { now, reviewAt: new Date(now.getTime() + reviewMs) },
  );
}

function reasonOf(hosts: number, measured: boolean): string {
  const [which, them] = hosts === 1 ? ["a host of it is", "it"] : [`${hosts} hosts of it are`, "them"];
  const whose = `${which} in none of its crawler's domain sets`;
  return `${whose}; this crawler is ${measured ? "the nearest" : "one"} of those whose sets hold ${them}`;
}

// Determines which hosts crawlers may have by their own and the coordinator's domain sets.

type Fleet = Pick<CoordinatorState, "crawlers" | "crawler">;

export function partitionsOfFleet(
  state: Pick<CoordinatorState, "crawler">,
  config: { readonly domainSets: readonly string[] },
): (crawlerId: CrawlerId) => Partition {
  const own = partitionOf(config.domainSets);
  return (crawlerId) => {
    const partition = state.crawler(crawlerId)?.partition ?? [];
    return own.length === 0 ? partition : [...own, ...partition];
  };
}

/**
 * Candidates for a subnet may have at least one of its hosts. So the nearest of them is the nearest for the hosts it
 * holds, and the others are assigned one by one (`delegateBySets`).
 */
export function heldHosts(state: Fleet, config: { readonly domainSets: readonly string[] }): HeldHosts {
  const partitionOfCrawler = partitionsOfFleet(state, config);
  return {
    isPartitioned: () =>
      config.domainSets.length > 0 || state.crawlers.some(({ partition }) => partition !== undefined),
    holds: (crawlerId, hosts) => {
      const partition = partitionOfCrawler(crawlerId);
      return partition.length === 0 || hosts.some((host) => partitionHolds(partition, host));
    },
  };
}

/** Distinct partitions of the connected crawlers. Empty if no crawler has domain sets. */
export function heldBySomebody(
  fleet: { readonly online: () => readonly CrawlerId[] },
  state: Fleet,
  config: { readonly domainSets: readonly string[] },
): readonly Partition[] {
  if (!heldHosts(state, config).isPartitioned()) return [];
  return distinctPartitions(fleet.online().map(partitionsOfFleet(state, config)));
}

function distinctPartitions(partitions: readonly Partition[]): Partition[] {
  return [...new Map(partitions.map((partition) => [keyOf(partition), partition])).values()];
}

function keyOf(partition: Partition): string {
  return JSON.stringify(
    partition.map((layer) => layer.map(({ names, languages }) => [[...names], [...languages]])),
  );
}

// Updates hosts' languages when pages arrive, and once for all hosts that already had pages. If no domain set names a
// language, languages are only displayed, so they are updated at the first page and from time to time. A host's language is
// that of most of its pages. Until it is known, every language's set may hold the host.

/** Hosts of known language checked again per pass when no set depends on it. */
const lookedAtAgain = 20;

const mostNoted = 20_000;

export class HostLanguages {
  readonly #store: Pick<DomainSetStore, "refreshLanguages" | "hostsWithPages" | "hostsWithoutLanguage">;
  readonly #noted = new Set<HostHash>();
  /** Progress of the initial scan. `done` at its end. */
  #seen: HostHash | "done" | null = null;

  constructor(store: Pick<DomainSetStore, "refreshLanguages" | "hostsWithPages" | "hostsWithoutLanguage">) {
    this.#store = store;
  }

  note(hosts: readonly HostHash[]): void {
    for (const host of hosts) {
      if (this.#noted.size >= mostNoted) return;
      this.#noted.add(host);
    }
  }

  /** Returns how many hosts changed their language. `all` checks every host with new pages. */
  async pass({ all }: { readonly all: boolean }): Promise<number> {
    const noted = [...this.#noted].slice(0, hostsPerPass);
    for (const host of noted) this.#noted.delete(host);
    const asked = all
      ? noted
      : [...(await this.#store.hostsWithoutLanguage(noted)), ...noted.slice(0, lookedAtAgain)];
    const earlier = await this.#earlier();
    return await this.#store.refreshLanguages([...new Set([...asked, ...earlier])]);
  }

  async #earlier(): Promise<HostHash[]> {
    if (this.#seen === "done") return [];
    const hosts = await this.#store.hostsWithPages(this.#seen, hostsPerPass);
    this.#seen = hosts.at(-1) ?? "done";
    return hosts;
  }
}

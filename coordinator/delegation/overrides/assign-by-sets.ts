/**
 * A host's crawler must have its subnet and hold it by its domain sets, both (WEB-SAILOR section 3.1 beside the nearest
 * crawler). A subnet goes to the nearest crawler that may have any of its hosts, and so to the nearest for each that this
 * one may have. The others are delegated one by one to the nearest crawler among those whose sets hold them, by one probe
 * round for all of a subnet that the same crawlers may have. A subnet whose crawler may have none of its hosts any more
 * is probed anew as a whole.
 *
 * A host's language is known once pages of it were fetched. Until then every language's set may hold it, so that it is
 * crawled by whoever is nearest by name; afterwards, by the nearest that holds the language.
 *
 * Hosts that nobody's sets hold wait where they are; nothing is leased to a crawler that does not hold it
 * (frontier/due-host-reads). When sets change, open leases finish, and hosts move with the next passes.
 */

import type { CrawlerId, SubnetId } from "#core/ids";
import type { DomainSetStore, MisplacedHost } from "../../domain-sets/domain-set-store.ts";
import { type Partition, partitionHolds } from "../../domain-sets/partition.ts";
import type { RoundCause } from "../delegation.ts";
import { distinctPartitions } from "./held-hosts.ts";
import { type FinerRoundPorts, finerRound } from "./round.ts";

export interface DelegateBySetsPorts extends FinerRoundPorts {
  readonly domainSets: Pick<
    DomainSetStore,
    "misplaced" | "holdsNothingOf" | "delegate" | "endNeedless" | "hasDelegated"
  >;
  /** Asks for new rounds for whole subnets. */
  readonly request: (subnetIds: readonly SubnetId[], cause: RoundCause) => void;
  /** What a crawler may have, with the coordinator's own sets. */
  readonly partitionOf: (crawlerId: CrawlerId) => Partition;
}

/** Hosts of one crawler, and probe rounds, in one pass. */
const hostsPerPass = 500;
const roundsPerPass = 32;
/** Looked at again as old decisions of subnets are (policies' recalibration.refreshDays). */
const reviewMs = 30 * 86_400_000;

/** One pass; returns how many hosts went to a crawler of their own, and how many go with their subnets again. */
export async function delegateBySets(
  ports: DelegateBySetsPorts,
): Promise<{ readonly moved: number; readonly ended: number }> {
  const crawlers = ports.state.crawlers.map(({ crawlerId }) => crawlerId);
  const isPartitioned = crawlers.some((crawlerId) => ports.partitionOf(crawlerId).length > 0);
  const hadSome = await ports.domainSets.hasDelegated();
  if (!isPartitioned && !hadSome) return { moved: 0, ended: 0 };
  const ended = hadSome ? await endNeedless(crawlers, ports) : 0;
  return { moved: await moveMisplaced(crawlers, ports), ended };
}

async function endNeedless(crawlers: readonly CrawlerId[], ports: DelegateBySetsPorts): Promise<number> {
  let ended = 0;
  for (const crawlerId of crawlers) {
    const partition = ports.partitionOf(crawlerId);
    ended += await ports.domainSets.endNeedless({ crawlerId, partition }, ports.now());
  }
  return ended;
}

async function moveMisplaced(crawlers: readonly CrawlerId[], ports: DelegateBySetsPorts): Promise<number> {
  const able = candidates(ports);
  const others = distinctPartitions(able.map((crawlerId) => ports.partitionOf(crawlerId)));
  let rounds = roundsPerPass;
  let moved = 0;
  for (const crawlerId of crawlers) {
    const partition = ports.partitionOf(crawlerId);
    if (partition.length === 0 || rounds === 0) continue;
    const crawler = { crawlerId, partition };
    const hosts = await ports.domainSets.misplaced(crawler, others, hostsPerPass);
    const useless = await uselessSubnets(hosts, crawler, ports);
    const apart = hosts.filter(({ subnetId }) => !useless.has(subnetId));
    const chosen = groups(apart, able, ports).slice(0, rounds);
    rounds -= chosen.length;
    // Side by side: each probe waits for its turn by itself (delegation/probe-pacing).
    const given = await Promise.all(chosen.map(async (together) => await delegateTogether(together, ports)));
    moved += given.reduce((sum, hostsGiven) => sum + hostsGiven, 0);
  }
  return moved;
}

/** Subnets of which the crawler may have nothing: asked for anew, as a whole. */
async function uselessSubnets(
  hosts: readonly MisplacedHost[],
  crawler: { readonly crawlerId: CrawlerId; readonly partition: Partition },
  { domainSets, request }: DelegateBySetsPorts,
): Promise<ReadonlySet<SubnetId>> {
  if (hosts.length === 0) return new Set();
  const subnetIds = [...new Set(hosts.map(({ subnetId }) => subnetId))];
  const useless = await domainSets.holdsNothingOf(crawler, subnetIds);
  if (useless.length > 0) request(useless, "domain-set");
  return new Set(useless);
}

/** Crawlers that may be given something now. */
function candidates({ fleet, excluded, state }: DelegateBySetsPorts): CrawlerId[] {
  const full = excluded();
  return fleet
    .online()
    .filter((crawlerId) => !full.has(crawlerId) && state.crawler(crawlerId)?.drainingSince == null);
}

/** Of one subnet, all of which the same crawlers may have. */
interface HostsTogether {
  readonly hosts: readonly MisplacedHost[];
  readonly crawlers: readonly CrawlerId[];
}

function groups(
  hosts: readonly MisplacedHost[],
  able: readonly CrawlerId[],
  { partitionOf }: DelegateBySetsPorts,
): HostsTogether[] {
  const found = new Map<string, { hosts: MisplacedHost[]; crawlers: readonly CrawlerId[] }>();
  for (const host of hosts) {
    const crawlers = able.filter((crawlerId) => partitionHolds(partitionOf(crawlerId), host));
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
  const outcome = await finerRound(
    {
      ...{ target: { url, host, address }, withinSubnetId: subnetId },
      ...{ cause: "domain-set", first: [], byName: false, only: crawlers },
    },
    ports,
  );
  if (outcome === null) return 0;
  // Nobody could measure: somebody who holds the hosts crawls them all the same.
  const unmeasured = { crawlerId: crawlers[0]!, rttMs: null, runnerUpId: null, runnerUpRttMs: null };
  const now = ports.now();
  return await ports.domainSets.delegate(
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
  const whose =
    hosts === 1
      ? "a host of it is in none of its crawler's domain sets"
      : `${hosts} hosts of it are in none of its crawler's domain sets`;
  return `${whose}; this crawler is ${measured ? "the nearest" : "one"} of those whose sets hold ${hosts === 1 ? "it" : "them"}`;
}

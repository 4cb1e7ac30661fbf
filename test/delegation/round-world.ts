/** Rounds in the small world of the flow tests, with crawlers in countries, distances between them, and holders. */

import type { FinishedRound, WaitingSubnet } from "#coordinator/place/delegation/delegation";
import { defaultParameters } from "#coordinator/place/delegation/policies/round";
import { delegateSubnet, type RoundPorts } from "#coordinator/place/delegation/probe-round";
import { DelegationQueue, type QueuePorts } from "#coordinator/place/delegation/queue";
import type { RoundSettings } from "#coordinator/place/delegation/round-questions";
import type { CoordinatorState } from "#coordinator/place/delegation/state";
import type { RoundCause } from "#core/explanation";
import type { CrawlerId, SubnetId } from "#core/ids";
import { silentLog } from "#core/log";
import { type FlowWorld, hello, type TableFleet } from "../support/flow-world.ts";
import { noon } from "../support/store-world.ts";

export const nearestRound: RoundSettings = {
  policy: "nearest",
  parameters: defaultParameters,
  probe: { method: "connect", tries: 3, deadlineMs: 3000 },
  allowSpecialPurpose: false,
};

/** An online crawler in a country. */
export async function crawlerIn(
  world: FlowWorld,
  name: string,
  country: string,
  pagesPerDay = 1000,
): Promise<CrawlerId> {
  const crawlerId = await world.crawler(name);
  const limits = { pagesPerDay, bytesPerDay: 1e12, concurrentHosts: 10 };
  const place = { name, country, latitude: 0, longitude: 0 };
  const spoken = hello(name, { limits, place });
  await world.crawlers.arrive({ crawlerId, hello: spoken, address: null, subnetId: null, now: noon });
  // Only the country is known, since the tests state measured distances.
  await world.pool.query("update crawler set latitude = null, longitude = null where crawler_id = $1", [
    crawlerId,
  ]);
  return crawlerId;
}

export async function holds(world: FlowWorld, holder: string, ...subnetIds: SubnetId[]): Promise<void> {
  await world.pool.query(
    `with known as (
       insert into holder (holder_key, name) values ($1, $1)
       on conflict (holder_key) do update set name = excluded.name
       returning holder_id
     )
     update subnet set holder_id = known.holder_id from known where subnet_id = any($2)`,
    [`name:${holder}`, subnetIds],
  );
}

export async function registeredIn(world: FlowWorld, country: string, subnetId: SubnetId): Promise<void> {
  await world.pool.query("update subnet set country = $1 where subnet_id = $2", [country, subnetId]);
}

/** Distances between crawlers, one row each, in their order. */
export function learnDistances(
  state: CoordinatorState,
  crawlers: readonly CrawlerId[],
  rows: readonly (readonly number[])[],
): void {
  state.learnRtts(
    rows.flatMap((row, a) =>
      row.flatMap((rttMs, b) =>
        a === b ? [] : [{ from: crawlers[a]!, to: crawlers[b]!, rttMs, method: "connect" as const }],
      ),
    ),
  );
}

/** The distance between two crawlers. */
export const learnDistance = (state: CoordinatorState, from: CrawlerId, to: CrawlerId, rttMs: number) =>
  state.learnRtts([{ from, to, rttMs, method: "connect" }]);

/** A queue of rounds over the world's stores, and its decisions. */
export function queueOver(
  world: FlowWorld,
  ports: Partial<QueuePorts> & Pick<QueuePorts, "state" | "fleet">,
  settings: {
    readonly round?: RoundSettings;
    readonly concurrentRounds?: number;
    readonly retryMs?: number;
  } = {},
): { readonly queue: DelegationQueue; readonly decided: FinishedRound[] } {
  const decided: FinishedRound[] = [];
  const queue = new DelegationQueue(
    {
      delegations: world.delegations,
      random: () => 0,
      now: () => noon,
      excluded: () => new Set(),
      log: silentLog,
      onDecided: (round) => decided.push(round),
      ...ports,
    },
    { round: nearestRound, concurrentRounds: 256, retryMs: 30_000, ...settings },
  );
  return { queue, decided };
}

export async function targetOf(world: FlowWorld, subnetId: SubnetId): Promise<WaitingSubnet> {
  const [target] = await world.delegations.targetsFor([subnetId]);
  if (!target) throw new Error(`nothing to probe in subnet ${subnetId}`);
  return target;
}

export async function runRound(
  world: FlowWorld,
  subnetId: SubnetId,
  ports: Partial<RoundPorts> & {
    readonly state: CoordinatorState;
    readonly fleet: TableFleet;
    readonly settings?: RoundSettings;
    readonly cause?: RoundCause;
    readonly target?: Partial<WaitingSubnet>;
  },
): Promise<FinishedRound | null> {
  const { settings = nearestRound, cause = "new-subnet", target = {}, ...others } = ports;
  return await delegateSubnet({ ...(await targetOf(world, subnetId)), ...target }, cause, {
    delegations: world.delegations,
    random: () => 0,
    now: () => noon,
    excluded: () => new Set(),
    ...others,
    settings,
  });
}

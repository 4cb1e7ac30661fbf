/** Subnets that go from one crawler to another without a round: stored first, then remembered. */
import type { SubnetId } from "#core/ids";
import type { AnycastRanges } from "../delegation/anycast.ts";
import type { DelegationMove, DelegationStore } from "../delegation/delegation.ts";
import type { CoordinatorState } from "../delegation/state.ts";

export interface MovePorts {
  readonly delegations: Pick<DelegationStore, "move">;
  readonly state: CoordinatorState;
  /** Without it, nothing is taken for anycast. */
  readonly anycast?: AnycastRanges;
}

/** Moves in one transaction. */
const batchSize = 1000;

/** Returns those that were made: whose former crawler still had the subnet. */
export async function makeMoves(
  moves: readonly DelegationMove[],
  ports: MovePorts,
  now: Date,
): Promise<SubnetId[]> {
  const made: SubnetId[] = [];
  for (let start = 0; start < moves.length; start += batchSize) {
    const batch = moves.slice(start, start + batchSize);
    const planned = new Map(batch.map((move) => [move.subnetId, move]));
    for (const subnetId of await ports.delegations.move(batch, now)) {
      rememberMove(planned.get(subnetId) as DelegationMove, ports);
      made.push(subnetId);
    }
  }
  return made;
}

/** Who has an anycast range says nothing of who is near: later rounds must not learn from it. */
function rememberMove(move: DelegationMove, { state, anycast }: MovePorts): void {
  state.moveDelegation(move);
  const moved = anycast?.has(move.subnetId) ? state.delegationOf(move.subnetId) : null;
  if (moved?.measured) state.setDelegation({ ...moved, measured: false });
}

/** What is kept of finer delegations for good: their rounds with every probe, and the lines of the history. */
import type { PoolClient } from "pg";
import { asRoundId, type RoundId } from "#core/ids";
import { columnsOf } from "../../database/transaction.ts";
import { saveProbes } from "../store.ts";
import type { FinerRound } from "./override.ts";

/** The round's subnet stands apart, so that it is no round of the subnet as a whole. */
export async function saveFinerRound(client: PoolClient, round: FinerRound): Promise<RoundId> {
  const { rows } = await client.query<{ round_id: number }>(
    `insert into probe_round (within_subnet_id, cause, policy, parameters, target_url, target_address,
       started_at, decided_at, crawler_id, runner_up_id, reason, method)
     values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
     returning round_id`,
    [
      round.withinSubnetId,
      round.cause,
      round.policy,
      JSON.stringify(round.parameters),
      round.targetUrl,
      round.targetAddress,
      round.startedAt,
      round.decidedAt,
      round.crawlerId,
      round.runnerUpId,
      JSON.stringify(round.reason),
      round.probes.length === 0 ? null : (round.method ?? null),
    ],
  );
  const roundId = asRoundId(rows[0]!.round_id);
  await saveProbes(client, roundId, round);
  return roundId;
}

export interface RecordedChange {
  readonly subnetId: number;
  readonly from: number | null;
  readonly to: number;
  readonly cause: string;
  readonly roundId: number;
  readonly reason: string;
}

export async function recordChanges(
  client: PoolClient,
  changes: readonly RecordedChange[],
  now: Date,
): Promise<void> {
  if (changes.length === 0) return;
  await client.query(
    `insert into delegation_history (subnet_id, changed_at, from_crawler_id, to_crawler_id, cause, round_id, reason)
     select subnet_id, $1, from_id, to_id, cause, round_id, reason
     from unnest($2::int[], $3::int[], $4::int[], $5::text[], $6::int[], $7::text[])
       as given (subnet_id, from_id, to_id, cause, round_id, reason)`,
    [now, ...columnsOf(changes, ["subnetId", "from", "to", "cause", "roundId", "reason"])],
  );
}

/**
 * Removes old probe rounds and delegation changes. A round stays while it decides a delegation or is the latest of its
 * subnet, which holds the known RTTs.
 */
import type { Pool } from "pg";
import { alone, deleteOldest, inTurns, type TurnClock } from "../../database/bounded-work.ts";

const lockName = "nearcrawl-old-rounds";

/** Rounds examined per statement, with about as many probes. */
const lookedAtOnce = 2000;

const changesAtOnce = 5000;

/**
 * Walks the rounds by number, some per turn, and starts over at the end, because a later round may replace one that
 * stayed. A walk costs as much as there are subnets.
 */
export class OldRounds {
  readonly #pool: Pool;
  #after = 0;

  constructor(pool: Pool) {
    this.#pool = pool;
  }

  /** Removes rounds decided before then; returns how many, or null when another coordinator is doing so. */
  async forget(before: Date, turn: TurnClock): Promise<number | null> {
    return await alone(this.#pool, lockName, async () => {
      let deleted = 0;
      await inTurns(turn, async () => {
        const { rows } = await this.#pool.query<{ last: number | null; more: boolean; deleted: number }>(
          forgetSql,
          [this.#after, lookedAtOnce, before],
        );
        const [{ last, more, deleted: now }] = rows as [(typeof rows)[number]];
        deleted += now;
        this.#after = more ? (last ?? 0) : 0;
        return more ? 1 : 0;
      });
      return deleted;
    });
  }
}

const forgetSql = `
  with looked as materialized (
    select round_id, subnet_id, decided_at
    from probe_round
    where round_id > $1
    order by round_id
    limit $2
  ), gone as (
    delete from probe_round
    where round_id in (
      select r.round_id
      from looked r
      where r.decided_at < $3
        and not exists (select from delegation d where d.subnet_id = r.subnet_id and d.round_id = r.round_id)
        and not exists (select from finer_delegation f where f.round_id = r.round_id)
        and (
          r.subnet_id is null
          or exists (
            select from probe_round later
            where later.subnet_id = r.subnet_id and (later.decided_at, later.round_id) > (r.decided_at, r.round_id)
          )
        )
    )
    returning round_id
  )
  select max(round_id) as last, count(*) = $2 and bool_or(decided_at < $3) as more,
    (select count(*)::int from gone) as deleted
  from looked`;

export async function forgetDelegationChanges(pool: Pool, before: Date, turn: TurnClock): Promise<number> {
  const aged = { table: "delegation_history", column: "changed_at" };
  return await inTurns(turn, async () => await deleteOldest(pool, aged, before, changesAtOnce));
}

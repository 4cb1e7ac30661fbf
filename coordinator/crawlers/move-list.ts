/** Table crawler_move: the moves of late, for operators. */
import type { Pool } from "pg";
import type { MoveLine } from "../fleet/fleet-ports.ts";
import type { MoveStep } from "./moves.ts";

const mostListed = 500;

interface MoveRow {
  move_id: number;
  name: string;
  other_name: string;
  step: MoveStep;
  words: string;
  asked_at: Date;
  changed_at: Date;
  bytes: number;
  sent_bytes: number;
}

/** The latest first; `name`: those that this crawler took part in, on either side. */
export async function moveList(pool: Pool, name: string | null): Promise<MoveLine[]> {
  const { rows } = await pool.query<MoveRow>(
    `select move_id, name, other_name, step, words, asked_at, changed_at, bytes::float8 as bytes,
       sent_bytes::float8 as sent_bytes
     from crawler_move
     where $1::text is null or $1 in (name, other_name)
     order by move_id desc
     limit ${mostListed}`,
    [name],
  );
  return rows.map((row) => ({
    moveId: row.move_id,
    name: row.name,
    otherName: row.other_name,
    step: row.step,
    words: row.words,
    askedAt: row.asked_at,
    changedAt: row.changed_at,
    bytes: row.bytes,
    sentBytes: row.sent_bytes,
  }));
}

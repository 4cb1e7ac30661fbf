/**
 * A slice whose server came back from a backup holds what it held then. The catalogue, which is beside the shared tables, says
 * what is its own: what it has given away since is given up, with the rows that were left of it, and what has come to it since is
 * taken, without the hosts that came with it: they are found anew. What it gives numbers to from then on gets other ones than
 * those that were lost, so that readers of its changes are told. Nothing is done while its hosts move.
 */
import { UsageError } from "#core/errors";
import type { Database } from "#db/server-database";
import type { Buckets } from "../database/slices.ts";
import { inTransaction } from "../database/transaction.ts";
import { takeSlice } from "../frontier/slice-hold-store.ts";
import { skipNumbersOf } from "./epoch-writes.ts";
import { clearHosts } from "./move-hosts-store.ts";
import { OpenSlices } from "./open-slices-store.ts";
import { bucketsIn } from "./slice-reads.ts";

export interface MendedSlice {
  readonly givenUp: number;
  readonly taken: number;
}

export async function mendSlice(shared: Database, number: number): Promise<MendedSlice> {
  const slices = await OpenSlices.open(shared, { maxConnections: 2 });
  try {
    const { ranges, moves } = slices.catalogue;
    const slice = slices.open.find((one) => one.number === number);
    if (slice === undefined) throw new UsageError(`there is no slice ${number} that is ready`);
    const move = moves.find(
      ({ from, to, stage }) => (from === number || to === number) && stage !== "planned",
    );
    if (move !== undefined)
      throw new UsageError(
        `buckets ${move.buckets.first} to ${move.buckets.end - 1} of slice ${number} move at the moment: wait for it (nearcrawl slices list)`,
      );
    const owned = ranges.filter((range) => range.slice === number);
    const isOwned = (bucket: number) => owned.some(({ first, end }) => first <= bucket && bucket < end);
    const multirange = `{${owned.map(({ first, end }) => `[${first},${end})`).join()}}`;
    const before = await inTransaction(slice.pool, async (client) => {
      await takeSlice(client);
      const { rows } = await client.query<{ held: string }>("select held::text as held from slice_self");
      await client.query("update slice_self set held = $1::int4multirange", [multirange]);
      return bucketsIn(rows[0]!.held);
    });
    const givenUp = before.filter((bucket) => !isOwned(bucket));
    await skipNumbersOf(slice, slices.shared, new Date());
    for (const buckets of runsOf(givenUp)) await clearHosts(slice, buckets, Number.POSITIVE_INFINITY);
    const owns = owned.reduce((sum, { first, end }) => sum + end - first, 0);
    return { givenUp: givenUp.length, taken: owns - (before.length - givenUp.length) };
  } finally {
    await slices.close();
  }
}

/** Neighbours together; in ascending order. */
function runsOf(buckets: readonly number[]): Buckets[] {
  const runs: { first: number; end: number }[] = [];
  for (const bucket of buckets) {
    const last = runs.at(-1);
    if (last?.end === bucket) last.end += 1;
    else runs.push({ first: bucket, end: bucket + 1 });
  }
  return runs;
}

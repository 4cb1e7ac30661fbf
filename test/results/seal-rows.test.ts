/** Seals stand beside the acknowledged sequence: in the same transaction, once each, for a week. */
import { afterAll, beforeAll, beforeEach, expect, it } from "vitest";
import { forgetSeals } from "#coordinator/results/result-writes";
import type { CrawlerId } from "#core/ids";
import { newWorld, noon, scope, secondsAfterNoon, spoolId, type World } from "../support/store-world.ts";

let world: World;
beforeAll(async () => {
  world = await newWorld();
});
beforeEach(async () => await world.reset());
afterAll(async () => await world.close());

const signature = Buffer.alloc(64, 7).toString("base64url");
const sealOf = (first: number, last: number) => ({ first, last, digest: "ab".repeat(32), signature });
const dayMs = 86_400_000;

async function takeSealed(crawlerId: CrawlerId, last: number, at = noon): Promise<void> {
  const seals = [sealOf(last - 1, last)];
  await world.results.take({ crawlerId, spoolId, results: [], scope, now: at, lastSequence: last, seals });
}

const kept = async () =>
  (
    await world.rows<{ last: string }>("select last_sequence as last from result_seal order by last_sequence")
  ).map(({ last }) => Number(last));

it("keeps what was signed, as it was signed, and the same seal once", async () => {
  const north = await world.crawler("north");

  await takeSealed(north, 2);
  await takeSealed(north, 2, secondsAfterNoon(1));

  const rows = await world.rows(
    `select first_sequence::int as first, last_sequence::int as last, encode(digest, 'hex') as digest,
       encode(signature, 'hex') as signature, sealed_at as at
     from result_seal`,
  );
  expect(rows).toEqual([
    { first: 1, last: 2, digest: "ab".repeat(32), signature: "07".repeat(64), at: noon },
  ]);
});

it("forgets those of more than a week ago, but for the latest of each spool", async () => {
  const [north, south] = [await world.crawler("north"), await world.crawler("south")];
  await takeSealed(north, 2);
  await takeSealed(south, 4);
  await takeSealed(south, 6, new Date(noon.getTime() + 6 * dayMs));

  const forgotten = await forgetSeals(world.pool, new Date(noon.getTime() + 8 * dayMs));

  expect([forgotten, await kept()]).toEqual([1, [2, 6]]);
});

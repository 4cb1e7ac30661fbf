/**
 * A process that is killed while hosts move and effects are carried: `node … moving-process.ts SHARED-URL SCHEMA`. It does what
 * coordinators do for slices, over and over.
 */
import { openServerDatabase } from "#db/server-database";
import { slicedWorld } from "../support/sliced-world.ts";

const [databaseUrl = "", schema = ""] = process.argv.slice(2);
const world = await slicedWorld(await openServerDatabase({ databaseUrl, schema }));
process.stdout.write("begun\n");
for (;;) {
  await world.advance();
  await world.carryAll().catch(() => {});
}

/** A coordinator that lost its way to the database, and whose crawlers others took for absent, takes them back. */
import { expect, it } from "vitest";
import { newJoiningWorld } from "../gateway/joining-world.ts";
import { forThisFile } from "../support/for-this-file.ts";
import { until } from "../support/until.ts";

const world = await forThisFile(newJoiningWorld());

it("counts its connected crawlers as online again when it has its lock back", async () => {
  const folder = await world.joined("athens");
  const { crawler } = await world.come(folder);
  await until(async () => (await world.stateOf("athens")) === "online", 20_000);

  await world.rows("update crawler set state = 'offline', offline_reason = 'taken for gone'");
  await world.rows(
    `select pg_terminate_backend(l.pid) from pg_locks l
     join pg_stat_activity a using (pid)
     where l.locktype = 'advisory' and a.datname = current_database() and a.pid <> pg_backend_pid()`,
  );

  await until(async () => (await world.stateOf("athens")) === "online", 30_000);
  await world.leave(crawler, "athens");
  expect(await world.rows("select offline_reason is not null as told from crawler")).toEqual([
    { told: true },
  ]);
});

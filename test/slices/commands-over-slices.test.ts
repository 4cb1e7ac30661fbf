/** Commands look at all slices, and say so when one is missing: three slices on two servers, each with some of the hosts. */
import type { Command } from "commander";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createOptOutMarks } from "#coordinator/opt-outs/mark-writes";
import { findCommand } from "#ops/cli/commands/find";
import { fleetCommand } from "#ops/cli/commands/fleet";
import { hintsCommand } from "#ops/cli/commands/hints";
import { optOutsCommand } from "#ops/cli/commands/opt-outs";
import { rirCommand } from "#ops/cli/commands/rir";
import { siteCommand } from "#ops/cli/commands/site";
import { storageCommand } from "#ops/cli/commands/storage";
import { applyImport } from "#rir-import/apply";
import { type SourceFolder, sourceFolder } from "../rir-import/source-folder.ts";
import { inProcess } from "../support/command-in-process.ts";
import { seedPage } from "../support/seed-world.ts";
import { SliceServers } from "../support/slice-servers.ts";
import { addSlices, type SlicedWorld, slicedWorld } from "../support/sliced-world.ts";
import { keyOf } from "../support/store-world.ts";

const count = 30;
const hosts = Array.from({ length: count }, (_, n) => `h${n}.shop.example`);
const nets = (from: number, to: number) =>
  Array.from(
    { length: to - from },
    (_, n) => `inetnum: 45.10.${from + n}.0/24\nnetname: EX\ncountry: NL\nsource: RIPE\n\n`,
  ).join("");

let servers: SliceServers;
let world: SlicedWorld;
let folder: SourceFolder;
beforeAll(async () => {
  folder = sourceFolder();
  servers = await SliceServers.begin();
  const { pool } = servers.shared;
  await applyImport(servers.shared, [folder.write("first.db", nets(0, count))]);
  await pool.query("insert into crawler (name, state) values ('athens', 'offline')");
  for (const [n, host] of hosts.entries()) {
    const { hostHash } = keyOf(`https://${host}/`);
    await pool.query(
      `insert into frontier_host (host_hash, host, state, subnet_id)
       select $1, $2, 'resolved', subnet_id from subnet where first_address = $3::inet and removed_in is null`,
      [hostHash, host, `45.10.${n}.0`],
    );
    await seedPage(pool, { url: `https://${host}/`, title: "A page", text: "x" });
    await pool.query(
      `with decided as (
         insert into double_check (host_hash, url_hash, host, url, crawler_id, cause, opinions, wanted, next_by, verdict, decided_at)
         select $1, 1, $2, 'https://' || $2 || '/', crawler_id, 'sample', '[]', '{}', now(), 'agree', now() from crawler
         returning crawler_id, check_id
       )
       insert into check_outcome (crawler_id, check_id, host_hash, outcome, decided_at)
       select crawler_id, check_id, $1, 'agree', now() from decided`,
      [hostHash, host],
    );
    await pool.query(
      `insert into page_fetch (host_hash, url_hash, crawler_id, fetched_at, outcome, blame, status, total_ms, wire_bytes, body_bytes, shipped_bytes)
       select $1, 1, crawler_id, now(), 'failed', 'target', 503, 40, 100, 0, 0 from crawler`,
      [hostHash],
    );
    await pool.query(
      "insert into hint_host (host_hash, source, host, received, day, last_at) values ($1, 'indexnow', $2, 1, now(), now())",
      [hostHash, host],
    );
  }
  world = await slicedWorld(servers.shared);
  await addSlices(servers, 3);
  await world.moveAll();
  await world.slices.refresh();
}, 120_000);
afterAll(async () => {
  folder?.remove();
  await world?.close();
  await servers?.close();
});

const run = async (command: Command, ...args: readonly string[]) =>
  await inProcess(command, [...args, "--database-url", servers.url(0), "--schema", servers.shared.schema]);

describe("with all servers up", () => {
  it("subnets with hosts in any slice are in use, for imports and rollbacks", async () => {
    const file = folder.write("next.db", nets(15, count));

    const planned = JSON.parse((await run(rirCommand(), "plan", file, "--json")).out);
    const refused = await run(rirCommand(), "apply", file);
    const undone = await run(rirCommand(), "rollback", "--to-empty");

    expect(planned.inUse).toEqual({ total: count, going: 15 });
    expect(refused).toMatchObject({ code: 2, err: expect.stringContaining("15 of the 30 subnets in use") });
    expect(undone).toMatchObject({ code: 2, err: expect.stringContaining("30 of the 30 subnets in use") });
  });

  it("failures and hints are those of all slices", async () => {
    const failures = JSON.parse((await run(fleetCommand(), "failures", "--most", "100", "--json")).out);
    const hints = JSON.parse((await run(hintsCommand(), "--limit", "100", "--json")).out);

    expect(failures.shares.fetches).toBe(count);
    expect(failures.latest).toHaveLength(count);
    expect(hints.hosts).toHaveLength(count);
  });

  it("an opt-out has the hosts of all slices, and a crawler its comparisons", async () => {
    const preview = JSON.parse((await run(optOutsCommand(), "preview", "shop.example", "--json")).out);
    const said = ["--yes-remove", String(preview.pages)];
    expect((await run(optOutsCommand(), "add", "shop.example", ...said)).code).toBe(0);
    await createOptOutMarks(world.slices).apply(new Date());
    const told = await world.rows<{ url: string }>(
      "select url from page_change_inbox where kind = 'gone' and reason = 'its site has opted out'",
    );
    const listed = JSON.parse((await run(optOutsCommand(), "list", "--json")).out);
    const trust = JSON.parse((await run(fleetCommand(), "trust", "athens", "--json")).out);
    const all = JSON.parse((await run(fleetCommand(), "trust", "--json")).out);

    expect([preview.hosts, listed[0].hosts]).toEqual([count, count]);
    // Readers of the change feed hear of each page that was deleted, from the slice that had it.
    expect(told.map(({ url }) => url).sort()).toEqual(hosts.map((host) => `https://${host}/`).sort());
    expect(new Set(told.map(({ slice }) => slice))).toEqual(new Set([0, 1, 2]));
    expect(trust.comparisons).toMatchObject({ agreed: count });
    expect(all.crawlers[0].comparisons).toMatchObject({ agreed: count });
  });
});

describe("with one server away", () => {
  const words = "slice 1 of the web does not answer";
  const hostOf = (slice: number) =>
    hosts.find((host) => world.slices.ofHost(keyOf(`https://${host}/`).hostHash).number === slice)!;
  beforeAll(async () => await servers.kill(1));

  it("lists and sums are partial, and say so", async () => {
    const answers = await Promise.all([
      run(findCommand(), "shop.example"),
      run(siteCommand(), "--under", "shop.example"),
      run(storageCommand()),
    ]);
    const beside = await Promise.all([run(optOutsCommand(), "list"), run(fleetCommand(), "trust")]);

    for (const { out } of answers) expect(out).toContain(words);
    for (const { err, code } of beside) expect([code, err.includes(words)]).toEqual([0, true]);
    expect(JSON.parse((await run(findCommand(), "shop.example", "--json")).out).partial).toEqual([1]);
  });

  it("a site of it is not taken for unknown", async () => {
    const away = await run(siteCommand(), hostOf(1));

    expect(away).toMatchObject({
      code: 1,
      err: `nearcrawl: slice 1 of the web, which has ${hostOf(1)}, does not answer\n`,
    });
  });

  it("no import is applied, since nobody knows which subnets are in use", async () => {
    const applied = await run(rirCommand(), "apply", folder.write("last.db", nets(0, 29)));

    expect(applied).toMatchObject({ code: 1, err: expect.stringContaining(`${words}, so that subnets`) });
  });
});

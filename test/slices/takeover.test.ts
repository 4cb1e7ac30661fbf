/**
 * Two coordinators, as processes of their own, over slices on two servers: each slice is worked at by one of them at a time, and
 * the other takes over those of one that is killed, or that fell asleep. Each coordinator has a role of its own in Postgres, and a
 * trigger on the tables of each slice writes down whose it was that moved on an outbox or began a shipment.
 */
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { inTransaction } from "#coordinator/database/transaction";
import { nobody, postEffects } from "#coordinator/frontier/link-outbox-store";
import { leadsMs } from "#coordinator/slices/catalogue-store";
import { heldCoordinatorLocks } from "#db/coordinator-locks";
import type { Database } from "#db/server-database";
import { generateWorld } from "#ops/world/generate-world";
import { type RunningWorld, startWorld } from "#ops/world/main";
import { otherSide, SharedFleet, type Side } from "../end-to-end/shared-fleet.ts";
import { builtProgram } from "../support/built-command.ts";
import { SliceServers } from "../support/slice-servers.ts";
import { addSlices, type SlicedWorld, slicedWorld } from "../support/sliced-world.ts";
import { keyOf, scope, seeds } from "../support/store-world.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { until } from "../support/until.ts";

const takeoverMs = 30_000;

const emulated = generateWorld({ seed: 3, sites: 1, crawlers: 1 });
const roots = Array.from({ length: 40 }, (_, index) => `http://host-${index}.example/`);

let servers: SliceServers;
let second: Database;
let world: SlicedWorld;
let internet: RunningWorld;
let fleet: SharedFleet;
/** How often every root was linked to. */
let posted = 0;

beforeAll(async () => {
  servers = await SliceServers.begin();
  world = await slicedWorld(servers.shared);
  internet = await startWorld(emulated);
  await world.frontier.admit(seeds(...roots), scope, new Date());
  second = await servers.open(1, { schema: "public" });
  for (const { pool } of [servers.shared, second])
    for (const side of [0, 1]) await pool.query(`create role ${roleOf(side as Side)} superuser login`);
  fleet = new SharedFleet({
    ...{
      database: servers.shared,
      world: emulated,
      internet,
      folder: temporaryFolder("nearcrawl-takeover-"),
    },
    main: await builtProgram("ops/cli/main"),
    settings: {},
    crawlerSettings: {},
    environment: (side) => ({
      DATABASE_URL: servers.shared.url.replace("nearcrawl@", `${roleOf(side)}@`),
      PGUSER: roleOf(side),
    }),
  });
  await fleet.startCoordinator(0);
  await fleet.startCoordinator(1);
}, 300_000);
afterAll(async () => {
  await fleet?.close();
  await internet?.close();
  await world?.close();
  await servers?.close();
}, 60_000);

const roleOf = (side: Side) => `coordinator_${side}`;
const sideOf = (role: string) => Number(role.at(-1)) as Side;

/** Who worked at each slice, as far as it is written down from now on. */
async function watchSlice(number: number): Promise<void> {
  const { pool } = world.slices.open.find((one) => one.number === number)!;
  await pool.query(`
    create table worked (who text not null default session_user, at timestamptz not null default clock_timestamp());
    create function note_work() returns trigger language plpgsql as $$
    begin
      execute format('insert into %I.worked default values', tg_table_schema);
      return null;
    end $$;
    create trigger note_work after update on link_outbox_bite for each row
      when (new.bite_number <> old.bite_number) execute function note_work();
    create trigger note_work after update on slice_shipment for each row
      when (new.shipment_number <> old.shipment_number) execute function note_work();`);
}

/** Who has which slice's lead, whenever that changes; a slice that is given up is nobody's for a while. */
async function watchLeads(): Promise<void> {
  await servers.shared.pool.query(`
    create table led (slice integer not null, who text, at timestamptz not null default clock_timestamp());
    create function note_lead() returns trigger language plpgsql as $$
    begin
      insert into web.led (slice, who)
      select case tg_table_name when 'fleet_lead' then 0 else (to_jsonb(new) ->> 'slice_number')::integer end, (
        select a.usename
        from (select l.objid::bigint::integer as number, l.pid ${heldCoordinatorLocks("'web'")}) held
        join pg_stat_activity a using (pid)
        where number = new.coordinator_number
      );
      return null;
    end $$;
    create trigger note_lead after insert or update on slice_lead for each row execute function note_lead();
    create trigger note_lead after insert or update on fleet_lead for each row execute function note_lead();
    update slice_lead set since = since;
    update fleet_lead set since = since;`);
}

/** Of what was done since then, what the role did without the lead; one that gives it up has some seconds to find that out. */
async function workedWithoutLead(role: string, since: Date) {
  const turns = await world.rows<{ at: Date }>(
    `select at from worked where who = '${role}' and at > '${since.toISOString()}'`,
  );
  const { rows: led } = await servers.shared.pool.query<{ slice: number; who: string | null; at: Date }>(
    "select slice, who, at from led order by at",
  );
  return turns.filter(({ slice, at }) => {
    const before = led.filter((one) => one.slice === slice && one.at <= at);
    const last = before.at(-1);
    const isGivenUp = last?.who === null && at.getTime() - last.at.getTime() < leadsMs;
    return last?.who !== role && !(isGivenUp && before.at(-2)?.who === role);
  });
}

/** By slice, the roles that worked at it since then. */
async function workers(since: Date): Promise<Record<number, string[]>> {
  const rows = await world.rows<{ who: string }>(
    `select distinct who from worked where at > '${since.toISOString()}' order by who`,
  );
  const slices = world.slices.open.map(({ number }) => number);
  return Object.fromEntries(
    slices.map((number) => [number, rows.filter(({ slice }) => slice === number).map(({ who }) => who)]),
  );
}

/** By slice, the role of the coordinator that table slice_lead names; of slice 0, of the one that leads the fleet. */
async function leads(): Promise<Record<number, string>> {
  const { rows } = await servers.shared.pool.query<{ slice: number; role: string }>(
    `with coordinator as (
       select held.number, a.usename::text as role
       from (select l.objid::bigint::integer as number, l.pid ${heldCoordinatorLocks("'web'")}) held
       join pg_stat_activity a using (pid)
     )
     select slice_number as slice, role from slice_lead join coordinator on number = coordinator_number
     union all
     select 0, role from fleet_lead join coordinator on number = coordinator_number
     order by slice`,
  );
  return Object.fromEntries(rows.map(({ slice, role }) => [slice, role]));
}

/** Of the coordinators that are connected there. */
async function rolesAtSecond(): Promise<string[]> {
  const { rows } = await second.pool.query<{ role: string }>(
    "select distinct usename::text as role from pg_stat_activity where usename like 'coordinator_%'",
  );
  return rows.map(({ role }) => role);
}

/** In the outbox of every slice, links to the roots of all hosts: most are of others. */
async function post(): Promise<void> {
  const effects = roots.map((root) => {
    const { hostHash, urlHash } = keyOf(root);
    return { hostHash, urlHash, links: 1, named: null };
  });
  for (const { pool } of world.slices.open)
    await inTransaction(pool, async (client) => void (await postEffects(client, nobody, effects)));
  posted += world.slices.open.length;
}

/** Every link that was posted, and none twice. */
async function applied(): Promise<boolean> {
  const rows = await world.rows<{ back_links: number }>("select back_links from frontier_url");
  return rows.length === roots.length && rows.every(({ back_links }) => back_links === posted);
}

/** Gives who worked at each slice until all of it was done. */
async function postAndSee(withinMs: number): Promise<Record<number, string[]>> {
  const since = new Date();
  for (let times = 0; times < 3; times++) await post();
  await until(applied, withinMs);
  return await workers(since);
}

const allBy = (role: string) => Object.fromEntries(world.slices.open.map(({ number }) => [number, role]));
const onlyBy = (owners: Readonly<Record<number, string>>) =>
  Object.fromEntries(Object.entries(owners).map(([slice, role]) => [slice, [role]]));

/** Whoever leads the fleet, and works at slice 0. */
const leader = async () => sideOf((await leads())[0]!);

describe("two coordinators over slices", { timeout: 180_000 }, () => {
  it("share the slices, and each is worked at by the one that has its lead", async () => {
    await addSlices(servers, 4);
    await until(async () => {
      const { moves, ranges } = await world.slices.refresh();
      return moves.length === 0 && ranges.length === 4;
    }, 60_000);
    // The second server is named without a user, so that each coordinator comes with its own; this process keeps to its own.
    await servers.shared.pool.query(
      "update web_slice set server_url = replace(server_url, 'nearcrawl@', '')",
    );
    await until(async () => Object.keys(await leads()).length === 4, 10_000);
    await until(async () => (await rolesAtSecond()).length === 2, 20_000);
    await delay(1000);
    for (const number of [0, 1, 2, 3]) await watchSlice(number);
    await watchLeads();
    const owners = await leads();
    const seen = await postAndSee(20_000);

    expect(new Set(Object.values(owners)).size).toBe(2);
    expect(seen).toEqual(onlyBy(owners));
    expect(await leads()).toEqual(owners);
  });

  it("one that leads is killed: the other works at all of its slices within half a minute", async () => {
    const killed = await leader();
    await post();
    await fleet.kill(killed);
    const since = new Date();
    await post();
    const survivor = roleOf(otherSide(killed));
    await until(applied, takeoverMs);
    await until(async () => (await leads())[0] === survivor, 1000);

    expect(await leads()).toEqual(allBy(survivor));
    expect(await workers(since)).toEqual(onlyBy(allBy(survivor)));
    expect(Date.now() - since.getTime()).toBeLessThan(takeoverMs);
  });

  it("one that comes back gets slices again, and is the only one that works at them", async () => {
    const leading = await leader();
    const other = otherSide(leading);
    const since = new Date();
    await fleet.startCoordinator(other);
    await until(async () => {
      await post();
      return new Set(Object.values(await leads())).size === 2;
    }, takeoverMs);
    const owners = await leads();
    await until(applied, 20_000);
    const handedOver = [1, 2, 3].filter((number) => owners[number] === roleOf(other));
    const turns = await world.rows<{ who: string; at: Date }>(
      `select who, at from worked where at > '${since.toISOString()}' order by at`,
    );
    const seen = await postAndSee(20_000);

    expect(handedOver).toHaveLength(1);
    expect(seen).toEqual(onlyBy(owners));
    for (const number of handedOver) {
      const own = turns.filter(({ slice }) => slice === number).map(({ who }) => who);
      expect(own.toSorted((a, b) => own.indexOf(a) - own.indexOf(b))).toEqual(own);
    }
  });

  it("one that does not lead the fleet is killed: the one that does works at its slices within half a minute", async () => {
    const leading = await leader();
    await post();
    await fleet.kill(otherSide(leading));
    const since = new Date();
    await post();
    await until(applied, takeoverMs);

    expect(await leads()).toEqual(allBy(roleOf(leading)));
    expect(await workers(since)).toEqual(onlyBy(allBy(roleOf(leading))));
  });

  it("one that slept does not go on with slices that are another's by now", async () => {
    const asleep = await leader();
    const other = otherSide(asleep);
    await fleet.startCoordinator(other);
    await putToSleep(asleep);
    const seen = await postAndSee(takeoverMs);
    const since = new Date();
    fleet.signal(asleep, "SIGCONT");
    for (let times = 0; times < 10; times++) {
      await post();
      await delay(100);
    }
    await until(applied, 20_000);
    expect(seen).toEqual(onlyBy(allBy(roleOf(other))));
    // On a busy machine it may have been given a lead again by now.
    expect(await workedWithoutLead(roleOf(asleep), since)).toEqual([]);
  });
});

/** Not in the middle of a transaction, whose locks it would keep: what a sleeper holds is another matter. */
async function putToSleep(side: Side): Promise<void> {
  const isInTransaction = async () => {
    const counts = await Promise.all(
      [servers.shared, second].map(
        async ({ pool }) =>
          (
            await pool.query("select from pg_stat_activity where usename = $1 and xact_start is not null", [
              roleOf(side),
            ])
          ).rowCount,
      ),
    );
    return counts.some((count) => count !== 0);
  };
  for (;;) {
    fleet.signal(side, "SIGSTOP");
    await delay(200);
    if (!(await isInTransaction())) return;
    fleet.signal(side, "SIGCONT");
    await delay(50);
  }
}

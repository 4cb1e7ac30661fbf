/**
 * A coordinator behind a real PgBouncer. In session mode everything works with PgBouncer's defaults; transaction mode is
 * refused. Skipped where PgBouncer is not installed.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ChannelListener } from "#coordinator/database/channel-listener";
import { tryAdvisoryLock } from "#db/advisory-lock";
import { openDatabase } from "#db/connect";
import { migrate } from "#db/migrate";
import { tell } from "#db/schema-channel";
import { createPool, type Database } from "#db/server-database";
import { generateWorld } from "#ops/world/generate-world";
import { testDatabase } from "../support/database.ts";
import { type PgBouncer, pgBouncerProgram, startPgBouncer } from "../support/pgbouncer.ts";
import { until } from "../support/until.ts";
import { emulatedFleet, frontPages } from "./emulated-fleet.ts";

if (pgBouncerProgram === null) console.warn("behind-pgbouncer.test.ts: skipped, there is no pgbouncer");

const home = "/nowhere";

describe.skipIf(pgBouncerProgram === null || process.env.DATABASE_URL !== undefined)(
  "behind PgBouncer",
  () => {
    let behind: Database;
    let bouncer: PgBouncer;

    const through = async (url: string, schema = behind.schema): Promise<Database> =>
      await openDatabase({ databaseUrl: url, home, schema });

    beforeAll(async () => {
      behind = await testDatabase();
      bouncer = await startPgBouncer(behind.url, "session");
    });
    afterAll(async () => {
      await bouncer?.close();
      await behind?.close();
    });

    it("a coordinator and its crawlers crawl", { timeout: 60_000 }, async () => {
      const world = generateWorld({ seed: 11, sites: 8, crawlers: 2 });
      const scope = { pagesPerHost: 2, maxDepth: 1, admitNewHosts: true };
      const fleet = await emulatedFleet({
        world,
        database: await through(bouncer.url),
        hasRegistry: false,
        settings: { delegation: { settleSeconds: 0 }, scope: { ...scope, admitNewHosts: false } },
        crawlerSettings: { politenessFloorMs: 20 },
      });
      try {
        await fleet.addCoordinator();
        await fleet.startAll();
        await fleet.admit(frontPages(world.sites), scope);

        await until(async () => {
          const { hosts } = await fleet.one<{ hosts: number }>(
            "select count(distinct host_hash)::int as hosts from page_fetch",
          );
          return hosts === world.sites.length;
        }, 40_000);

        const { fetches, urls } = await fleet.one<{ fetches: number; urls: number }>(
          "select count(*)::int as fetches, count(distinct (host_hash, url_hash))::int as urls from page_fetch",
        );
        expect(fetches).toBe(urls);
      } finally {
        await fleet.close();
      }
    });

    it("migrates its own schema, which comes first on every connection, also a reused one", async () => {
      const other = await through(bouncer.url, "elsewhere");
      const schemaOf = async (database: Database) =>
        (await database.pool.query<{ schema: string }>("select current_schema() as schema")).rows[0]?.schema;
      await migrate(other);
      // Which one is free last depends on what each had to discard.
      const { rows } = await other.pool.query<{ pid: number }>(
        "select pid from pg_stat_activity where datname = current_database() and backend_type = 'client backend'",
      );
      expect(await schemaOf(other)).toBe("elsewhere");
      await other.close();

      const again = await through(bouncer.url);
      const seen = await again.pool.query<{ pid: number; schema: string }>(
        "select pg_backend_pid() as pid, current_schema() as schema",
      );
      expect(rows.map(({ pid }) => pid)).toContain(seen.rows[0]!.pid);
      expect(seen.rows[0]!.schema).toBe(behind.schema);
      await again.close();
    });

    it("notices arrive, a lock has one holder, and prepared statements belong to a session", async () => {
      const [one, other] = [await through(bouncer.url), await through(bouncer.url)];
      const heard: (string | null)[] = [];
      const listener = new ChannelListener(one.pool, "nearcrawl_fleet", (payload) => heard.push(payload));
      const [holder, asker] = [await one.pool.connect(), await other.pool.connect()];
      await listener.listen();
      await tell(other.pool, "nearcrawl_fleet", ["here"]);
      await until(() => heard.length > 0, 5000);

      expect(heard).toEqual(["here"]);
      expect(await tryAdvisoryLock(holder, "a lock", one.schema)).toBe(true);
      expect(await tryAdvisoryLock(asker, "a lock", one.schema)).toBe(false);
      for (const client of [holder, asker, holder]) {
        const prepared = { name: "same-name", text: "select $1::int + 1 as more", values: [1] };
        expect((await client.query(prepared)).rows).toEqual([{ more: 2 }]);
      }
      holder.release(true);
      await until(async () => await tryAdvisoryLock(asker, "a lock", one.schema), 5000);
      asker.release(true);
      await listener.stop();
      await Promise.all([one.close(), other.close()]);
    });

    it("pages' statements keep their time limit", async () => {
      const pool = createPool(bouncer.url, 1, 50);
      await expect(pool.query("select pg_sleep(5)")).rejects.toThrow("statement timeout");
      await pool.end();
    });

    it.each(["transaction", "statement"] as const)(
      "%s pooling is refused with an explanation",
      async (mode) => {
        const wrong = await startPgBouncer(behind.url, mode);
        const opening = through(wrong.url.replace("@", ":secret@"));

        await expect(opening).rejects.toMatchObject({ code: "NC_USAGE" });
        await expect(opening).rejects.toThrow(
          /^the pooler at postgresql:\/\/nearcrawl@127\.0\.0\.1:\d+\/\w+ gives each transaction another session.*pool_mode = session/,
        );
        await wrong.close();
      },
    );
  },
);

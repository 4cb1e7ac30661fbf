/** Migrations 0117 and 0118 on a database of before: what it counted stays counted, and of several slices nothing is touched. */
import { cpSync } from "node:fs";
import { afterAll, beforeEach, expect, it } from "vitest";
import { notedAlerts } from "#coordinator/alerts/alert-store";
import { migrate } from "#db/migrate";
import type { Database } from "#db/server-database";
import { testDatabase } from "../support/database.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const before = temporaryFolder("nearcrawl-migrations-");
cpSync("db/migrations", before, {
  recursive: true,
  filter: (path) => !/\/(011[7-9]|01[2-9]\d|0[2-9]\d\d)-/.test(path),
});

const database: Database = await testDatabase();
afterAll(async () => await database.close());
beforeEach(async () => {
  await database.pool.query(`drop schema "${database.schema}" cascade`);
  await migrate(database, { folder: before });
});

const count = "leases_done, leases_expired, leases_returned, leased_urls";

async function figures() {
  const { rows } = await database.pool.query(
    `select day::text, leases_done::int as done, leased_urls::int as urls from day_figures order by day`,
  );
  return rows;
}

it.each([
  ["adds a report that was under way", 0, 3 + 4],
  ["counts one that was received no second time", 7, 3],
])("%s", async (_, received, ofReport) => {
  await database.pool.query(
    `insert into day_figures (day, ${count}) values ('2030-01-01', 10, 0, 0, 100);
     insert into closed_lease_day (day, ${count}) values ('2030-01-01', 3, 0, 0, 30), ('2030-01-02', 1, 0, 0, 5);
     insert into closed_lease_receipt (slice_number, report_number) values (0, ${received});
     update closed_lease_report set report_number = 7, days =
       '[{"day": "2030-01-01", "leases_done": 4, "leases_expired": 0, "leases_returned": 0, "leased_urls": 40}]'`,
  );

  await migrate(database);

  expect(await figures()).toEqual([
    { day: "2030-01-01", done: 10 + ofReport, urls: 100 + 10 * ofReport },
    { day: "2030-01-02", done: 1, urls: 5 },
  ]);
});

it("refuses a database of several slices, and names the version that reads it", async () => {
  await database.pool.query(
    "insert into web_slice (slice_number, schema_name, added_by) values (1, 'web_1', 'somebody')",
  );

  await expect(migrate(database)).rejects.toThrow(/lies in 2 slices.*nearcrawl slices remove.*c5f0cfce/);

  const { rowCount } = await database.pool.query("select from web_slice");
  expect(rowCount).toBe(2);
});

it("sets the order freshness to back-links, in a version of its own", async () => {
  await database.pool.query(
    `insert into setting (name, value, changed_by) values ('frontier.order', '"freshness"', 'ann'), ('scope.maxDepth', '5', 'ann')`,
  );

  await migrate(database);

  const { rows: settings } = await database.pool.query("select name, value from setting order by name");
  const { rows: versions } = await database.pool.query("select changed_by, changes from policy_version");
  expect(settings).toEqual([
    { name: "frontier.order", value: "back-links" },
    { name: "scope.maxDepth", value: 5 },
  ]);
  expect(versions).toEqual([
    {
      changed_by: "migration 0118",
      changes: [{ name: "frontier.order", before: "freshness", after: "back-links" }],
    },
  ]);
});

it("writes what people saved as views to the audit log before it drops them", async () => {
  await database.pool.query(
    `insert into saved_view (owner_name, owner_role, name, path, saved_at)
     values ('ann', 'operator', 'ferries', '/search?q=ferry', now()), ('ann', 'operator', 'Due', '/queue', now()),
       ('ann', 'staff', 'mine', '/', now())`,
  );

  await migrate(database);

  const { rows } = await database.pool.query(
    "select target, before from audit_entry where action = 'saved-views-ended' order by words",
  );
  expect(rows).toEqual([
    { target: "ann", before: { ferries: "/search?q=ferry", Due: "/queue" } },
    { target: "ann", before: { mine: "/" } },
  ]);
});

it("keeps what a channel of alerts has still to tell, in order, and who acknowledged what", async () => {
  await database.pool.query(
    `insert into alert_channel (name, kind, place, least) values ('pager', 'webhook', 'x', 'info'), ('email', 'email', 'y', 'info');
     insert into alert_message (message_id, channel, told, made_at, outcome)
     values ('a', 'pager', '[{"name": "1"}, {"name": "2"}]', '2030-01-01', 'waiting'), ('b', 'pager', '[{"name": "3"}]', '2030-01-02', 'waiting'),
       ('c', 'pager', '[{"name": "0"}]', '2029-01-01', 'delivered');
     insert into alert_state (name, severity, words, advice, targets, began_at, told_targets, is_told, acknowledged_by, acknowledged_at, acknowledged_words, acknowledged_targets)
     values ('x', 'info', '', '', '{}', now(), '{}', true, 'ann', '2030-01-01T00:00:00Z', 'calling', '{berlin}')`,
  );

  await migrate(database);

  const { rows } = await database.pool.query("select name, told from alert_channel order by name");
  expect(rows).toEqual([
    { name: "email", told: null },
    { name: "pager", told: [{ name: "1" }, { name: "2" }, { name: "3" }] },
  ]);
  expect((await notedAlerts(database.pool))[0]?.acknowledged).toMatchObject({
    by: "ann",
    note: "calling",
    targets: ["berlin"],
  });
});

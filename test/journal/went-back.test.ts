/** A database restored to last night: crawlers are admitted, opt-outs and revocations hold, and losses are reported. */
import { randomUUID } from "node:crypto";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { createChangeFeed } from "#coordinator/crawl/changes/change-feed-reads";
import { numberChanges } from "#coordinator/crawl/changes/change-writes";
import { everyChange } from "#coordinator/crawl/changes/page-change";
import { createAuditLog } from "#coordinator/database/audit-log";
import { createFleetKeys } from "#coordinator/place/crawlers/identity-store";
import { createOperatorTokenStore } from "#coordinator/run/access/session-store";
import { epochs } from "#coordinator/run/journal/epoch-store";
import { JournalFolder } from "#coordinator/run/journal/journal-file-store";
import { createOptOutStore } from "#coordinator/run/opt-outs/store";
import { randomSecrets } from "#coordinator/web/secrets";
import { type CrawlerFolder, folderOf } from "../gateway/crawler-folder.ts";
import { newJoiningWorld } from "../gateway/joining-world.ts";
import { rememberedDatabase } from "../support/database.ts";
import { forThisFile } from "../support/for-this-file.ts";
import { seedChange } from "../support/seed-changes.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { until } from "../support/until.ts";

const journalRoot = temporaryFolder("nearcrawl-journal-");
const world = await forThisFile(newJoiningWorld({}, journalRoot));

const comeAndGo = async (folder: CrawlerFolder) => {
  const came = await world.come(folder);
  if (came.welcome !== null) await world.leave(came.crawler, folder.name);
  return came;
};

it("continues after a restore as if nobody had been away", async (context) => {
  const optOuts = createOptOutStore(world.pool);
  const tokens = createOperatorTokenStore(world.pool);
  const [athens, berlin, cairo] = [
    await world.joined("athens"),
    await world.joined("berlin"),
    await world.joined("cairo"),
  ];
  for (const folder of [athens, berlin, cairo]) await comeAndGo(folder);
  const token = {
    ...randomSecrets.make(),
    scopes: ["read"] as const,
    createdAt: new Date(),
    expiresAt: null,
  };
  await tokens.create({ ...token, name: "dashboard", tokenHash: token.hash });
  await seedChange(world.pool, { url: "http://kept.example/" });
  await numberChanges(world.pool, new Date());
  const lifted = await optOuts.request(optOutOf("lifted.example"), new Date());
  await world.pool.query(
    `insert into web_session (session_hash, name, role, issued_by, started_at, last_used_at, ends_at)
     values ('h', 'anna', 'operator', 'root', now(), now(), now() + interval '1 day')`,
  );
  const goBack = await rememberedDatabase(world.database);
  if (goBack === null) return context.skip();
  // Missing from the backup: sessions, another key, a newcomer, revocations, opt-outs, a change, a lease.
  for (const folder of [athens, berlin]) for (let times = 0; times < 3; times += 1) await comeAndGo(folder);
  await createFleetKeys(world.pool).askRotation("athens", { graceHours: 0.001, now: new Date() });
  const rotating = await world.come(athens);
  athens.key = (await rotating.crawler.next("coordinator:key")).key;
  await rotating.keyKept();
  await until(async () => (await world.keptKeys("athens")) === 2, 5000);
  await world.leave(rotating.crawler, "athens");
  const delhi = await world.joined("delhi");
  await comeAndGo(delhi);
  await createFleetKeys(world.pool).revoke("cairo", new Date());
  await tokens.revoke("dashboard", new Date());
  await optOuts.request(optOutOf("left.example"), new Date());
  await optOuts.lift(lifted.optOutId, "asked again", new Date());
  await createAuditLog(world.pool).record({
    ...{ at: new Date(), actor: "anna", via: "page", action: "policy-changed", target: "recrawl" },
    ...{ words: "Recrawls are daily.", remoteAddress: null },
  });
  await seedChange(world.pool, { url: "http://lost.example/" });
  await numberChanges(world.pool, new Date());
  const [lease] = await world.rows(
    `insert into lease (crawler_id, host_hash, host, granted_at, expires_at, url_count, open_urls)
     select crawler_id, 1, 'lost.example', now(), now() + interval '1 hour', 1, 1 from crawler where name = 'athens'
     returning lease_id::text`,
  );

  await world.startOver(goBack);

  const came = [await comeAndGo(athens), await comeAndGo(berlin), await comeAndGo(delhi)];
  expect(came.map(({ refuse }) => refuse)).toEqual([null, null, null]);
  expect((await comeAndGo(cairo)).refuse).toMatchObject({ code: "revoked" });
  expect(await world.incidentKinds()).not.toContain("copied-folder");
  expect((await tokens.list()).find(({ name }) => name === "dashboard")?.revokedAt).not.toBeNull();
  expect(await tokens.use(token.hash, new Date())).toBeNull();
  // One that ended after the backup would be valid again.
  expect(await world.rows("select name from web_session")).toEqual([]);
  expect((await optOuts.list({ open: true, most: 10 })).map(({ target }) => target)).toEqual([
    "left.example",
  ]);
  expect(await optOuts.covering("www.left.example", [])).not.toBeNull();
  const { entries } = await createAuditLog(world.pool).list({ limit: 50 });
  expect(entries.map(({ action }) => action)).toEqual(
    expect.arrayContaining(["policy-changed", "database-epoch-began"]),
  );
  // A reader of the lost change is told so, and where to continue; other readers continue.
  const feed = createChangeFeed(world.pool);
  const everything = { filter: everyChange, limit: 10 };
  await seedChange(world.pool, { url: "http://new.example/" });
  await numberChanges(world.pool, new Date());
  expect(await feed.after(2, everything)).toMatchObject({ type: "lost", goOnFrom: 1 });
  const [onwards] = [await feed.after(0, everything)];
  expect(onwards).toMatchObject({
    type: "read",
    changes: [{ url: "http://kept.example/", number: 1 }],
    more: true,
  });
  const next = onwards.type === "read" ? onwards.next : 0;
  expect(await feed.after(next, everything)).toMatchObject({
    changes: [{ url: "http://new.example/" }],
    more: false,
  });
  expect(await feed.after(1, everything)).toMatchObject({ changes: [{ url: "http://new.example/" }] });
  // No lease has a number that somebody may still hold.
  const [given] = await world.rows(
    "select nextval(pg_get_serial_sequence('lease', 'lease_id'))::text as next",
  );
  expect(BigInt(String(given?.next))).toBeGreaterThan(BigInt(String(lease?.lease_id)) + 1_000_000n);
  const [epoch] = await epochs(world.pool, 1);
  expect(epoch).toMatchObject({ epoch: 2, cause: "journal", replay: { failed: [] } });

  // It happened once: the next start finds nothing, and a copied folder is detected again.
  await world.startOver();
  expect(await epochs(world.pool, 5)).toHaveLength(2);
  const copy = { ...athens };
  await comeAndGo(athens);
  await comeAndGo(athens);
  expect((await comeAndGo(copy)).refuse).toMatchObject({ code: "copied-folder" });
});

it("admits a crawler by its identity even without the journal, and gives it another key", async (context) => {
  const folder = await world.joined("essen");
  await comeAndGo(folder);
  const goBack = await rememberedDatabase(world.database);
  if (goBack === null) return context.skip();
  await createFleetKeys(world.pool).askRotation("essen", { graceHours: 0.001, now: new Date() });
  const rotating = await world.come(folder);
  folder.key = (await rotating.crawler.next("coordinator:key")).key;
  await rotating.keyKept();
  await until(async () => (await world.keptKeys("essen")) === 2, 5000);
  await world.leave(rotating.crawler, "essen");
  const stranger = { ...folderOf("essen", folder.key), ticket: folder.ticket };

  await world.startOver(async () => {
    await goBack();
    await world.pool.query("delete from journal_entry");
    await world.pool.query("update database_epoch set timeline = 4711, database_id = gen_random_uuid()");
  });

  expect((await epochs(world.pool, 1))[0]).toMatchObject({ cause: "timeline" });
  expect((await world.come(stranger)).refuse).toMatchObject({ code: "wrong-key" });
  const back = await world.come(folder);
  const given = await back.crawler.next("coordinator:key");
  expect(back.welcome).not.toBeNull();
  await world.leave(back.crawler, "essen");
  // Once: an unknown key is refused from now on, and the new one is accepted.
  expect((await world.come({ ...folder, key: randomUUID() })).refuse).toMatchObject({ code: "wrong-key" });
  expect((await comeAndGo(Object.assign(folder, { key: given.key }))).welcome).not.toBeNull();
});

it("is noticed by a running coordinator, which refuses nobody for a ticket that the database forgot", async (context) => {
  const folder = await world.joined("faro");
  await comeAndGo(folder);
  const goBack = await rememberedDatabase(world.database);
  if (goBack === null) return context.skip();
  await comeAndGo(folder);
  const [first, second] = [{ ...folder }, await comeAndGo(folder)];
  await world.pool.query("delete from incident");
  await comeAndGo(folder);
  await world.pool.query(
    `insert into database_epoch (epoch, database_id, began_at, cause, words)
     select epoch + 1, database_id, now(), 'operator', 'a restore' from database_epoch order by epoch desc limit 1`,
  );

  const came = await comeAndGo(first);

  expect(second.welcome).not.toBeNull();
  expect(came.refuse).toMatchObject({ retry: true });
  expect(await world.wentBack()).toMatch(/^epoch \d+ has begun: a restore$/);
  expect(await world.incidentKinds()).not.toContain("copied-folder");
  await world.startOver(goBack);
});

it("keeps one journal for each database, closed to others", async () => {
  const { databaseId } = (await epochs(world.pool, 1))[0]!;
  const folder = join(journalRoot, databaseId);

  const { entries, faults } = await new JournalFolder(folder).read();

  expect(readdirSync(journalRoot).length).toBeGreaterThan(1);
  expect(faults).toEqual([]);
  expect(entries.length).toBeGreaterThan(0);
});

const optOutOf = (site: string) => ({
  target: { site, network: null },
  ...{ source: "operator" as const, words: "", replyTo: null, requester: null, confirmed: true },
});

/** The journal beside the database: what is copied into it, and how unusable lines are handled. */
import { appendFileSync, readdirSync, readFileSync, statSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createAuditLog } from "#coordinator/database/audit-log";
import { createCrawlerStore } from "#coordinator/place/crawlers/crawler-store";
import { createFleetKeys, createIdentityStore } from "#coordinator/place/crawlers/identity-store";
import { createOperatorTokenStore } from "#coordinator/run/access/session-store";
import { currentEpoch } from "#coordinator/run/journal/epoch-store";
import { type JournalEntry, JournalFolder } from "#coordinator/run/journal/journal-file-store";
import { forgetEntries, Journal } from "#coordinator/run/journal/journal-store";
import { replayByHand, replayEntries } from "#coordinator/run/journal/went-back-store";
import { createOptOutStore } from "#coordinator/run/opt-outs/store";
import { asCrawlerId } from "#core/ids";
import { testDatabase } from "../support/database.ts";
import { forThisFile } from "../support/for-this-file.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const noon = new Date("2030-01-01T12:00:00Z");
const later = (seconds: number) => new Date(noon.getTime() + seconds * 1000);

const database = await forThisFile(testDatabase());
let root: string;
beforeEach(() => {
  root = temporaryFolder("nearcrawl-journal-");
});
afterEach(async () => {
  await database.pool.query(
    "truncate opt_out, operator_token, audit_entry, crawler cascade; truncate journal_entry",
  );
});

const opened = async () => (await Journal.open(database.pool, root, () => new Date())).journal;
const folderOf = async () => join(root, (await currentEpoch(database.pool)).databaseId);
const filesOf = async () => readdirSync(await folderOf()).map((name) => name);
const onlyFile = async () => join(await folderOf(), (await filesOf())[0]!);
const inFiles = async () => await new JournalFolder(await folderOf()).read();
const entry = (number: number, given: Partial<JournalEntry> = {}): JournalEntry => ({
  entryId: `00000000-0000-4000-8000-${String(number).padStart(12, "0")}`,
  ...{
    number,
    epoch: 1,
    at: later(number).toISOString(),
    kind: "operator_token",
    key: `t${number}`,
    value: {},
  },
  ...given,
});
const siteOptOut = (site: string) => ({
  target: { site, network: null },
  ...{ source: "operator" as const, words: "", replyTo: null, requester: null, confirmed: true },
});

describe("what must outlive the database", () => {
  it("is in the files before the answer: opt-outs, revocations, crawlers, keys, tokens, the audit log", async () => {
    const { pool } = database;
    const journal = await opened();
    const optOuts = createOptOutStore(pool);
    const optOut = await optOuts.request(siteOptOut("left.example"), noon);
    await optOuts.lift(optOut.optOutId, "asked again", later(1));
    const crawlerId = await createCrawlerStore(pool).register({ name: "athens", keyHash: "aa" });
    await createFleetKeys(pool).revoke("athens", noon);
    const tokens = createOperatorTokenStore(pool);
    await tokens.create({ name: "ci", tokenHash: "cc", scopes: ["read"], createdAt: noon, expiresAt: null });
    await tokens.revoke("ci", later(2));
    await pool.query("insert into crawler_trust (crawler_id, distrusted_at) values ($1, now())", [crawlerId]);
    await createAuditLog(pool).record({
      ...{ at: noon, actor: "anna", via: "page", action: "crawler-removed", target: "athens" },
      ...{ words: "athens is removed.", remoteAddress: null },
    });

    await journal.catchUp();

    const { entries, faults } = await inFiles();
    expect(faults).toEqual([]);
    expect(entries.map(({ kind, key }) => `${kind} ${key}`)).toEqual([
      "opt_out left.example    ",
      "opt_out left.example    ",
      "crawler athens",
      "crawler_key athens aa",
      "crawler athens",
      "operator_token ci",
      "operator_token ci",
      "crawler_trust athens",
      expect.stringMatching(/^audit_entry .* anna crawler-removed athens$/),
    ]);
    expect(entries[1]?.value).toMatchObject({ ending: "lifted", site: "left.example" });
    expect(statSync(await onlyFile()).mode & 0o077).toBe(0);
  });

  it("excludes heartbeats, key uses and tickets, and is written once", async () => {
    const { pool } = database;
    const journal = await opened();
    const crawlerId = asCrawlerId(await createCrawlerStore(pool).register({ name: "athens", keyHash: "aa" }));
    await journal.catchUp();
    const { length } = (await inFiles()).entries;
    const identities = createIdentityStore(pool);
    const { rows } = await pool.query<{ key_id: number }>("select key_id from crawler_key");
    await identities.noteKeyUse({ crawlerId, keyId: rows[0]!.key_id }, noon);
    const shown = { crawlerId, shown: null, next: "t1", instanceId: "i", address: null, now: noon };
    await identities.tradeTicket(shown);

    await Promise.all([journal.catchUp(), journal.catchUp(), (await opened()).catchUp()]);

    expect((await inFiles()).entries).toHaveLength(length);
    expect(readFileSync(await onlyFile(), "utf8").split("\n")).toHaveLength(length + 1);
  });

  it("is found by every follower, whoever wrote it, and by whoever opens the journal again", async () => {
    const optOuts = createOptOutStore(database.pool);
    await optOuts.request(siteOptOut("before.example"), noon);
    const journal = await opened();
    const following = await journal.follow(() => void journal.catchUp());
    await journal.catchUp();
    await optOuts.request(siteOptOut("after.example"), noon);
    await journal.catchUp();
    await following.stop();

    const { entries } = await inFiles();
    expect(entries.map(({ value }) => value.site)).toEqual(["before.example", "after.example"]);
  });

  it("stays in the database for a month; the latest thousand stay for good", async () => {
    await database.pool.query(
      `insert into journal_entry (epoch, at, kind, key, value)
       select 1, $1::timestamptz - interval '60 days', 'opt_out', n::text, '{}' from generate_series(1, 1100) n`,
      [noon],
    );

    expect(await forgetEntries(database.pool, later(-30 * 86_400))).toBe(100);
    expect(await forgetEntries(database.pool, later(-30 * 86_400))).toBe(0);
  });
});

describe("its files", () => {
  it("may end with a truncated line: the others count, and the next entry begins a new line", async () => {
    const folder = new JournalFolder(root);
    await folder.append([entry(1), entry(2)], noon);
    const file = join(root, readdirSync(root)[0]!);
    truncateSync(file, statSync(file).size - 20);

    await folder.append([entry(3)], noon);

    const { entries, faults } = await folder.read();
    expect(entries.map(({ number }) => number)).toEqual([1, 3]);
    expect(faults).toEqual([{ file, line: 2, words: expect.stringMatching(/cut short: "\{"check"/) }]);
  });

  it("name a changed line, and one that is no entry, by file and line", async () => {
    const folder = new JournalFolder(root);
    await folder.append([entry(1), entry(2, { key: "revoked" })], noon);
    const file = join(root, readdirSync(root)[0]!);
    writeFileSync(file, readFileSync(file, "utf8").replace('"key":"revoked"', '"key":"allowed"'));
    appendFileSync(file, `hello\n{"check":"0123456789abcdef","entry":{}}\n${"x".repeat(300_000)}\n`);

    const { entries, faults } = await folder.read();

    expect(entries.map(({ number }) => number)).toEqual([1]);
    expect(faults.map(({ line, words }) => `${line}: ${words.slice(0, 44)}`)).toEqual([
      "2: it was changed since it was written, or cut ",
      '3: no entry: "hello"',
      "4: it was changed since it was written, or cut ",
      "5: 300000 characters are too many for an entry:",
    ]);
  });

  it("are followed by another file when large, and removed when old, except for the last", async () => {
    const folder = new JournalFolder(root, 500);
    for (let number = 1; number <= 6; number += 1) await folder.append([entry(number)], later(number));
    // A clock that went back continues in the same file.
    await folder.append([entry(7)], later(-1000));
    const names = readdirSync(root).sort();

    const gone = await folder.forget(new Date(Date.now() + 1000));

    expect(names.length).toBeGreaterThan(1);
    expect(gone).toBe(names.length - 1);
    expect((await folder.read()).entries.at(-1)?.number).toBe(7);
  });

  it("that cannot be written fail every waiting caller, with the folder's name", async () => {
    writeFileSync(join(root, "file"), "");

    const folder = new JournalFolder(join(root, "file", "journal"));

    await expect(folder.append([entry(1)], noon)).rejects.toThrow(
      /the journal in .*file.journal cannot be written/,
    );
  });
});

describe("a replay", () => {
  const token = (name: string, number: number, value: Record<string, unknown> = {}) =>
    entry(number, {
      key: name,
      value: {
        name,
        token_hash: name,
        scopes: ["read"],
        created_at: noon,
        expires_at: null,
        revoked_at: null,
        ...value,
      },
    });
  const tokens = async () =>
    (await createOperatorTokenStore(database.pool).list()).map(
      ({ name, revokedAt }) => `${name} ${revokedAt === null ? "good" : "revoked"}`,
    );

  it("restores rows to their last entry, whatever the order of the lines", async () => {
    const entries = [token("a", 9, { revoked_at: later(9) }), token("a", 3), token("b", 5)];

    const { replayed } = await replayByHand(database.pool, { entries, faults: [] }, later(100));

    expect(replayed).toEqual({ operator_token: 2 });
    expect(await tokens()).toEqual(["a revoked", "b good"]);
  });

  it("leaves rows that changed since, and does nothing the second time", async () => {
    const store = createOperatorTokenStore(database.pool);
    await store.create({ name: "a", tokenHash: "a", scopes: ["read"], createdAt: noon, expiresAt: null });
    const entries = [token("a", 3, { revoked_at: new Date("2020-01-01"), at: later(3) })];
    const old = entries.map((one) => ({ ...one, at: "2020-01-01T00:00:00.000Z" }));

    const first = await replayByHand(database.pool, { entries: old, faults: [] }, noon);
    const second = await replayByHand(database.pool, { entries: old, faults: [] }, noon);

    expect([first, second]).toMatchObject([
      { outdated: 1, replayed: {} },
      { outdated: 1, replayed: {} },
    ]);
    expect(await tokens()).toEqual(["a good"]);
  });

  it("of entries by a clock that was ahead is only done by hand", async () => {
    const entries = [{ ...token("a", 3), at: later(700 * 86_400).toISOString() }];
    const client = await database.pool.connect();

    const byItself = await replayEntries(client, entries, noon).finally(() => client.release());
    const byHand = await replayByHand(database.pool, { entries, faults: [] }, noon);

    expect(byItself.failed).toMatchObject([{ key: "a", words: expect.stringContaining("which is not yet") }]);
    expect([byItself.replayed, byHand.replayed]).toEqual([{}, { operator_token: 1 }]);
  });

  it("names what it cannot restore, and restores the rest", async () => {
    const entries = [
      entry(1, {
        kind: "crawler_key",
        key: "nobody x",
        value: { crawler: "nobody", key_hash: "x", scopes: ["crawl"] },
      }),
      entry(2, { kind: "spell", key: "x", value: {} }),
      entry(3, { kind: "operator_token", key: "x", value: { "name; drop table page": 1 } }),
      entry(4, {
        kind: "operator_token",
        key: "y",
        value: { name: "y", token_hash: "y", scopes: ["all"], created_at: noon },
      }),
      token("z", 5),
    ];

    const { failed, replayed } = await replayByHand(database.pool, { entries, faults: [] }, later(100));

    expect(failed.map(({ kind, words }) => `${kind}: ${words}`).sort()).toEqual([
      "crawler_key: there is no crawler named nobody",
      'operator_token: "name; drop table page" is no column',
      expect.stringMatching(/^operator_token: .*violates check constraint/),
      "spell: this version knows no spell",
    ]);
    expect(replayed).toEqual({ operator_token: 1 });
  });
});

/**
 * Restores what a database that went back has lost: each row by its last entry in the journal, unless the row was changed
 * since.
 */
import type { PoolClient } from "pg";
import { sqlStateOf } from "../../database/transaction.ts";
import type { Replay } from "./epoch.ts";
import type { JournalEntry } from "./journal-file-store.ts";

export const noReplay: Replay = { replayed: {}, outdated: 0, failed: [] };

/** The most failures in the result; the log counts all. */
const mostFailed = 100;

interface ReplayedTable {
  /** How to find an entry's row: SQL of the table's row `t` and the entry's row `g`. */
  readonly match: string;
  /** The id column that the database assigns; null when the row has its own key. */
  readonly id: string | null;
  /** Rows are only added, never changed. */
  readonly addsOnly?: boolean;
  /** Referenced tables come first. */
  readonly order: number;
}

const isSame = (column: string) => `t.${column} is not distinct from g.${column}`;

const replayedTables: Readonly<Record<string, ReplayedTable>> = {
  crawler: { match: isSame("name"), id: "crawler_id", order: 0 },
  release_key: { match: isSame("public_key"), id: null, order: 0 },
  release_key_rotation: { match: isSame("sequence"), id: null, order: 0 },
  release_revocation: { match: isSame("sequence"), id: null, order: 0 },
  operator_token: { match: isSame("name"), id: "token_id", order: 0 },
  sign_in_link: { match: isSame("link_hash"), id: "link_id", order: 0 },
  // At most one open opt-out exists per site, part of a site, or network.
  opt_out: {
    match: `${["site", "scope", "url", "first_address", "last_address"].map(isSame).join(" and ")} and t.ended_at is null`,
    id: "opt_out_id",
    order: 0,
  },
  crawler_key: { match: `${isSame("crawler_id")} and ${isSame("key_hash")}`, id: "key_id", order: 1 },
  crawler_trust: { match: isSame("crawler_id"), id: null, order: 1 },
  invitation: { match: isSame("secret_hash"), id: "invitation_id", order: 1 },
  audit_entry: { match: "false", id: "entry_id", addsOnly: true, order: 2 },
};

/**
 * Restores the rows, each by its last entry. Rows that were changed since are kept. An entry that cannot be restored is skipped
 * with a reason.
 */
export async function replayEntries(
  client: PoolClient,
  entries: readonly JournalEntry[],
  now: Date,
  { evenOfTheFuture = false } = {},
): Promise<Replay> {
  const replayed: Record<string, number> = {};
  const failed: Replay["failed"][number][] = [];
  let outdated = 0;
  for (const entry of inOrder(lastOfEach(entries))) {
    const { kind, key } = entry;
    const table = replayedTables[kind];
    const fault =
      table === undefined
        ? `this version knows no ${kind}`
        : ((evenOfTheFuture ? null : futureFault(entry, now)) ?? columnFault(entry));
    if (table === undefined || fault !== null) {
      failed.push({ kind, key, words: fault ?? "" });
      continue;
    }
    if (!table.addsOnly && (await isOutdated(client, entry))) {
      outdated += 1;
      continue;
    }
    await client.query("savepoint entry");
    try {
      await putBack(client, table, entry);
      await client.query("release savepoint entry");
      replayed[kind] = (replayed[kind] ?? 0) + 1;
    } catch (error) {
      if (sqlStateOf(error) === "") throw error;
      await client.query("rollback to savepoint entry");
      failed.push({ kind, key, words: (error as Error).message });
    }
  }
  return { replayed, outdated, failed: failed.slice(0, mostFailed) };
}

/** Changing rows are restored by their last entry; audit log entries are all kept. */
function lastOfEach(entries: readonly JournalEntry[]): JournalEntry[] {
  const byTime = [...entries].sort(
    (one, other) => Date.parse(one.at) - Date.parse(other.at) || one.number - other.number,
  );
  const last = new Map(
    byTime.map((entry) => [
      replayedTables[entry.kind]?.addsOnly ? entry.entryId : `${entry.kind} ${entry.key}`,
      entry,
    ]),
  );
  return [...last.values()];
}

function inOrder(entries: readonly JournalEntry[]): JournalEntry[] {
  const placeOf = ({ kind }: JournalEntry) => replayedTables[kind]?.order ?? 0;
  return [...entries].sort((one, other) => placeOf(one) - placeOf(other));
}

/** The clocks of a fleet's machines differ by less. */
const mostAheadMs = 3_600_000;

function futureFault({ at }: JournalEntry, now: Date): string | null {
  return Date.parse(at) > now.getTime() + mostAheadMs
    ? `it is of ${at}, which is not yet: look at the clocks, and replay it by hand (nearcrawl journal replay)`
    : null;
}

function columnFault({ value }: JournalEntry): string | null {
  const odd = Object.keys(value).find((name) => !/^[a-z][a-z0-9_]{0,62}$/.test(name));
  return odd === undefined ? null : `"${odd}" is no column`;
}

/** True when a known later change touched the row. */
async function isOutdated(client: PoolClient, { kind, key, at, entryId }: JournalEntry): Promise<boolean> {
  const { rowCount } = await client.query(
    "select from journal_entry where kind = $1 and key = $2 and at > $3 and entry_id <> $4 limit 1",
    [kind, key, at, entryId],
  );
  return rowCount !== 0;
}

/** Crawlers' names become their numbers here. */
async function putBack(
  client: PoolClient,
  table: ReplayedTable,
  { kind, value }: JournalEntry,
): Promise<void> {
  const { crawler, ...own } = value;
  const known = await columnsOf(client, kind);
  const namesCrawler = "crawler" in value && known.includes("crawler_id");
  const crawlerId = namesCrawler && crawler !== null ? await crawlerOf(client, String(crawler)) : null;
  const given: Record<string, unknown> = namesCrawler ? { ...own, crawler_id: crawlerId } : own;
  const columns = Object.keys(given).filter((name) => known.includes(name));
  const row = `jsonb_populate_record(null::${kind}, $1::jsonb) g`;
  const json = JSON.stringify(given);
  if (!table.addsOnly) {
    const { rowCount } = await client.query(
      `update ${kind} t
       set ${columns.map((name) => `${name} = g.${name}`).join(", ")}${kind === "crawler" ? anotherIdentity : ""}
       from ${row}
       where ${table.match}`,
      [json],
    );
    if (rowCount !== 0) return;
  }
  // It ended before this database knew it, so there is nothing to end.
  if (kind === "opt_out" && given.ended_at !== null) return;
  await client.query(
    `insert into ${kind} (${columns.join(", ")}${kind === "crawler" ? ", readmit" : ""})
     select ${columns.map((name) => `g.${name}`).join(", ")}${kind === "crawler" ? ", true" : ""}
     from ${row}`,
    [json],
  );
}

/** It was invited again, so the previous identity's evidence does not apply. */
const anotherIdentity = `,
       readmit = t.readmit or t.public_key is distinct from g.public_key,
       ticket_hash = case when t.public_key is not distinct from g.public_key then t.ticket_hash end,
       previous_ticket_hash = case when t.public_key is not distinct from g.public_key then t.previous_ticket_hash end`;

async function columnsOf(client: PoolClient, table: string): Promise<string[]> {
  const { rows } = await client.query<{ name: string }>(
    `select attname::text as name from pg_attribute
     where attrelid = to_regclass($1) and attnum > 0 and not attisdropped`,
    [table],
  );
  return rows.map((row) => row.name);
}

async function crawlerOf(client: PoolClient, name: string): Promise<number> {
  const { rows } = await client.query<{ crawler_id: number }>(
    "select crawler_id from crawler where name = $1",
    [name],
  );
  const [row] = rows;
  if (row === undefined)
    throw Object.assign(new Error(`there is no crawler named ${name}`), { code: "02000" });
  return row.crawler_id;
}

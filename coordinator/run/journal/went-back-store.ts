/**
 * Checks whether the database went back. If it did, begins an epoch and restores what the journal knows in one
 * transaction, then returns all leases.
 */
import type { Pool, PoolClient } from "pg";
import { asCrawlerId } from "#core/ids";
import type { Log } from "#core/log";
import { returnLeasesOf } from "../../crawl/frontier/lease-end-writes.ts";
import { createAuditLog } from "../../database/audit-log.ts";
import { inTransaction, sqlStateOf } from "../../database/transaction.ts";
import {
  type Epoch,
  type EpochCause,
  journalDays,
  type Replay,
  replayedRows,
  type Witness,
  whyWentBack,
} from "./epoch.ts";
import {
  beginEpoch,
  currentEpoch,
  keepLastLook,
  noteReplay,
  noteServer,
  readLastLook,
  serverState,
} from "./epoch-store.ts";
import type { JournalContents, JournalEntry } from "./journal-file-store.ts";
import { Journal, knownEntries } from "./journal-store.ts";

interface ReviewPorts {
  readonly pool: Pool;
  /** Folder of the home's journals; null if none is kept. */
  readonly journalRoot: string | null;
  readonly log: Pick<Log, "warn" | "error">;
  readonly now: () => Date;
}

export interface ReviewedDatabase {
  readonly epoch: number;
  readonly journal: Journal | null;
  readonly began: { readonly cause: EpochCause; readonly words: string; readonly replay: Replay } | null;
}

/** What an operator states when forcing a new epoch. */
export interface Told {
  readonly words: string;
}

/** Runs before anything else is read from the database. `told` forces a new epoch. */
export async function reviewDatabase(
  ports: ReviewPorts,
  told: Told | null = null,
): Promise<ReviewedDatabase> {
  const { pool, journalRoot, log, now } = ports;
  const opened = journalRoot === null ? null : await Journal.open(pool, journalRoot, now);
  const contents: JournalContents = opened?.contents ?? { entries: [], faults: [] };
  for (const fault of contents.faults) log.warn({ ...fault }, "a line of the journal cannot be used");
  const journal = opened?.journal ?? null;
  const folder = journal?.files.folder ?? null;
  const before = await currentEpoch(pool);
  const server = await serverState(pool);
  const lastLook = folder === null ? null : await readLastLook(folder);
  const lastEntries = await lastEntriesOf(pool, contents, now());
  const why =
    told === null
      ? whyWentBack(before, server, { lastLook, lastEntries })
      : { cause: "operator" as const, words: told.words };
  if (why === null) await noteServer(pool, before, server);
  const newest = Math.max(lastLook?.epoch ?? 0, lastEntries?.epoch ?? 0);
  // If another coordinator began the epoch, entries that only this one's journal has are restored, too.
  const seen = lastLook?.epoch ?? newest;
  const isBehind = why === null && seen > 0 && seen < before.epoch && !isLongAgo(before, now());
  const began =
    why === null && !isBehind
      ? null
      : await inTransaction(pool, async (client) => {
          const isNew =
            why !== null && (await beginEpoch(client, { before, newest, ...why, server, now: now() }));
          const { cause, words } = why ?? before;
          return await putBack(client, contents, { isNew, cause, words, now: now() });
        });
  const { epoch } = await currentEpoch(pool);
  if (why !== null) await returnAllLeases(pool, now());
  if (began !== null) log.warn({ epoch, ...began }, "the database went back: a new epoch has begun");
  try {
    await journal?.catchUp();
    if (journal !== null) await keepLastLook(journal, epoch, server);
  } catch (error) {
    // Crawling continues all the same. People's changes are confirmed only once the journal can be written.
    log.error({ error }, "the journal cannot be written");
  }
  return { epoch, journal, began: why === null ? null : began };
}

/** How many of the latest entries are checked. More than that are made between a restore and the first check. */
const entriesLooked = 200;

const dayMs = 86_400_000;

/** Entries younger than this must still be in the database. */
const youngMs = (journalDays - 1) * dayMs;

async function lastEntriesOf(
  pool: Pool,
  { entries }: JournalContents,
  now: Date,
): Promise<Witness["lastEntries"]> {
  if (entries.length === 0) return null;
  const epoch = entries.reduce((newest, one) => Math.max(newest, one.epoch), 0);
  const young = entries
    .slice(-entriesLooked)
    .filter((one) => one.epoch === epoch && now.getTime() - Date.parse(one.at) < youngMs);
  const known = await knownEntries(
    pool,
    young.map(({ entryId }) => entryId),
  );
  return { epoch, areKnown: young.every(({ entryId }) => known.has(entryId)) };
}

/** By then the database has deleted some of its entries, so that the files' entries would seem lost. */
const isLongAgo = ({ beganAt }: Epoch, now: Date) =>
  now.getTime() - beganAt.getTime() > (journalDays - 5) * dayMs;

async function putBack(
  client: PoolClient,
  contents: JournalContents,
  began: { readonly isNew: boolean; readonly cause: EpochCause; readonly words: string; readonly now: Date },
) {
  const { isNew, cause, words, now } = began;
  const { epoch } = await currentEpoch(client);
  const lost = await lostEntries(client, contents, epoch);
  const replay = lost.length === 0 ? noReplay : await replayEntries(client, lost, now);
  // Without a journal no replay is recorded, which shows that there was none.
  if (contents.entries.length > 0 && (lost.length > 0 || isNew)) await noteReplay(client, epoch, replay);
  if (isNew) await noteInAudit(client, { epoch, cause, words, replay }, now);
  return { cause, words, replay };
}

/** Numbers are assigned before the commit, which follows within this time. */
const lateMs = 3_600_000;

/** Returns the entries of earlier epochs that the database does not know, from where its knowledge ends. */
async function lostEntries(
  client: Pool | PoolClient,
  { entries }: Pick<JournalContents, "entries">,
  epoch: number,
): Promise<JournalEntry[]> {
  const before = entries.filter((entry) => entry.epoch < epoch);
  const known = await knownEntries(
    client,
    before.map(({ entryId }) => entryId),
  );
  const lastKnownMs = before
    .filter(({ entryId }) => known.has(entryId))
    .reduce((latest, { at }) => Math.max(latest, Date.parse(at)), Number.NEGATIVE_INFINITY);
  return before.filter(({ entryId, at }) => !known.has(entryId) && Date.parse(at) > lastKnownMs - lateMs);
}

async function noteInAudit(
  client: PoolClient,
  { epoch, cause, words, replay }: { epoch: number; cause: EpochCause; words: string; replay: Replay },
  now: Date,
): Promise<void> {
  const { replayed, failed } = replay;
  await createAuditLog(client).record({
    actor: "coordinator",
    via: "coordinator",
    remoteAddress: null,
    at: now,
    action: "database-epoch-began",
    target: `epoch ${epoch}`,
    words: `The database went back: ${words}. The journal put ${replayedRows(replay)} rows back; ${failed.length} could not be.`,
    after: { cause, replayed, failed: failed.length },
  });
}

/** The crawlers may have delivered what the database lost, and others may get the same work. */
async function returnAllLeases(pool: Pool, now: Date): Promise<void> {
  const { rows } = await pool.query<{ crawler_id: number }>(
    "select distinct crawler_id from lease where closed_at is null",
  );
  for (const row of rows)
    await returnLeasesOf(pool, { crawlerId: asCrawlerId(row.crawler_id), held: [] }, now);
}

/** Checks during operation whether the database is no longer the one that was read, so that the coordinator must restart. */
export async function hasGoneBack(
  pool: Pool,
  epoch: number,
  journal: Journal | null,
): Promise<string | null> {
  const current = await currentEpoch(pool);
  if (current.epoch !== epoch) return `epoch ${current.epoch} has begun: ${current.words}`;
  const server = await serverState(pool);
  const folder = journal?.files.folder ?? null;
  const lastLook = folder === null ? null : await readLastLook(folder);
  const why = whyWentBack(current, server, { lastLook, lastEntries: null });
  if (why !== null) return why.words;
  if (journal !== null) await keepLastLook(journal, epoch, server);
  return null;
}

/** Restores what this database lacks from any journal. Only operators do this, since the journal may be another database's. */
export async function replayByHand(pool: Pool, { entries }: JournalContents, now: Date): Promise<Replay> {
  return await inTransaction(pool, async (client) => {
    const { epoch } = await currentEpoch(client);
    const known = await knownEntries(
      client,
      entries.map(({ entryId }) => entryId),
    );
    const replay = await replayEntries(
      client,
      entries.filter(({ entryId }) => !known.has(entryId)),
      now,
      { evenOfTheFuture: true },
    );
    await noteReplay(client, epoch, replay);
    return replay;
  });
}

const noReplay: Replay = { replayed: {}, outdated: 0, failed: [] };

/** Maximum number of failures in the result. The log has all of them. */
const mostFailed = 100;

interface ReplayedTable {
  /** SQL that finds an entry's row: `t` is the table's row, and `g` the entry's. */
  readonly match: string;
  /** The id column that the database assigns; null if the row has a key of its own. */
  readonly id: string | null;
  /** Rows are only added, and never changed. */
  readonly addsOnly?: boolean;
  /** Position in the order, in which referenced tables come first. */
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
  // A site, part of a site or network has at most one open opt-out.
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
 * Restores rows, each from its last entry. Rows that were changed later are kept. An entry that cannot be restored is
 * skipped, and the reason recorded.
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
      await putRowBack(client, table, entry);
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

/** Rows that change are restored from their last entry. Entries for the audit log are all kept. */
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

/** Maximum difference between the clocks of a fleet's machines. */
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

/** Whether a known change touched the row later. */
async function isOutdated(client: PoolClient, { kind, key, at, entryId }: JournalEntry): Promise<boolean> {
  const { rowCount } = await client.query(
    "select from journal_entry where kind = $1 and key = $2 and at > $3 and entry_id <> $4 limit 1",
    [kind, key, at, entryId],
  );
  return rowCount !== 0;
}

/** Turns crawlers' names into their numbers in this database. */
async function putRowBack(
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
  // It ended before this database knew of it, so there is nothing to end.
  if (kind === "opt_out" && given.ended_at !== null) return;
  await client.query(
    `insert into ${kind} (${columns.join(", ")}${kind === "crawler" ? ", readmit" : ""})
     select ${columns.map((name) => `g.${name}`).join(", ")}${kind === "crawler" ? ", true" : ""}
     from ${row}`,
    [json],
  );
}

/** The crawler was invited again, so what its previous identity proved does not apply. */
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

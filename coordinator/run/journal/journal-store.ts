/**
 * Table journal_entry: changes that must outlive the database. Triggers write them (migration 0066), and they are
 * copied into files. A change is confirmed once it is in the files.
 */
import { join } from "node:path";
import type { Pool, PoolClient } from "pg";
import { ChannelListener } from "../../database/channel-listener.ts";
import { journalDays } from "./epoch.ts";
import { currentEpoch } from "./epoch-store.ts";
import { type JournalContents, type JournalEntry, JournalFolder } from "./journal-file-store.ts";

const alwaysKept = 1000;

/** Numbers are assigned before the commit, so this many below the latest are read again. */
const lateNumbers = 1000;

const atOnce = 1000;

/** Reads the entries above `number`, and some below it, in order. */
async function entriesAfter(pool: Pool, number: number): Promise<JournalEntry[]> {
  const { rows } = await pool.query<Omit<JournalEntry, "at"> & { readonly at: Date }>(
    `select entry_id as "entryId", entry_number::float8 as number, epoch, at, kind, key, value
     from journal_entry
     where entry_number > $1
     order by entry_number
     limit $2`,
    [Math.max(0, number - lateNumbers), lateNumbers + atOnce],
  );
  return rows.map((row) => ({ ...row, at: row.at.toISOString() }));
}

export async function knownEntries(
  pool: Pool | PoolClient,
  entryIds: readonly string[],
): Promise<ReadonlySet<string>> {
  const { rows } = await pool.query<{ entry_id: string }>(
    "select entry_id from journal_entry where entry_id = any($1::uuid[])",
    [entryIds],
  );
  return new Set(rows.map((row) => row.entry_id));
}

export async function forgetEntries(pool: Pool, before: Date): Promise<number> {
  const { rowCount } = await pool.query(
    `delete from journal_entry
     where at < $1
       and entry_number <= (
         select entry_number from journal_entry order by entry_number desc offset ${alwaysKept} limit 1
       )`,
    [before],
  );
  return rowCount ?? 0;
}

const dayMs = 86_400_000;

/** The journal of a database: a folder per database, named by an id that a restore keeps. */
export class Journal {
  readonly files: JournalFolder;
  readonly schema: string;
  readonly #pool: Pool;
  readonly #now: () => Date;
  readonly #written: Set<string>;
  #last = 0;
  #running: Promise<void> | null = null;
  #next: Promise<void> | null = null;

  private constructor(
    pool: Pool,
    { files, schema }: Pick<Journal, "files" | "schema">,
    written: Set<string>,
    now: () => Date,
  ) {
    this.#pool = pool;
    this.files = files;
    this.schema = schema;
    this.#written = written;
    this.#now = now;
  }

  /** `root` is the folder of all journals of a home. Also returns what the files contain. */
  static async open(
    pool: Pool,
    root: string,
    now: () => Date,
  ): Promise<{ readonly journal: Journal; readonly contents: JournalContents }> {
    const { databaseId } = await currentEpoch(pool);
    const { rows } = await pool.query<{ schema: string }>("select current_schema() as schema");
    const { schema } = rows[0]!;
    const files = new JournalFolder(join(root, databaseId));
    const contents = await files.read();
    const sinceMs = now().getTime() - 2 * journalDays * dayMs;
    const young = contents.entries.filter(({ at }) => Date.parse(at) >= sinceMs);
    const written = new Set(young.map(({ entryId }) => entryId));
    return { journal: new Journal(pool, { files, schema }, written, now), contents };
  }

  /**
   * Resolves when everything committed before the call is in the files. Throws a DatabaseError if they cannot be
   * written. Errors of Postgres pass through.
   */
  async catchUp(): Promise<void> {
    if (this.#running === null) {
      this.#running = this.#copy().finally(() => {
        this.#running = null;
      });
      return await this.#running;
    }
    // A copy in progress may have read too early, so callers wait for the next one together.
    this.#next ??= this.#running
      .catch(() => {})
      .then(async () => {
        this.#next = null;
        await this.catchUp();
      });
    return await this.#next;
  }

  /** Copies changes by other processes as they are made. */
  async follow(onNotice: () => void): Promise<{ stop(): Promise<void> }> {
    const listener = new ChannelListener(this.#pool, "nearcrawl_journal", onNotice);
    await listener.listen();
    return {
      stop: async () => {
        await listener.stop();
        await this.#running?.catch(() => {});
      },
    };
  }

  async #copy(): Promise<void> {
    for (;;) {
      const found = await entriesAfter(this.#pool, this.#last);
      const fresh = found.filter(({ entryId }) => !this.#written.has(entryId));
      await this.files.append(fresh, this.#now());
      for (const { entryId } of fresh) this.#written.add(entryId);
      const last = found.at(-1)?.number ?? this.#last;
      const isThrough = last <= this.#last;
      this.#last = Math.max(this.#last, last);
      if (isThrough) return;
    }
  }
}

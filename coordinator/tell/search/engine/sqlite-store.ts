/**
 * The little that the index asks of SQLite, from the driver that is there: Node's own, which Node 20 lacks, or SQLite as
 * WebAssembly, which is slower and needs no compiler. The process that opens a file is the only one that uses it.
 */
import { existsSync, rmSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";

export type SqliteValue = number | string | Uint8Array | null;

export interface Sqlite {
  exec(sql: string): void;
  /** Keeps the prepared statement, so it is for statements that never change. */
  run(sql: string, values: readonly SqliteValue[]): void;
  all<Row>(sql: string, values?: readonly SqliteValue[]): Row[];
  /** A function that statements may call. */
  define(name: string, result: () => number): void;
  close(): void;
}

export async function openSqlite(path: string): Promise<Sqlite> {
  const native = nativeDriver();
  const file = native === null ? await openWasm(path) : openNative(native, path);
  try {
    // Without a second process there is no shared memory, which WebAssembly does not have.
    file.all("pragma locking_mode = exclusive");
    file.all("pragma journal_mode = wal");
    file.exec("pragma synchronous = normal; pragma cache_size = -65536; pragma temp_store = memory");
    return file;
  } catch (error) {
    file.close();
    throw error;
  }
}

interface NativeStatement {
  all(...values: readonly SqliteValue[]): unknown[];
  run(...values: readonly SqliteValue[]): unknown;
}

interface NativeDatabase {
  exec(sql: string): void;
  prepare(sql: string): NativeStatement;
  function(name: string, result: () => number): void;
  close(): void;
}

type NativeDriver = new (path: string) => NativeDatabase;

/** The first versions of Node's driver lack functions or FTS5. */
function nativeDriver(): NativeDriver | null {
  const { DatabaseSync } = (process.getBuiltinModule("node:sqlite") ?? {}) as { DatabaseSync?: NativeDriver };
  if (DatabaseSync === undefined || typeof DatabaseSync.prototype.function !== "function") return null;
  const database = new DatabaseSync(":memory:");
  const [used] = database.prepare("select sqlite_compileoption_used('ENABLE_FTS5') as fts5").all();
  database.close();
  return (used as { fts5: number }).fts5 === 1 ? DatabaseSync : null;
}

function openNative(Driver: NativeDriver, path: string): Sqlite {
  const database = new Driver(path);
  const statements = new Map<string, NativeStatement>();
  return {
    exec: (sql) => database.exec(sql),
    run(sql, values) {
      const statement = statements.get(sql) ?? database.prepare(sql);
      statements.set(sql, statement);
      statement.run(...values);
    },
    all: <Row>(sql: string, values: readonly SqliteValue[] = []) =>
      database.prepare(sql).all(...values) as Row[],
    define: (name, result) => database.function(name, result),
    close: () => database.close(),
  };
}

/** Longer than a process that is to end may be busy. */
const lockMs = 2000;

async function openWasm(path: string): Promise<Sqlite> {
  const { default: sqlite } = await import("node-sqlite3-wasm");
  // A process that ends removes its lock. That of one that was killed stays.
  const endMs = performance.now() + lockMs;
  while (existsSync(`${path}.lock`) && performance.now() < endMs) await delay(50);
  rmSync(`${path}.lock`, { recursive: true, force: true });
  const database = new sqlite.Database(path);
  const statements = new Map<string, ReturnType<typeof database.prepare>>();
  return {
    exec: (sql) => database.exec(sql),
    run(sql, values) {
      const statement = statements.get(sql) ?? database.prepare(sql);
      statements.set(sql, statement);
      statement.run([...values]);
    },
    all: <Row>(sql: string, values: readonly SqliteValue[] = []) => database.all(sql, [...values]) as Row[],
    define: (name, result) => void database.function(name, result),
    close() {
      for (const statement of statements.values()) statement.finalize();
      database.close();
    },
  };
}

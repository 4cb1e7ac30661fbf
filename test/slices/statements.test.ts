/**
 * Every statement of the source, by the tables that it names: with slices on several servers, one that writes a shared table
 * beside a slice's, or reads a shared table that slices have no replica of, has no place to run.
 */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Database } from "#db/server-database";
import { isSliceTable, replicatedTables, sliceTables } from "#db/table-sets";
import { testDatabase } from "../support/database.ts";

let database: Database;
let tables: ReadonlySet<string>;
beforeAll(async () => {
  database = await testDatabase();
  const { rows } = await database.pool.query<{ name: string }>(
    `select relname::text as name from pg_class
     where relnamespace = current_schema()::regnamespace and relkind in ('r', 'p') and not relispartition
       and relname <> 'migration'`,
  );
  tables = new Set(rows.map(({ name }) => name));
});
afterAll(async () => await database?.close());

const sourceFolders = ["coordinator", "ops", "rir-import", "db"];

const sources = sourceFolders.flatMap((folder) =>
  readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter((path) => path.endsWith(".ts"))
    .map((path) => join(folder, path)),
);

interface Text {
  /** Of the file. */
  readonly start: number;
  readonly text: string;
}

/** What stands in quotes or backquotes; of what is put into a text nothing but a name in place of it. */
function textsOf(code: string): Text[] {
  const texts: Text[] = [];
  let at = 0;
  /** Reads code up to an unmatched brace. */
  const readCode = (): void => {
    for (let depth = 0; at < code.length; at++) {
      const two = code.slice(at, at + 2);
      if (two === "//") at = (code.indexOf("\n", at) + 1 || code.length + 1) - 1;
      else if (two === "/*") at = code.indexOf("*/", at) + 1;
      else if (code[at] === "`") readTemplate();
      else if (code[at] === '"' || code[at] === "'") readQuoted(code[at] as string);
      else if (code[at] === "{") depth += 1;
      else if (code[at] === "}" && depth-- === 0) return;
    }
  };
  const readQuoted = (quote: string): void => {
    const start = at++;
    while (at < code.length && code[at] !== quote && code[at] !== "\n") at += code[at] === "\\" ? 2 : 1;
    texts.push({ start, text: code.slice(start + 1, at) });
  };
  const readTemplate = (): void => {
    const start = at++;
    let text = "";
    while (at < code.length && code[at] !== "`") {
      if (code.slice(at, at + 2) === "${") {
        at += 2;
        readCode();
        text += " inserted ";
        at += 1;
      } else if (code[at] === "\\") {
        text += code[at + 1];
        at += 2;
      } else text += code[at++];
    }
    texts.push({ start, text });
  };
  while (at < code.length) {
    readCode();
    at += 1;
  }
  return texts;
}

/** Tables that a text of SQL names where tables stand: read or written, and written. */
function tablesIn(text: string, known: ReadonlySet<string>): { named: Set<string>; written: Set<string> } {
  const found = (pattern: RegExp) =>
    new Set([...text.matchAll(pattern)].map(([, name = ""]) => name).filter((name) => known.has(name)));
  return {
    named: found(/\b(?:from|join|into|update|table|truncate|only|using|,)\s+(?:only\s+)?"?([a-z_]+)\b/g),
    written: found(/\b(?:insert into|update|delete from|truncate|merge into)\s+(?:only\s+)?"?([a-z_]+)\b/g),
  };
}

const statementsOf = (code: string) => textsOf(code).filter(({ text }) => isSql(text));

const isSql = (text: string) => /\b(select|insert into|update|delete from|truncate|join|from)\b/.test(text);

/** Statements of both sets that run where slice 0 lies beside the shared tables, and nowhere else: to be split. */
const exceptions: readonly string[] = [
  "coordinator/crawlers/crawler-store.ts",
  "coordinator/delegation/overrides/misplaced-host-store.ts",
  "coordinator/federation/exchange-queue-store.ts",
  "coordinator/fleet/invitation-step-reads.ts",
  "coordinator/frontier/closed-lease-store.ts",
  "coordinator/frontier/frontier-store.ts",
  "coordinator/journal/epoch-store.ts",
  "coordinator/opt-outs/complaint-store.ts",
  "coordinator/releases/fleet-store.ts",
  "coordinator/reports/coverage-store.ts",
  "ops/cli/setup/doctor-checks.ts",
  "rir-import/database/subnets-in-use.ts",
];

function faultsOf(path: string, code: string, { start, text }: Text): string[] {
  const { named, written } = tablesIn(text, tables);
  const slice = [...named].filter(isSliceTable);
  const shared = [...named].filter((name) => !isSliceTable(name));
  if (slice.length === 0 || shared.length === 0) return [];
  const wrong = shared.filter(
    (name) => written.has(name) || !(replicatedTables as readonly string[]).includes(name),
  );
  if (wrong.length === 0) return [];
  const line = code.slice(0, start).split("\n").length;
  return [
    `${path}:${line}: ${wrong.map((name) => `${written.has(name) ? "writes" : "reads"} ${name}`).join(", ")} beside ${slice.join(", ")}`,
  ];
}

describe("the two sets of tables", () => {
  it("have every table once", () => {
    expect(sliceTables.filter((name) => !tables.has(name))).toEqual([]);
    expect(replicatedTables.filter((name) => !tables.has(name) || isSliceTable(name))).toEqual([]);
    expect(new Set(sliceTables).size).toBe(sliceTables.length);
  });

  it("have a host's hash only where a slice has its tables, or where people and probes name hosts", async () => {
    const { rows } = await database.pool.query<{ name: string }>(
      `select distinct table_name::text as name from information_schema.columns
       where table_schema = current_schema() and column_name = 'host_hash'`,
    );
    const shared = rows.map(({ name }) => name).filter((name) => tables.has(name) && !isSliceTable(name));

    expect(shared.sort()).toEqual(["channel", "finer_delegation", "submission_url"]);
  });
});

describe("every statement of the source", () => {
  it("is found where it is told apart by nothing but its tables", () => {
    const code =
      // biome-ignore lint/suspicious/noTemplateCurlyInString: it is source code
      'const a = `select ${b ? `x from page` : "y"} from crawler join page using (z)`; // `from subnet`';

    expect(textsOf(code).map(({ text }) => text)).toEqual([
      "x from page",
      "y",
      "select  inserted  from crawler join page using (z)",
    ]);
    const found = sources.flatMap((path) => statementsOf(readFileSync(path, "utf8")));
    expect(found.length).toBeGreaterThan(900);
  });

  it("writes shared tables alone, and reads beside a slice's only what slices have a replica of", () => {
    const faults = sources.flatMap((path) => {
      const code = readFileSync(path, "utf8");
      return statementsOf(code).flatMap((text) => faultsOf(path, code, text));
    });

    expect(faults.filter((fault) => !exceptions.some((known) => fault.startsWith(known)))).toEqual([]);
    expect(exceptions.filter((known) => !faults.some((fault) => fault.startsWith(known)))).toEqual([]);
  });
});

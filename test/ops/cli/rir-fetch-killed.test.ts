/** `rir fetch` as a process that is killed in the middle: the cache stays whole, and the next one goes on. */

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { cachedSourceFiles } from "#rir-import/download/cache-manifest";
import { fileOf } from "#rir-import/read/open-source";
import {
  published,
  type RegistryServer,
  registryServer,
  statistics,
} from "../../rir-import/download/registry-server.ts";
import { builtProgram } from "../../support/built-command.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";
import { until } from "../../support/until.ts";

const old = statistics(4000);
const newer = statistics(5000);

let server: RegistryServer;
let home: string;
let main: string;
let running: ChildProcess | null = null;
beforeAll(async () => {
  main = await builtProgram("ops/cli/main");
});
beforeEach(async () => {
  server = await registryServer();
  home = temporaryFolder("refresh-killed-");
  const stats = { registry: "ripencc", kind: "statistics", url: `${server.origin}/stats` };
  const settings = { onlyThese: true, contact: "noc@example.org", sources: { stats } };
  writeFileSync(join(home, "registry-sources.json"), JSON.stringify(settings));
});
afterEach(async () => {
  running?.kill("SIGKILL");
  await server.close();
  rmSync(home, { recursive: true });
});

const cache = (name: string) => join(home, "registry-cache", name);

function startFetch(): ChildProcess {
  running = spawn(process.execPath, [main, "rir", "fetch", "--home", home], {
    stdio: ["ignore", "pipe", "pipe"],
  });
  return running;
}

async function fetchToTheEnd(): Promise<{ exitCode: number | null; out: string }> {
  const child = startFetch();
  let out = "";
  child.stdout!.on("data", (text) => {
    out += text;
  });
  await once(child, "close");
  return { exitCode: child.exitCode, out };
}

/** A first fetch is done; the second has half of the next file on disk and waits for the rest. */
async function halfWay(): Promise<ChildProcess> {
  server.paths.set("/stats", published(old));
  await fetchToTheEnd();
  server.paths.set("/stats", (_request, response) => {
    response.writeHead(200, { "content-length": newer.length, etag: '"v2"' });
    response.write(newer.slice(0, 100_000));
  });
  const child = startFetch();
  await until(
    () => existsSync(cache("stats.part")) && statSync(cache("stats.part")).size === 100_000,
    20_000,
  );
  server.paths.set("/stats", published(newer, { etag: '"v2"' }));
  return child;
}

describe("a fetch that ends in the middle", { timeout: 90_000 }, () => {
  it.each([
    ["killed", "SIGKILL", null],
    ["interrupted", "SIGINT", 130],
  ] as const)(
    "%s leaves the old file in use; the next goes on where it ended",
    async (_how, signal, exitCode) => {
      const child = await halfWay();

      child.kill(signal);
      await once(child, "close");
      const files = await cachedSourceFiles(join(home, "registry-cache"));
      const inUse = readFileSync(fileOf(files[0]!), "utf8");
      const next = await fetchToTheEnd();

      expect(child.exitCode).toBe(exitCode);
      expect(inUse === old).toBe(true);
      expect(next.exitCode).toBe(0);
      expect(server.requests.at(-1)!.headers.range).toBe("bytes=100000-");
      expect(readFileSync(cache("stats"), "utf8") === newer).toBe(true);
      expect(existsSync(cache("fetch.lock"))).toBe(false);
    },
  );

  it("keeps others out while it lives", async () => {
    await halfWay();
    const first = running!;

    const second = await fetchToTheEnd();
    first.kill("SIGKILL");
    await once(first, "close");

    expect(second.exitCode).toBe(1);
    expect(server.requests).toHaveLength(2);
  });
});

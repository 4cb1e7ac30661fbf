/** `rir sources` and `rir fetch`: output and exit codes. */
import { existsSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Command } from "commander";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { sourcesCommand } from "#ops/cli/commands/rir";
import { DownloadLine, fetchCommand } from "#ops/cli/rir/fetch-command";
import {
  published,
  type RegistryServer,
  registryServer,
  statistics,
} from "../../rir-import/download/registry-server.ts";
import type { Outcome } from "../../support/built-command.ts";
import { inProcess } from "../../support/command-in-process.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";
import { until } from "../../support/until.ts";

let server: RegistryServer;
let home: string;
beforeEach(async () => {
  server = await registryServer();
  home = temporaryFolder("refresh-");
  vi.stubEnv("NEARCRAWL_HOME", home);
});
afterEach(async () => {
  vi.unstubAllEnvs();
  await server.close();
  rmSync(home, { recursive: true });
});

async function run(...words: readonly string[]): Promise<Outcome> {
  const program = new Command("rir");
  for (const make of [sourcesCommand, fetchCommand]) program.addCommand(make());
  return await inProcess(program, words);
}

/** The settings file in its default place. */
function settings(sources: Readonly<Record<string, unknown>>): void {
  const values = { onlyThese: true, contact: "noc@example.org", limits: { tries: 1 }, sources };
  writeFileSync(join(home, "registry-sources.json"), JSON.stringify(values));
}

const stats = (url: string) => ({ registry: "ripencc", kind: "statistics", url });

describe("nearcrawl rir sources", () => {
  it("lists the registries' public locations, and how to obtain access to the others", async () => {
    const { out, code } = await run("sources");

    expect(code).toBe(0);
    expect(out).toMatch(
      /^ripencc-inetnum \(https:\/\/ftp\.ripe\.net\/ripe\/dbase\/split\/\S+ +ripencc +missing /m,
    );
    expect(out).toMatch(/^· arin-bulk, on request: ARIN gives bulk WHOIS data to operators/m);
    expect(out).toContain("Fetch them with: nearcrawl rir fetch");
  });

  it("gives programs the same as JSON", async () => {
    const { out } = await run("sources", "--json");

    const { cacheFolder, sources } = JSON.parse(out);
    expect(cacheFolder).toBe(join(home, "registry-cache"));
    expect(sources[0]).toMatchObject({ name: "iana-ipv4-address-space", state: "missing", bytes: null });
  });
});

describe("nearcrawl rir fetch", () => {
  it("fetches the listed sources, reports each result and the next step", async () => {
    const yesterday = new Date(Date.now() - 86_400_000);
    server.paths.set("/stats", published(statistics(3), { lastModified: yesterday.toUTCString() }));
    settings({ stats: stats(`${server.origin}/stats`) });

    const first = await run("fetch");
    const second = await run("fetch");
    const listed = await run("sources");

    expect(first).toMatchObject({ code: 0, out: expect.stringMatching(/^stats +fetched +\d+ B /m) });
    expect(first.out).toContain(`nearcrawl rir plan --cache ${join(home, "registry-cache")}`);
    expect(second.out).toMatch(/^stats +unchanged /m);
    const day = yesterday.toISOString().slice(0, 10);
    expect(listed.out).toMatch(
      new RegExp(`^stats \\S+ +ripencc +fresh +\\d+ B +${day} \\d\\d:\\d\\d:\\d\\d UTC +1 +0$`, "m"),
    );
  });

  it("exits with 1 when a source failed, and has fetched the others", async () => {
    server.paths.set("/good", published(statistics(3)));
    settings({ good: stats(`${server.origin}/good`), bad: stats(`${server.origin}/bad`) });

    const { code, out } = await run("fetch", "--json");

    expect(code).toBe(1);
    expect(JSON.parse(out).results).toMatchObject([
      { source: "good", type: "fetched" },
      { source: "bad", type: "failed", reason: `${server.origin}/bad: the server answers 404` },
    ]);
  });

  it("states our contact: the option, else the variable, else the settings", async () => {
    server.paths.set("/stats", published(statistics(3)));
    settings({ stats: stats(`${server.origin}/stats`) });

    await run("fetch");
    vi.stubEnv("NEARCRAWL_CONTACT", "env@example.org");
    await run("fetch");
    await run("fetch", "--contact", "https://option.example.org/");

    expect(
      server.requests.map(({ headers }) => /\+(.*)\)$/.exec(String(headers["user-agent"]))?.[1]),
    ).toEqual(["noc@example.org", "env@example.org", "https://option.example.org/"]);
  });

  it.each(["SIGINT", "SIGTERM"] as const)(
    "%s ends it in the middle; the old file stays in use, and the next goes on where it ended",
    async (signal) => {
      const [old, newer] = [statistics(4000), statistics(5000)];
      server.paths.set("/stats", published(old));
      settings({ stats: stats(`${server.origin}/stats`) });
      await run("fetch");
      server.paths.set("/stats", (_request, response) => {
        response.writeHead(200, { "content-length": newer.length, etag: '"v2"' });
        response.write(newer.slice(0, 100_000));
      });
      const [part, listeners] = [join(home, "registry-cache/stats.part"), process.listeners(signal)];

      const fetching = run("fetch");
      await until(() => existsSync(part) && statSync(part).size === 100_000, 20_000);
      for (const listener of process.listeners(signal)) if (!listeners.includes(listener)) listener(signal);
      const interrupted = await fetching;
      const inUse = readFileSync(join(home, "registry-cache/stats"), "utf8");
      server.paths.set("/stats", published(newer, { etag: '"v2"' }));
      const next = await run("fetch");

      expect([interrupted.code, next.code, inUse === old]).toEqual([130, 0, true]);
      expect(server.requests.at(-1)!.headers.range).toBe("bytes=100000-");
      expect(readFileSync(join(home, "registry-cache/stats"), "utf8") === newer).toBe(true);
    },
  );

  it("refuses wrong settings with all errors at once", async () => {
    writeFileSync(join(home, "own.json"), '{"contact": "", "sourcez": {}}');

    expect(await run("fetch", "--sources", join(home, "own.json"))).toMatchObject({
      code: 2,
      err: expect.stringContaining("2 settings are wrong"),
    });
  });

  it("explains how to get access to a named source that is not set up", async () => {
    const { code, out } = await run("fetch", "arin-bulk");

    expect(code).toBe(1);
    expect(out).toContain("not set up: ARIN gives bulk WHOIS data");
  });
});

describe("the progress line", () => {
  const at = { source: "apnic", bytesTotal: 10_000_000, note: "", sourcesDone: 1, sourcesTotal: 3 } as const;

  it("has count, rate and time left; two at once beside each other", () => {
    const line = new DownloadLine();

    line.text({ ...at, state: "receiving", bytesDone: 0 }, 0);
    const one = line.text({ ...at, state: "receiving", bytesDone: 4_000_000 }, 2000);
    const two = line.text({ ...at, source: "ripe", state: "waiting", bytesDone: 0, note: "later" }, 2000);
    const end = line.text({ ...at, state: "done", bytesDone: 1, sourcesDone: 2 }, 3000);

    expect(one).toBe("1 of 3 · apnic 4.00 MB of 10.0 MB, 2.00 MB/s, 3.0 s left");
    expect(two).toBe(`${one} · ripe: later`);
    expect(end).toBe("2 of 3 · ripe: later");
  });

  it("computes the rate of a resumed download from the point of resumption", () => {
    const line = new DownloadLine();

    line.text({ ...at, state: "receiving", bytesDone: 6_000_000 }, 0);

    expect(line.text({ ...at, state: "receiving", bytesDone: 8_000_000 }, 2000)).toContain(
      "1.00 MB/s, 2.0 s left",
    );
  });
});

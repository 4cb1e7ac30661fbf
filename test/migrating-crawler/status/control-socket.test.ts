/** The control socket: its owner, its path, and a stale one. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, statSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { build } from "esbuild";
import { describe, expect, it } from "vitest";
import { type CrawlerLog, quietLog } from "#crawler/core/log";
import { readKnownCoordinators } from "#crawler/membership/coordinator-route";
import { askCrawler, openControl } from "#crawler/status/control-server";
import { childCommand } from "#crawler/supervisor/crawler-child";
import { atEnd } from "../../support/at-end.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";
import { sampleReport } from "./sample-report.ts";

function folder(): string {
  return temporaryFolder("nearcrawl-control-");
}

const steered = (name = "amber") => ({
  report: () => sampleReport({ crawler: { ...sampleReport().crawler, name } }),
  pause() {},
  resume() {},
  drain() {},
});

async function open(home: string, { name = "amber", log = quietLog as CrawlerLog } = {}) {
  const control = await openControl({ home, crawler: steered(name), log });
  atEnd(() => control.close());
  return control;
}

const nameAt = async (home: string) => {
  const answer = await askCrawler(home, { method: "GET", path: "/status.json" });
  return answer === null ? null : (JSON.parse(answer) as { crawler: { name: string } }).crawler.name;
};

describe("the control socket", () => {
  it("is accessible to the crawler's own user only, and removed when the crawler ends", async () => {
    const home = folder();
    const control = await open(home);

    const mode = statSync(join(home, "control.sock")).mode & 0o777;
    const name = await nameAt(home);
    await control.close();

    expect(mode.toString(8)).toBe("600");
    expect(name).toBe("amber");
    expect(existsSync(join(home, "control.sock"))).toBe(false);
    expect(await nameAt(home)).toBeNull();
  });

  it("replaces one that a killed process left behind", async () => {
    const home = folder();
    const script = `require("node:net").createServer().listen(${JSON.stringify(join(home, "control.sock"))}, () => console.log("up"))`;
    const killed = spawn(process.execPath, ["-e", script], { stdio: ["ignore", "pipe", "ignore"] });
    await once(killed.stdout, "data");
    killed.kill("SIGKILL");
    await once(killed, "exit");

    expect(existsSync(join(home, "control.sock"))).toBe(true);
    expect(await nameAt(home)).toBeNull();
    await open(home);

    expect(await nameAt(home)).toBe("amber");
  });

  it("does not replace one that answers, and the log says so", async () => {
    const home = folder();
    const told: object[] = [];
    await open(home, { name: "first" });

    const second = await open(home, {
      name: "second",
      log: { ...quietLog, warn: (fields) => told.push(fields) },
    });
    await second.close();

    expect(told).toMatchObject([{ error: { message: "another crawler answers on it" } }]);
    expect(await nameAt(home)).toBe("first");
  });

  it.skipIf(process.platform !== "linux")(
    "works in a folder whose path is longer than a socket's may be",
    async () => {
      const home = join(folder(), "deep".repeat(20), "deeper".repeat(20));
      mkdirSync(home, { recursive: true });

      const control = await open(home);

      expect(await nameAt(home)).toBe("amber");
      expect((statSync(join(home, "control.sock")).mode & 0o777).toString(8)).toBe("600");
      await control.close();
      expect(existsSync(join(home, "control.sock"))).toBe(false);
    },
  );

  it("works in the supervisor's sandbox, where coordinators' addresses are kept and a drained crawler can leave", async () => {
    const home = folder();
    const bundle = join(folder(), "bundle.mjs");
    const source = `import { askToLeave } from "./drain.ts";
      import { openControl } from "./control-server.ts";
      import { keepKnownCoordinators } from "../membership/coordinator-route.ts";
      process.on("message", () => {});
      const log = { debug() {}, info() {}, warn: console.error, error: console.error };
      keepKnownCoordinators(process.argv[2], ["wss://search.example/crawler"], log);
      await openControl({ home: process.argv[2], log, crawler: {
        report: () => ({ crawler: { name: "boxed" } }),
        drain: () => askToLeave(true),
      } });
      console.log("up");`;
    const resolveDir = join(import.meta.dirname, "../../../migrating-crawler/status");
    await build({
      stdin: { contents: source, resolveDir, loader: "ts" },
      ...{ bundle: true, platform: "node", format: "esm", outfile: bundle, conditions: ["nearcrawl-source"] },
    });
    const place = { bundle, home, readable: [], writable: [] };
    const { args, env } = childCommand(place, { env: {}, nodeFlags: process.allowedNodeEnvironmentFlags });
    const child = spawn(process.execPath, args, { env, stdio: ["ignore", "pipe", "inherit", "ipc"] });
    const asked = once(process, "SIGUSR2");
    atEnd(() => child.kill("SIGKILL"));
    await once(child.stdout!, "data");

    expect(await nameAt(home)).toBe("boxed");
    expect(readKnownCoordinators(home, quietLog)).toEqual(["wss://search.example/crawler"]);
    await askCrawler(home, { method: "POST", path: "/drain" });
    expect(await asked).toContain("SIGUSR2");
  });

  it("is not trusted when the answer is endless or no crawler's", async () => {
    const home = folder();
    const server = createServer((request, response) => {
      if (request.url === "/status.json") response.writeHead(503).end("busy");
      else for (let i = 0; i < 20; i++) response.write(Buffer.alloc(100_000));
    });
    await new Promise<void>((resolve) => server.listen(join(home, "control.sock"), resolve));
    atEnd(() => {
      server.closeAllConnections();
      server.close();
    });

    await expect(nameAt(home)).rejects.toThrow("the crawler answered 503: busy");
    await expect(askCrawler(home, { method: "GET", path: "/" })).rejects.toThrow("more than 1048576 bytes");
  });

  it("does not exist where a file has that name, or without a folder", async () => {
    const home = folder();
    writeFileSync(join(home, "control.sock"), "no socket");

    expect(await nameAt(home)).toBeNull();
    expect(await nameAt(join(home, "nothing"))).toBeNull();
  });
});

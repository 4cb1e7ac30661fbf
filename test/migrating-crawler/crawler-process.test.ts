/** The crawler as a separate process, as partners and `nearcrawl up` run it. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, openSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, it, vi } from "vitest";
import { keyOf, type LoopbackGateway, startGateway } from "../gateway/gateway-on-loopback.ts";
import { atEnd } from "../support/at-end.ts";
import { builtProgram } from "../support/built-command.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

let main: string;
beforeAll(async () => {
  main = await builtProgram("migrating-crawler/main");
});

/** `ended` waits for `exit`, since `close` is missing after a disconnected IPC channel. */
interface Run {
  readonly child: ChildProcess;
  readonly output: () => string;
  readonly ended: Promise<number | null>;
}

function run(settings: unknown, stdio: "ipc" | "ignore" = "ignore", log: "pipe" | number = "pipe"): Run {
  const folder = temporaryFolder("nearcrawl-process-");
  const file = join(folder, "settings.json");
  writeFileSync(
    file,
    typeof settings === "string" ? settings : JSON.stringify({ home: folder, ...(settings as object) }),
  );
  const child = spawn(process.execPath, [main, file], { stdio: ["ignore", log, log, stdio] });
  let output = "";
  child.stdout?.on("data", (data) => (output += data));
  child.stderr?.on("data", (data) => (output += data));
  atEnd(() => child.kill("SIGKILL"));
  return { child, output: () => output, ended: once(child, "exit").then(([code]) => code as number | null) };
}

/** A crawler process that has reached a gateway. */
async function online(...how: [stdio?: "ipc" | "ignore", log?: "pipe" | number]) {
  const world = await startGateway({ zlibSync: null });
  const crawler = run(amber(world), ...how);
  await vi.waitFor(() => expect(world.gateway.online()).toHaveLength(1), soon);
  return { world, crawler };
}

const amber = (world: LoopbackGateway) => ({ coordinatorUrl: world.url, key: keyOf("amber"), name: "amber" });
const soon = { timeout: 20_000 };

describe("a crawler process", () => {
  it("connects, and on SIGTERM says goodbye and ends with 0", async () => {
    const { world, crawler } = await online();

    crawler.child.kill("SIGTERM");

    expect(await crawler.ended).toBe(0);
    await vi.waitFor(() => expect(world.seen.leaves[0]?.code).toBe("stops"), soon);
    expect(crawler.output()).toContain('"msg":"the crawler has stopped"');
  });

  it("on SIGUSR2 says that it leaves permanently and ends with 0", async () => {
    const { world, crawler } = await online();

    crawler.child.kill("SIGUSR2");

    expect(await crawler.ended).toBe(0);
    await vi.waitFor(() => expect(world.seen.leaves).toMatchObject([{ forGood: true }]), soon);
  });

  it("stops when its supervisor is gone", async () => {
    const { crawler } = await online("ipc");

    crawler.child.disconnect();

    expect(await crawler.ended).toBe(0);
  });

  it("continues to crawl when its log cannot be written", async () => {
    const disk = openSync("/dev/full", "w");
    atEnd(() => closeSync(disk));
    const { crawler } = await online("ignore", disk);

    crawler.child.kill("SIGTERM");

    expect(await crawler.ended).toBe(0);
  });

  it("with a wrong key ends with 1 and repeats the coordinator's words", async () => {
    const world = await startGateway({ zlibSync: null });
    const crawler = run({ ...amber(world), key: "0123456789abcdef" });

    expect(await crawler.ended).toBe(1);
    expect(crawler.output()).toContain("wrong-key");
  });

  it.each([
    ["wrong settings", { name: "amber", proxy: "ftp://x" }, ["coordinatorUrl", "key", "proxy"]],
    ["a file that is not JSON", "{", ["settings.json"]],
  ])("with %s ends with 2 and lists every fault", async (_what, settings, faults) => {
    const crawler = run(settings);

    expect(await crawler.ended).toBe(2);
    for (const fault of faults) expect(crawler.output()).toContain(fault);
  });
});

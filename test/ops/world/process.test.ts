/** The emulated Internet as a process, as `nearcrawl up` starts it. */
import { type ChildProcess, fork } from "node:child_process";
import { Resolver } from "node:dns/promises";
import { once } from "node:events";
import { afterEach, beforeAll, describe, expect, it } from "vitest";
import { generateWorld } from "#ops/world/generate-world";
import { builtProgram } from "../../support/built-command.ts";

const parameters = { seed: 3, sites: 20, crawlers: 2, noiseMs: 0 };
const started: ChildProcess[] = [];

let entry: string;
beforeAll(async () => {
  entry = await builtProgram("ops/world/world-process");
});

afterEach(() => {
  for (const child of started.splice(0)) child.kill("SIGKILL");
});

function start(args: string[]): ChildProcess {
  const child = fork(entry, args, { execArgv: [], stdio: ["ignore", "pipe", "pipe", "ipc"] });
  started.push(child);
  return child;
}

async function message(child: ChildProcess): Promise<Record<string, unknown>> {
  const [received] = await once(child, "message");
  return received as Record<string, unknown>;
}

describe("the world's process", () => {
  it("says where it listens, serves the world of its parameters, and ends on SIGTERM", async () => {
    const child = start([JSON.stringify(parameters)]);
    const listening = await message(child);
    const resolver = new Resolver({ timeout: 2000, tries: 2 });
    resolver.setServers([String(listening.dnsAddress)]);
    const [site] = generateWorld(parameters).sites;

    expect(listening).toMatchObject({
      type: "listening",
      proxyUrls: [expect.any(String), expect.any(String)],
    });
    expect(await resolver.resolve4(site!.host)).toEqual([site!.address]);

    child.kill("SIGTERM");
    expect((await once(child, "exit"))[0]).toBe(0);
  });

  it("ends when its parent is gone", async () => {
    const child = start([JSON.stringify(parameters)]);
    await message(child);

    child.disconnect();
    expect((await once(child, "exit"))[0]).toBe(0);
  });

  it.each([
    ["not JSON", "{", /not JSON/],
    ["no sites", '{"sites":0}', /sites is 0/],
  ])("stops at once and says why: %s", async (_, text, reason) => {
    const child = start([text]);
    let said = "";
    child.stderr!.on("data", (chunk: Buffer) => {
      said += chunk.toString();
    });

    const [code] = await once(child, "close");
    expect(code).toBe(2);
    expect(said).toMatch(reason);
  });
});

/** The emulated Internet as a process of its own, as `nearcrawl up` starts it. */
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

  it("takes its parameters and orders over IPC, and ends when its parent is gone", async () => {
    const child = start([]);
    child.send({ type: "start", parameters });
    await message(child);

    child.send({ type: "route-change", crawlerIndex: 1, to: "0.0.0.0/0", factor: 3 });
    const changed = await message(child);
    child.send({ type: "requests" });
    const requests = await message(child);
    child.send({ type: "outage", crawlerIndex: "first" });
    const refused = await message(child);

    expect(changed).toMatchObject({ type: "done", order: "route-change" });
    expect(changed.addresses).toBeGreaterThan(15);
    expect(requests).toEqual({ type: "requests", total: 0, entries: [] });
    expect(refused).toMatchObject({ type: "refused" });

    child.disconnect();
    expect((await once(child, "exit"))[0]).toBe(0);
  });

  it.each([
    ["not JSON", "{", /not JSON/],
    ["no sites", '{"sites":0}', /sites is 0/],
    ["a word for a number", '{"noiseMs":"loud"}', /noiseMs/],
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

/**
 * Findings of the machine check about networks: the route to the coordinator, its clock, dishonest DNS servers, IPv6.
 */

import { readFileSync } from "node:fs";
import { type AddressInfo, createServer } from "node:net";
import { describe, expect, it } from "vitest";
import { type SurveySettings, surveyCoordinator } from "#crawler/check/coordinator-findings";
import { ipv6Finding, resolverFinding } from "#crawler/check/machine-check";
import { parseProxy } from "#crawler/settings/config";
import { startDns } from "#ops/world/main";
import { atEnd } from "../../support/at-end.ts";
import { closedPort } from "../support/origin.ts";
import { startConnectProxy } from "../support/proxies.ts";
import { startSmallCoordinator } from "../support/small-coordinator.ts";

const pem = (name: string) => readFileSync(new URL(`../../fixtures/tls/${name}`, import.meta.url));
const straight = { certificatePin: null, proxy: null, timeoutMs: 2000 };

async function survey(url: string, changes: Partial<SurveySettings> = {}) {
  return await surveyCoordinator({ url, route: straight, env: {}, now: () => new Date(), ...changes });
}

async function coordinator(settings: Parameters<typeof startSmallCoordinator>[0] = {}) {
  const world = await startSmallCoordinator(settings);
  atEnd(() => world.close());
  return world;
}

describe("the route to the coordinator", () => {
  it("is ok when it answers", async () => {
    const world = await coordinator();

    const { findings, neededProxy } = await survey(world.url);

    expect(findings.map(({ subject, state }) => `${subject} ${state}`)).toEqual([
      "coordinator ok",
      "clock ok",
    ]);
    expect(findings[0]?.words).toMatch(/is reached straight; a connection takes \d+ ms/);
    expect(neededProxy).toBeNull();
  });

  it("that is blocked names the host and port to allow", async () => {
    const port = await closedPort();

    const { findings } = await survey(`wss://127.0.0.1:${port}/crawler`);

    expect(findings).toMatchObject([{ subject: "coordinator", state: "fix" }]);
    expect(findings[0]?.words).toMatch(
      new RegExp(
        `ECONNREFUSED.*let this machine open TCP connections to 127.0.0.1 port ${port} \\(outbound only, TLS\\)`,
      ),
    );
  });

  it("that never answers is a fault", async () => {
    const silent = createServer((socket) => void socket.on("error", () => {}));
    await new Promise<void>((resolve) => silent.listen(0, "127.0.0.1", resolve));
    atEnd(() => silent.close());
    const { port } = silent.address() as AddressInfo;

    const { findings } = await survey(`ws://127.0.0.1:${port}/crawler`, {
      route: { ...straight, timeoutMs: 200 },
    });

    expect(findings[0]?.words).toContain("the connection stood, but no HTTP answer came over it");
  });

  it("with an untrusted certificate names the middlebox as the likely cause", async () => {
    const tls = { cert: pem("loopback.cert.pem"), key: pem("loopback.key.pem") };
    const world = await coordinator({ tls });

    const { findings } = await survey(world.url);

    expect(findings).toMatchObject([{ subject: "tls", state: "fix" }]);
    expect(findings[0]?.words).toMatch(
      /self-signed certificate.*a proxy or firewall of yours may open TLS on the way/,
    );
  });

  it("ignores the environment's proxies when settings name one", async () => {
    const [world, proxy] = [await coordinator(), await startConnectProxy()];
    atEnd(() => proxy.close());

    const { findings, neededProxy } = await survey(world.url, {
      route: { ...straight, proxy: parseProxy(proxy.url) },
      env: { HTTPS_PROXY: "http://127.0.0.1:1" },
    });

    expect(findings[0]?.words).toContain(`is reached through ${proxy.url}`);
    expect(neededProxy).toBeNull();
  });

  it("takes a proxy from the environment without a scheme, as curl does", async () => {
    const [world, proxy] = [await coordinator(), await startConnectProxy()];
    atEnd(() => proxy.close());
    const dead = parseProxy(`http://127.0.0.1:${await closedPort()}`);

    const { neededProxy } = await survey(world.url, {
      route: { ...straight, proxy: dead },
      env: { https_proxy: proxy.url.replace("http://", ""), HTTP_PROXY: "ftp://nonsense" },
    });

    expect(neededProxy).toBe(proxy.url);
  });
});

describe("the clock", () => {
  it.each([
    [30_000, "ok", /within 3[01] s/],
    [90_000, "fix", /(89|90|91) s ahead of the coordinator's: set it/],
    [-90_000, "fix", /(89|90|91) s behind the coordinator's/],
  ])("that is %i ms off: %s", async (clockBehindMs, state, words) => {
    const world = await coordinator({ clockBehindMs });

    const { findings } = await survey(world.url);

    const clock = findings.find(({ subject }) => subject === "clock");
    expect(clock?.state).toBe(state);
    expect(clock?.words).toMatch(words);
  });
});

describe("DNS servers", () => {
  async function dns(addressOf: (name: string) => string | null): Promise<string> {
    const server = await startDns(addressOf);
    atEnd(() => server.close());
    return server.address;
  }

  it("that deny the name are ok", async () => {
    const server = await dns(() => null);

    expect(await resolverFinding([server])).toMatchObject({ state: "ok", words: `${server} answers.` });
  });

  it("that give an address for a nonexistent name are named", async () => {
    const [liar, honest] = [await dns(() => "198.51.100.7"), await dns(() => null)];

    const finding = await resolverFinding([honest, liar]);

    expect(finding.state).toBe("fix");
    expect(finding.words).toContain(`${liar} says 198.51.100.7 for a name that does not exist`);
    expect(finding.words).not.toContain(honest);
    expect(finding.words).toContain("name DNS servers that do their work as resolvers in settings.toml");
  });

  it("must be fixed when none answers, with a note when one does", async () => {
    const [closed, honest] = [`127.0.0.1:${await closedPort()}`, await dns(() => null)];

    const [none, one] = [await resolverFinding([closed]), await resolverFinding([closed, honest])];

    expect(none).toMatchObject({ state: "fix" });
    expect(none.words).toContain(`${closed} does not answer`);
    expect(one).toMatchObject({ state: "note" });
  });
});

describe("IPv6", () => {
  it.each([
    [true, true, "ok"],
    [true, false, "fix"],
    [false, true, "note"],
    [false, false, "ok"],
    [null, true, "ok"],
    [null, false, "ok"],
  ])("wanted: %s, available: %s gives %s", async (isWanted, isThere, state) => {
    expect((await ipv6Finding(isWanted, async () => isThere)).state).toBe(state);
  });

  it("is checked on any machine", async () => {
    expect((await ipv6Finding(false)).state).toMatch(/^(ok|note)$/);
  });
});

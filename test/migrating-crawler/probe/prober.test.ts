/** Latency measurements on real sockets: the method used and the name of each failure. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { Connector } from "#crawler/net/connector";
import { triesAgree } from "#crawler/probe/http-head";
import { systemEchoes, timesIn } from "#crawler/probe/icmp-echo";
import { type ProbeRequest, Prober } from "#crawler/probe/prober";
import type { CrawlerSettings } from "#crawler/settings/config";
import { startDns } from "#ops/world/main";
import { probeOutcome } from "#protocol/messages";
import { atEnd } from "../../support/at-end.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";
import { afterConnecting } from "../support/after-connecting.ts";
import { closedPort, startOrigin, startRawOrigin } from "../support/origin.ts";
import { startConnectProxy, startSocks5Proxy } from "../support/proxies.ts";
import { testConfig } from "../support/test-config.ts";

async function prober(changes: Partial<CrawlerSettings> = {}): Promise<Prober> {
  const config = testConfig(changes);
  const connector = new Connector(config);
  atEnd(() => connector.close());
  const made = new Prober({
    connector,
    probeMethods: config.probeMethods,
    userAgent: () => "Nearcrawl/test",
  });
  await made.start();
  return made;
}

async function probe(
  request: Partial<ProbeRequest> & { readonly port: number },
  changes: Partial<CrawlerSettings> = {},
) {
  const one = await prober(changes);
  return probeOutcome.parse(await one.probe(requestOf(request)));
}

function requestOf(request: Partial<ProbeRequest> & { readonly port: number }): ProbeRequest {
  return {
    ...{ host: "127.0.0.1", address: "127.0.0.1", secure: false, method: "head", tries: 3, deadlineMs: 1000 },
    ...request,
  };
}

async function raw(behave: Parameters<typeof startRawOrigin>[0]) {
  return startRawOrigin(behave);
}

/** Fewer tries than asked for suffice when they agree. */
const upToThree = expect.toSatisfy((tries: number) => tries === 2 || tries === 3);
const ok = "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";

describe("a HEAD probe", () => {
  it("asks several times on one connection, by name, and reports the smallest time", async () => {
    const heads: string[] = [];
    const delaysMs = [40, 1, 40];
    const origin = await raw((socket, head) => {
      heads.push(head);
      setTimeout(() => socket.write(ok), delaysMs[heads.length - 1]);
    });

    const outcome = await probe({ port: origin.port, host: "site.example" });

    expect(outcome).toMatchObject({ type: "measured", method: "head", tries: upToThree });
    expect(outcome.type === "measured" && outcome.rttMs).toBeLessThan(40);
    expect(origin.connections()).toBe(1);
    expect(heads[0]).toContain(
      `HEAD / HTTP/1.1\r\nHost: site.example:${origin.port}\r\nUser-Agent: Nearcrawl/test`,
    );
  });

  it("keeps what it measured when the site closes the connection after the first answer", async () => {
    const origin = await raw((socket) =>
      socket.end("HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"),
    );

    expect(await probe({ port: origin.port })).toMatchObject({ type: "measured", method: "head", tries: 1 });
  });

  it.each([
    ["405", "HTTP/1.1 405 No\r\ncontent-length: 0\r\n\r\n"],
    ["501", "HTTP/1.1 501 No\r\ncontent-length: 0\r\n\r\n"],
    ["nothing and a closed connection", ""],
    ["something other than HTTP", "SSH-2.0-server\r\n\r\n"],
    ["an endless header", `HTTP/1.1 200 OK\r\n${"x: y\r\n".repeat(10_000)}`],
  ])("answered with %s falls back to connect, which it reports", async (_what, answer) => {
    const origin = await raw((socket) => (answer === "" ? socket.end() : socket.write(answer)));

    expect(await probe({ port: origin.port })).toMatchObject({
      type: "measured",
      method: "connect",
      tries: upToThree,
    });
  });

  it("that is never answered times out at its deadline", async () => {
    const origin = await raw(() => {});

    const outcome = await probe({ port: origin.port, deadlineMs: 120 });

    expect(outcome).toMatchObject({ type: "timed-out", method: "head" });
  });
});

describe("a connect probe", () => {
  it("counts a reset as an answer", async () => {
    const outcome = await probe({ port: await closedPort(), method: "connect" });

    expect(outcome).toMatchObject({ type: "measured", method: "connect", tries: upToThree });
  });

  it.each([
    ["an HTTP CONNECT proxy", startConnectProxy],
    ["a SOCKS5 proxy", startSocks5Proxy],
  ] as const)("through %s measures the proxy's answer, including refusals", async (_name, startProxy) => {
    const origin = await startOrigin((_request, response) => void response.end());
    const proxy = await startProxy();

    const open = await probe({ port: origin.port, method: "connect" }, { proxy: proxy.url });
    const closed = await probe({ port: await closedPort(), method: "connect" }, { proxy: proxy.url });

    expect(open).toMatchObject({ type: "measured", method: "connect", tries: upToThree });
    expect(closed).toMatchObject({ type: "measured", method: "connect", tries: upToThree });
  });

  it.each([
    ["unreachable", "unreachable"],
    ["timeout", "timed-out"],
  ])("reports a proxy's statement about the target: %s", async (word, type) => {
    const proxy = await raw((socket) =>
      socket.end(`HTTP/1.1 502 Bad Gateway\r\nX-Proxy-Error: ${word}\r\n\r\n`),
    );

    const outcome = await probe({ port: 80, method: "connect" }, { proxy: `http://127.0.0.1:${proxy.port}` });

    expect(outcome).toMatchObject({ type, method: "connect" });
  });
});

describe("a probe by name", () => {
  it("measures the address that the crawler itself resolves, and reports it", async () => {
    const origin = await raw((socket) => socket.write(ok));
    const dns = await startDns((name) => (name === "site.example" ? "127.0.0.1" : null));
    atEnd(() => dns.close());

    const outcome = await probe(
      // The coordinator believed in another, unreachable address.
      { port: origin.port, host: "site.example", address: "192.0.2.1", byName: true, method: "connect" },
      { resolvers: [dns.address] },
    );

    expect(outcome).toMatchObject({ type: "measured", method: "connect", address: "127.0.0.1" });
    expect(origin.connections()).toBeGreaterThan(0);
  });

  it("fails when the name has no address, without using the coordinator's", async () => {
    const origin = await raw((socket) => socket.write(ok));
    const dns = await startDns(() => null);
    atEnd(() => dns.close());

    const outcome = await probe(
      { port: origin.port, host: "site.example", byName: true, method: "connect" },
      { resolvers: [dns.address] },
    );

    expect(outcome).toMatchObject({ type: "failed", reason: expect.stringContaining("site.example") });
    expect(origin.connections()).toBe(0);
  });

  it("is not allowed when the partner denies the resolved address", async () => {
    const dns = await startDns(() => "127.0.0.1");
    atEnd(() => dns.close());

    const outcome = await probe(
      { port: 80, host: "site.example", address: "192.0.2.1", byName: true },
      { resolvers: [dns.address], denyRanges: ["127.0.0.0/8"] },
    );

    expect(outcome).toMatchObject({ type: "not-allowed", reason: "the partner's deny-list holds 127.0.0.1" });
  });
});

describe("what the partner forbids", () => {
  it.each([
    [{}, { denyRanges: ["127.0.0.0/8"] }, "the partner's deny-list holds 127.0.0.1"],
    [
      { host: "a.shop.example" },
      { denyDomains: ["shop.example"] },
      "the partner's deny-list holds shop.example",
    ],
    [{}, { allowRanges: [] }, expect.stringContaining("loopback")],
    [{}, { probeMethods: ["connect"] }, "head is not possible or not allowed here"],
    ...(["head", "connect", "icmp"] as const).map(
      (method) =>
        [
          { address: "2a00:1::7", method },
          { ipv6: false },
          "this crawler does not speak IPv6: ipv6 is false in its settings",
        ] as const,
    ),
  ] as const)("is not probed: %j under %j", async (request, settings, reason) => {
    const origin = await raw((socket) => socket.write(ok));

    const outcome = await probe({ port: origin.port, ...request }, settings as Partial<CrawlerSettings>);

    expect(outcome).toMatchObject({ type: "not-allowed", reason });
    expect(origin.connections()).toBe(0);
  });

  it("is not offered: ICMP through a proxy", async () => {
    const through = await prober({ proxy: "http://127.0.0.1:9" });

    expect(through.methods).toEqual(["head", "connect"]);
  });
});

describe("a busy machine", () => {
  /** Blocks the event loop, as on a machine where ten programs share a processor. */
  const compute = (ms: number) => {
    const endMs = performance.now() + ms;
    while (performance.now() < endMs);
  };

  it.each(["connect", "head"] as const)("reports how late it noticed an answer: %s", async (method) => {
    const origin = await raw((socket) => {
      socket.write(ok);
      compute(150);
    });
    const one = await prober();
    if (method === "connect") atEnd(afterConnecting(() => compute(150)));

    const probing = one.probe(requestOf({ port: origin.port, method, tries: 1, deadlineMs: 5000 }));
    const outcome = probeOutcome.parse(await probing);

    const { rttMs, lateMs = 0 } = outcome as { rttMs: number; lateMs?: number };
    expect(outcome).toMatchObject({ type: "measured", method });
    expect(rttMs).toBeGreaterThan(100);
    expect(lateMs).toBeGreaterThan(100);
    expect(rttMs - lateMs).toBeGreaterThanOrEqual(0);
  });

  it("is not assumed when the site is slow", async () => {
    const origin = await raw((socket) => void setTimeout(() => socket.write(ok), 200));

    const outcome = await probe({ port: origin.port, tries: 1, deadlineMs: 5000 });

    const { rttMs, lateMs = 0 } = outcome as { rttMs: number; lateMs?: number };
    expect(rttMs - lateMs).toBeGreaterThan(100);
  });
});

describe("computations", () => {
  it("are deferred during a probe and continue afterwards", async () => {
    const heard: (() => void)[] = [];
    const origin = await raw((socket) => void heard.push(() => socket.write(ok)));
    const one = await prober();
    const order: string[] = [];

    const asked = requestOf({ port: origin.port, tries: 1, deadlineMs: 5000 });
    const measuring = one.probe(asked).then(() => order.push("probe"));
    const computing = one.quiet().then(() => order.push("computation"));
    const poll = setInterval(() => heard.shift()?.(), 5);
    await Promise.all([measuring, computing]);
    clearInterval(poll);

    expect(order).toContain("computation");
    expect(order).toHaveLength(2);
    await one.quiet();
  });
});

it("ping's output is read line by line, ignoring other lines", () => {
  const echo = (time: string) => `64 bytes from 192.0.2.1: icmp_seq=1 ttl=57 time=${time} ms`;
  const end = "3 packets transmitted, 2 received, 33% packet loss, time 2003ms";
  const output = ["PING 192.0.2.1 56(84) bytes of data.", echo("12.3"), echo("0.045"), "", end].join("\n");

  expect(timesIn(output)).toEqual([12.3, 0.045]);
});

describe("the system's ping", () => {
  /** A ping that fails when one of its arguments is in `refused`. */
  function pingThatRefuses(refused: string): string {
    const folder = temporaryFolder("nearcrawl-ping-");
    for (const name of ["ping", "ping6"]) {
      const script = `#!/bin/sh\nfor one; do case "$one" in ${refused}) echo "invalid option" >&2; exit 64;; esac; done
echo "64 bytes from 192.0.2.1: icmp_seq=0 ttl=57 time=12.5 ms ($0)"\n`;
      writeFileSync(join(folder, name), script, { mode: 0o755 });
    }
    return folder;
  }

  it.each([
    ["iputils", "never"],
    ["BusyBox without fractions of seconds", "0.2|-n"],
    ["BSD and macOS", "-4|-6|-w"],
  ])("is used with options that it supports: %s", async (_, refused) => {
    const echoes = systemEchoes(pingThatRefuses(refused));

    expect(await echoes.canPing()).toBe(true);
    for (const address of ["192.0.2.1", "2001:db8::1"])
      expect(await echoes.timeEchoes({ address, tries: 3, deadlineMs: 3000 })).toEqual([12.5]);
  });

  it("is not offered when it fails for later options", async () => {
    expect(await systemEchoes(pingThatRefuses("-4|-c")).canPing()).toBe(false);
    expect(await systemEchoes("/nowhere").canPing()).toBe(false);
  });

  const real = systemEchoes();
  it("measures loopback on this machine if available", async ({ skip }) => {
    if (!(await real.canPing())) return skip("this machine has no ping, or does not let us");

    expect(await real.timeEchoes({ address: "127.0.0.1", tries: 2, deadlineMs: 2000 })).toHaveLength(2);
  });
});

describe("tries of one probe", () => {
  it.each([
    ["none is inconclusive", [], false],
    ["one is not confirmed", [20], false],
    ["two close ones confirm each other", [20, 20.6], true],
    ["on a long path, close means 2 %", [300, 305], true],
    ["on a short path, 2 % would be below clock precision", [2, 2.7], true],
    ["two distant ones do not", [20, 24], false],
    ["agreeing noise counts only if nothing was faster", [24, 20, 24.1], false],
    ["a late pair confirms an early one", [31, 20, 44, 20.1], true],
  ] as const)("%s", (_name, rttsMs, agree) => {
    expect(triesAgree(rttsMs)).toBe(agree);
  });
});

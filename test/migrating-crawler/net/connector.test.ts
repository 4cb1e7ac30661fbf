/** Connections: checked and pinned addresses, directly and through proxies, with verified TLS. */
import { createServer as createSecureServer } from "node:https";
import { describe, expect, it } from "vitest";
import { Failure } from "#crawler/core/failure";
import { Connector } from "#crawler/net/connector";
import type { CrawlerSettings } from "#crawler/settings/config";
import { atEnd } from "../../support/at-end.ts";
import { onLoopback } from "../support/loopback.ts";
import { closedPort, html, startOrigin, startRawOrigin } from "../support/origin.ts";
import { startConnectProxy, startSocks5Proxy } from "../support/proxies.ts";
import { makeCertificate } from "../support/secure-origin.ts";
import { testConfig } from "../support/test-config.ts";

function connector(changes: Partial<CrawlerSettings> = {}): Connector {
  const made = new Connector(testConfig(changes));
  atEnd(() => made.close());
  return made;
}

async function origin(): Promise<{ readonly port: number }> {
  return startOrigin((_request, response) => html(response, "<p>x"));
}

async function failureFrom(work: Promise<unknown>): Promise<Failure> {
  const error = await work.then(
    () => null,
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(Failure);
  return error as Failure;
}

const to = (port: number) => ({ host: "127.0.0.1", port, secure: false, timeoutMs: 2000 });

describe("the address guard", () => {
  const denyDomains = ["Shop.example"];
  it.each([
    ["169.254.169.254", {}, "link-local"],
    ["::ffff:10.0.0.1", {}, "IPv4-mapped"],
    [new URL("http://0x7f.1/").hostname, {}, "loopback"],
    ["localhost", {}, "loopback"],
    ["example.org at 192.168.0.1", {}, "private"],
    ["127.0.0.1", { allowRanges: ["127.0.0.0/8"], denyRanges: ["127.0.0.1"] }, "deny-list holds 127.0.0.1"],
    // Denied before the look-up, which nobody would answer.
    ...["shop.example", "WWW.Shop.Example", "a.b.shop.example.", "shop.example at 8.8.8.8"].map(
      (host) => [host, { denyDomains, resolvers: ["127.0.0.1:9"] }, "deny-list holds shop.example"] as const,
    ),
  ] as const)("refuses %s under %j: %s", async (what, settings, words) => {
    const [host, address] = what.split(" at ");
    const opening = connector({ allowRanges: [], ...settings } as Partial<CrawlerSettings>);

    const failure = await failureFrom(opening.open({ ...to(80), host: host!, ...(address && { address }) }));

    const isPartners = words.startsWith("deny-list");
    expect(failure.code).toBe(isPartners ? "not-allowed" : "refused-address");
    expect(failure.message).toContain(words);
    if (isPartners) expect(failure.blame).toBe("crawler");
  });

  it("contacts a domain that only ends like a denied one", async () => {
    const { port } = await origin();
    const asked = { ...to(port), host: "myshop.example", address: "127.0.0.1" };

    const opened = await connector({ denyDomains: ["shop.example"] }).open(asked);
    opened.socket.destroy();

    expect(opened.address).toBe("127.0.0.1");
  });
});

describe("a connection", () => {
  it("reports its address and duration", async () => {
    const { port } = await origin();

    const opened = await connector().open(to(port));
    opened.socket.destroy();

    expect(opened).toMatchObject({ address: "127.0.0.1", phases: { dnsMs: null, tlsMs: null } });
    expect(opened.phases.connectMs).toBeGreaterThan(0);
  });

  it("that is refused fails as such", async () => {
    expect(await failureFrom(connector().open(to(await closedPort())))).toMatchObject({
      code: "connect-refused",
    });
  });

  it("to a name without an answering resolver fails as the network's fault", async () => {
    const resolver = `127.0.0.1:${await closedPort()}`;

    const failure = await failureFrom(
      connector({ resolvers: [resolver] }).open({ ...to(80), host: "site.example", timeoutMs: 20_000 }),
    );

    expect(failure).toMatchObject({ code: "dns-no-answer", blame: "network" });
  });
});

describe.each([
  ["an HTTP CONNECT proxy", startConnectProxy],
  ["a SOCKS5 proxy", startSocks5Proxy],
] as const)("through %s", (_name, startProxy) => {
  it("the checked address is requested, and bytes pass both ways", async () => {
    const { port } = await origin();
    const proxy = await startProxy();

    const opened = await connector({ proxy: proxy.url }).open(to(port));
    const answer = new Promise<string>((resolve) =>
      opened.socket.once("data", (data) => resolve(data.toString())),
    );
    opened.socket.resume();
    opened.socket.write("GET / HTTP/1.1\r\nHost: x\r\n\r\n");

    expect(await answer).toMatch(/^HTTP\/1\.1 200/);
    opened.socket.destroy();
    expect(proxy.asked).toEqual([`127.0.0.1:${port}`]);
    expect(opened.phases.connectMs).toBeGreaterThan(0);
  });

  it("a refused connection differs from a failing proxy", async () => {
    const proxy = await startProxy();

    const refused = await failureFrom(connector({ proxy: proxy.url }).open(to(await closedPort())));
    const away = proxy.url.replace(/\d+$/, String(await closedPort()));
    const gone = await failureFrom(connector({ proxy: away }).open(to(80)));

    expect(refused).toMatchObject({ code: "connect-refused", blame: "target" });
    expect(gone).toMatchObject({ code: "proxy", blame: "crawler" });
  });

  it("a private address never reaches the proxy", async () => {
    const proxy = await startProxy();

    await failureFrom(connector({ proxy: proxy.url, allowRanges: [] }).open({ ...to(80), host: "10.0.0.1" }));

    expect(proxy.asked).toEqual([]);
  });
});

describe("a proxy that misbehaves", () => {
  it.each([
    ["sends an overlong line", `HTTP/1.1 200 ${"O".repeat(9000)}\r\n\r\n`, "longer than 8192 bytes"],
    ["sends an endless answer", `HTTP/1.1 200 OK\r\n${"x: y\r\n".repeat(5000)}`, "longer than 8192 bytes"],
    ["does not speak HTTP", "SSH-2.0-x\r\n\r\n", "not HTTP"],
    ["wants a password", "HTTP/1.1 407 Authenticate\r\n\r\n", "with 407"],
  ])("and %s fails the connection", async (_what, answer, words) => {
    const proxy = await startRawOrigin((socket) => socket.write(answer));

    const failure = await failureFrom(connector({ proxy: proxy.url }).open(to(80)));

    expect(failure.code).toBe("proxy");
    expect(failure.message).toContain(words);
  });

  it("and never answers times out", async () => {
    const proxy = await startRawOrigin(() => {});

    const failure = await failureFrom(connector({ proxy: proxy.url }).open({ ...to(80), timeoutMs: 150 }));

    expect(failure.code).toBe("connect-timeout");
  });
});

describe("TLS", () => {
  it("accepts only a trusted certificate for the host's name", async () => {
    const { certificateFile, port } = await secureOrigin();
    const target = { ...to(port), secure: true, address: "127.0.0.1" };

    const trusting = connector({ certificateFile });
    const opened = await trusting.open({ ...target, host: "right.example" });
    opened.socket.destroy();
    const wrongName = await failureFrom(trusting.open({ ...target, host: "wrong.example" }));
    const unknown = await failureFrom(connector().open({ ...target, host: "right.example" }));

    expect(opened.phases.tlsMs).toBeGreaterThan(0);
    expect(wrongName.code).toBe("tls");
    expect(unknown.code).toBe("tls");
  });

  async function secureOrigin(): Promise<{ readonly certificateFile: string; readonly port: number }> {
    const { file, key, certificate, remove } = makeCertificate("right.example");
    atEnd(remove);
    const server = createSecureServer({ key, cert: certificate }, (_request, response) =>
      html(response, "<p>x"),
    );
    return { certificateFile: file, port: (await onLoopback(server)).port };
  }
});

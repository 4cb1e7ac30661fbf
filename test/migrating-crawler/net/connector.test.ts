/** Connections: checked addresses, pinned, straight and through proxies, with TLS verified. */
import { createServer as createSecureServer } from "node:https";
import type { AddressInfo } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import { Connector } from "#crawler/net/connector";
import { Failure } from "#crawler/net/failure";
import type { CrawlerSettings } from "#crawler/settings/config";
import { closedPort, html, startOrigin, startRawOrigin } from "../support/origin.ts";
import { startConnectProxy, startSocks5Proxy } from "../support/proxies.ts";
import { makeCertificate } from "../support/secure-origin.ts";
import { testConfig } from "../support/test-config.ts";

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

function connector(changes: Partial<CrawlerSettings> = {}): Connector {
  const made = new Connector(testConfig(changes));
  cleanups.push(() => made.close());
  return made;
}

async function origin(): Promise<{ readonly port: number }> {
  const started = await startOrigin((_request, response) => html(response, "<p>x"));
  cleanups.push(() => started.close());
  return started;
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
  it.each([
    ["10.1.2.3", "private"],
    ["169.254.169.254", "link-local"],
    ["100.64.0.1", "shared address space"],
    ["::1", "loopback"],
    ["::ffff:10.0.0.1", "IPv4-mapped"],
    ["64:ff9b::a00:1", "NAT64"],
    ["2002:a00:1::", "6to4"],
  ])("refuses %s", async (host, block) => {
    const failure = await failureFrom(connector({ allowRanges: [] }).open({ ...to(80), host }));

    expect(failure).toMatchObject({ code: "refused-address" });
    expect(failure.message).toContain(block);
  });

  it.each(["0x7f.1", "2130706433", "0177.0.0.1", "127.1"])(
    "sees %s for what the URL parser makes of it",
    async (spelling) => {
      const host = new URL(`http://${spelling}/`).hostname;

      const failure = await failureFrom(connector({ allowRanges: [] }).open({ ...to(80), host }));

      expect(failure).toMatchObject({ code: "refused-address", address: "127.0.0.1" });
    },
  );

  it("checks an address that the coordinator gives with a name, too", async () => {
    const failure = await failureFrom(
      connector({ allowRanges: [] }).open({ ...to(80), host: "example.org", address: "192.168.0.1" }),
    );

    expect(failure.code).toBe("refused-address");
  });

  it("refuses what the partner denies even where he allows the range around it", async () => {
    const { port } = await origin();

    const failure = await failureFrom(connector({ denyRanges: ["127.0.0.1"] }).open(to(port)));

    expect(failure).toMatchObject({ code: "not-allowed", blame: "crawler" });
    expect(failure.message).toBe("the partner's deny-list holds 127.0.0.1");
  });

  it.each(["shop.example", "www.shop.example", "WWW.Shop.Example", "a.b.shop.example."])(
    "refuses %s where the partner denies the domain shop.example, before it is looked up",
    async (host) => {
      const failure = await failureFrom(
        connector({ denyDomains: ["Shop.example"], resolvers: ["127.0.0.1:9"] }).open({ ...to(80), host }),
      );

      expect(failure).toMatchObject({ code: "not-allowed", blame: "crawler" });
      expect(failure.message).toBe("the partner's deny-list holds shop.example");
    },
  );

  it("refuses a denied domain at an address that the coordinator gives, too", async () => {
    const { port } = await origin();
    const asked = { ...to(port), host: "shop.example", address: "127.0.0.1" };

    const failure = await failureFrom(connector({ denyDomains: ["shop.example"] }).open(asked));

    expect(failure.code).toBe("not-allowed");
  });

  it("contacts a domain that only ends like a denied one", async () => {
    const { port } = await origin();
    const asked = { ...to(port), host: "myshop.example", address: "127.0.0.1" };

    const opened = await connector({ denyDomains: ["shop.example"] }).open(asked);
    opened.socket.destroy();

    expect(opened.address).toBe("127.0.0.1");
  });

  it("takes localhost for loopback without asking anybody", async () => {
    const failure = await failureFrom(connector({ allowRanges: [] }).open({ ...to(80), host: "localhost" }));

    expect(failure).toMatchObject({ code: "refused-address", address: "127.0.0.1" });
  });
});

describe("a connection", () => {
  it("names its address and how long it took", async () => {
    const { port } = await origin();

    const opened = await connector().open(to(port));
    opened.socket.destroy();

    expect(opened).toMatchObject({ address: "127.0.0.1", phases: { dnsMs: null, tlsMs: null } });
    expect(opened.phases.connectMs).toBeGreaterThan(0);
  });

  it("that is refused says so", async () => {
    expect(await failureFrom(connector().open(to(await closedPort())))).toMatchObject({
      code: "connect-refused",
    });
  });

  it("to a name that nobody answers for fails as the network's fault", async () => {
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
  it("the checked address is asked for, and bytes pass both ways", async () => {
    const { port } = await origin();
    const proxy = await startProxy();
    cleanups.push(() => proxy.close());

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

  it("a refused connection is told apart from a proxy that fails", async () => {
    const proxy = await startProxy();
    cleanups.push(() => proxy.close());

    const refused = await failureFrom(connector({ proxy: proxy.url }).open(to(await closedPort())));
    const away = proxy.url.replace(/\d+$/, String(await closedPort()));
    const gone = await failureFrom(connector({ proxy: away }).open(to(80)));

    expect(refused).toMatchObject({ code: "connect-refused", blame: "target" });
    expect(gone).toMatchObject({ code: "proxy", blame: "crawler" });
  });

  it("a private address never reaches the proxy", async () => {
    const proxy = await startProxy();
    cleanups.push(() => proxy.close());

    await failureFrom(connector({ proxy: proxy.url, allowRanges: [] }).open({ ...to(80), host: "10.0.0.1" }));

    expect(proxy.asked).toEqual([]);
  });
});

describe("a proxy that misbehaves", () => {
  it.each([
    ["has much to say in one line", `HTTP/1.1 200 ${"O".repeat(9000)}\r\n\r\n`, "longer than 8192 bytes"],
    ["never stops its answer", `HTTP/1.1 200 OK\r\n${"x: y\r\n".repeat(5000)}`, "longer than 8192 bytes"],
    ["does not speak HTTP", "SSH-2.0-x\r\n\r\n", "not HTTP"],
    ["wants a password", "HTTP/1.1 407 Authenticate\r\n\r\n", "with 407"],
  ])("and %s fails the connection", async (_what, answer, words) => {
    const proxy = await startRawOrigin((socket) => socket.write(answer));
    cleanups.push(() => proxy.close());

    const failure = await failureFrom(connector({ proxy: proxy.url }).open(to(80)));

    expect(failure.code).toBe("proxy");
    expect(failure.message).toContain(words);
  });

  it("and never answers runs into the deadline", async () => {
    const proxy = await startRawOrigin(() => {});
    cleanups.push(() => proxy.close());

    const failure = await failureFrom(connector({ proxy: proxy.url }).open({ ...to(80), timeoutMs: 150 }));

    expect(failure.code).toBe("connect-timeout");
  });
});

describe("TLS", () => {
  it("accepts a certificate that is trusted for the host's name, and refuses it otherwise", async () => {
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
    cleanups.push(remove);
    const server = createSecureServer({ key, cert: certificate }, (_request, response) =>
      html(response, "<p>x"),
    );
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    cleanups.push(() => new Promise((resolve) => server.close(resolve)));
    return { certificateFile: file, port: (server.address() as AddressInfo).port };
  }
});

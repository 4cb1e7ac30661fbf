/**
 * A hijacked or dishonest coordinator against one crawler: real sockets record what reaches a third party, and the real
 * gateway sends whatever it is told to.
 */
import type { ServerResponse } from "node:http";
import net from "node:net";
import { describe, expect, it, vi } from "vitest";
import { asCrawlerId } from "#core/ids";
import { requestSigner } from "#crawler/fetch/sign-request";
import type { Grant } from "#crawler/limits/admission";
import { Governor, mostHeldPages } from "#crawler/limits/governor";
import { startCrawler } from "#crawler/main";
import { openIdentity } from "#crawler/membership/identity";
import { Connector } from "#crawler/net/connector";
import { connectThroughProxy } from "#crawler/net/proxy";
import { Prober } from "#crawler/probe/prober";
import { limitsSchema } from "#crawler/settings/limits-config";
import { startDns } from "#ops/world/main";
import { decodeCoordinatorMessage } from "#protocol/codec";
import type { CoordinatorMessage, CoordinatorWelcome } from "#protocol/coordinator-messages";
import { type Lease, lease as leaseSchema } from "#protocol/lease";
import type { ProbeOutcome } from "#protocol/messages";
import { type LoopbackGateway, startGateway } from "../gateway/gateway-on-loopback.ts";
import { atEnd } from "../support/at-end.ts";
import { leaseOf } from "./support/leasing-gateway.ts";
import { onLoopback } from "./support/loopback.ts";
import { closedPort, html, startOrigin } from "./support/origin.ts";
import { sliceRunner } from "./support/slices.ts";
import { testConfig } from "./support/test-config.ts";

const amber = asCrawlerId(1);
const unspied = net.Socket.prototype.connect;

/** An uninvolved host that records connections and their bytes. */
async function startVictim(answer = "") {
  const victim = { port: 0, connections: 0, bytes: "" };
  const server = net.createServer((socket) => {
    victim.connections += 1;
    socket.on("data", (piece) => {
      victim.bytes += piece.toString("latin1");
      if (answer !== "") socket.write(answer);
    });
  });
  victim.port = (await onLoopback(server)).port;
  return victim;
}

async function crawlerUnder(
  handlers: NonNullable<Parameters<typeof startGateway>[0]["handlers"]> = {},
  changes: Parameters<typeof testConfig>[0] = {},
) {
  const world: LoopbackGateway = await startGateway({
    zlibSync: null,
    handlers,
    // Only the crawler must decide whether a probe is answered, however busy this machine is.
    settings: { probeGraceMs: 60_000 },
  });
  const crawler = await startCrawler(
    testConfig({ coordinatorUrl: world.url, timeouts: patient, ...changes }),
  );
  atEnd(() => crawler.stop());
  await vi.waitFor(() => expect(world.gateway.online()).toEqual([amber]), wait);
  return { world, crawler };
}

/** A page held by a test must not time out, however busy this machine is. */
const patient = { connectMs: 60_000, firstByteMs: 60_000, idleMs: 60_000, totalMs: 60_000 };
const wait = { timeout: 20_000, interval: 10 };

const probeOf = (changes: object): CoordinatorMessage => ({
  ...{ type: "coordinator:probe", requestId: 1, host: "site.example", address: "127.0.0.1", port: 80 },
  ...{ secure: false, method: "head", tries: 1, deadlineMs: 1000, ...changes },
});

const smuggled =
  "x\r\n\r\nPOST /transfer HTTP/1.1\r\nHost: bank.example\r\nCookie: id=1\r\nContent-Length: 5\r\n\r\nall=1";
const mail = "x\r\nHELO x\r\nMAIL FROM:<a@b.example>\r\nRCPT TO:<c@d.example>\r\nDATA";

describe("bytes chosen by a coordinator", () => {
  it("do not reach a third party as a second request in a probe's host", async () => {
    const victim = await startVictim("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    const { world } = await crawlerUnder();

    world.gateway.send(amber, probeOf({ host: smuggled, port: victim.port }));
    await vi.waitFor(() => expect(world.seen.leaves.length + victim.connections).toBeGreaterThan(0), wait);

    expect(victim).toMatchObject({ connections: 0, bytes: "" });
    expect(world.seen.leaves.map(({ reason }) => reason).join()).not.toContain("bank.example");
  });

  it("are checked again where the request is written", async () => {
    const victim = await startVictim("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    const connector = new Connector(testConfig());
    atEnd(() => connector.close());
    const probeBy = (said: { host: string; userAgent: string; fields?: Record<string, string> }) => {
      const { host, userAgent, fields = {} } = said;
      const prober = new Prober({
        ...{ connector, probeMethods: ["head"], userAgent: () => userAgent, sign: () => fields },
      });
      const target = { address: "127.0.0.1", port: victim.port, secure: false, method: "head" as const };
      return prober.probe({ host, ...target, tries: 1, deadlineMs: 1000 });
    };

    const outcomes = [
      await probeBy({ host: smuggled, userAgent: "Nearcrawl/test" }),
      await probeBy({ host: "site.example", userAgent: "Nearcrawl/test\r\nX-Evil: 1" }),
      await probeBy({
        host: "site.example",
        userAgent: "Nearcrawl/test",
        fields: { signature: "a\r\nb: c" },
      }),
    ];

    expect(outcomes.map(({ type }) => type)).toEqual(["failed", "failed", "failed"]);
    expect(victim.bytes).toBe("");
  });

  it("do not reach a proxy in an address", async () => {
    const proxy = await startVictim("HTTP/1.1 200 OK\r\n\r\n");
    const way = { type: "http", host: "127.0.0.1", port: proxy.port, user: null, password: null } as const;

    const address = "1.2.3.4:80 HTTP/1.1\r\nX: y\r\n\r\n";
    const asked = connectThroughProxy(way, { address, port: 80, timeoutMs: 2000 });

    await expect(asked).rejects.toThrow("neither an address");
    expect(proxy.bytes).toBe("");
  });

  it.each([
    'https://crawl.example.org"\r\nX-Evil: 1',
    'https://crawl.example.org";x="',
    "https://crawl.example.org\\",
    "https://user:secret@crawl.example.org",
    "ftp://crawl.example.org",
    "javascript:alert(1)",
    "https://crawl.example.org/ü",
    "crawl.example.org",
  ])("do not enter the header that names the keys: %j", (signatureAgent) => {
    const key = () => ({ ...openIdentity(testConfig().home), until: null });
    const welcome = { ...plainWelcome, signatureAgent };

    expect(() => decodeCoordinatorMessage(JSON.stringify(welcome))).toThrow("signatureAgent");
    expect(() => requestSigner({ key, keySetUrl: signatureAgent })).toThrow("keySetUrl");
  });

  it.each([
    "https://crawl.example.org",
    "https://crawl.example.org:8443/.well-known/http-message-signatures-directory",
    "http://127.0.0.1:7411",
  ])("are accepted there from an honest coordinator: %s", (signatureAgent) => {
    const welcome = { ...plainWelcome, signatureAgent };

    expect(decodeCoordinatorMessage(JSON.stringify(welcome))).toEqual(welcome);
  });

  it.each([
    ["userAgent", "Nearcrawl/1\r\nX-Evil: 1"],
    ["userAgent", "Mozilla/5.0"],
    ["seenAddress", "127.0.0.1 && reboot"],
  ])("are refused in a welcome: %s", (field, value) => {
    expect(() => decodeCoordinatorMessage(JSON.stringify({ ...plainWelcome, [field]: value }))).toThrow(
      field,
    );
  });

  it.each([
    ["host", probeOf({ host: mail })],
    ["host", probeOf({ host: "x\nX-Evil: 1" })],
    ["host", probeOf({ host: "x y" })],
    ["address", probeOf({ address: "-I eth0" })],
    ["address", probeOf({ address: "127.0.0.1;reboot" })],
    ["host", probeOf({ host: `${"a".repeat(64)}.example` })],
    ["host", probeOf({ host: "Site.example" })],
    ["host", probeOf({ host: "site..example" })],
    ["host", probeOf({ host: "../../etc" })],
    ["host", probeOf({ host: "bücher.example" })],
    ["domains", { type: "coordinator:stop-hosts", domains: ["a b"], reason: "" }],
    ["peers", { type: "coordinator:peers", peers: [{ crawlerId: 1, address: "x\r\ny", port: 443 }] }],
    ["version", { type: "coordinator:release", version: "../1.0", digest: "a".repeat(64) }],
    ["digest", { type: "coordinator:release", version: "1.0", digest: "../../../etc/passwd" }],
    ["key", { type: "coordinator:key", key: "a key with\r\nlines", scopes: ["crawl"], oldKeySeconds: 0 }],
  ])("are refused in other messages: %s", (field, message) => {
    expect(() => decodeCoordinatorMessage(JSON.stringify(message))).toThrow(field);
  });

  it("are accepted in valid hosts", () => {
    const hosts = "site.example a_b.site.example -a.example xn--bcher-kva.example 127.0.0.1 2001:db8::1";

    for (const host of hosts.split(" ")) {
      expect(decodeCoordinatorMessage(JSON.stringify(probeOf({ host })))).toMatchObject({ host });
    }
  });

  it("do not enter a page's validators", () => {
    const urls = [{ url: "http://site.example/", etag: '"a"\r\nX-Evil: 1', lastModified: "today\n" }];
    const lease = {
      leaseId: "1",
      host: "site.example",
      addresses: [],
      expiresInSeconds: 60,
      waitMs: 0,
      urls,
    };

    expect(leaseSchema.parse(lease).urls).toEqual([{ ...urls[0], etag: null, lastModified: null }]);
  });

  it("do not control the administrator's terminal through a reason", () => {
    const reason = "\x1b]0;x\x07gone\u202e\u009b2J";
    const refuse = { type: "coordinator:refuse", code: "revoked", reason, retry: false };

    expect(decodeCoordinatorMessage(JSON.stringify(refuse))).toMatchObject({ reason: " ]0;x gone 2J" });
  });
});

describe("other coordinators that it announces", () => {
  it("are subject to the partner's lists like sites", async () => {
    const [denied, named] = [
      await startVictim(),
      await startVictim("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"),
    ];
    const urls = [denied.port, named.port].map((port) => `ws://127.0.0.1:${port}/crawler`);
    let arrivals = 0;
    const { world } = await crawlerUnder(
      {
        onArrive: async () => {
          arrivals += 1;
          return { acknowledgedSequence: 0, welcome: { coordinators: urls } };
        },
      },
      { allowRanges: [`127.0.0.1:${named.port}`] },
    );
    const away = { code: "shutting-down", reason: "for a moment", retry: true } as const;
    for (const times of [2, 3]) {
      world.gateway.refuse(amber, away);
      await vi.waitFor(() => expect(arrivals).toBe(times), wait);
    }

    expect(denied.connections).toBe(0);
    expect(named.connections).toBeGreaterThan(0);
  });
});

it("opens every connection through the checked door", async () => {
  const connect = vi.spyOn(net.Socket.prototype, "connect");
  const openers: string[] = [];
  const stackTraceLimit = Error.stackTraceLimit;
  Error.stackTraceLimit = 100;
  connect.mockImplementation(function (this: net.Socket, ...given: unknown[]) {
    openers.push(new Error("opened here").stack ?? "");
    return (unspied as (...given: unknown[]) => net.Socket).apply(this, given);
  });
  atEnd(() => {
    connect.mockRestore();
    Error.stackTraceLimit = stackTraceLimit;
  });
  const site = await startOrigin((_request, response) => html(response, "<title>a page</title>"));
  const { world } = await crawlerUnder();

  await world.gateway.probe(amber, {
    ...{ host: "site.example", address: "127.0.0.1", port: site.port, secure: false, method: "head" },
    ...{ tries: 1, deadlineMs: 20_000 },
  });
  await vi.waitFor(
    () => expect(world.seen.messages.some(({ message }) => message.type === "crawler:ready")).toBe(true),
    wait,
  );
  world.gateway.send(amber, {
    ...{ type: "coordinator:tasks", askAgainMs: 60_000, reason: "" },
    leases: [leaseOf("1", [`http://127.0.0.1:${site.port}/`])],
  });
  await vi.waitFor(() => expect(world.seen.batches.length).toBe(1), wait);

  expect(openers.length).toBeGreaterThanOrEqual(3);
  expect(openers.filter((stack) => !stack.includes("/net/dial.ts"))).toEqual([]);
});

describe("a flood of probes", () => {
  type Target = Parameters<LoopbackGateway["gateway"]["probe"]>[1];
  const target = (changes: Partial<Target> = {}): Target => ({
    ...{ host: "site.example", address: "127.0.0.1", port: 80, secure: false, method: "connect" },
    ...{ tries: 1, deadlineMs: 2000, ...changes },
  });
  /** Requests all at once; returns the outcomes and the seconds taken. */
  async function flood(world: LoopbackGateway, targets: readonly Target[]) {
    const startedMs = performance.now();
    const outcomes = await Promise.all(targets.map((each) => world.gateway.probe(amber, each)));
    return { outcomes, seconds: (performance.now() - startedMs) / 1000 };
  }
  const heldBack = ({ type, ...rest }: ProbeOutcome) =>
    type === "failed" && /^held back by the crawler: /.test("reason" in rest ? rest.reason : "");
  /** Each probe was admitted or got the reason for its refusal. */
  const areAnswered = (outcomes: readonly ProbeOutcome[]) =>
    outcomes.every((outcome) => ["measured", "timed-out"].includes(outcome.type) || heldBack(outcome));
  const triesOf = (outcomes: readonly ProbeOutcome[]) =>
    outcomes.reduce((sum, outcome) => sum + (outcome.type === "measured" ? outcome.tries : 0), 0);
  const addresses = (count: number) =>
    Array.from({ length: count }, (_, at) => `127.9.${at >> 8}.${at & 255 || 1}`);
  /** Each address refuses the connection, which is also an answer. */
  const everywhere = async (count: number, changes: Partial<Target> = {}) => {
    const port = await closedPort();
    return addresses(count).map((address) => target({ address, port, ...changes }));
  };

  it("reaches one address three times a second, and the others get the reason", async () => {
    const victim = await startVictim("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    const { world } = await crawlerUnder();
    const one = target({ port: victim.port, method: "head" });

    const startedMs = performance.now();
    const first = await world.gateway.probe(amber, one);
    const others = await flood(world, Array<Target>(999).fill(one));
    const mostProbes = 3 * (Math.ceil((performance.now() - startedMs) / 1000) + 1);

    expect(victim.connections).toBeLessThanOrEqual(mostProbes);
    expect(victim.bytes.split("HEAD ").length - 1).toBeLessThanOrEqual(mostProbes);
    expect(first.type).toBe("measured");
    expect(areAnswered(others.outcomes)).toBe(true);
  });

  it("stays within the rate, including connections without data", async () => {
    const { world } = await crawlerUnder({}, { limits: { kilobytesPerSecond: 20, probesPerSecond: 1000 } });

    const { outcomes, seconds } = await flood(world, await everywhere(500, { tries: 4 }));

    // The rate's burst, plus the probes admitted together before the first was counted.
    const allowedBytes = 8 * 1024 + 20 * 1024 * seconds + 16 * 400;
    expect(400 * triesOf(outcomes)).toBeLessThanOrEqual(allowedBytes);
    expect(triesOf(outcomes)).toBeGreaterThan(0);
  });

  it("stays within the day's bytes", async () => {
    const { world } = await crawlerUnder({}, { limits: { bytesPerDay: 40_000, probesPerSecond: 1000 } });

    const { outcomes } = await flood(world, await everywhere(500, { deadlineMs: 20_000 }));

    expect(400 * triesOf(outcomes)).toBeLessThanOrEqual(40_000);
    expect(outcomes).toContainEqual({
      ...{ type: "failed", code: "held-back", method: "connect" },
      reason: "held back by the crawler: the day's 39.1 KiB are used up",
    });
  });

  it("queries DNS no more often than the partner allows", async () => {
    let asked = 0;
    const dns = await startDns(() => {
      asked += 1;
      return null;
    });
    atEnd(() => dns.close());
    const limits = { probesPerSecond: 10 };
    const { world } = await crawlerUnder({}, { limits, resolvers: [dns.address] });
    const named = (_: unknown, at: number) => target({ host: `h${at}.example`, byName: true });

    const { seconds } = await flood(world, Array.from({ length: 300 }, named));

    expect(asked).toBeLessThanOrEqual(10 * (Math.ceil(seconds) + 1));
    expect(asked).toBeGreaterThanOrEqual(1);
  });

  it("reaches only web ports, those of leased URLs, and those that the partner names", async () => {
    const proxy = await startVictim("HTTP/1.1 200 OK\r\n\r\n");
    const settings = { proxy: `http://127.0.0.1:${proxy.port}`, coordinatorProxy: "none" };
    const { world } = await crawlerUnder({}, { ...settings, allowRanges: ["198.41.0.5:2525"] });
    await vi.waitFor(() => expect(world.seen.messages.length).toBeGreaterThan(0), wait);
    // Nothing leaves this machine, because the proxy answers.
    const host = "198.41.0.4";
    const ask = async (port: number, address = host) =>
      (await world.gateway.probe(amber, target({ host: address, address, port }))).type;

    const before = [await ask(25), await ask(6379), await ask(8080), await ask(443), await ask(80)];
    const named = [await ask(2525), await ask(2525, "198.41.0.5")];
    const lease = leaseOf("1", [`http://${host}:8080/`], { host, addresses: [host] });
    world.gateway.send(amber, { type: "coordinator:tasks", leases: [lease], askAgainMs: 50, reason: "" });
    await vi.waitFor(() => expect(proxy.bytes).toContain(`CONNECT ${host}:8080 `), wait);
    // Uses another address of the host, because the page has the turn of the first.
    const beside = target({ host, address: "198.41.0.6", port: 8080 });
    const leased = [(await world.gateway.probe(amber, beside)).type, await ask(25)];

    expect(before).toEqual(["failed", "failed", "failed", "measured", "measured"]);
    expect(named).toEqual(["failed", "measured"]);
    expect(leased).toEqual(["measured", "failed"]);
    const asked = new Set([...proxy.bytes.matchAll(/CONNECT (\S+)/g)].map(([, authority]) => authority));
    expect(asked).toEqual(
      new Set([`${host}:443`, `${host}:80`, "198.41.0.5:2525", `${host}:8080`, "198.41.0.6:8080"]),
    );
  });
});

describe("unrequested leases", () => {
  const hostOf = (index: number) => `h${index}.localhost`;
  const leasesOf = (count: number, port: number, first = 1): Lease[] =>
    Array.from({ length: count }, (_, at) => {
      const host = hostOf(first + at);
      return leaseOf(`${first + at}`, [`http://${host}:${port}/`], { host, expiresInSeconds: 300 });
    });
  const tasks = (leases: readonly Lease[]): CoordinatorMessage => ({
    ...{ type: "coordinator:tasks", leases: [...leases], askAgainMs: 50, reason: "" },
  });
  const givenBack = ({ seen }: LoopbackGateway) =>
    seen.messages.flatMap(({ message }) => (message.type === "crawler:lease-end" ? [message] : []));
  const asks = ({ seen }: LoopbackGateway) =>
    seen.messages.flatMap(({ message }) => (message.type === "crawler:ready" ? [message.freeHosts] : []));

  /** Its pages wait; robots.txt does not. */
  async function holdingSite() {
    const held: ServerResponse[] = [];
    const origin = await startOrigin((request, response) => {
      if (request.url === "/robots.txt") return void response.writeHead(404).end();
      held.push(response);
    });
    return { origin, held };
  }

  /** A crawler that has asked for this many hosts. The pages are released before it stops. */
  async function asked(concurrentHosts: number, more: { readonly memoryBytes?: number } = {}) {
    const site = await holdingSite();
    const limits = { concurrentHosts, ...more };
    const made = await crawlerUnder({}, { limits, requestsPerAddress: 64 });
    atEnd(() => site.held.forEach((response) => void response.end()));
    await vi.waitFor(() => expect(asks(made.world)).toEqual([concurrentHosts]), wait);
    return { ...site, ...made };
  }

  it("are returned, and no more hosts start than there are places", async () => {
    const { origin, held, world, crawler } = await asked(2);

    world.gateway.send(amber, tasks(leasesOf(200, origin.port)));
    await vi.waitFor(() => expect(givenBack(world)).toHaveLength(198), wait);
    await vi.waitFor(() => expect(held).toHaveLength(2), wait);

    expect(crawler.status().openHosts).toBe(2);
    expect(givenBack(world).map(({ leaseId }) => Number(leaseId))).toEqual(
      Array.from({ length: 198 }, (_, at) => at + 3),
    );
    expect(new Set(givenBack(world).map(({ reason }) => reason))).toEqual(new Set(["nobody asked for it"]));
  });

  it("are returned when a request is answered twice", async () => {
    const { origin, held, world } = await asked(2);

    world.gateway.send(amber, tasks(leasesOf(1, origin.port)));
    world.gateway.send(amber, tasks(leasesOf(1, origin.port, 2)));
    world.gateway.send(amber, tasks(leasesOf(1, origin.port, 3)));
    await vi.waitFor(() => expect(givenBack(world)).toHaveLength(1), wait);
    await vi.waitFor(() => expect(held).toHaveLength(2), wait);

    expect(givenBack(world)).toMatchObject([{ leaseId: "3" }]);
  });

  it("are not parsed, and an unreadable one is returned alone, its host for a day", async () => {
    const { origin, held, world, crawler } = await asked(2);
    const [first, second] = leasesOf(2, origin.port);
    const unread = { leaseId: "3", host: "x\r\ny", urls: "none of ours" } as unknown as Lease;

    world.gateway.send(amber, tasks([{ ...first!, host: "x\r\ny" }, second!, unread]));
    await vi.waitFor(() => expect(givenBack(world)).toHaveLength(2), wait);
    await vi.waitFor(() => expect(held).toHaveLength(1), wait);

    expect(givenBack(world)).toMatchObject([
      { leaseId: "3", reason: "nobody asked for it" },
      { leaseId: "1", reason: "the lease cannot be read: host: is no host's name", hostWaitMs: 86_400_000 },
    ]);
    expect(crawler.status().connected).toBe(true);
  });

  it("stay within the day's pages, including robots.txt, with any number of hosts", async () => {
    const { origin, held } = await holdingSite();
    const runner = sliceRunner({ limits: { pagesPerDay: 25 }, requestsPerAddress: 64, timeouts: patient });
    const slices = Array.from({ length: 20 }, (_, at) =>
      runner.crawl([`http://${hostOf(at)}:${origin.port}/`]),
    );

    const endings = Promise.all(slices.map(async (slice) => (await slice).ending));
    await vi.waitFor(() => expect(held).toHaveLength(5), wait);
    for (const response of held) html(response, "<p>page");

    expect((await endings).filter((ending) => ending === "the day's 25 pages are used up")).toHaveLength(15);
    expect(origin.requests).toHaveLength(25);
  });

  it("are requested only as far as the day's pages last", async () => {
    const { world } = await crawlerUnder({}, { limits: { concurrentHosts: 200, pagesPerDay: 5 } });

    // Each host takes robots.txt, tdmrep.json and a page.
    await vi.waitFor(() => expect(asks(world)).toEqual([2]), wait);
  });

  it("hold no more text than the allowed memory permits", async () => {
    const { origin, world, crawler } = await asked(40, { memoryBytes: 1024 * 1024 * 1024 });
    const path = "a".repeat(1900);
    for (let at = 0; at < 16; at++) {
      const host = hostOf(at);
      const urls = Array.from({ length: 1000 }, (_, page) => `http://${host}:${origin.port}/${page}${path}`);
      world.gateway.send(amber, tasks([leaseOf(`${at + 1}`, urls, { host })]));
      await vi.waitFor(() => expect(givenBack(world).length + crawler.status().openHosts).toBe(at + 1), wait);
    }

    // A sixty-fourth of the memory is for such text: 16 MiB, eight of these.
    expect(crawler.status().openHosts).toBe(8);
  });
});

describe("memory", () => {
  const mebibyte = 1024 * 1024;
  /** Of 182 usable MiB 140 are taken, which leaves room for four requests of 10 MiB. */
  const fullGovernor = () => {
    const governor = new Governor({
      limits: limitsSchema.parse({ memoryBytes: 192 * mebibyte }),
      kept: { home: testConfig().home, warn: () => {} },
      memory: { residentBytes: () => 140 * mebibyte, collect: () => {}, nowMs: () => 0 },
    });
    atEnd(() => governor.close());
    const begun: Grant[] = [];
    for (let at = 0; at < 200; at++) {
      void governor
        .admit({ signal: new AbortController().signal, endsAtMs: Date.now() + 60_000 })
        .then((grant) => grant && begun.push(grant));
    }
    return { governor, begun, settled: () => new Promise(setImmediate) };
  };

  it("is reserved before a request starts, and by a page until it is extracted", async () => {
    const { governor, begun, settled } = fullGovernor();
    await settled();
    const atOnce = begun.length;

    const releases = begun.map((grant) => {
      const release = governor.holdPage();
      grant.end();
      return release;
    });
    await settled();
    const whileHeld = begun.length;
    releases[0]!();
    await settled();

    expect([atOnce, whileHeld, begun.length]).toEqual([4, 4, 5]);
  });

  it("is not filled with pages that wait for extraction", async () => {
    const governor = new Governor({
      limits: limitsSchema.parse({}),
      kept: { home: testConfig().home, warn: () => {} },
    });
    atEnd(() => governor.close());
    const releases = Array.from({ length: mostHeldPages }, () => governor.holdPage());
    const begun: Grant[] = [];
    const bounds = { signal: new AbortController().signal, endsAtMs: Date.now() + 60_000 };
    void governor.admit(bounds).then((grant) => grant && begun.push(grant));
    await new Promise(setImmediate);
    const whileHeld = begun.length;

    releases[0]!();
    await new Promise(setImmediate);

    expect([whileHeld, begun.length]).toEqual([0, 1]);
  });
});

const plainWelcome: CoordinatorWelcome = {
  type: "coordinator:welcome",
  protocolVersion: 4,
  crawlerId: 1,
  acknowledgedSequence: 0,
  resultCredits: 10,
  heartbeatSeconds: 60,
  userAgent: "Nearcrawl/0.1 (+https://crawl.example.org/about-crawler)",
};

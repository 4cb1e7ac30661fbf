/** Names with several addresses, some forbidden or dead, names whose addresses change, and the cache of answers. */
import dgram from "node:dgram";
import { createServer } from "node:net";
import { decode, encode } from "dns-packet";
import { afterEach, describe, expect, it, vi } from "vitest";
import type { Failure } from "#crawler/core/failure";
import { Connector } from "#crawler/net/connector";
import { NameCache } from "#crawler/net/name-cache";
import { atEnd } from "../../support/at-end.ts";
import { onLoopback } from "../support/loopback.ts";
import { testConfig } from "../support/test-config.ts";

afterEach(() => void vi.restoreAllMocks());

interface Records {
  A?: readonly string[];
  AAAA?: readonly string[];
}

/** A name server on loopback, which lists its questions; null means that there is no such name. */
async function startNameServer(recordsOf: (name: string) => Records | null, ttl: number) {
  const socket = dgram.createSocket("udp4");
  const asked: string[] = [];
  socket.on("message", (packet, from) => {
    const query = decode(packet);
    const question = query.questions![0]!;
    const type = question.type as "A" | "AAAA";
    asked.push(`${type} ${question.name}`);
    const records = recordsOf(question.name);
    const answers = (records?.[type] ?? []).map((data) => ({ type, name: question.name, ttl, data }));
    const head = { type: "response" as const, id: query.id ?? 0, flags: records === null ? 3 : 0 };
    socket.send(encode({ ...head, questions: [question], answers }), from.port, from.address);
  });
  await new Promise<void>((resolve) => socket.bind(0, "127.0.0.1", resolve));
  atEnd(() => socket.close());
  return { address: `127.0.0.1:${socket.address().port}`, asked };
}

async function connectorFor(records: () => Records, changes: Parameters<typeof testConfig>[0] = {}) {
  const { address } = await startNameServer(records, 1);
  const made = new Connector(testConfig({ resolvers: [address], ...changes }));
  atEnd(() => made.close());
  return made;
}

async function namesOf(table: Readonly<Record<string, readonly string[]>>) {
  const { address, asked } = await startNameServer((name) => (table[name] ? { A: table[name] } : null), 300);
  const names = new NameCache({ servers: [address], ipv6: async () => false });
  atEnd(() => names.close());
  return { names, asked };
}

const listening = async (address: string) => (await onLoopback(createServer(), address)).port;

const to = (port: number) => ({ host: "many.example", port, secure: false, timeoutMs: 5000 });

it("only the allowed addresses of a name are used", async () => {
  const port = await listening("127.0.0.3");
  const connector = await connectorFor(() => ({ A: ["10.0.0.1", "169.254.169.254", "127.0.0.3"] }));

  const opened = await connector.open(to(port));
  opened.socket.destroy();

  expect(opened.address).toBe("127.0.0.3");
});

it("a name with only forbidden addresses is refused", async () => {
  const connector = await connectorFor(() => ({ A: ["10.0.0.1", "192.168.0.1"] }));

  await expect(connector.open(to(80))).rejects.toMatchObject({
    code: "refused-address",
    address: "10.0.0.1",
  });
});

it("the next address is tried when one does not answer", async () => {
  const port = await listening("127.0.0.5");
  const connector = await connectorFor(() => ({ A: ["127.0.0.4", "127.0.0.5"] }));

  const opened = await connector.open(to(port));
  opened.socket.destroy();

  expect(opened.address).toBe("127.0.0.5");
});

it("IPv6 is used when IPv4 fails and the crawler has IPv6", async () => {
  const port = await listening("127.0.0.6");
  const records = { A: ["127.0.0.7"], AAAA: ["::ffff:127.0.0.6"] };

  const without = await connectorFor(() => records);
  const having = await connectorFor(() => records, { ipv6: true });
  const opened = await having.open(to(port));
  opened.socket.destroy();

  await expect(without.open(to(port))).rejects.toMatchObject({ code: "connect-refused" });
  expect(opened.address).toBe("::ffff:127.0.0.6");
});

describe("a host that has only IPv6 addresses", () => {
  const [host, literal] = ["many.example", "2a00:1:1::7"];
  const pickedBy = async (connector: Connector, asked: string) =>
    await connector.pick({ host: asked }).then(
      ({ address }) => address,
      ({ code, message }: Failure) => `${code}: ${message}`,
    );

  it.each([
    [{ ipv6: false }, "ipv6 is false in its settings"],
    [{ proxy: "http://127.0.0.1:9" }, "it goes through a proxy, and ipv6 is not set"],
  ] as const)("is not contacted, by name or by address, with the reason: %j", async (changes, why) => {
    const connector = await connectorFor(() => ({ AAAA: [literal] }), changes);

    expect(await pickedBy(connector, host)).toBe(
      `not-allowed: many.example has only IPv6 addresses, and this crawler does not speak IPv6: ${why}`,
    );
    expect(await pickedBy(connector, literal)).toBe(
      `not-allowed: 2a00:1:1::7 is an IPv6 address, and this crawler does not speak IPv6: ${why}`,
    );
    expect(connector.speaksIpv6).toBe(false);
  });

  it("is contacted when the settings say so or when a mapped IPv4 address is meant", async () => {
    const speaking = await connectorFor(() => ({ AAAA: [literal] }), {
      ipv6: true,
      proxy: "http://127.0.0.1:9",
    });
    const both = await connectorFor(() => ({ A: ["127.0.0.3"], AAAA: [literal] }), { ipv6: false });

    expect(await pickedBy(speaking, host)).toBe(literal);
    expect([await pickedBy(both, host), await pickedBy(both, "::ffff:127.0.0.3")]).toEqual([
      "127.0.0.3",
      "::ffff:7f00:3",
    ]);
  });

  it("differs from one without any address", async () => {
    const connector = await connectorFor(() => ({}), { ipv6: false });

    expect(await pickedBy(connector, host)).toBe("dns-no-such-name: many.example has no address (ENODATA)");
  });
});

it("a name that changes to a private address is refused at the next connection", async () => {
  const port = await listening("127.0.0.8");
  let address = "127.0.0.8";
  const connector = await connectorFor(() => ({ A: [address] }));

  const first = await connector.open(to(port));
  first.socket.destroy();
  address = "10.0.0.1";
  const later = performance.now() + 60_000;
  vi.spyOn(performance, "now").mockImplementation(() => later);

  await expect(connector.open(to(port))).rejects.toMatchObject({ code: "refused-address" });
});

describe("a name", () => {
  it("is queried once during its time to live, also by simultaneous callers", async () => {
    const { names, asked } = await namesOf({ "site.example": ["192.0.2.1"] });

    const together = await Promise.all(Array.from({ length: 20 }, () => names.resolve("site.example")));
    const later = await names.resolve("site.example");

    expect(asked).toEqual(["A site.example"]);
    expect(together[0]?.addresses).toEqual(["192.0.2.1"]);
    expect(together[0]?.dnsMs).toBeGreaterThan(0);
    expect(later.dnsMs).toBeNull();
  });

  it("that does not exist is the target's fault and is also cached", async () => {
    const { names, asked } = await namesOf({});

    await expect(names.resolve("gone.example")).rejects.toMatchObject({
      code: "dns-no-such-name",
      blame: "target",
    });
    await expect(names.resolve("gone.example")).rejects.toMatchObject({ code: "dns-no-such-name" });

    expect(asked).toEqual(["A gone.example"]);
  });

  it("with many addresses gives sixteen", async () => {
    const many = Array.from({ length: 25 }, (_, index) => `192.0.2.${index}`);
    const { names } = await namesOf({ "many.example": many });

    expect((await names.resolve("many.example")).addresses).toHaveLength(16);
  });

  it("that is an address needs no query", async () => {
    const { names, asked } = await namesOf({});

    expect(await names.resolve("192.0.2.7")).toEqual({ addresses: ["192.0.2.7"], dnsMs: null });
    expect((await names.resolve("2001:DB8::1")).addresses).toEqual(["2001:db8::1"]);
    expect(asked).toEqual([]);
  });
});

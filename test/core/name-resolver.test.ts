/** The coordinator's DNS, against name servers on loopback: the world's own, and one made for odd answers. */
import { createSocket } from "node:dgram";
import type { AddressInfo } from "node:net";
import { type Answer, decode, encode } from "dns-packet";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { createNameResolver, WatchedResolver } from "#core/name-resolver";
import { type RunningDns, startDns, ttlSeconds } from "#ops/world/main";

let world: RunningDns;
const opened: (() => Promise<void>)[] = [];

beforeAll(async () => {
  world = await startDns((name) => (name === "harbour.example" ? "2.0.16.5" : null));
});
afterEach(async () => {
  for (const close of opened.splice(0)) await close();
});
afterAll(async () => await world.close());

interface Reply {
  readonly answers?: readonly Answer[];
  readonly rcode?: number;
}

/** A name server with this answer for each question type; null: no answer. */
async function nameServer(replyTo: (type: string) => Reply | null): Promise<string> {
  const socket = createSocket("udp4");
  socket.on("message", (message, peer) => {
    const query = decode(message);
    const question = query.questions![0]!;
    const reply = replyTo(question.type);
    if (!reply) return;
    const header = { type: "response" as const, id: query.id!, flags: reply.rcode ?? 0 };
    socket.send(
      encode({ ...header, questions: [question], answers: [...(reply.answers ?? [])] }),
      peer.port,
      peer.address,
    );
  });
  await new Promise<void>((resolve) => socket.bind(0, "127.0.0.1", () => resolve()));
  opened.push(async () => await new Promise((resolve) => socket.close(() => resolve())));
  return `127.0.0.1:${(socket.address() as AddressInfo).port}`;
}

const a = (data: string, ttl = 300): Answer => ({ type: "A", name: "odd.example", ttl, data });
const aaaa = (data: string, ttl = 300): Answer => ({ type: "AAAA", name: "odd.example", ttl, data });

async function resolveOdd(replyTo: (type: string) => Reply | null, timeoutMs = 2000) {
  const server = await nameServer(replyTo);
  return await createNameResolver({ servers: [server], timeoutMs }).resolve("odd.example");
}

describe("a name", () => {
  it("has the address that the world's name server has, with its time to live", async () => {
    const resolver = createNameResolver({ servers: [world.address] });

    expect(await resolver.resolve("harbour.example")).toEqual({ addresses: ["2.0.16.5"], ttlSeconds });
    expect(await resolver.resolve("nobody.example")).toEqual({ failed: "the name does not exist" });
  });

  it("has its IPv4 addresses first, and the smallest time to live of all", async () => {
    const found = await resolveOdd((type) => ({
      answers: type === "A" ? [a("5.1.1.1", 900), a("5.1.1.2", 600)] : [aaaa("2a00:1::1", 120)],
    }));

    expect(found).toEqual({ addresses: ["5.1.1.1", "5.1.1.2", "2a00:1::1"], ttlSeconds: 120 });
  });

  it("may have IPv6 addresses alone", async () => {
    expect(await resolveOdd((type) => ({ answers: type === "A" ? [] : [aaaa("2a00:1::1")] }))).toEqual({
      addresses: ["2a00:1::1"],
      ttlSeconds: 300,
    });
  });

  it("is asked for again after 30 seconds at the earliest and a day at the latest", async () => {
    expect(await resolveOdd(() => ({ answers: [a("5.1.1.1", 0)] }))).toMatchObject({ ttlSeconds: 30 });
    expect(await resolveOdd(() => ({ answers: [a("5.1.1.1", 2 ** 31 - 1)] }))).toMatchObject({
      ttlSeconds: 86_400,
    });
  });

  it("keeps 32 addresses at most", async () => {
    const answers = Array.from({ length: 60 }, (_, last) => a(`5.1.1.${last}`));

    const found = await resolveOdd((type) => ({ answers: type === "A" ? answers : [] }), 5000);

    expect("addresses" in found && found.addresses).toHaveLength(32);
  });
});

describe("a name without an answer says why", () => {
  it("when it has no address", async () => {
    expect(await resolveOdd(() => ({}))).toEqual({ failed: "the name has no address" });
  });

  it("when the name servers fail, refuse, or do not answer in time", async () => {
    expect(await resolveOdd(() => ({ rcode: 2 }))).toEqual({ failed: "the name servers failed" });
    expect(await resolveOdd(() => ({ rcode: 5 }))).toEqual({ failed: "the name servers refused to answer" });
    expect(await resolveOdd(() => null, 50)).toEqual({
      failed: "the name servers did not answer in time",
    });
  });

  it("when one question had no address in its answer and the other no answer at all", async () => {
    expect(await resolveOdd((type) => (type === "A" ? {} : { rcode: 2 }))).toEqual({
      failed: "the name servers failed",
    });
  });

  it("when nobody listens at the name server's address", async () => {
    const server = await nameServer(() => null);
    await opened.pop()!();

    const found = await createNameResolver({ servers: [server], timeoutMs: 500 }).resolve("odd.example");

    expect(found).toEqual({ failed: "the configured name servers cannot be reached" });
  });

  it("when it is no name at all", async () => {
    const resolver = createNameResolver({ servers: [world.address] });

    for (const name of ["a..example", `${"a".repeat(64)}.example`, ""]) {
      expect(await resolver.resolve(name)).toEqual({ failed: expect.any(String) });
    }
  });
});

it("is not asked for a literal address, which resolves to itself", async () => {
  const resolver = createNameResolver({ servers: ["127.0.0.1:9"] });

  expect(await resolver.resolve("5.1.1.1")).toEqual({ addresses: ["5.1.1.1"], ttlSeconds: 86_400 });
  expect(await resolver.resolve("2a00:1::1")).toEqual({ addresses: ["2a00:1::1"], ttlSeconds: 86_400 });
});

it("counts as silent once five names got no answer since the last answer, even one that the name does not exist", async () => {
  const silent = createNameResolver({ servers: [await nameServer(() => null)], timeoutMs: 20 });
  const well = createNameResolver({ servers: [await nameServer(() => ({ rcode: 3 }))] });
  let asked = silent;
  const since = new Date("2026-01-01T00:00:00Z");
  const watched = new WatchedResolver({ resolve: async (host) => await asked.resolve(host) }, () => since);

  for (let at = 0; at < 9; at += 1) await watched.resolve("one.example");
  expect(watched.silent).toBeNull();
  await Promise.all(["a", "b", "c", "d", "192.0.2.1"].map((host) => watched.resolve(`${host}`)));
  expect(watched.silent).toEqual({ words: "the name servers did not answer in time", since });

  asked = well;
  await watched.resolve("gone.example");
  expect(watched.silent).toBeNull();
});

import { createSocket } from "node:dgram";
import { Resolver } from "node:dns/promises";
import { connect } from "node:net";
import { encode, streamDecode, streamEncode } from "dns-packet";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type RunningDns, replyTo, startDns, ttlSeconds } from "#ops/world/main";

let dns: RunningDns;
const resolver = new Resolver({ timeout: 2000, tries: 1 });

beforeAll(async () => {
  dns = await startDns((name) => (name === "quiet-harbour-0001.example" ? "2.0.16.5" : null));
  resolver.setServers([dns.address]);
});
afterAll(() => dns.close());

describe("the world's name server", () => {
  it("answers a site's address with its time to live, whatever the case", async () => {
    expect(await resolver.resolve4("quiet-harbour-0001.example", { ttl: true })).toEqual([
      { address: "2.0.16.5", ttl: ttlSeconds },
    ]);
    expect(await resolver.resolve4("Quiet-Harbour-0001.EXAMPLE")).toEqual(["2.0.16.5"]);
  });

  it("answers that it has no IPv6 address, which differs from an unknown name", async () => {
    await expect(resolver.resolve6("quiet-harbour-0001.example")).rejects.toMatchObject({ code: "ENODATA" });
    await expect(resolver.resolve4("nobody.example")).rejects.toMatchObject({ code: "ENOTFOUND" });
  });

  it("answers over TCP too, several questions on one connection", async () => {
    const port = Number(dns.address.split(":")[1]);
    const socket = connect(port, "127.0.0.1");
    const question = (id: number, name: string) =>
      streamEncode({ type: "query", id, questions: [{ type: "A", name }] });
    socket.write(Buffer.concat([question(1, "quiet-harbour-0001.example"), question(2, "nobody.test")]));

    const replies = await new Promise<Buffer>((resolve) => {
      let received = Buffer.alloc(0);
      socket.on("data", (chunk: Buffer) => {
        received = Buffer.concat([received, chunk]);
        const first = received.length >= 2 ? 2 + received.readUInt16BE(0) : Number.POSITIVE_INFINITY;
        if (received.length > first + 2 && received.length >= first + 2 + received.readUInt16BE(first))
          resolve(received);
      });
    });
    socket.destroy();

    const first = streamDecode(replies);
    const second = streamDecode(replies.subarray(2 + replies.readUInt16BE(0)));
    expect(first.answers).toMatchObject([{ type: "A", data: "2.0.16.5" }]);
    expect([second.id, (second as { rcode?: string }).rcode]).toEqual([2, "NXDOMAIN"]);
  });

  it("is silent on garbage and answers the next question", async () => {
    const port = Number(dns.address.split(":")[1]);
    const socket = createSocket("udp4");
    await new Promise((resolve) =>
      socket.send(Buffer.from("\x00\x01garbage\xff\xff"), port, "127.0.0.1", resolve),
    );
    socket.close();

    expect(await resolver.resolve4("quiet-harbour-0001.example")).toEqual(["2.0.16.5"]);
  });

  it("does not answer answers, and refuses other operations", () => {
    const response = encode({ type: "response", id: 3, questions: [{ type: "A", name: "a.test" }] });
    const update = encode({
      type: "query",
      id: 4,
      flags: 5 << 11,
      questions: [{ type: "A", name: "a.test" }],
    });

    expect(replyTo(response, () => "2.0.0.1")).toBeNull();
    expect(replyTo(update, () => "2.0.0.1")![3]! & 15).toBe(4);
  });
});

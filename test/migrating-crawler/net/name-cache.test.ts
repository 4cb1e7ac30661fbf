/** Names from a real DNS server on loopback: what is cached, shared and refused. */
import dgram from "node:dgram";
import { decode, encode } from "dns-packet";
import { describe, expect, it } from "vitest";
import { NameCache } from "#crawler/net/name-cache";
import { atEnd } from "../../support/at-end.ts";

/** Answers and counts A queries from the table. */
async function startDns(table: Record<string, { address: string; ttl: number }[]>) {
  const socket = dgram.createSocket("udp4");
  const asked: string[] = [];
  socket.on("message", (packet, from) => {
    const query = decode(packet);
    const question = query.questions![0]!;
    asked.push(`${question.type} ${question.name}`);
    const records = question.type === "A" ? (table[question.name] ?? []) : [];
    const answers = records.map(({ address, ttl }) => ({
      type: "A" as const,
      name: question.name,
      ttl,
      data: address,
    }));
    const known = question.name in table;
    socket.send(
      encode({ type: "response", id: query.id ?? 0, flags: known ? 0 : 3, questions: [question], answers }),
      from.port,
      from.address,
    );
  });
  await new Promise<void>((resolve) => socket.bind(0, "127.0.0.1", resolve));
  const names = new NameCache({ servers: [`127.0.0.1:${socket.address().port}`], ipv6: async () => false });
  atEnd(
    () => socket.close(),
    () => names.close(),
  );
  return { names, asked };
}

describe("a name", () => {
  it("is queried once during its time to live, also by simultaneous callers", async () => {
    const { names, asked } = await startDns({ "site.example": [{ address: "192.0.2.1", ttl: 300 }] });

    const together = await Promise.all(Array.from({ length: 20 }, () => names.resolve("site.example")));
    const later = await names.resolve("site.example");

    expect(asked).toEqual(["A site.example"]);
    expect(together[0]?.addresses).toEqual(["192.0.2.1"]);
    expect(together[0]?.dnsMs).toBeGreaterThan(0);
    expect(later.dnsMs).toBeNull();
  });

  it("that does not exist is the target's fault and is also cached", async () => {
    const { names, asked } = await startDns({});

    await expect(names.resolve("gone.example")).rejects.toMatchObject({
      code: "dns-no-such-name",
      blame: "target",
    });
    await expect(names.resolve("gone.example")).rejects.toMatchObject({ code: "dns-no-such-name" });

    expect(asked).toEqual(["A gone.example"]);
  });

  it("with many addresses gives sixteen", async () => {
    const many = Array.from({ length: 25 }, (_, index) => ({ address: `192.0.2.${index}`, ttl: 60 }));
    const { names } = await startDns({ "many.example": many });

    expect((await names.resolve("many.example")).addresses).toHaveLength(16);
  });

  it("that is an address needs no query", async () => {
    const { names, asked } = await startDns({});

    expect(await names.resolve("192.0.2.7")).toEqual({ addresses: ["192.0.2.7"], dnsMs: null });
    expect((await names.resolve("2001:DB8::1")).addresses).toEqual(["2001:db8::1"]);
    expect(asked).toEqual([]);
  });
});

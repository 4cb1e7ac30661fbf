/** The compressed stream, honest and hostile, with both inflaters. */
import { constants, deflateRawSync } from "node:zlib";
import { describe, expect, test } from "vitest";
import { ProtocolError } from "#core/errors";
import { seededRandom } from "#core/random";
import { briefly, MessageDeflater, type MessageInflater, NodeInflater } from "#protocol/deflate";
import { InflaterPool, loadZlibSync } from "#protocol/zlib-sync-inflater";
import { generatedResults } from "./generated-results.ts";

const zlibSync = await loadZlibSync();
if (!zlibSync)
  process.stderr.write("skipped: tests of the zlib-sync inflater: the optional package does not load\n");

const implementations: { name: string; absent: boolean; make: () => MessageInflater }[] = [
  { name: "node:zlib", absent: false, make: () => new NodeInflater() },
  {
    name: "zlib-sync",
    absent: !zlibSync,
    make: () => new InflaterPool(zlibSync, 64).take(new NodeInflater()),
  },
];

const limit = 1_000_000;

/** One message of a stream that the tests make by hand: without the tail of its flush. */
function flushed(text: string | Buffer): Buffer {
  return deflateRawSync(text, { finishFlush: constants.Z_SYNC_FLUSH }).subarray(0, -4);
}

for (const { name, absent, make } of implementations) {
  describe.skipIf(absent)(`inflating with ${name}`, () => {
    test.each([
      ["a crawler's", new MessageDeflater()],
      ["the coordinator's", new MessageDeflater(briefly)],
    ])(
      "%s messages come out as they went in, short and long, in the order of the calls",
      async (_whose, deflater) => {
        const inflater = make();
        const results = generatedResults({ count: 60, hosts: 3, seed: 1 });
        const texts = results.map((message) => JSON.stringify(message));
        const long = [randomText(200_000, 3), texts.join("").slice(0, 70_000)];
        const mixed = [...texts, long[0]!, "short", "", long[1]!, ...texts];
        const order: number[] = [];

        const frames = await Promise.all(
          mixed.map(async (text, at) => {
            const frame = await deflater.deflate(text);
            order.push(at);
            return frame;
          }),
        );

        expect(frames.map((frame) => inflater.inflate(frame, limit).toString())).toEqual(mixed);
        expect(order).toEqual([...mixed.keys()]);
      },
    );

    test("messages refer to earlier ones up to 32 KiB back", async () => {
      const deflater = new MessageDeflater();
      const inflater = make();
      const noise = randomText(30_000, 2);

      const first = await deflater.deflate(noise);
      const second = await deflater.deflate(noise);
      inflater.inflate(first, limit);

      expect(second.length).toBeLessThan(first.length / 50);
      expect(inflater.inflate(second, limit).toString()).toBe(noise);
    });

    test("empty, one-byte and very long messages pass", async () => {
      const deflater = new MessageDeflater();
      const inflater = make();
      const texts = ["", "x", randomText(900_000, 3), "", "é".repeat(70_000), "y"];

      for (const text of texts) {
        expect(inflater.inflate(await deflater.deflate(text), limit).toString()).toBe(text);
      }
    });

    test("a message of exactly the limit passes, one byte more does not", async () => {
      const exact = await new MessageDeflater().deflate("z".repeat(5000));
      const over = await new MessageDeflater().deflate("z".repeat(5001));

      expect(make().inflate(exact, 5000).length).toBe(5000);
      expect(() => make().inflate(over, 5000)).toThrow(
        new ProtocolError("a message is longer than 5000 bytes when inflated"),
      );
    });

    test("a bomb is refused after little more than the limit was inflated", () => {
      const bomb = flushed(Buffer.alloc(100_000_000));
      const before = process.memoryUsage().rss;

      expect(() => make().inflate(bomb, 65_536)).toThrow(/longer than 65536 bytes/);
      expect(process.memoryUsage().rss - before).toBeLessThan(30_000_000);
    });

    test("corrupt bytes in the middle of a conversation are refused", async () => {
      const deflater = new MessageDeflater();
      const inflater = make();
      const [first, second] = await Promise.all([
        deflater.deflate("a first message"),
        deflater.deflate("another"),
      ]);
      inflater.inflate(first, limit);
      second.fill(0xff);

      expect(() => inflater.inflate(second, limit)).toThrow(ProtocolError);
    });

    test("a stream that its sender ended is refused, whatever follows", () => {
      const ended = deflateRawSync("the last words");
      const endedAndMore = Buffer.concat([ended, Buffer.from("more")]);

      expect(() => make().inflate(ended, limit)).toThrow(new ProtocolError("the deflate stream has ended"));
      expect(() => make().inflate(endedAndMore, limit)).toThrow(
        new ProtocolError("the deflate stream has ended"),
      );
    });

    test("zlib and gzip wrappers are no raw stream", () => {
      const withHeader = Buffer.from([0x1f, 0x8b, 0x08, 0, 0, 0, 0, 0, 0, 3, 0x4b, 4, 0]);

      expect(() => make().inflate(withHeader, limit)).toThrow(ProtocolError);
    });

    test("whatever random bytes do, they stay within the limit and throw nothing but ProtocolError", () => {
      const random = seededRandom(4);
      for (let round = 0; round < (name === "zlib-sync" ? 60 : 300); round += 1) {
        const noise = Buffer.from(Array.from({ length: Math.floor(random() * 3000) }, () => random() * 256));
        const inflater = make();
        try {
          expect(inflater.inflate(noise, 10_000).length).toBeLessThanOrEqual(10_000);
          inflater.inflate(noise, 10_000);
        } catch (error) {
          expect(error).toBeInstanceOf(ProtocolError);
        }
      }
    });
  });
}

describe.skipIf(!zlibSync)("the pool of zlib-sync instances", () => {
  test("an inflater continues where the one for strangers stopped", async () => {
    const deflater = new MessageDeflater();
    const stranger = new NodeInflater();
    const hello = randomText(20_000, 5);
    stranger.inflate(await deflater.deflate(hello), limit);

    const known = new InflaterPool(zlibSync).take(stranger);

    expect(known.inflate(await deflater.deflate(hello), limit).toString()).toBe(hello);
  });

  test("an instance is used again, and shows nothing of the crawler before", async () => {
    const pool = new InflaterPool(zlibSync, 1);
    const secret = randomText(10_000, 6);
    const first = pool.take(new NodeInflater());
    first.inflate(await new MessageDeflater().deflate(secret), limit);
    first.release();
    const second = pool.take(new NodeInflater());

    // A stream primed with the secret refers to it instead of sending it.
    const thief = deflateRawSync(secret, {
      dictionary: Buffer.from(secret),
      finishFlush: constants.Z_SYNC_FLUSH,
    });
    const stolen = second.inflate(thief.subarray(0, -4), limit).toString();

    expect(pool.counts()).toEqual({ made: 1, idle: 0, broken: 0 });
    expect(stolen).not.toContain(secret.slice(0, 300));
  });

  test("an instance left in the middle of a block is not used again", () => {
    const pool = new InflaterPool(zlibSync, 5);
    const inflater = pool.take(new NodeInflater());
    // A stored block of 100 bytes, of which 50 (with the tail) have come.
    const half = Buffer.concat([Buffer.from([0, 100, 0, 155, 255]), Buffer.alloc(46, 65)]);
    inflater.inflate(half, limit);

    inflater.release();

    expect(pool.counts()).toEqual({ made: 1, idle: 0, broken: 1 });
  });

  test("when all instances are out, node:zlib takes over", async () => {
    const pool = new InflaterPool(zlibSync, 1);
    pool.take(new NodeInflater());
    const stranger = new NodeInflater();

    expect(pool.take(stranger)).toBe(stranger);
  });
});

test("without the native package the pool hands back what it was given", () => {
  const stranger = new NodeInflater();

  expect(new InflaterPool(null).take(stranger)).toBe(stranger);
});

function randomText(length: number, seed: number): string {
  const random = seededRandom(seed);
  return Array.from({ length }, () => String.fromCharCode(33 + Math.floor(random() * 90))).join("");
}

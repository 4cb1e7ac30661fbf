/** Packed messages are restored exactly, take few bytes, and damage nothing when malformed. */
import { describe, expect, test } from "vitest";
import { ProtocolError } from "#core/errors";
import { seededRandom } from "#core/random";
import { decodePackedMessage } from "#protocol/codec";
import type { CrawlerMessage } from "#protocol/messages";
import { FrameReader, FrameWriter, joinFrame, packResult, splitFrame } from "#protocol/packed/message-frames";
import { parseStorable } from "#protocol/packed/unpack-message";
import { helloOf } from "../../gateway/gateway-on-loopback.ts";
import { generatedResults } from "../generated-results.ts";
import { randomResults } from "../random-messages.ts";

const asStored = <Value>(value: Value) => parseStorable(JSON.stringify(value)) as Value;
const bytesOf = (parts: { numbers: Buffer; text: string }) => ({ ...parts, text: Buffer.from(parts.text) });

describe("what passes", () => {
  test("results of a crawl of few hosts come back equal, in the order of sending", () => {
    const messages = generatedResults({ count: 60, hosts: 3, seed: 1 });
    const [writer, reader] = [new FrameWriter(), new FrameReader()];

    const frames = messages.map(({ sequence, leaseId, result }) =>
      writer.result(sequence, packResult(leaseId, result)),
    );

    expect(frames.map((frame) => decodePackedMessage(bytesOf(frame), reader))).toEqual(messages);
  });

  test.each([1, 2, 3, 4])(
    "odd texts, URLs and lists come back exactly, as they can be stored (seed %i)",
    (seed) => {
      const [writer, reader] = [new FrameWriter(), new FrameReader()];
      const results = randomResults(60, seed);

      const back = results.map((result, at) => {
        const frame = writer.result(at + 1, packResult("9999999999999999999", result));
        return decodePackedMessage(bytesOf(frame), reader);
      });

      expect(back).toEqual(
        results.map((result, at) => ({
          type: "crawler:result",
          sequence: at + 1,
          leaseId: "9999999999999999999",
          result: asStored(result),
        })),
      );
    },
  );

  test("every other message comes back equal", () => {
    const messages: CrawlerMessage[] = [
      helloOf("amber", { heldLeases: ["1", "22"], publicAddress: "2001:db8::1" }),
      {
        type: "crawler:heartbeat",
        openHosts: 3,
        spooledResults: 0,
        pages: 12,
        fetchedBytes: 2 ** 45,
        shippedBytes: 17,
        holdingBack: ["the day's limit is reached", ""],
      },
      { type: "crawler:ready", freeHosts: 7 },
      {
        type: "crawler:probe-report",
        requestId: 4,
        outcome: { type: "measured", method: "head", rttMs: 12.3456, tries: 3 },
      },
      {
        type: "crawler:peer-rtts",
        peers: [
          { crawlerId: 1, outcome: { type: "measured", method: "icmp", rttMs: 0.1, tries: 1 } },
          { crawlerId: 2, outcome: { type: "timed-out", method: "connect", reason: "two\nlines" } },
        ],
      },
      { type: "crawler:lease-end", leaseId: "12", reason: "the spool is full" },
      { type: "crawler:goodbye", reason: "\ud83d", forGood: true },
    ];
    const [writer, reader] = [new FrameWriter(), new FrameReader()];

    const back = messages.map((message) => decodePackedMessage(bytesOf(writer.message(message)), reader));

    expect(back).toEqual(asStored(messages));
  });

  test("lexemes of a crawler before version 7 are skipped with their places and words", () => {
    const numbers = Buffer.from([0, 0, 0xac, 2, 3, 1, 2, 3, 7]);
    const text = "\n{lexemes:v,words:i,excerpt:s}\nship sail\nA ship";

    expect(new FrameReader().message({ numbers, text })).toEqual({
      lexemes: "",
      words: 7,
      excerpt: "A ship",
    });
  });

  test("a frame is split where it was joined", () => {
    const [numbers, deflated] = [Buffer.alloc(300, 7), Buffer.from("deflated")];

    expect(splitFrame(joinFrame(numbers, deflated))).toEqual({ numbers, deflated });
    expect(() => splitFrame(Buffer.from([5, 1]))).toThrow(ProtocolError);
    expect(() => splitFrame(Buffer.alloc(0))).toThrow(ProtocolError);
  });
});

describe("what is refused", () => {
  test("any change in a frame gives a message or a ProtocolError", () => {
    const random = seededRandom(5);
    const honest = generatedResults({ count: 4, hosts: 1, seed: 6 });
    let refused = 0;
    for (let round = 0; round < 400; round++) {
      const [writer, reader] = [new FrameWriter(), new FrameReader()];
      for (const { sequence, leaseId, result } of honest) {
        const frame = bytesOf(writer.result(sequence, packResult(leaseId, result)));
        const part = random() < 0.5 ? frame.numbers : frame.text.subarray(0, 600);
        for (let count = 0; count < 3; count++) part[Math.floor(random() * part.length)] = random() * 256;
        try {
          decodePackedMessage(frame, reader);
        } catch (error) {
          expect(error).toBeInstanceOf(ProtocolError);
          refused++;
        }
      }
    }

    expect(refused).toBeGreaterThan(400);
  });

  const frames: [string, number[], string, RegExp][] = [
    ["no lines at all", [0, 0], "", /too few lines|no valid origin/],
    ["a shape without an end", [0, 0], "\n{a:{b:s", /makes no sense/],
    ["a shape that is nested without end", [0, 0], `\n${"{a:".repeat(500)}`, /nested too deeply/],
    ["a shape that is too long", [0, 0], `\n{${"a:n,".repeat(5000)}b:n}`, /too long/],
    ["a list of what takes no line", [0, 0, 0xff, 0xff, 0xff, 0x7f], "\n{a:[n]}", /makes no sense/],
    ["a list that is longer than its lines", [0, 0, 0xff, 0xff, 0xff, 0x7f], "\n{a:[s]}\nx", /fewer lines/],
    ["lines that nobody asked for", [0, 0], '\n{type:"x"}\nmore', /more in it/],
    ["numbers that nobody asked for", [0, 0, 1], '\n{type:"x"}', /more in it/],
    ["a number without an end", [0, 0, 0xff, 0xff], "\n{a:i}", /end too early/],
    ["a number beyond 2^53", [0, 0, ...Array(9).fill(0xff), 1], "\n{a:i}", /too large/],
    ["an origin that is none", [0, 0], "javascript:alert(1)\n{a:n}", /no valid origin/],
    ["links that were never sent", [0, 3, 0, 0, 2, 5], "https://a.example\n{a:L}", /refer to none/],
    ["more links than a list has", [0, 0xff, 0xff, 0xff, 0x7f, 0], "https://a.example\n{a:L}", /links/],
    ["a form that does not exist", [0, 0], "\n{a:Z}", /makes no sense/],
    ["a key that is none", [0, 0], "\n{__proto__:n}", /makes no sense/],
    ["a line that is not JSON", [0, 0], "\n{a:j}\n{", /not JSON/],
    ["too many lines", [0, 0], "\n".repeat(90_000), /too many lines/],
    [
      "a time beyond all calendars",
      [0, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x0f],
      "\n{a:d}",
      /out of range/,
    ],
    ["lexemes without their places", [0, 0, 2, 9, 1], "\n{a:v}\nx", /too early/],
  ];
  test.each(frames)("%s", (_what, numbers, text, words) => {
    const received = { numbers: Buffer.from(numbers), text: Buffer.from(text) };

    expect(() => decodePackedMessage(received, new FrameReader())).toThrow(ProtocolError);
    expect(() => decodePackedMessage(received, new FrameReader())).toThrow(words);
  });

  test("an unreadable result is lost alone: the next one's links refer to earlier ones", () => {
    const writer = new FrameWriter();
    const reader = new FrameReader();
    const [one, two] = generatedResults({ count: 2, hosts: 1, seed: 5 });
    const unreadable = { text: "\n{a:Z}", numbers: Buffer.alloc(0), links: ["/1", "/2"] };
    const read = [
      writer.result(1, packResult("7", one!.result)),
      writer.result(2, unreadable),
      writer.result(3, packResult("7", two!.result)),
    ].map((frame) => decodePackedMessage(bytesOf(frame), reader));

    expect(read).toMatchObject([
      { sequence: 1, leaseId: "7", result: one!.result },
      {
        sequence: 2,
        leaseId: "0",
        result: { outcome: { code: "bad-result", reason: expect.stringContaining("makes no sense") } },
      },
      { sequence: 3, leaseId: "7", result: two!.result },
    ]);
  });

  test("a message that matches its shape but not the schema", () => {
    const frame = new FrameWriter().message({ type: "crawler:ready", freeHosts: 1e9 });

    expect(() => decodePackedMessage(bytesOf(frame), new FrameReader())).toThrow(
      /^crawler:ready: freeHosts: /,
    );
  });
});

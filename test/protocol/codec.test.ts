/** Text to messages and back: what passes, what is dropped, what is refused and in which words. */
import { describe, expect, test } from "vitest";
import { ProtocolError } from "#core/errors";
import {
  decodeCoordinatorMessage,
  decodeCrawlerMessage,
  decodeHello,
  decodePackedMessage,
  encodeMessage,
  maxMessageBytes,
} from "#protocol/codec";
import {
  agreeOnVersion,
  type CoordinatorMessage,
  inVersion,
  isKnownTo,
} from "#protocol/coordinator-messages";
import type { CrawlerMessage } from "#protocol/messages";
import { FrameReader, FrameWriter } from "#protocol/packed/message-frames";
import { helloOf } from "../gateway/gateway-on-loopback.ts";
import { generatedResults } from "./generated-results.ts";

describe("what passes", () => {
  test("every message of a generated crawl comes back equal", () => {
    const messages: CrawlerMessage[] = [
      helloOf("amber"),
      ...generatedResults({ count: 20, hosts: 3, seed: 1 }),
    ];

    expect(messages.map((message) => decodeCrawlerMessage(encodeMessage(message)))).toEqual(messages);
  });

  test("texts come in as Postgres and UTF-8 hold them, in JSON and packed", () => {
    const [sent] = generatedResults({ count: 20, hosts: 3, seed: 1 }).filter(
      ({ result }) => result.page !== null,
    );
    const titled = (title: string): CrawlerMessage => ({
      ...sent!,
      result: { ...sent!.result, page: { ...sent!.result.page!, title } },
    });
    const [writer, reader] = [new FrameWriter(), new FrameReader()];
    for (const [title, clean] of [
      ["a\0b\ud83d", "a\ufffdb\ufffd"],
      ["a\0b", "a\ufffdb"],
      ["\\u0000", "\\u0000"],
      ["😀", "😀"],
    ] as const) {
      const { numbers, text } = writer.message(titled(title));
      const packed = { numbers, text: Buffer.from(text) };

      expect(decodeCrawlerMessage(encodeMessage(titled(title)))).toEqual(titled(clean));
      expect(decodePackedMessage(packed, reader)).toEqual(titled(clean));
    }
  });

  test("URLs come in without user and password, from whatever release of the crawler", () => {
    const sent = generatedResults({ count: 20, hosts: 3, seed: 1 }).find(
      ({ result }) => result.page !== null && result.page.links.length > 0,
    )!;
    const received = (result: object) => {
      const message = decodeCrawlerMessage(encodeMessage({ ...sent, result } as CrawlerMessage));
      return (message as typeof sent).result;
    };
    const page = {
      ...sent.result.page!,
      canonicalUrl: "https://user:secret@a.example/",
      feeds: ["http://secret@a.example/"],
      links: sent.result.page!.links.map((link) => ({
        ...link,
        url: "https://user:se@cret@a.example/@b?c@d",
      })),
    };
    const outcome = { type: "redirected", status: 301, location: "https://:secret@a.example" };

    const read = received({ ...sent.result, page }).page!;
    const moved = received({ ...sent.result, outcome, page: null });

    expect(read).toMatchObject({ canonicalUrl: "https://a.example/", feeds: ["http://a.example/"] });
    expect(read.links[0]?.url).toBe("https://a.example/@b?c@d");
    expect(moved.outcome).toMatchObject({ location: "https://a.example" });
  });

  test("the key set that requests name is a plain URL, and fits between quotation marks in a header", () => {
    const welcome = {
      ...{ type: "coordinator:welcome", protocolVersion: 3, crawlerId: 1, acknowledgedSequence: 0 },
      ...{ resultCredits: 1, heartbeatSeconds: 1, userAgent: "Nearcrawl/0.1" },
    };
    const taken = (signatureAgent: string) => {
      try {
        return decodeCoordinatorMessage(JSON.stringify({ ...welcome, signatureAgent })) !== null;
      } catch {
        return false;
      }
    };

    const agents = [
      "https://crawl.example.org/.well-known/http-message-signatures-directory",
      "https://crawl.example.org",
      "http://127.0.0.1:7411",
      "https://crawl.example.org/\r\nx: y",
      'https://crawl.example.org/"',
      "https://crawl.example.org/a b",
      "https://user:secret@crawl.example.org/",
      "https://crawl.example.org/?a",
      "https://crawl.example.org/#a",
      "ftp://crawl.example.org/",
      "https://Crawl.example.org/",
      "https://crawl.example.org/ü",
      `https://crawl.example.org/${"x".repeat(200)}`,
    ];
    expect(agents.filter(taken)).toEqual(agents.slice(0, 3));
  });

  test("bytes are read as UTF-8", () => {
    const goodbye = { type: "crawler:goodbye", reason: "até já 👋" } as const;

    expect(decodeCrawlerMessage(Buffer.from(encodeMessage(goodbye)))).toEqual(goodbye);
  });

  test("fields that a newer peer adds are dropped, at any depth", () => {
    const text = JSON.stringify({
      type: "coordinator:peers",
      peers: [{ crawlerId: 1, address: "192.0.2.1", port: 80, mood: "good" }],
      colour: "blue",
      __proto__: { polluted: true },
    });

    expect(decodeCoordinatorMessage(text)).toEqual({
      type: "coordinator:peers",
      peers: [{ crawlerId: 1, address: "192.0.2.1", port: 80 }],
    });
  });

  test("the longest result that the schema allows can be sent", () => {
    const [message] = generatedResults({ count: 1, hosts: 1, seed: 2 });
    if (!message?.result.page) throw new Error("a page was asked for");
    const link = { url: `https://e.example/${"p".repeat(2030)}`, anchor: "語".repeat(200), nofollow: false };
    const page = { ...message.result.page, lexemes: "語".repeat(900_000), links: Array(2000).fill(link) };
    const longest = { ...message, result: { ...message.result, page } };

    const text = encodeMessage(longest);

    expect(Buffer.byteLength(text)).toBeGreaterThan(0.95 * maxMessageBytes);
    expect(decodeCrawlerMessage(text)).toEqual(longest);
  });
});

describe("what is refused", () => {
  const faults: [string, string, RegExp][] = [
    ["an unknown type", '{"type":"crawler:sing"}', /^crawler:sing: type: /],
    [
      "a coordinator's message from a crawler",
      '{"type":"coordinator:acknowledge","sequence":1}',
      /^coordinator:ack.*: type/,
    ],
    ["a missing field", '{"type":"crawler:ready"}', /^crawler:ready: freeHosts: /],
    ["a number out of range", '{"type":"crawler:ready","freeHosts":1e9}', /^crawler:ready: freeHosts: /],
    ["several faults at once", '{"type":"crawler:goodbye"}', /^crawler:goodbye: reason: /],
    ["null", "null", /^a message of no known type: /],
    ["a type that cannot be repeated", '{"type":"<script>"}', /^a message of no known type: type: /],
    ["no JSON", "hello", /^a message of 5 characters is not JSON$/],
  ];
  for (const [what, text, words] of faults) {
    test(what, () => {
      expect(() => decodeCrawlerMessage(text)).toThrow(ProtocolError);
      expect(() => decodeCrawlerMessage(text)).toThrow(words);
    });
  }

  test("a deep field of a result, by its path, costs that result alone", () => {
    const { sequence, leaseId, result } = JSON.parse(deepFault());
    const reason = expect.stringMatching(/^result\.page\.links\.1\.url: /);

    expect(decodeCrawlerMessage(deepFault())).toMatchObject({
      ...{ type: "crawler:result", sequence, leaseId },
      result: { url: result.url, outcome: { type: "failed", code: "bad-result", reason }, page: null },
    });
  });

  test("no error repeats what it was given, which may be a key", () => {
    const secret = "hunter2-hunter2-hunter2";
    const texts = [
      `{"type":"crawler:hello","key":"${secret}`,
      `"${secret}"`,
      `{"type":"${secret}","${secret}":1}`,
    ];
    texts.push(JSON.stringify({ ...helloOf("amber"), name: secret.toUpperCase(), key: secret.repeat(20) }));
    for (const text of texts) {
      const error = caught(() => decodeCrawlerMessage(text));

      expect(error).toBeInstanceOf(ProtocolError);
      expect(`${String(error)} ${String((error as Error).cause)}`.toLowerCase()).not.toContain(secret);
    }
  });

  test("the words of an error stay short whatever the message holds", () => {
    const text = JSON.stringify({ type: "crawler:peer-rtts", peers: Array(5000).fill({ crawlerId: "x" }) });

    expect(String(caught(() => decodeCrawlerMessage(text))).length).toBeLessThan(400);
  });

  test("a message that the other side would not take is not sent", () => {
    const leases = Array(1000).fill({ reason: "語".repeat(3000) });
    const message = {
      type: "coordinator:tasks",
      leases,
      askAgainMs: 0,
      reason: "",
    } as unknown as CoordinatorMessage;

    expect(() => encodeMessage(message)).toThrow(
      /^coordinator:tasks: \d+ bytes are over the limit of 8388608$/,
    );
  });
});

describe("the first message", () => {
  test("a hello is taken with the version that both know", () => {
    const decoded = decodeHello(encodeMessage(helloOf("amber", { protocolVersions: [9, 1] })));

    expect(decoded).toEqual({
      type: "hello",
      version: 1,
      hello: helloOf("amber", { protocolVersions: [9, 1] }),
    });
  });

  test("other versions are told so before the rest of the hello is looked at", () => {
    const text = JSON.stringify({ type: "crawler:hello", protocolVersions: [99], name: 17 });

    expect(decodeHello(text)).toEqual({
      type: "wrong-version",
      reason: "the crawler speaks protocol 99, the coordinator 6, 5, 4, 3, 2, 1",
    });
  });

  test("anything else is refused", () => {
    expect(() => decodeHello('{"type":"crawler:ready","freeHosts":1}')).toThrow(
      "the first message must be crawler:hello",
    );
    expect(() => decodeHello('{"type":"crawler:hello"}')).toThrow(/^crawler:hello: protocolVersions: /);
  });
});

test("of several versions in common the newest is agreed on, of none null", () => {
  expect(agreeOnVersion([9, 1])).toBe(1);
  expect(agreeOnVersion([1, 2, 3, 4, 5, 6, 7])).toBe(6);
  expect(agreeOnVersion([7, 9])).toBeNull();
  expect(agreeOnVersion([])).toBeNull();
});

function caught(work: () => unknown): unknown {
  try {
    work();
  } catch (error) {
    return error;
  }
  return null;
}

function deepFault(): string {
  const [message] = generatedResults({ count: 1, hosts: 1, seed: 3 });
  const links = [
    { url: "https://e.example/", anchor: "", nofollow: false },
    { url: "", anchor: "", nofollow: false },
  ];
  return JSON.stringify({
    ...message,
    result: { ...message?.result, page: { ...message?.result.page, links } },
  });
}

test("the pace of work is read as it was sent, and is said to nobody before version 4", () => {
  const pace = { type: "coordinator:work-pace", pace: "slow-down", due: 3, reason: "3 host slices" } as const;

  expect(decodeCoordinatorMessage(encodeMessage(pace))).toEqual(pace);
  expect([4, 3, 2, 1].map((version) => isKnownTo(version, pace))).toEqual([true, false, false, false]);
  expect([5, 4].map((version) => isKnownTo(version, { type: "coordinator:wake" }))).toEqual([true, false]);
  const busy = { code: "busy", reason: "many wait", retry: true } as const;
  expect([5, 4].map((version) => inVersion(version, busy).code)).toEqual(["busy", "internal-error"]);
  expect([4, 3, 2].map((version) => isKnownTo(version, { type: "coordinator:move" }))).toEqual([
    true,
    true,
    false,
  ]);
  for (const wrong of [{ pace: "faster" }, { due: -1 }, { due: 1.5 }, { reason: "r".repeat(501) }]) {
    expect(() => decodeCoordinatorMessage(JSON.stringify({ ...pace, ...wrong }))).toThrow(
      /^coordinator:work-pace: /,
    );
  }
});

test("that the fleet's coordinators have changed is said to nobody before version 5", () => {
  const addresses = { type: "coordinator:addresses", urls: ["wss://second.example/crawler"] } as const;

  expect(decodeCoordinatorMessage(encodeMessage({ ...addresses, urls: [...addresses.urls] }))).toEqual(
    addresses,
  );
  expect([5, 4, 3].map((version) => isKnownTo(version, addresses))).toEqual([true, false, false]);
});

/** Encoding and decoding messages: what passes, what is dropped, and the words of refusals. */
import { describe, expect, test } from "vitest";
import { ProtocolError } from "#core/errors";
import {
  decodeCoordinatorMessage,
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
import { maxTextCharacters } from "#protocol/result";
import { helloOf } from "../gateway/gateway-on-loopback.ts";
import { generatedResults } from "./generated-results.ts";
import { packedJson } from "./packed-json.ts";

/** A crawler's message as the coordinator decodes it. */
const decoded = (message: object) => decodeJson(JSON.stringify(message));
const decodeJson = (json: string) => decodePackedMessage(packedJson(json), new FrameReader());

describe("what passes", () => {
  test("texts are decoded into what Postgres and UTF-8 can hold", () => {
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

      expect(decoded(titled(title))).toEqual(titled(clean));
      expect(decodePackedMessage(packed, reader)).toEqual(titled(clean));
    }
  });

  test("URLs are decoded without user and password, from every release of the crawler", () => {
    const sent = generatedResults({ count: 20, hosts: 3, seed: 1 }).find(
      ({ result }) => result.page !== null && result.page.links.length > 0,
    )!;
    const received = (result: object) => {
      return (decoded({ ...sent, result }) as typeof sent).result;
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

  test("a page of a crawler before version 7 has its excerpt as its text", () => {
    const [sent] = generatedResults({ count: 1, hosts: 1, seed: 2 });
    const { text, ...page } = sent!.result.page!;
    const withPage = (page: object | null) => ({ ...sent!, result: { ...sent!.result, page } });
    const earlier = { lexemes: "'ship':1A", excerpt: "Ships sail" };

    expect(decoded(withPage({ ...page, ...earlier }))).toEqual(withPage({ ...page, text: "Ships sail" }));
    expect(decoded(withPage({ ...page, ...earlier, text }))).toEqual(withPage({ ...page, text }));
    expect(decoded(withPage(page))).toMatchObject({ result: { outcome: { code: "bad-result" } } });
  });

  test("the longest result that the schema allows can be sent", () => {
    const [message] = generatedResults({ count: 1, hosts: 1, seed: 2 });
    if (!message?.result.page) throw new Error("a page was asked for");
    const link = { url: `https://e.example/${"p".repeat(2030)}`, anchor: "語".repeat(200), nofollow: false };
    const page = {
      ...message.result.page,
      text: "語".repeat(maxTextCharacters),
      links: Array(2000).fill(link),
    };
    const longest = { ...message, result: { ...message.result, page } };

    expect(Buffer.byteLength(encodeMessage(longest))).toBeGreaterThan(0.8 * maxMessageBytes);
    expect(decoded(longest)).toEqual(longest);
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
    ["no JSON", "hello", /not JSON$/],
  ];
  test.each(faults)("%s", (_what, text, words) => {
    expect(() => decodeJson(text)).toThrow(ProtocolError);
    expect(() => decodeJson(text)).toThrow(words);
  });

  test("a deep field of a result, by its path, costs that result alone", () => {
    const { sequence, leaseId, result } = JSON.parse(deepFault());
    const reason = expect.stringMatching(/^result\.page\.links\.1\.url: /);

    expect(decodeJson(deepFault())).toMatchObject({
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
      for (const decode of [decodeJson, decodeHello]) {
        const error = caught(() => decode(text));

        expect(error).toBeInstanceOf(ProtocolError);
        expect(`${String(error)} ${String((error as Error).cause)}`.toLowerCase()).not.toContain(secret);
      }
    }
  });

  test("the text of an error stays short whatever the message holds", () => {
    const many = { type: "crawler:peer-rtts", peers: Array(5000).fill({ crawlerId: "x" }) };

    expect(String(caught(() => decoded(many))).length).toBeLessThan(400);
  });

  test("a message that the other side would refuse is not sent", () => {
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
  test("a hello is accepted with the version that both know", () => {
    const hello = helloOf("amber", { protocolVersions: [9, 4] });

    expect(decodeHello(encodeMessage(hello))).toEqual({ type: "hello", version: 4, hello });
  });

  test.each([
    [[3, 2, 1], "crawler"],
    [[5], "crawler"],
    [[99], "coordinator"],
  ])("other versions (%j) are refused before the rest of the hello is checked", (offered, behind) => {
    const text = JSON.stringify({ type: "crawler:hello", protocolVersions: offered, name: 17 });

    expect(decodeHello(text)).toEqual({
      type: "wrong-version",
      reason: `the crawler speaks protocol ${offered.join(", ")}, the coordinator 7, 6, 4: update the ${behind}`,
    });
  });

  test("anything else is refused", () => {
    expect(() => decodeHello('{"type":"crawler:ready","freeHosts":1}')).toThrow(
      "the first message must be crawler:hello",
    );
    expect(() => decodeHello('{"type":"crawler:hello"}')).toThrow(/^crawler:hello: protocolVersions: /);
  });
});

test("the newest common version is chosen, and null without one", () => {
  expect(agreeOnVersion([9, 4])).toBe(4);
  expect(agreeOnVersion([1, 2, 3, 4, 5, 6, 7, 8])).toBe(7);
  expect(agreeOnVersion([8, 5, 3])).toBeNull();
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

test("what crawlers of release 0.2.0 do not know is not sent to them, or in their terms", () => {
  const known = (version: number) =>
    (["wake", "addresses", "stop-parts", "work-pace", "move", "key"] as const).filter((what) =>
      isKnownTo(version, { type: `coordinator:${what}` }),
    );
  const busy = { code: "busy", reason: "many wait", retry: true } as const;

  expect(known(4)).toEqual(["work-pace", "move", "key"]);
  expect(known(6)).toHaveLength(6);
  expect([6, 4].map((version) => inVersion(version, busy).code)).toEqual(["busy", "internal-error"]);
});

test("the pace of work, and where the coordinators are, are read as they were sent", () => {
  const pace = { type: "coordinator:work-pace", pace: "slow-down", due: 3, reason: "3 host slices" } as const;
  const addresses: CoordinatorMessage = {
    type: "coordinator:addresses",
    urls: ["wss://second.example/crawler"],
  };

  for (const message of [pace, addresses])
    expect(decodeCoordinatorMessage(encodeMessage(message))).toEqual(message);
  for (const wrong of [{ pace: "faster" }, { due: -1 }, { due: 1.5 }, { reason: "r".repeat(501) }]) {
    expect(() => decodeCoordinatorMessage(JSON.stringify({ ...pace, ...wrong }))).toThrow(
      /^coordinator:work-pace: /,
    );
  }
});

/**
 * Every message of both directions, by the grammar of its schema: whole ones at live ends (a coordinator with its
 * database, a crawler), and soiled, cut and broken ones at the decoders. None may lead to an internal error. How many is
 * said by NEARCRAWL_FUZZ_CASES (1,000 where nothing is said), from where by NEARCRAWL_FUZZ_SEED.
 */
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, afterEach, beforeAll, expect, it, vi } from "vitest";
import { ProtocolError } from "#core/errors";
import { asCrawlerId } from "#core/ids";
import { seededRandom } from "#core/random";
import { startCrawler } from "#crawler/main";
import { decodeCoordinatorMessage, decodeCrawlerMessage, decodeHello } from "#protocol/codec";
import { type CoordinatorMessage, coordinatorMessage } from "#protocol/coordinator-messages";
import { crawlerHello, crawlerMessage } from "#protocol/messages";
import { FrameWriter, joinFrame } from "#protocol/packed/message-frames";
import type { Came } from "../gateway/crawler-folder.ts";
import { startGateway } from "../gateway/gateway-on-loopback.ts";
import { type JoiningWorld, newJoiningWorld } from "../gateway/joining-world.ts";
import type { RawCrawler } from "../gateway/raw-crawler.ts";
import { testConfig } from "../migrating-crawler/support/test-config.ts";
import { hostileBytes, pick } from "./mutate.ts";
import { drawValue } from "./schema-values.ts";

const cases = Number(process.env.NEARCRAWL_FUZZ_CASES ?? 1000);
const firstSeed = Number(process.env.NEARCRAWL_FUZZ_SEED ?? 1);
const longMs = 60_000 + cases * 20;

let world: JoiningWorld;
beforeAll(async () => {
  world = await newJoiningWorld();
});
afterAll(async () => await world?.close());
const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

it(`of ${cases * 5} texts, whole, soiled, cut and broken, each is read or refused as what it is`, {
  timeout: longMs,
}, () => {
  const ends = [
    { schema: crawlerMessage, decode: decodeCrawlerMessage },
    { schema: crawlerHello, decode: decodeHello },
    { schema: coordinatorMessage, decode: decodeCoordinatorMessage },
  ];
  const refused = { read: 0, refused: 0 };
  for (let seed = firstSeed; seed < firstSeed + cases * 5; seed++) {
    const random = seededRandom(seed);
    const { schema, decode } = pick(random, ends);
    const text = JSON.stringify(drawValue(schema, random, pick(random, [0, 0.01, 0.1])));
    const bytes = pick(random, [
      () => Buffer.from(text),
      () => hostileBytes(random, text),
      () => Buffer.from(text.slice(0, Math.floor(random() * text.length))),
      () =>
        Buffer.from(
          text.replace(/[{}[\]",:]/g, (mark) =>
            random() < 0.01 ? pick(random, ["{", "[", '"', ",", "\\u0000", "1e999"]) : mark,
          ),
        ),
    ])();
    try {
      decode(bytes);
      refused.read += 1;
    } catch (error) {
      if (!(error instanceof ProtocolError))
        throw new Error(`seed ${seed}: ${String(error)}`, { cause: error });
      refused.refused += 1;
    }
  }

  expect(refused.read).toBeGreaterThan(cases / 2);
  expect(refused.refused).toBeGreaterThan(cases / 2);
});

it(`${cases} messages that a crawler may send end no session as an internal error`, {
  timeout: longMs,
}, async () => {
  const folder = await world.joined("athens");
  const endings = new Map<string, number>();
  const kinds = new Map<string, number>();
  let session: Session | null = null;
  let sent = 0;
  const arrive = async (): Promise<Session> => {
    // Whoever comes again at once is asked to wait.
    for (;;) {
      const { crawler, refuse, refused } = await world.come(folder);
      if (refuse === null) return { crawler, refused, writer: new FrameWriter() };
      note(endings, refuse.code);
      await delay(50);
    }
  };
  for (let seed = firstSeed; sent < cases; seed++) {
    const random = seededRandom(seed);
    const made = crawlerMessage.safeParse(drawValue(crawlerMessage, random)).data;
    // It would end the session at each turn.
    if (made === undefined || (made.type === "crawler:goodbye" && random() < 0.95)) continue;
    session ??= await arrive();
    const { crawler, writer, refused }: Session = session;
    const { numbers, text } = writer.message(made);
    // It may have been closed meanwhile.
    const packed = await crawler.deflater.deflate(text).catch(() => null);
    if (packed === null) {
      session = null;
      continue;
    }
    crawler.sendBytes(joinFrame(numbers, packed));
    sent += 1;
    note(kinds, made.type);
    const refuse = await Promise.race([refused, delay(made.type === "crawler:goodbye" ? 50 : 2, null)]);
    if (refuse === null && crawler.socket.readyState === crawler.socket.OPEN) continue;
    note(endings, refuse?.code ?? "closed");
    if (refuse?.code === "internal-error")
      throw new Error(`seed ${seed}: ${JSON.stringify(made).slice(0, 3000)}`);
    session = null;
  }
  session?.crawler.disconnect();

  const told = (counts: ReadonlyMap<string, number>) => JSON.stringify(Object.fromEntries(counts));
  if (cases > 1000) console.log(`${sent} messages: ${told(kinds)}; sessions ended: ${told(endings)}`);
  expect(kinds.size).toBeGreaterThan(8);
  expect(endings.get("internal-error")).toBeUndefined();
});

interface Session {
  readonly crawler: RawCrawler;
  readonly refused: Came["refused"];
  readonly writer: FrameWriter;
}

it(`${cases} messages that a coordinator may send end no crawler`, { timeout: longMs }, async () => {
  const gateway = await startGateway({ zlibSync: null, settings: { probeGraceMs: 60_000 } });
  cleanups.push(() => gateway.close());
  const amber = asCrawlerId(1);
  const faults: unknown[] = [];
  const onFault = (error: unknown) => faults.push(error);
  process.on("unhandledRejection", onFault);
  cleanups.push(() => process.off("unhandledRejection", onFault));
  const settings = { coordinatorUrl: gateway.url, denyRanges: ["0.0.0.0/0", "::/0"] };
  const refusedAs: string[] = [];
  const crawler = await startCrawler(testConfig(settings), {
    onRefused: ({ reason }) => refusedAs.push(reason),
  });
  cleanups.push(() => crawler.stop());
  const online = async () =>
    await vi.waitFor(() => expect(gateway.gateway.online()).toEqual([amber]), {
      timeout: 60_000,
      interval: 5,
    });
  await online();
  // These end the session by their meaning.
  const ends = new Set(["coordinator:refuse", "coordinator:welcome", "coordinator:key", "coordinator:move"]);
  let sent = 0;
  for (let seed = firstSeed; sent < cases; seed++) {
    const message = drawValue(coordinatorMessage, seededRandom(seed)) as CoordinatorMessage;
    if (ends.has(message.type) || !coordinatorMessage.safeParse(message).success) continue;
    if (!gateway.gateway.send(amber, message)) {
      await online();
      continue;
    }
    sent += 1;
    if (sent % 50 === 0) await delay(2);
  }
  await online();

  expect(faults).toEqual([]);
  expect(crawler.status()).toBeDefined();
});

function note(counts: Map<string, number>, what: string): void {
  counts.set(what, (counts.get(what) ?? 0) + 1);
}

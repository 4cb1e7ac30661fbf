/**
 * Every message of both directions, by the grammar of its schema: whole ones at live ends (a coordinator with its
 * database, a crawler), and soiled, cut and broken ones at the decoders. None may lead to an internal error. How many is
 * said by NEARCRAWL_FUZZ_CASES (default 2,000; results in test/bench/results/fuzz.md), from where by NEARCRAWL_FUZZ_SEED.
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
import { startGateway } from "../gateway/gateway-on-loopback.ts";
import { type JoiningWorld, newJoiningWorld } from "../gateway/joining-world.ts";
import type { RawCrawler } from "../gateway/raw-crawler.ts";
import { testConfig } from "../migrating-crawler/support/test-config.ts";
import { hostileBytes, pick } from "./mutate.ts";
import { drawValue } from "./schema-values.ts";

const cases = Number(process.env.NEARCRAWL_FUZZ_CASES ?? 2000);
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
  let came: RawCrawler | null = null;
  let sent = 0;
  const arrive = async () => {
    // Whoever comes again at once is asked to wait.
    for (;;) {
      const { crawler, refuse } = await world.come(folder);
      if (refuse === null) return crawler;
      note(endings, refuse.code);
      await delay(50);
    }
  };
  for (let seed = firstSeed; sent < cases; seed++) {
    const random = seededRandom(seed);
    const message = drawValue(crawlerMessage, random) as { readonly type?: string };
    // It would end the session, or make it another crawler's, at each turn; they have tests of their own.
    if (!crawlerMessage.safeParse(message).success || (message.type === "crawler:goodbye" && random() < 0.95))
      continue;
    came ??= await arrive();
    sent += 1;
    const crawler: RawCrawler = came;
    // It may have been closed meanwhile.
    await crawler.sendText(JSON.stringify(message)).catch(() => {});
    if (sent % 20 === 0 || message.type === "crawler:goodbye") await delay(5);
    const refuse = crawler.received.find(({ type }) => type === "coordinator:refuse");
    if (refuse?.type === "coordinator:refuse" || crawler.socket.readyState !== crawler.socket.OPEN) {
      if (refuse?.type === "coordinator:refuse") note(endings, refuse.code);
      if (endings.has("internal-error"))
        throw new Error(`seed ${seed}: ${JSON.stringify(message).slice(0, 3000)}`);
      await crawler.closed;
      came = null;
    } else crawler.received.length = 0;
  }
  // Whoever has been heard to the end is heard no worse than before.
  came ??= await arrive();
  came.socket.ping();
  await delay(200);
  came.disconnect();

  expect(endings.get("internal-error")).toBeUndefined();
  if (cases > 10_000)
    console.log(`${sent} messages; sessions ended: ${JSON.stringify(Object.fromEntries(endings))}`);
});

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

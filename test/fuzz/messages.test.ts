/**
 * Every message of both directions, drawn from its schema: valid ones to a live coordinator and crawler, corrupted and cut ones
 * to the decoders. None may lead to an internal error. NEARCRAWL_FUZZ_CASES is their number (default 200; 1,000 in npm run
 * test:long), NEARCRAWL_FUZZ_SEED the seed.
 */
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, afterEach, beforeAll, expect, it, vi } from "vitest";
import { createFrontierStore } from "#coordinator/crawl/frontier/frontier-store";
import { createDelegationStore } from "#coordinator/place/delegation/store";
import { ProtocolError } from "#core/errors";
import { asCrawlerId, asSubnetId } from "#core/ids";
import { seededRandom } from "#core/random";
import { startCrawler } from "#crawler/main";
import { decodeCoordinatorMessage, decodeHello, decodePackedMessage } from "#protocol/codec";
import { type CoordinatorMessage, coordinatorMessage } from "#protocol/coordinator-messages";
import { lease as leaseSchema } from "#protocol/lease";
import { type CrawlerHello, crawlerHello, crawlerMessage } from "#protocol/messages";
import { FrameReader, FrameWriter } from "#protocol/packed/message-frames";
import { type FetchResult, fetchResultSchema } from "#protocol/result";
import type { Came } from "../gateway/crawler-folder.ts";
import { startGateway } from "../gateway/gateway-on-loopback.ts";
import { type JoiningWorld, newJoiningWorld } from "../gateway/joining-world.ts";
import type { RawCrawler } from "../gateway/raw-crawler.ts";
import { SealingCrawler } from "../gateway/sealing-crawler.ts";
import { testConfig } from "../migrating-crawler/support/test-config.ts";
import { packedJson } from "../protocol/packed-json.ts";
import { longOr } from "../support/long.ts";
import { scope, seeds } from "../support/store-world.ts";
import { hostileBytes, pick } from "./mutate.ts";
import { drawValue } from "./schema-values.ts";

const cases = Number(process.env.NEARCRAWL_FUZZ_CASES ?? longOr(1000, 200));
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

it(`each of ${cases * 5} valid, corrupted, cut and broken texts is read or refused correctly`, {
  timeout: longMs,
}, () => {
  const ends = [
    {
      schema: crawlerMessage,
      decode: (json: Buffer) => decodePackedMessage(packedJson(json), new FrameReader()),
    },
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

it(`${cases} messages from a crawler end no session with an internal error`, {
  timeout: longMs,
}, async () => {
  const folder = await world.joined("athens");
  const endings = new Map<string, number>();
  const kinds = new Map<string, number>();
  let session: Session | null = null;
  let sent = 0;
  const arrive = async (): Promise<Session> => {
    // A crawler that reconnects at once is asked to wait.
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
    // It would end the session each time.
    if (made === undefined || (made.type === "crawler:goodbye" && random() < 0.95)) continue;
    session ??= await arrive();
    const { crawler, writer, refused }: Session = session;
    const { numbers, text } = writer.message(made);
    // It may be closed already.
    if (crawler.socket.readyState !== crawler.socket.OPEN) {
      session = null;
      continue;
    }
    await crawler.sendText(text, numbers);
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

/** Mostly of a page's size, and with a page where one was fetched: other values stop at a limit. */
function likely(drawn: FetchResult, random: () => number): FetchResult {
  if (random() < 0.1) return drawn;
  const fetched = { type: "fetched", status: 200, truncated: false } as const;
  const outcome = random() < 0.6 ? fetched : drawn.outcome;
  const page = outcome?.type === "fetched" ? drawn.page : null;
  return { ...drawn, outcome, page, wireBytes: 1000, bodyBytes: 3000 };
}

interface Session {
  readonly crawler: RawCrawler;
  readonly refused: Came["refused"];
  readonly writer: FrameWriter;
}

/** Of the fuzzed results; hosts have addresses of one /24. */
const urlsPerHost = 250;

/** A crawler with this number of leased URLs, without a pace for its results. */
async function leased(name: string, urls: number) {
  const folder = await world.joined(name);
  const { pool } = world;
  const now = new Date();
  const [row] = await world.rows("select crawler_id from crawler where name = $1", [name]);
  const crawlerId = asCrawlerId(Number(row?.crawler_id));
  await pool.query("insert into registry_generation (state, applied_at) values ('applied', now())");
  const [generation] = await world.rows("select max(generation) as latest from registry_generation");
  const { rows } = await pool.query<{ subnet_id: number }>(
    `insert into subnet (first_address, last_address, registry, name, added_in)
     values ('198.51.100.0', '198.51.100.255', 'ripencc', '', $1) returning subnet_id`,
    [generation?.latest],
  );
  const subnetId = asSubnetId(rows[0]!.subnet_id);
  await createDelegationStore(pool).delegateOwnSubnet(subnetId, crawlerId, now);
  const frontier = createFrontierStore(pool);
  const hosts = Array.from({ length: Math.ceil(urls / urlsPerHost) }, (_, at) => `s${at}.example`);
  const paths = Array.from({ length: urls }, (_, at) => `http://${hosts[at % hosts.length]}/${at}`);
  await frontier.admit(seeds(...paths), { ...scope, pagesPerHost: 2 * urlsPerHost }, now);
  const resolved = hosts.map((host, at) => ({
    ...({ type: "resolved", host, subnetId } as const),
    ttlSeconds: 3600,
    addresses: [`198.51.100.${at}`],
  }));
  await frontier.saveResolutions(resolved, now);
  const lease = async (at: Date) =>
    await frontier.leaseHosts({ crawlerId, hosts: hosts.length, urlsPerHost, leaseSeconds: 3600, now: at });
  const leases = await lease(now);
  await pool.query("update lease set granted_at = granted_at - interval '1 hour'");
  return {
    folder,
    leasedUrls: leases.flatMap(({ leaseId, urls }) => urls.map(({ url }) => ({ leaseId, url }))),
    leaseAgain: async () => await lease(new Date(now.getTime() + 400 * 86_400_000)),
  };
}

it(`each of ${cases / 4} valid and corrupted results under a lease settles its URL, and none ends the session`, {
  timeout: longMs,
}, async () => {
  const { folder, leasedUrls: urls, leaseAgain } = await leased("leaser", cases / 4);
  const heldLeases = [...new Set(urls.map(({ leaseId }) => leaseId))];
  const change = (hello: CrawlerHello) => ({ ...hello, heldLeases });
  const { crawler: raw, refused, welcome } = await world.come(folder, { change });
  const crawler = new SealingCrawler(raw, folder.identity);
  const { acknowledgedSequence, resultCredits } = welcome!;
  let [sealed, acknowledged] = [acknowledgedSequence, acknowledgedSequence];
  const perSeal = 16;
  for (let at = 0; at < urls.length; at += perSeal) {
    const results = urls.slice(at, at + perSeal).map(({ leaseId, url }, index) => {
      const random = seededRandom(firstSeed + at + index);
      const drawn = drawValue(fetchResultSchema, random, pick(random, [0, 0, 0, 0.01])) as FetchResult;
      return {
        type: "crawler:result",
        sequence: sealed + 1 + index,
        leaseId,
        result: { ...likely(drawn, random), url },
      } as const;
    });
    await crawler.ship(...results);
    await crawler.seal(sealed + 1, sealed + results.length);
    sealed += results.length;
    while (
      sealed - acknowledged + perSeal > resultCredits ||
      (sealed === urls.length && acknowledged < sealed)
    ) {
      const answer = await Promise.race([raw.next("coordinator:acknowledge"), refused]);
      if (answer?.type !== "coordinator:acknowledge")
        throw new Error(
          `seeds ${firstSeed + acknowledged} to ${firstSeed + sealed}: ${JSON.stringify(answer)}`,
        );
      acknowledged = answer.sequence;
    }
  }

  const count = async (sql: string) => Number((await world.rows(`select count(*) as n from ${sql}`))[0]?.n);
  expect([urls.length, acknowledged]).toEqual([cases / 4, cases / 4]);
  expect(await count("lease where closed_at is null")).toBe(0);
  expect(await count("frontier_url where visits = 0 or state = 'leased'")).toBe(0);
  const bad = await count("frontier_url where last_reason like 'bad-result: %'");
  expect(bad).toBeGreaterThan(urls.length / 20);
  expect(await count("page")).toBeGreaterThan(urls.length / 100);
  const noted = `select sum(incidents)::int as incidents, count(distinct kind)::int as kinds
    from incident where kind in ('bad-result', 'impossible-result')`;
  const inAll = [{ incidents: bad, kinds: 2 }];
  await vi.waitFor(async () => expect(await world.rows(noted)).toEqual(inAll), { timeout: 10_000 });
  // What is stored of them is sent again.
  const leases = await leaseAgain();
  expect(leases.length).toBeGreaterThan(0);
  expect(leases.flatMap((one) => leaseSchema.safeParse(one).error?.issues ?? [])).toEqual([]);
  raw.disconnect();
});

it(`${cases} messages from a coordinator end no crawler`, { timeout: longMs }, async () => {
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

/**
 * A light crawler: the real link (hello with key and identity, heartbeats, credits, seals, back-off, tickets) over a real
 * WebSocket, and behind it nothing but a few numbers. Its measurements are what the world says of two places, its pages
 * are made up. It asks for work as the real task loop does: while it has room, no sooner than it was told to.
 *
 * What makes it cheap: messages are compressed each by itself, so no deflate stream is kept (any receiver of a stream
 * takes that), and only as much of what came is kept as the coordinator's small streams can refer to.
 */
import { createHash, randomUUID } from "node:crypto";
import { constants, deflateRawSync } from "node:zlib";
import { CoordinatorLink, type LinkMessage } from "#crawler/link/coordinator-link";
import type { LinkCompression } from "#crawler/link/link-connection";
import { type CoordinatorProbe, protocolVersions } from "#protocol/coordinator-messages";
import { flushTail, NodeInflater, smallWindowBytes } from "#protocol/deflate";
import { helloText } from "#protocol/identity";
import type { Lease, OfferedLease } from "#protocol/lease";
import type { CrawlerHello, CrawlerMessage, ProbeOutcome } from "#protocol/messages";
import { packResult } from "#protocol/packed/message-frames";
import type { PackedMessage } from "#protocol/packed/packed-message";
import type { FetchResult } from "#protocol/result";
import type { Tally } from "./tally.ts";
import { type Folder, folderOf, placeOf, publicKeyOf, rttMs, signAs } from "./world.ts";

export interface SessionSettings {
  /** Hosts at a time; a partner's default is 32. */
  readonly concurrentHosts: number;
  /** What fetching one URL takes. */
  readonly fetchMs: number;
}

/** As the real task loop has them. */
const gatherMs = 50;
const leastAskMs = 50;
const answerMs = 60_000;
/** A real crawler measures peers a few at a time. */
const peerRoundMs = 2000;

interface Spooled {
  readonly sequence: number;
  readonly leaseId: string;
  readonly packed: PackedMessage;
  sentAtMs: number;
}

export class FleetSession {
  readonly #at: number;
  readonly #tally: Tally;
  readonly #settings: SessionSettings;
  readonly #folder: Folder;
  readonly #publicKey: string;
  readonly #link: CoordinatorLink;
  readonly #spoolId = randomUUID();
  readonly #instanceId = randomUUID();
  #ticket: string | null = null;
  #startedAtMs = 0;
  #isUp = false;
  /** Slices under way. */
  readonly #slices = new Set<string>();
  #spool: Spooled[] = [];
  #lastSequence = 0;
  /** Of the spool, how many were shipped in this session. */
  #shipped = 0;
  #asked: NodeJS.Timeout | null = null;
  #askedAtMs = 0;
  #wanted = 0;
  #timer: NodeJS.Timeout | null = null;
  #earliestAskMs = 0;
  #pages = 0;

  constructor(at: number, webUrl: string, tally: Tally, settings: SessionSettings) {
    this.#at = at;
    this.#tally = tally;
    this.#settings = settings;
    this.#folder = folderOf(at);
    this.#publicKey = publicKeyOf(at);
    this.#link = new CoordinatorLink({
      url: `${webUrl.replace("http", "ws")}/crawler`,
      hello: (connection) => this.#hello(connection ?? { challenge: "", binding: null }),
      heartbeat: () => this.#heartbeat(),
      handlers: {
        onWelcome: (welcome) => this.#onWelcome(welcome),
        onMessage: (message) => this.#onMessage(message),
        onRoom: () => this.#ship(),
        onDown: (reason) => this.#onDown(reason),
        onStopped: (reason, refused) => refused && this.#onGaveUp(reason),
      },
      log: { info() {}, warn() {} },
      random: Math.random,
      sign: (text) => signAs(at, text),
      compression,
    });
  }

  start(): void {
    this.#startedAtMs = performance.now();
    this.#link.start();
  }

  async stop(): Promise<void> {
    if (this.#isUp) this.#tally.counts.up -= 1;
    this.#isUp = false;
    this.#stopAsking();
    await this.#link.stop("the benchmark is over");
  }

  #send(message: CrawlerMessage): boolean {
    const isSent = this.#link.send(message);
    if (isSent) this.#tally.countSent(message.type);
    return isSent;
  }

  #onWelcome(welcome: { readonly ticket?: string | undefined; readonly acknowledgedSequence: number }): void {
    const { counts } = this.#tally;
    this.#tally.countReceived("coordinator:welcome");
    this.#isUp = true;
    counts.up += 1;
    counts.welcomes += 1;
    if (this.#ticket === null) this.#tally.time("welcome").add(performance.now() - this.#startedAtMs);
    this.#ticket = welcome.ticket ?? null;
    this.#acknowledge(welcome.acknowledgedSequence);
    this.#shipped = 0;
    this.#ship();
    this.#wanted = 0;
    this.#earliestAskMs = 0;
    this.#askSoon();
  }

  #onDown(reason: string): void {
    const { counts } = this.#tally;
    if (this.#isUp) {
      counts.up -= 1;
      counts.lost += 1;
    } else counts.failedAttempts += 1;
    this.#isUp = false;
    this.#tally.countEnd(reason);
    this.#stopAsking();
  }

  #onGaveUp(reason: string): void {
    this.#onDown(reason);
    this.#tally.counts.gaveUp += 1;
  }

  #onMessage(message: LinkMessage): void {
    this.#tally.countReceived(message.type);
    switch (message.type) {
      case "coordinator:tasks":
        this.#onTasks(message.leases, message.askAgainMs);
        return;
      case "coordinator:wake":
        this.#onWake();
        return;
      case "coordinator:acknowledge":
        this.#acknowledge(message.sequence);
        this.#ship();
        return;
      case "coordinator:probe":
        this.#probe(message);
        return;
      case "coordinator:peers":
        this.#measure(message.peers);
        return;
      case "coordinator:key":
        this.#send({ type: "crawler:key-kept" });
        return;
      default:
      // In protocols with a message that wakes idle crawlers, as in those without.
    }
  }

  // Work.

  #askSoon(): void {
    if (this.#timer !== null || this.#asked !== null || !this.#isUp) return;
    if (this.#slices.size >= this.#settings.concurrentHosts) return;
    this.#timer = setTimeout(
      () => {
        this.#timer = null;
        this.#ask();
      },
      Math.max(gatherMs, this.#earliestAskMs - performance.now()),
    );
  }

  #ask(): void {
    const freeHosts = this.#settings.concurrentHosts - this.#slices.size;
    if (!this.#send({ type: "crawler:ready", freeHosts })) return;
    this.#tally.counts.requests += 1;
    this.#wanted = freeHosts;
    this.#askedAtMs = performance.now();
    this.#asked = setTimeout(() => {
      this.#asked = null;
      this.#askSoon();
    }, answerMs);
  }

  #stopAsking(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    if (this.#asked !== null) clearTimeout(this.#asked);
    this.#timer = null;
    this.#asked = null;
  }

  /** Something is due: what it was told of when to ask is over. */
  #onWake(): void {
    this.#earliestAskMs = 0;
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    this.#askSoon();
  }

  #onTasks(leases: readonly OfferedLease[], askAgainMs: number): void {
    if (this.#asked !== null) {
      clearTimeout(this.#asked);
      this.#asked = null;
      this.#tally.time("request").add(performance.now() - this.#askedAtMs);
    }
    this.#earliestAskMs = performance.now() + Math.max(leastAskMs, askAgainMs);
    this.#tally.counts.slices += leases.length;
    for (const lease of leases.slice(0, this.#wanted)) this.#begin(lease as unknown as Lease);
    this.#wanted = 0;
    this.#askSoon();
  }

  #begin(lease: Lease): void {
    const { fetchMs } = this.#settings;
    this.#slices.add(lease.leaseId);
    this.#tally.counts.openSlices += 1;
    setTimeout(
      () => {
        this.#slices.delete(lease.leaseId);
        this.#tally.counts.openSlices -= 1;
        this.#keep(lease);
        this.#askSoon();
        // All of a wave would end in the same second, and none begin until then.
      },
      2 * fetchMs * lease.urls.length * Math.random(),
    );
  }

  #keep({ leaseId, urls, addresses }: Lease): void {
    for (const { url } of urls) {
      this.#lastSequence += 1;
      const packed = packResult(leaseId, resultOf(url, addresses[0] ?? null));
      this.#spool.push({ sequence: this.#lastSequence, leaseId, packed, sentAtMs: 0 });
      this.#pages += 1;
    }
    this.#ship();
  }

  #ship(): void {
    for (;;) {
      const next = this.#spool[this.#shipped];
      if (next === undefined || !this.#link.sendResult(next)) return;
      next.sentAtMs = performance.now();
      this.#shipped += 1;
      this.#tally.counts.results += 1;
      this.#tally.countSent("crawler:result");
    }
  }

  #acknowledge(sequence: number): void {
    const acknowledged = this.#spool.filter((one) => one.sequence <= sequence);
    if (acknowledged.length === 0) return;
    const nowMs = performance.now();
    for (const { sentAtMs } of acknowledged)
      if (sentAtMs > 0) this.#tally.time("acknowledge").add(nowMs - sentAtMs);
    this.#tally.counts.acknowledged += acknowledged.length;
    this.#spool = this.#spool.slice(acknowledged.length);
    this.#shipped = Math.max(0, this.#shipped - acknowledged.length);
  }

  // Measurements.

  #probe({ requestId, address, method, tries }: CoordinatorProbe): void {
    this.#tally.counts.probes += 1;
    const outcome = this.#measured(address, method, tries);
    setTimeout(
      () => this.#send({ type: "crawler:probe-report", requestId, outcome }),
      2 * this.#rttMs(address),
    );
  }

  #measure(peers: readonly { readonly crawlerId: number; readonly address: string }[]): void {
    this.#tally.counts.peersToMeasure += peers.length;
    const measured = peers.map(({ crawlerId, address }) => ({
      crawlerId,
      outcome: this.#measured(address, "connect", 2),
    }));
    if (measured.length === 0) return;
    setTimeout(() => this.#send({ type: "crawler:peer-rtts", peers: measured }), peerRoundMs);
  }

  #measured(address: string, method: ProbeOutcome["method"], tries: number): ProbeOutcome {
    const rounded = Math.round(10 * (this.#rttMs(address) + 0.5 * Math.random())) / 10;
    return { type: "measured", method, rttMs: rounded, tries: Math.min(2, tries) };
  }

  #rttMs(address: string): number {
    return rttMs(this.#folder.place, placeOf(address));
  }

  // What it says of itself.

  #hello({
    challenge,
    binding,
  }: {
    readonly challenge: string;
    readonly binding: string | null;
  }): CrawlerHello {
    this.#tally.countSent("crawler:hello");
    const { name, key, address, place } = this.#folder;
    const [spoolId, instanceId, ticket] = [this.#spoolId, this.#instanceId, this.#ticket];
    const signed = helloText({ challenge, binding, name, spoolId, instanceId, ticket });
    const signature = signAs(this.#at, signed);
    const heldLeases = [...new Set([...this.#slices, ...this.#spool.map(({ leaseId }) => leaseId)])];
    return {
      type: "crawler:hello",
      protocolVersions: [...protocolVersions],
      ...{ name, key, spoolId, heldLeases },
      softwareVersion: "bench",
      publicAddress: address,
      place: { name: "A town", country: "GR", ...place },
      capabilities: { probeMethods: ["connect", "head"], ipv6: false },
      limits: {
        pagesPerDay: 10_000_000,
        bytesPerDay: 1e12,
        concurrentHosts: this.#settings.concurrentHosts,
      },
      identity: { publicKey: this.#publicKey, signature, instanceId, ticket, binding },
    };
  }

  #heartbeat(): Extract<CrawlerMessage, { type: "crawler:heartbeat" }> {
    this.#tally.countSent("crawler:heartbeat");
    const [openHosts, spooledResults, pages] = [this.#slices.size, this.#spool.length, this.#pages];
    return {
      type: "crawler:heartbeat",
      ...{ openHosts, spooledResults, pages, fetchedBytes: 4000 * pages, shippedBytes: 600 * pages },
      bodyBytes: 12_000 * pages,
      holdingBack: [],
    };
  }
}

// Compression without a stream of its own.

const rate = {
  finishFlush: constants.Z_SYNC_FLUSH,
  windowBits: 13,
  memLevel: 5,
  level: 1,
  chunkSize: 1024,
} as const;
const emptyMessage = Buffer.from([0]);

/** Most of what idle crawlers say is the same each time. */
const same = new Map<string, Buffer>();
const mostSame = 256;
const longestSame = 200;

function deflated(text: string | Buffer): Buffer {
  if (text.length === 0) return emptyMessage;
  if (typeof text !== "string" || text.length > longestSame) return deflatedNow(text);
  const known = same.get(text) ?? deflatedNow(text);
  if (same.size < mostSame) same.set(text, known);
  return known;
}

function deflatedNow(text: string | Buffer): Buffer {
  const flushed = deflateRawSync(text, rate);
  return flushed.subarray(0, flushed.length - flushTail.length);
}

const deflater: LinkCompression["deflater"] = {
  deflate: (text) => Promise.resolve(deflated(text)),
  close() {},
};

function compression(): LinkCompression {
  return { deflater, inflater: new NodeInflater(smallWindowBytes) };
}

// A small page that nobody has seen before.

const words =
  "fleet box crawl near far host page link site web index queue lease round probe town place ring cable glass";

function resultOf(url: string, address: string | null): FetchResult {
  const digest = createHash("sha256").update(`${url} ${Math.random()}`).digest("hex");
  const lexemes = words.split(" ").map((word, at) => `'${word}':${at + 1}`);
  const own = digest.slice(0, 8);
  return {
    url,
    fetchedAt: new Date().toISOString(),
    outcome: { type: "fetched", status: 200, truncated: false },
    address,
    timing: { dnsMs: null, connectMs: 20, tlsMs: null, firstByteMs: 20, totalMs: 45 },
    wireBytes: 4000,
    bodyBytes: 12_000,
    etag: null,
    lastModified: null,
    hostDelayMs: 1000,
    page: {
      contentType: "text/html",
      charset: "utf-8",
      canonicalUrl: null,
      title: `Page ${own}`,
      description: "",
      headings: [],
      language: "en",
      textSearchConfig: "english",
      lexemes: [`'${own}':30A`, ...lexemes].join(" "),
      excerpt: words,
      words: 22,
      links: [],
      robots: { noindex: false, nofollow: false },
      digest,
      simhash: digest.slice(16, 32),
    },
  };
}

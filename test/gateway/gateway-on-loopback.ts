/** A crawler gateway behind a real HTTP server on loopback, with handlers that record their input. It ends with the test. */
import { createServer } from "node:http";
import { createServer as createSecureServer } from "node:https";
import type { AddressInfo } from "node:net";
import type { Admitted } from "#coordinator/place/crawlers/admit-crawler";
import type { SessionEnd } from "#coordinator/place/crawlers/sessions";
import { CrawlerGateway } from "#coordinator/run/gateway/gateway";
import {
  type Arrival,
  defaultGatewaySettings,
  type GatewayHandlers,
  type GatewaySettings,
} from "#coordinator/run/gateway/gateway-settings";
import type { BatchedResult, CrawlerReport } from "#coordinator/run/gateway/inbox";
import { asCrawlerId, type CrawlerId } from "#core/ids";
import { silentLog } from "#core/log";
import { crawlerVersions } from "#protocol/coordinator-messages";
import type { CrawlerHello } from "#protocol/messages";
import type { ZlibSync } from "#protocol/zlib-sync-inflater";
import { atEnd } from "../support/at-end.ts";

/** The gateway's crawlers, with ids from 1 in this order. */
export const knownNames = ["amber", "birch", "cedar", "daisy", "elder"] as const;
export const revokedName = "fallen";

export interface LoopbackGateway {
  readonly gateway: CrawlerGateway;
  readonly url: string;
  readonly port: number;
  readonly seen: Seen;
  close(): Promise<void>;
}

export interface Seen {
  readonly arrivals: Arrival[];
  readonly batches: {
    crawlerId: CrawlerId;
    spoolId: string;
    results: readonly BatchedResult[];
  }[];
  readonly messages: { crawlerId: CrawlerId; message: CrawlerReport; wireBytes: number }[];
  readonly leaves: (SessionEnd & { crawlerId: CrawlerId; forGood: boolean })[];
  /** The highest sequence that onResults has stored, per crawler. */
  readonly committed: Map<CrawlerId, number>;
}

export async function startGateway(options: {
  readonly zlibSync: ZlibSync | null;
  readonly settings?: Partial<GatewaySettings>;
  readonly handlers?: Partial<GatewayHandlers>;
  readonly port?: number;
  /** PEM; when given, the gateway uses TLS. */
  readonly tls?: { readonly cert: Buffer; readonly key: Buffer };
}): Promise<LoopbackGateway> {
  const seen: Seen = { arrivals: [], batches: [], messages: [], leaves: [], committed: new Map() };
  const gateway = new CrawlerGateway({
    settings: { ...defaultGatewaySettings, userAgent: "Nearcrawl/test", ...options.settings },
    log: silentLog,
    zlibSync: options.zlibSync,
  });
  gateway.handle({ ...recordingHandlers(seen), ...options.handlers });
  const server = options.tls ? createSecureServer(options.tls) : createServer();
  gateway.attach(server);
  gateway.serve(null);
  await new Promise<void>((resolve) => server.listen(options.port ?? 0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const close = async () => {
    await gateway.close();
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  };
  atEnd(close);
  const url = `${options.tls ? "wss" : "ws"}://127.0.0.1:${port}/crawler`;
  return { gateway, port, url, seen, close };
}

export function keyOf(name: string): string {
  return `the-secret-key-of-${name}`;
}

export function helloOf(name: string, changes: Partial<CrawlerHello> = {}): CrawlerHello {
  return {
    type: "crawler:hello",
    protocolVersions: [...crawlerVersions],
    name,
    key: keyOf(name),
    softwareVersion: "0.1.0",
    spoolId: "7f0c2f0e-6d0b-4a55-9a43-7e2a1c5d1b11",
    heldLeases: [],
    publicAddress: null,
    place: null,
    capabilities: { probeMethods: ["connect"], ipv6: false },
    limits: { pagesPerDay: 1000, bytesPerDay: 1_000_000, concurrentHosts: 2 },
    ...changes,
  };
}

/** The admission of the crawler with this number. */
export function admitted(number: number, publicKey: string | null = null): Admitted {
  return { crawlerId: asCrawlerId(number), publicKey, first: [] };
}

const refused = (code: "revoked" | "wrong-key") =>
  ({ refuse: { code, reason: `refused for ${code}`, retry: false } }) as const;

function recordingHandlers(seen: Seen): GatewayHandlers {
  return {
    async admit({ hello }) {
      const index = (knownNames as readonly string[]).indexOf(hello.name);
      if (hello.name === revokedName) return refused("revoked");
      if (hello.key !== keyOf(hello.name) || index < 0) return refused("wrong-key");
      return admitted(index + 1);
    },
    async onArrive(arrival) {
      seen.arrivals.push(arrival);
      return { acknowledgedSequence: seen.committed.get(arrival.crawlerId) ?? 0 };
    },
    async onResults(batch) {
      seen.batches.push(batch);
      seen.committed.set(batch.crawlerId, batch.results.at(-1)?.sequence ?? 0);
    },
    async onMessage(crawlerId, message, { wireBytes }) {
      seen.messages.push({ crawlerId, message, wireBytes });
    },
    async onLeave(crawlerId, end, forGood) {
      seen.leaves.push({ crawlerId, ...end, forGood });
    },
  };
}

/**
 * What a hostile peer gets. First a coordinator out of a crawler that its host has set to 1 KB a second, one host and one
 * page a day: probes at one victim, leases of many hosts and a page each, as fast as the line takes them; counted where
 * they arrive. Then crawlers and strangers out of a coordinator (the real command on an embedded Postgres): /health while
 * three crawlers send 8 KB that inflate to 8 MB, session after session, and 5,000 connections from 50 addresses hold back
 * the rest of their request. Each is compared with the same without it.
 * Run: npm run bench -- hostile-peers [seconds]
 */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import http from "node:http";
import net, { type AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { constants, deflateRawSync } from "node:zlib";
import { createCrawlerStore } from "#coordinator/crawlers/crawler-store";
import { hashCrawlerKey } from "#coordinator/web/secrets";
import { asCrawlerId } from "#core/ids";
import { startCrawler } from "#crawler/main";
import { openDatabase } from "#db/connect";
import { stopEmbeddedPostgres } from "#db/embedded-postgres";
import { migrate } from "#db/migrate";
import { keyOf, startGateway } from "../gateway/gateway-on-loopback.ts";
import { RawCrawler } from "../gateway/raw-crawler.ts";
import { testConfig } from "../migrating-crawler/support/test-config.ts";
import { watchHealth } from "./crawl/health-watch.ts";
import { MeasuredProcess } from "./crawl/measured-process.ts";

const seconds = Number(process.argv[2] ?? 20);

console.log(`a coordinator against a crawler, ${seconds} s each`);
const slow = { kilobytesPerSecond: 1, concurrentHosts: 1, pagesPerDay: 1 };
await againstCrawler("no limit stated, a thousand asked a second", {}, 20);
await againstCrawler("1 KB/s, one host, one page a day, a thousand asked a second", slow, 20);
// What is asked is carried, too: less of it leaves more for what it asks for.
await againstCrawler("the same, three asked a second", slow, 1, 333);
await againstCoordinator();
process.exit();

/** `atOnce` probes and leases, every so many ms. */
async function againstCrawler(words: string, limits: object, atOnce: number, everyMs = 20): Promise<void> {
  const victim = { connections: 0, requests: 0, bytes: 0 };
  const server = http.createServer((request, response) => {
    victim.requests += 1;
    if (request.url === "/robots.txt") response.writeHead(404).end();
    else response.end("<p>A page of some words.</p>");
  });
  server.on("connection", (socket: net.Socket) => {
    victim.connections += 1;
    socket.once("close", () => {
      victim.bytes += socket.bytesRead + socket.bytesWritten;
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const gateway = await startGateway({ zlibSync: null, settings: { probeGraceMs: 60_000 } });
  const crawler = await startCrawler(
    testConfig({ coordinatorUrl: gateway.url, limits, politenessFloorMs: 1000, responseTimeFactor: 5 }),
  );
  const amber = asCrawlerId(1);
  while (gateway.gateway.online().length === 0) await delay(10);
  const endMs = performance.now() + seconds * 1000;
  let [probes, leases] = [0, 0];
  while (performance.now() < endMs) {
    for (let one = 0; one < atOnce; one += 1) {
      probes += 1;
      void gateway.gateway.probe(amber, {
        ...{ host: "127.0.0.1", address: "127.0.0.1", port, secure: false },
        ...{ method: "head", tries: 6, deadlineMs: 5000 },
      });
    }
    const tasks = Array.from({ length: atOnce }, () => {
      leases += 1;
      const host = `h${leases}.localhost`;
      const urls = [{ url: `http://${host}:${port}/`, etag: null, lastModified: null }];
      return {
        leaseId: String(leases),
        host,
        addresses: ["127.0.0.1"],
        expiresInSeconds: 300,
        waitMs: 0,
        urls,
      };
    });
    gateway.gateway.send(amber, { type: "coordinator:tasks", leases: tasks, askAgainMs: 50, reason: "" });
    await delay(everyMs);
  }
  const { connections, requests } = victim;
  await crawler.stop();
  server.closeAllConnections();
  await delay(200);
  console.log(
    `  ${words}: ${probes} probes of up to six tries and ${leases} leases asked; ${connections} connections, ${requests} requests, ${victim.bytes} bytes at the victim (${Math.round(victim.bytes / seconds)} a second)`,
  );
  await gateway.close();
  server.close();
}

async function againstCoordinator(): Promise<void> {
  const home = mkdtempSync(join(tmpdir(), "nearcrawl-bench-"));
  const schema = `bench_${process.pid}`;
  const database = await openDatabase({ databaseUrl: null, home, schema });
  await migrate(database);
  const names = ["burner-1", "burner-2", "burner-3"];
  for (const name of names)
    await createCrawlerStore(database.pool).register({ name, keyHash: hashCrawlerKey(keyOf(name)) });
  const settings = join(home, "bench-settings.json");
  writeFileSync(
    settings,
    JSON.stringify({ listen: { port: 0 }, logLevel: "silent", contact: "bench@example.org" }),
  );
  const args = ["coordinator", "--home", home, "--schema", schema, "--config", settings];
  const coordinator = new MeasuredProcess(join(import.meta.dirname, "../../ops/cli/main.ts"), {
    args,
    execArgv: ["--conditions=nearcrawl-source", "--import", "tsx"],
  });
  try {
    const { webUrl } = await coordinator.ask<{ webUrl: string }>({ type: "usage" }, "listening");
    console.log(`a coordinator, ${seconds} s each: /health, one request after the other, 20 a second`);
    console.log(`  idle: ${await health(webUrl)}`);
    const burning = { over: false, sent: 0, sessions: 0 };
    const burners = names.map((name) => burn(webUrl, name, burning));
    console.log(
      `  beside three parse burners: ${await health(webUrl)}; ${burning.sent} messages of 8 MB in ${burning.sessions} sessions`,
    );
    const clients = await halfOpen(webUrl);
    console.log(`  beside them and ${clients.open()} half-sent requests: ${await health(webUrl)}`);
    burning.over = true;
    await Promise.all(burners);
    console.log(`  beside the half-sent requests alone: ${await health(webUrl)}`);
    clients.close();
  } finally {
    await coordinator.stop();
    await database.close();
    await stopEmbeddedPostgres(home);
    rmSync(home, { recursive: true, force: true });
  }
}

async function health(webUrl: string): Promise<string> {
  const watch = watchHealth(webUrl, 50);
  await delay(seconds * 1000);
  return await watch();
}

/** A message that inflates to all that one may be, again and again, and again in the next session. */
async function burn(
  webUrl: string,
  name: string,
  state: { over: boolean; sent: number; sessions: number },
): Promise<void> {
  const half = 4 * 1024 * 1024 - 500;
  const bytes = deflateRawSync("[".repeat(half) + "]".repeat(half), {
    finishFlush: constants.Z_SYNC_FLUSH,
    level: 9,
  });
  while (!state.over) {
    try {
      const crawler = await RawCrawler.arrive(`${webUrl.replace("http", "ws")}/crawler`, name, {
        protocolVersions: [1],
      });
      state.sessions += 1;
      while (crawler.socket.readyState === crawler.socket.OPEN && !state.over) {
        crawler.sendBytes(bytes);
        state.sent += 1;
        await delay(5);
      }
      crawler.disconnect();
    } catch {
      // Asked to come back later.
      await delay(100);
    }
  }
}

/** Connections that say the beginning of a request, and come again when they are closed. */
async function halfOpen(webUrl: string) {
  const { port } = new URL(webUrl);
  const sockets = new Set<net.Socket>();
  let isOver = false;
  const open = (at: number) => {
    const socket = net.connect({
      host: "127.0.0.1",
      port: Number(port),
      localAddress: `127.0.3.${1 + (at % 50)}`,
    });
    sockets.add(socket);
    socket.on("error", () => {});
    socket.once("connect", () =>
      socket.write("POST /opt-out HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\na="),
    );
    socket.once("close", () => {
      sockets.delete(socket);
      if (!isOver) setTimeout(() => open(at), 200);
    });
  };
  for (let at = 0; at < 5000; at += 1) {
    open(at);
    if (at % 100 === 0) await delay(10);
  }
  await delay(1000);
  return {
    open: () => sockets.size,
    close: () => {
      isOver = true;
      for (const socket of sockets) socket.destroy();
    },
  };
}

/**
 * What coordinators exchange in a second: URLs of others that were found under a child wait in its database, go up to
 * its parent over a real socket, and are in the parent's frontier when the child lets go of them. Beside the same
 * URLs admitted by one coordinator that is alone (the baseline), in the same run; both databases and all work on this
 * machine.
 * Run: npm run bench -- exchange [urls] (40,000 by default); what is printed is the text of results/exchange.md.
 */
import { mkdtempSync, rmSync } from "node:fs";
import type { AddressInfo } from "node:net";
import { availableParallelism, cpus, loadavg, tmpdir } from "node:os";
import { join } from "node:path";
import { readCoordinatorConfig } from "#coordinator/config";
import { AskParent } from "#coordinator/federation/exchange";
import { createParentExchangeStore } from "#coordinator/federation/exchange-store";
import { HttpParentClient } from "#coordinator/federation/parent-client";
import { createCoordinatorStore, stateParent } from "#coordinator/federation/related-store";
import { coordinatorPart } from "#coordinator/federation/start";
import { createFrontierStore } from "#coordinator/frontier/frontier-store";
import { createMetrics } from "#coordinator/overview/metrics";
import { randomSecrets } from "#coordinator/web/secrets";
import { silentLog } from "#core/log";
import { urlKeyOf } from "#core/url-key";
import { openDatabase } from "#db/connect";
import { stopEmbeddedPostgres } from "#db/embedded-postgres";
import { migrate } from "#db/migrate";
import type { Database } from "#db/server-database";
import { webServer } from "../support/web-server.ts";
import { figure } from "./figure.ts";

const urls = Number(process.argv[2] ?? 40_000);
const urlsPerHost = 20;
const urlsPerBatch = 500;
const rounds = 3;
const scope = { pagesPerHost: 100, maxDepth: 8, admitNewHosts: true };

const home = mkdtempSync(join(tmpdir(), "nearcrawl-bench-"));
const opened: Database[] = [];
const [alone, child, parent] = [await open("alone"), await open("child"), await open("parent")];
const config = readCoordinatorConfig({});
const metrics = createMetrics();
const web = webServer(parent, {
  parts: [
    coordinatorPart({
      pool: parent.pool,
      patientPool: parent.pool,
      metrics,
      version: "bench",
      config: { ...config, scope: { ...config.scope, ...scope } },
    }),
  ],
});

try {
  await web.listen({ host: "127.0.0.1", port: 0 });
  const url = `http://127.0.0.1:${(web.server.address() as AddressInfo).port}`;
  const { secret: key, hash: keyHash } = randomSecrets.make("ncc_");
  const now = new Date();
  await createCoordinatorStore(parent.pool).invite({ name: "child", keyHash, createdBy: "bench", now });
  await stateParent(child.pool, { url, owns: [".gr"] }, now);
  const client = new HttpParentClient({ url, key, certificatePin: null });
  const asking = new AskParent(
    {
      store: createParentExchangeStore(child.pool),
      client,
      taking: () => ({ scope, mostNewHosts: 2 ** 31 - 1, now: new Date() }),
      random: Math.random,
      onTaken: () => {},
      log: silentLog,
    },
    { everyMs: 5000 },
  );
  printBeginning();
  for (let round = 1; round <= rounds; round += 1) await measure(round, asking);
  console.log(`\nLoad average ${loadavg()[0]!.toFixed(1)} at the end.`);
  await client.close();
} finally {
  await web.close();
  for (const database of opened) await database.close();
  await stopEmbeddedPostgres(home);
  rmSync(home, { recursive: true, force: true });
}

async function measure(round: number, asking: AskParent): Promise<void> {
  const baseMs = await timed(async () => await admit(alone, round));
  const queuedMs = await timed(async () => await admit(child, round));
  const before = await exchanges();
  const sentMs = await timed(async () => {
    for (let outcome = await asking.turn(); outcome !== "done"; outcome = await asking.turn()) {
      if (outcome !== "more") throw new Error(`the exchange ended: ${outcome}`);
    }
  });
  const told = (await exchanges()) - before;
  const figures = [perSecond(baseMs), perSecond(queuedMs), perSecond(sentMs), told];
  const words = figures.map((value) => value.toLocaleString("en-GB")).join(" | ");
  console.log(`| ${round} | ${words} | ${(baseMs / (queuedMs + sentMs)).toFixed(2)} |`);
  const rates = {
    "admitted, alone": baseMs,
    "kept by the child": queuedMs,
    "told and admitted above": sentMs,
  };
  for (const [name, ms] of Object.entries(rates))
    figure(name, perSecond(ms), "URLs/s", { higherIsBetter: true });
}

function printBeginning(): void {
  const day = new Date().toISOString().slice(0, 10);
  const machine = `${availableParallelism()} x ${cpus()[0]?.model ?? "?"}`;
  console.log(`# What coordinators exchange in a second

${day}, Node ${process.version}, ${machine}, load average ${loadavg()[0]!.toFixed(1)} at the beginning. \`npm run bench -- exchange\`

WEB-SAILOR section 4.4 lets a server send what belongs to others to the one above it, and gives no figures. Here
${urls.toLocaleString("en-GB")} URLs of others, ${urlsPerHost} of a host, are found under a child: kept in its database, sent up to its parent over HTTP on
loopback, admitted there, and let go of by the child once the parent has said that it has them. Beside, the same URLs
admitted by a coordinator that is alone. Both databases are on one server and the one machine, so that the two columns of
the exchange are the price of a second coordinator, not what two machines would do. The last column is what is left of the
baseline's rate when a URL takes the way over a child.

| round | alone, admitted a second (baseline) | kept by the child, a second | told, admitted above and let go of, a second | exchanges | rate by way of a child, of the baseline |
|---|---|---|---|---|---|`);
}

async function admit(database: Database, round: number): Promise<void> {
  const frontier = createFrontierStore(database.pool);
  for (let at = 0; at < urls; at += urlsPerBatch) {
    const batch = Array.from({ length: Math.min(urlsPerBatch, urls - at) }, (_, index) =>
      seedOf(round, at + index),
    );
    await frontier.admit(batch, scope, new Date());
  }
}

function seedOf(round: number, at: number) {
  const key = urlKeyOf(
    `https://www.host-${round}-${Math.floor(at / urlsPerHost)}.com/articles/page-${at}.html`,
  );
  if (typeof key === "string") throw new Error(key);
  return { key, depth: 0 };
}

async function exchanges(): Promise<number> {
  return (await createCoordinatorStore(child.pool).list(new Date())).parent?.exchanges ?? 0;
}

async function open(name: string): Promise<Database> {
  const databaseUrl = process.env.DATABASE_URL ?? null;
  const database = await openDatabase({
    databaseUrl,
    home,
    schema: `bench_${name}_${process.pid}`,
    maxConnections: 4,
  });
  opened.push(database);
  await migrate(database);
  return database;
}

async function timed(work: () => Promise<void>): Promise<number> {
  const startedMs = performance.now();
  await work();
  return performance.now() - startedMs;
}

function perSecond(ms: number): number {
  return Math.round((1000 * urls) / ms);
}

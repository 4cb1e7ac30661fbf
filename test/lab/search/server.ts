/**
 * The pages' server in its own process, as the coordinator opens it (start-web.ts), with one of the search methods. Reports its
 * address when it is ready, and ends with its parent.
 */
import type { AddressInfo } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { IndexClient } from "#coordinator/tell/search/memory/index-client";
import { silentLog } from "#core/log";
import { createPool } from "#db/server-database";
import { everyRead } from "../../support/every-read.ts";
import { webServer } from "../../support/web-server.ts";

const [url = "", way = "database"] = process.argv.slice(2);
const pool = createPool(url, 4, 5000);
const nowMs = () => performance.now();
let indexBuiltMs: number | null = null;
const index = way === "index" ? await indexInMemory() : null;
const reads = everyRead(pool, nowMs, index ?? undefined);
const app = webServer(
  { pool, schema: "", description: "", url, close: async () => await pool.end() },
  { reads },
);
await app.listen({ host: "127.0.0.1", port: 0 });
process.once("disconnect", () => process.exit(0));
process.send?.({
  port: (app.server.address() as AddressInfo).port,
  indexPid: index?.pid ?? null,
  indexBuiltMs,
});

async function indexInMemory(): Promise<IndexClient> {
  const client = new IndexClient({ databaseUrl: url, mostBytes: 8 * 2 ** 30, log: silentLog });
  const startedMs = nowMs();
  client.start();
  for (let state = client.state(); state.type !== "ready"; state = client.state()) {
    if (state.type === "failed") throw new Error(state.why);
    await delay(200);
  }
  indexBuiltMs = nowMs() - startedMs;
  return client;
}

/** The pages' server in a process of its own, as the coordinator opens it (start-web.ts). Says its port, and ends with its input. */
import type { AddressInfo } from "node:net";
import { createReports } from "#coordinator/who/reads";
import { createPool } from "#db/server-database";
import { webServer } from "../../support/web-server.ts";
import { formerSearchReads } from "./former-search.ts";

const [url = "", way = "database"] = process.argv.slice(2);
const pool = createPool(url, 4, 5000);
const nowMs = () => performance.now();
const reads = { ...createReports(pool, nowMs), ...(way === "former" ? formerSearchReads(pool, nowMs) : {}) };
const app = webServer(
  { pool, schema: "", description: "", url, close: async () => await pool.end() },
  { reads },
);
await app.listen({ host: "127.0.0.1", port: 0 });
process.stdout.write(`${(app.server.address() as AddressInfo).port}\n`);
process.stdin.resume().once("end", () => process.exit(0));

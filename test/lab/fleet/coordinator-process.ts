/**
 * The coordinator in a process of its own, as `nearcrawl coordinator` starts it, but for
 * what it tells over the channel: processor, memory, the delay of its event loop, and what it logged.
 */
import { join } from "node:path";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { readCoordinatorConfig } from "#coordinator/config";
import { startCoordinator } from "#coordinator/main";
import type { Log } from "#core/log";
import { openDatabase } from "#db/connect";
import { migrate } from "#db/migrate";

export type CoordinatorOrder =
  | {
      readonly type: "start";
      readonly home: string;
      readonly schema: string;
      readonly port: number;
      readonly pagesPort: number;
      readonly settings: object;
    }
  | { readonly type: "figures" }
  | { readonly type: "stop" };

export interface CoordinatorFigures {
  readonly type: "figures";
  readonly cpuMs: number;
  readonly rssBytes: number;
  readonly heapBytes: number;
  /** Buffers and typed arrays. */
  readonly externalBytes: number;
  /** Of the event loop, since the last time it was asked. */
  readonly delayMs: { readonly p50: number; readonly p99: number; readonly max: number };
  /** Lines of the log at `warn` and `error`, by their fixed messages. */
  readonly logged: Readonly<Record<string, number>>;
}

/** The histogram counts from one look to the next, and these are so far apart. */
const resolutionMs = 10;
const loop = monitorEventLoopDelay({ resolution: resolutionMs });
const logged: Record<string, number> = {};
let stop = async () => {};

process.on("message", async (order: CoordinatorOrder) => {
  switch (order.type) {
    case "start":
      process.send?.({ type: "listening", webUrl: await start(order) });
      return;
    case "figures":
      process.send?.(figures());
      return;
    case "stop":
      await stop();
      process.disconnect();
      process.exit();
  }
});
// Whoever started this is gone: nobody else would end it.
process.once("disconnect", () => process.exit());

async function start(order: Extract<CoordinatorOrder, { type: "start" }>): Promise<string> {
  const { home, schema, port, pagesPort, settings } = order;
  const database = await openDatabase({ databaseUrl: null, home, schema });
  await migrate(database);
  const coordinator = await startCoordinator({
    config: readCoordinatorConfig({ contact: "bench@example.org", ...settings, listen: { port, pagesPort } }),
    ...{ database, log: countingLog() },
    version: "bench",
    snapshotFolder: join(home, "snapshots"),
  });
  loop.enable();
  stop = async () => {
    await coordinator.stop();
    await database.close();
  };
  return coordinator.webUrl;
}

function countingLog(): Log {
  const count = (level: string) => (fields: object, message: string) => {
    const { error } = fields as { error?: Error };
    const name = `${level}: ${message}${error === undefined ? "" : ` (${String(error.message).slice(0, 120)})`}`;
    logged[name] = (logged[name] ?? 0) + 1;
  };
  return { debug() {}, info() {}, warn: count("warn"), error: count("error") };
}

function figures(): CoordinatorFigures {
  const { user, system } = process.cpuUsage();
  const { rss, heapUsed, external } = process.memoryUsage();
  const delay = (ns: number) => Math.max(0, ns / 1e6 - resolutionMs);
  const delayMs = { p50: delay(loop.percentile(50)), p99: delay(loop.percentile(99)), max: delay(loop.max) };
  loop.reset();
  return {
    type: "figures",
    cpuMs: (user + system) / 1000,
    ...{ rssBytes: rss, heapBytes: heapUsed, externalBytes: external },
    ...{ delayMs, logged },
  };
}

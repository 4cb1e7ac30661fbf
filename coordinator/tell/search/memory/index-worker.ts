/**
 * The process of the index in memory. It is told where the database is, reports its progress, and answers. It ends
 * with its parent process.
 */
import { setTimeout as delay } from "node:timers/promises";
import { createPool } from "#db/server-database";
import { DatabaseIndex, OutOfRoom } from "./database-index-store.ts";
import type { FromIndex, IndexState, ToIndex } from "./index-answer.ts";
import { touchesKeptMs } from "./index-page-reads.ts";

/** The pause between two looks for changes. */
const followMs = 1000;
const countriesEveryMs = 5000;
const progressEveryMs = 500;

/** One connection reads pages, one the changes, so neither waits. */
const connections = 2;

/** Includes the process's memory besides the index's own arrays. */
const usedBytes = () => process.memoryUsage.rss();

const say = (message: FromIndex): void => {
  if (process.connected) process.send?.(message);
};

let index: DatabaseIndex | null = null;

process.on("message", (message: ToIndex) => {
  if (message.type === "ask") {
    say({ type: "answer", id: message.id, answer: index?.search(message.question) ?? null });
    return;
  }
  void run(message.databaseUrl, message.mostBytes).catch((error: Error) => {
    say({
      type: "state",
      state: { type: "failed", why: error.message, outOfRoom: error instanceof OutOfRoom },
    });
    // Messages have been sent when the channel closes.
    process.disconnect?.();
  });
});
process.once("disconnect", () => process.exit(0));
process.on("SIGINT", () => {});

async function run(databaseUrl: string, mostBytes: number): Promise<never> {
  const pool = createPool(databaseUrl, connections);
  const made = new DatabaseIndex(pool, { mostBytes, usedBytes });
  let nextMs = 0;
  await made.build((progress) => {
    if (performance.now() < nextMs) return;
    nextMs = performance.now() + progressEveryMs;
    say({ type: "state", state: { type: "building", ...progress } });
  });
  await made.catchUp();
  index = made;
  let levelMs = performance.now();
  let countriesMs = levelMs + countriesEveryMs;
  for (;;) {
    say({ type: "state", state: stateOf(made, levelMs) });
    await delay(followMs);
    const beganMs = performance.now();
    try {
      await made.catchUp();
      levelMs = beganMs;
      if (beganMs < countriesMs) continue;
      countriesMs = beganMs + countriesEveryMs;
      await made.readSomeCountries();
    } catch (error) {
      // A restarting server is back in a moment. What was touched longer ago is no longer listed.
      if (error instanceof OutOfRoom || beganMs - levelMs > touchesKeptMs / 2) throw error;
    }
  }
}

function stateOf({ index: { pages, byteLength } }: DatabaseIndex, levelMs: number): IndexState {
  const secondsBehind = (performance.now() - levelMs) / 1000;
  return { type: "ready", pages, bytes: byteLength, secondsBehind };
}

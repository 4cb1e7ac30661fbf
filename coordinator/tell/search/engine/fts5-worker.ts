/**
 * The process of the search's index. It is told where the database and its file are, follows the one into the other,
 * and answers meanwhile. It ends with its parent process.
 */
import { setTimeout as delay } from "node:timers/promises";
import { createPool } from "#db/server-database";
import type { Asked, FromEngine, ToEngine } from "./fts5-client.ts";
import { type Fts5Engine, openFts5 } from "./fts5-engine.ts";
import { isDamage, removeIndex } from "./fts5-index-store.ts";

/** The pause between two looks for changes. */
const followMs = 1000;
const longestPauseMs = 30_000;
const stateEveryMs = 500;

/** All pages are read again now and then, because links and ranks change without them; by far most of the time is rest. */
const leastRestMs = 60_000;
const restPerRound = 50;

/** One connection reads pages, one the changes, so neither waits. */
const connections = 2;

const say = (message: FromEngine): void => {
  if (process.connected) process.send?.(message);
};

let engine: Fts5Engine | null = null;

process.on("message", (message: ToEngine) => {
  if (message.type === "ask") void answer(message.id, message.asked);
  else void run(message);
});
process.once("disconnect", () => process.exit(0));
process.on("SIGINT", () => {});

async function answer(id: number, asked: Asked): Promise<void> {
  try {
    if (engine === null) throw new Error("it is starting");
    say({ type: "answer", id, answer: await answerOf(engine, asked) });
  } catch (error) {
    say({ type: "refusal", id, why: (error as Error).message });
    if (isDamage(error)) throw error;
  }
}

async function answerOf(from: Fts5Engine, asked: Asked): Promise<unknown> {
  switch (asked.about) {
    case "search":
      return await from.search(asked.question);
    case "configurations":
      return await from.configurations();
    case "wordsLike":
      return await from.wordsLike(asked.word);
  }
}

async function run({ databaseUrl, path }: ToEngine & { type: "begin" }): Promise<never> {
  process.once("uncaughtException", (error) => {
    // The next process makes a new file.
    if (isDamage(error)) removeIndex(path);
    say({ type: "trouble", why: error.message });
    // Messages have been sent when the channel closes.
    process.disconnect?.();
  });
  const pool = createPool(databaseUrl, connections);
  const opened = await openFts5(pool, path);
  engine = opened;
  const tell = () => say({ type: "state", state: opened.state() });
  setInterval(tell, stateEveryMs);
  let [pauseMs, nextRoundMs] = [followMs, 0];
  for (let full = false; ; await delay(pauseMs)) {
    const beganMs = performance.now();
    try {
      await opened.catchUp({ full });
      tell();
      // The first one may have read all pages, too.
      const tookMs = performance.now() - beganMs;
      if (full || nextRoundMs === 0)
        nextRoundMs = performance.now() + Math.max(leastRestMs, restPerRound * tookMs);
      if (pauseMs > followMs) say({ type: "trouble", why: null });
      pauseMs = followMs;
      full = performance.now() >= nextRoundMs;
    } catch (error) {
      if (isDamage(error)) throw error;
      // A restarting server is back in a moment.
      if (pauseMs === followMs) say({ type: "trouble", why: (error as Error).message });
      pauseMs = Math.min(longestPauseMs, 2 * pauseMs);
    }
  }
}

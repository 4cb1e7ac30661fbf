/**
 * The process of the search's index. It is told where the database and its file are, follows the one into the other,
 * and answers meanwhile. It ends with its parent process.
 */
import { createPool } from "#db/server-database";
import { follow } from "../export/follow-scheduler.ts";
import type { Asked, FromEngine, ToEngine } from "./fts5-client.ts";
import { type Fts5Engine, openFts5 } from "./fts5-engine-store.ts";
import { isDamage, removeIndex } from "./fts5-index-store.ts";

const stateEveryMs = 500;

/** One connection reads pages, one the changes, so neither waits. */
const connections = 2;

const say = (message: FromEngine): void => {
  if (process.connected) process.send?.(message);
};

let engine: Fts5Engine | null = null;
let leads = false;

process.on("message", (message: ToEngine) => {
  if (message.type === "ask") void answer(message.id, message.asked);
  else if (message.type === "leads") leads = message.leads;
  else void run(message);
});
process.once("disconnect", () => {
  try {
    engine?.close();
  } finally {
    process.exit(0);
  }
});
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

async function run({ databaseUrl, path }: ToEngine & { type: "begin" }): Promise<void> {
  process.on("uncaughtException", (error) => {
    // The next process makes a new file.
    if (isDamage(error)) removeIndex(path);
    say({ type: "trouble", why: error.message });
    // Messages have been sent when the channel closes.
    if (process.connected) process.disconnect();
  });
  const pool = createPool(databaseUrl, connections);
  const opened = await openFts5(pool, path);
  engine = opened;
  const tell = () => say({ type: "state", state: opened.state() });
  setInterval(tell, stateEveryMs);
  await follow({
    catchUp: async (options) => {
      const onLost = (pages: number) => say({ type: "lost", pages });
      await opened.catchUp({ ...options, ...(leads && { onLost }) });
      tell();
    },
    onTrouble: (error) => {
      if (isDamage(error)) throw error;
      say({ type: "trouble", why: error?.message ?? null });
    },
  });
}

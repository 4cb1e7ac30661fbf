// Preloaded into every process that the crawl benchmark measures: answers over the IPC channel what the process
// has used so far (CPU of all its threads, and by kind of thread; memory now and at its peak; what its heap holds on
// to), and takes CPU profiles of the main thread and of the workers when asked.
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { Session } from "node:inspector/promises";
import { collectGarbage } from "../soak/collect-garbage.mjs";

const session = new Session();
/** V8's own are the first that a process starts: one that keeps time, and as many helpers as the flag says. */
const [, helpers = "4"] = /--v8-pool-size=(\d+)/.exec(process.execArgv.join(" ")) ?? [];
const v8Threads = new Set(threadIds().slice(0, 1 + Number(helpers)));

process.on("message", async (message) => {
  if (message?.type === "usage") {
    const { user, system } = process.cpuUsage();
    const { maxRSS } = process.resourceUsage();
    process.send({
      type: "usage",
      cpuMs: (user + system) / 1000,
      rssBytes: process.memoryUsage.rss(),
      peakBytes: maxRSS * 1024,
    });
  } else if (message?.type === "heap") {
    collectGarbage();
    const { heapUsed, external } = process.memoryUsage();
    process.send({ type: "heap", heapBytes: heapUsed, externalBytes: external });
  } else if (message?.type === "threads") {
    process.send({ type: "threads", ...threadMs() });
  } else if (message?.type === "profile") {
    session.connect();
    await attachWorkers();
    for (const target of targets()) await startProfile(target);
    process.send({ type: "profiling" });
  } else if (message?.type === "profiled") {
    const files = [];
    for (const [index, target] of targets().entries()) {
      const { profile } = await target("Profiler.stop");
      files.push(index === 0 ? message.file : `${message.file}.${index}`);
      writeFileSync(files[index], JSON.stringify(profile));
    }
    session.disconnect();
    process.send({ type: "profiled", files });
  }
});
// The benchmark is gone: nobody else would end this process.
process.once("disconnect", () => process.exit());

/** CPU so far: the main thread, V8's helpers, and all others (workers, libuv's pool), the busiest first. Linux. */
function threadMs() {
  const ms = (id) => Number(readFileSync(`/proc/self/task/${id}/schedstat`, "utf8").split(" ")[0]) / 1e6;
  const others = threadIds().filter((id) => !v8Threads.has(id));
  return {
    mainMs: ms(process.pid),
    v8Ms: [...v8Threads].reduce((sum, id) => sum + ms(id), 0),
    othersMs: others.map(ms).sort((a, b) => b - a),
  };
}

/** Besides the main thread, in the order in which they were started. */
function threadIds() {
  if (process.platform !== "linux") return [];
  const ids = readdirSync("/proc/self/task").map(Number);
  return ids.filter((id) => id !== process.pid).sort((a, b) => a - b);
}

/** What is asked of the workers, by the session that V8 has for each. */
const workers = new Map();
let nextId = 1;

async function attachWorkers() {
  workers.clear();
  session.on("NodeWorker.attachedToWorker", ({ params }) => workers.set(params.sessionId, new Map()));
  session.on("NodeWorker.receivedMessageFromWorker", ({ params }) => {
    const { id, result } = JSON.parse(params.message);
    workers.get(params.sessionId)?.get(id)?.(result);
  });
  await session.post("NodeWorker.enable", { waitForDebuggerOnStart: false });
}

/** The main thread first. */
function targets() {
  const ofWorkers = [...workers].map(([sessionId, waiting]) => async (method, params) => {
    const id = nextId++;
    const answered = new Promise((resolve) => waiting.set(id, resolve));
    const message = JSON.stringify({ id, method, params });
    await session.post("NodeWorker.sendMessageToWorker", { sessionId, message });
    return await answered;
  });
  return [(method, params) => session.post(method, params), ...ofWorkers];
}

async function startProfile(target) {
  await target("Profiler.enable");
  await target("Profiler.setSamplingInterval", { interval: 500 });
  await target("Profiler.start");
}

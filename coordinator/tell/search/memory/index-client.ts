/**
 * The coordinator's side of the process of the index in memory: starts it, asks it, watches it, and restarts it when
 * it ends. It is a process rather than a thread so that a machine that runs out of memory ends it and not the
 * coordinator.
 */
import { type ChildProcess, fork } from "node:child_process";
import { fileURLToPath } from "node:url";
import type { Log } from "#core/log";
import type {
  FromIndex,
  IndexAnswer,
  IndexQuestion,
  IndexState,
  SearchIndex,
  ToIndex,
} from "./index-answer.ts";

/** If the index takes longer to answer, the database is asked instead. */
const answerMs = 2000;

/** The first pause in a row. Each further one is twice as long. */
const restartMs = 500;
const restartMostMs = 600_000;
/** By then there may be fewer pages, or more memory. */
const outOfRoomMs = 6 * 3_600_000;
/** A process that has worked this long is restarted soon. */
const healthyMs = 60_000;

interface IndexClientOptions {
  readonly databaseUrl: string;
  readonly mostBytes: number;
  readonly log: Log;
}

export class IndexClient implements SearchIndex {
  readonly #options: IndexClientOptions;
  readonly #waiting = new Map<number, (answer: IndexAnswer | null) => void>();
  #child: ChildProcess | null = null;
  #state: IndexState = { type: "off", why: "it has not been started" };
  /** When the state was reported. */
  #toldMs = 0;
  #lastId = 0;
  #failures = 0;
  #restart: NodeJS.Timeout | null = null;

  constructor(options: IndexClientOptions) {
    this.#options = options;
  }

  get pid(): number | null {
    return this.#child?.pid ?? null;
  }

  start(): void {
    if (this.#child !== null || this.#restart !== null) return;
    const { databaseUrl, mostBytes, log } = this.#options;
    const startedMs = performance.now();
    const child = startProcess();
    this.#child = child;
    this.#tell({ type: "building", pages: 0, ofPages: 0 });
    child.on("message", (message: FromIndex) => this.#take(message));
    child.once("error", (error) =>
      log.error({ error: error.message }, "the index in memory cannot be started"),
    );
    child.once("exit", (code, signal) =>
      this.#ended(child, { startedMs, how: signal ?? `exit code ${code}` }),
    );
    child.send({ type: "begin", databaseUrl, mostBytes } satisfies ToIndex, () => {});
  }

  async stop(): Promise<void> {
    if (this.#restart !== null) clearTimeout(this.#restart);
    this.#restart = null;
    const child = this.#child;
    this.#child = null;
    this.#state = { type: "off", why: "it was stopped" };
    this.#giveUpWaiting();
    if (child === null || child.exitCode !== null || child.signalCode !== null) return;
    await new Promise<void>((resolve) => {
      child.once("exit", () => resolve());
      child.kill("SIGKILL");
    });
  }

  state(): IndexState {
    if (this.#state.type !== "ready") return this.#state;
    const sinceS = (performance.now() - this.#toldMs) / 1000;
    return { ...this.#state, secondsBehind: this.#state.secondsBehind + sinceS };
  }

  async ask(question: IndexQuestion): Promise<IndexAnswer | null> {
    const child = this.#child;
    if (child === null || this.#state.type !== "ready") return null;
    const id = ++this.#lastId;
    return await new Promise((resolve) => {
      const timer = setTimeout(() => this.#answer(id, null), answerMs);
      this.#waiting.set(id, (answer) => {
        clearTimeout(timer);
        resolve(answer);
      });
      child.send({ type: "ask", id, question } satisfies ToIndex, (error) => {
        if (error !== null) this.#answer(id, null);
      });
    });
  }

  #take(message: FromIndex): void {
    if (message.type === "answer") this.#answer(message.id, message.answer);
    else this.#tell(message.state);
  }

  #tell(state: IndexState): void {
    if (state.type === "ready" && this.#state.type !== "ready") {
      this.#options.log.info({ pages: state.pages, bytes: state.bytes }, "the index in memory is ready");
    }
    this.#state = state;
    this.#toldMs = performance.now();
  }

  #answer(id: number, answer: IndexAnswer | null): void {
    this.#waiting.get(id)?.(answer);
    this.#waiting.delete(id);
  }

  #giveUpWaiting(): void {
    for (const id of [...this.#waiting.keys()]) this.#answer(id, null);
  }

  #ended(
    child: ChildProcess,
    { startedMs, how }: { readonly startedMs: number; readonly how: string },
  ): void {
    if (this.#child !== child) return;
    this.#child = null;
    this.#giveUpWaiting();
    const failed = this.#state.type === "failed" ? this.#state : null;
    const why = failed?.why ?? `its process ended (${how})`;
    const outOfRoom = failed?.outOfRoom ?? false;
    this.#failures = performance.now() - startedMs > healthyMs ? 1 : this.#failures + 1;
    const soonMs = Math.min(restartMostMs, restartMs * 2 ** (this.#failures - 1));
    const inMs = outOfRoom ? outOfRoomMs : soonMs;
    this.#state = { type: "failed", why, outOfRoom };
    this.#options.log.warn(
      { why, againInSeconds: inMs / 1000 },
      "the index in memory has ended; the database answers searches",
    );
    this.#restart = setTimeout(() => {
      this.#restart = null;
      this.start();
    }, inMs);
    this.#restart.unref();
  }
}

/** TypeScript sources need a loader; the build is JavaScript. */
function startProcess(): ChildProcess {
  const isSource = import.meta.filename.endsWith(".ts");
  const entry = isSource ? "index-worker-from-source.mjs" : "index-worker.js";
  return fork(fileURLToPath(new URL(`./${entry}`, import.meta.url)), {
    execArgv: isSource ? ["--conditions=nearcrawl-source"] : [],
    // Ctrl-C is for the coordinator only.
    detached: false,
    stdio: ["ignore", "ignore", "inherit", "ipc"],
  });
}

/**
 * The coordinator's side of the process of the search's index: starts it, asks it, and restarts it when it ends. It is a
 * process rather than a thread because a search keeps it busy, and so that a machine that runs out of memory ends it and
 * not the coordinator.
 */
import { type ChildProcess, fork } from "node:child_process";
import { fileURLToPath } from "node:url";
import type { Log } from "#core/log";
import type { DatabaseFault } from "../../../database/database-watch.ts";
import {
  type EngineAnswer,
  EngineAway,
  type EngineQuestion,
  type EngineState,
  type SearchEngine,
  type WrittenWord,
} from "./search-engine.ts";

export type Asked =
  | { readonly about: "search"; readonly question: EngineQuestion }
  | { readonly about: "configurations" }
  | { readonly about: "wordsLike"; readonly word: string };

export type ToEngine =
  | { readonly type: "begin"; readonly databaseUrl: string; readonly path: string }
  /** Whether this coordinator has pages without a text fetched again: only one does. */
  | { readonly type: "leads"; readonly leads: boolean }
  | { readonly type: "ask"; readonly id: number; readonly asked: Asked };

export type FromEngine =
  | { readonly type: "state"; readonly state: EngineState }
  /** Why it does not follow the database at the moment, or ends; null: it follows again. */
  | { readonly type: "trouble"; readonly why: string | null }
  /** So many pages have no text in the database: an engine that kept it was in use before. */
  | { readonly type: "lost"; readonly pages: number }
  | { readonly type: "answer"; readonly id: number; readonly answer: unknown }
  | { readonly type: "refusal"; readonly id: number; readonly why: string };

/** Longer than a search may take, for several that come at once. */
const answerMs = 5000;

/** A search that is under way ends first. */
const endMs = 1500;

/** The first pause in a row. Each further one is twice as long. */
const restartMs = 500;
const restartMostMs = 600_000;
/** A process that has worked this long is restarted soon. */
const healthyMs = 60_000;
/** An index that follows the database is behind by a second or two. */
const mostBehindS = 60;

interface Fts5ClientOptions {
  readonly databaseUrl: string;
  /** The file of the index; ":memory:" for one that ends with its process. */
  readonly path: string;
  readonly leads: () => boolean;
  readonly log: Log;
}

interface Waiting {
  resolve(answer: unknown): void;
  reject(error: EngineAway): void;
  readonly timer: NodeJS.Timeout;
}

export class Fts5Client implements SearchEngine {
  readonly #options: Fts5ClientOptions;
  readonly #waiting = new Map<number, Waiting>();
  #child: ChildProcess | null = null;
  #state: EngineState = { type: "away", why: "it has not been started" };
  #toldMs = 0;
  /** What keeps its process from its work, as it says. */
  #trouble: string | null = null;
  #lastId = 0;
  #failures = 0;
  /** From then on it is not one that keeps ending. */
  #steadyMs = 0;
  #lastWell = new Date();
  #restart: NodeJS.Timeout | null = null;

  constructor(options: Fts5ClientOptions) {
    this.#options = options;
  }

  get pid(): number | null {
    return this.#child?.pid ?? null;
  }

  start(): void {
    if (this.#child !== null || this.#restart !== null) return;
    const { databaseUrl, path, log } = this.#options;
    this.#steadyMs = performance.now() + (this.#failures === 0 ? 0 : healthyMs);
    const child = startProcess();
    this.#child = child;
    // After a failure, its reason stays until the next process has begun its work.
    if (this.#failures === 0) this.#tell({ type: "away", why: "it is starting" });
    child.on("message", (message: FromEngine) => this.#take(message));
    child.once("error", (error) =>
      log.error({ error: error.message }, "the process of the search's index cannot be started"),
    );
    child.once("exit", (code, signal) => this.#ended(child, signal ?? `exit code ${code}`));
    this.#tellLeads(child);
    child.send({ type: "begin", databaseUrl, path } satisfies ToEngine, () => {});
  }

  async stop(): Promise<void> {
    if (this.#restart !== null) clearTimeout(this.#restart);
    this.#restart = null;
    const child = this.#child;
    this.#child = null;
    this.#tell({ type: "away", why: "it was stopped" });
    this.#giveUpWaiting();
    if (child === null || child.exitCode !== null || child.signalCode !== null) return;
    await new Promise<void>((resolve) => {
      // A file of SQLite is whole whenever its process ends.
      const timer = setTimeout(() => child.kill("SIGKILL"), endMs);
      child.once("exit", () => {
        clearTimeout(timer);
        resolve();
      });
      if (child.connected) child.disconnect();
    });
  }

  state(): EngineState {
    if (this.#state.type !== "ready") return this.#state;
    const sinceS = (performance.now() - this.#toldMs) / 1000;
    return { ...this.#state, secondsBehind: this.#state.secondsBehind + sinceS };
  }

  /** One that cannot be opened, keeps ending, cannot be written, or is behind. */
  fault(): DatabaseFault | null {
    if (Date.now() - this.#lastWell.getTime() < mostBehindS * 1000) return null;
    const why =
      this.#trouble ?? (this.#state.type === "away" ? this.#state.why : "it is behind, or keeps ending");
    return { words: `the search's index does not follow the database: ${why}`, since: this.#lastWell };
  }

  search = async (question: EngineQuestion) => await this.#ask<EngineAnswer>({ about: "search", question });
  configurations = async () => await this.#ask<readonly string[]>({ about: "configurations" });
  wordsLike = async (word: string) => await this.#ask<readonly WrittenWord[]>({ about: "wordsLike", word });

  async #ask<Answer>(asked: Asked): Promise<Answer> {
    const child = this.#child;
    if (child === null || this.#state.type === "away") throw new EngineAway(this.#away);
    const id = ++this.#lastId;
    return await new Promise<Answer>((resolve, reject) => {
      const timer = setTimeout(() => this.#refuse(id, "it takes too long"), answerMs);
      this.#waiting.set(id, { resolve, reject, timer });
      child.send({ type: "ask", id, asked } satisfies ToEngine, (error) => {
        if (error !== null) this.#refuse(id, error.message);
      });
    });
  }

  get #away(): string {
    return this.#state.type === "away" ? this.#state.why : "it ended";
  }

  #take(message: FromEngine): void {
    const { log } = this.#options;
    if (message.type === "state") {
      this.#tell(message.state);
      const { secondsBehind = 0 } = message.state as { readonly secondsBehind?: number };
      const isWell = performance.now() > this.#steadyMs && this.#trouble === null;
      if (isWell && secondsBehind < mostBehindS) this.#lastWell = new Date();
      if (this.#child !== null) this.#tellLeads(this.#child);
    } else if (message.type === "lost")
      log.warn({ pages: message.pages }, "pages whose text is not in the database are fetched again");
    else if (message.type === "refusal") this.#refuse(message.id, message.why);
    else if (message.type === "answer") this.#settle(message.id)?.resolve(message.answer);
    else if (message.why !== this.#trouble) {
      this.#trouble = message.why;
      if (message.why === null) log.info({}, "the search's index follows the database again");
      else log.warn({ why: message.why }, "the search's index does not follow the database");
    }
  }

  #tellLeads(child: ChildProcess): void {
    child.send({ type: "leads", leads: this.#options.leads() } satisfies ToEngine, () => {});
  }

  #tell(state: EngineState): void {
    if (state.type === "ready" && this.#state.type !== "ready")
      this.#options.log.info({ pages: state.pages, bytes: state.bytes }, "the search's index is ready");
    this.#state = state;
    this.#toldMs = performance.now();
  }

  #settle(id: number): Waiting | undefined {
    const waiting = this.#waiting.get(id);
    clearTimeout(waiting?.timer);
    this.#waiting.delete(id);
    return waiting;
  }

  #refuse(id: number, why: string): void {
    this.#settle(id)?.reject(new EngineAway(why));
  }

  #giveUpWaiting(): void {
    for (const id of [...this.#waiting.keys()]) this.#refuse(id, this.#away);
  }

  #ended(child: ChildProcess, how: string): void {
    if (this.#child !== child) return;
    this.#child = null;
    const why = this.#trouble ?? `its process ended (${how})`;
    this.#trouble = null;
    this.#tell({ type: "away", why });
    this.#giveUpWaiting();
    this.#failures = performance.now() > this.#steadyMs ? 1 : this.#failures + 1;
    const inMs = Math.min(restartMostMs, restartMs * 2 ** (this.#failures - 1));
    this.#options.log.warn({ why, againInSeconds: inMs / 1000 }, "the search's index has ended");
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
  const entry = isSource ? "fts5-worker-from-source.mjs" : "fts5-worker.js";
  return fork(fileURLToPath(new URL(`./${entry}`, import.meta.url)), {
    // Node's SQLite says at every start that it is experimental.
    execArgv: [
      "--disable-warning=ExperimentalWarning",
      ...(isSource ? ["--conditions=nearcrawl-source"] : []),
    ],
    // Dates stay dates.
    serialization: "advanced",
    // Ctrl-C is for the coordinator only.
    detached: false,
    stdio: ["ignore", "ignore", "inherit", "ipc"],
  });
}

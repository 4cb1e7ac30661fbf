/**
 * One crawler process, from its start to its end: its lines passed on, its messages checked, its silence noticed, its end put into words. What follows from an end is the dock's matter.
 *
 *   starting → (healthy) → stopping → ended, or ended from anywhere by itself
 */
import { type ChildProcess, spawn } from "node:child_process";
import { finished } from "node:stream/promises";
import type { ChildCommand } from "./child-command.ts";
import { type CrawlerToDock, crawlerToDock, type DockMessage } from "./dock-messages.ts";
import { endWords, LastWords } from "./last-words.ts";
import { LineSplitter } from "./line-splitter.ts";

export interface ChildEnd {
  /** How it ended and what it said last. */
  readonly words: string;
  /** The dock had asked for it, or the process went with 0. */
  readonly inOrder: boolean;
  /** What the coordinator said when it wanted no more of this crawler; null: it said no such thing. */
  readonly refused: string | null;
  readonly livedMs: number;
}

export interface ChildHandlers {
  onMessage(message: CrawlerToDock): void;
  /** A line that it wrote, without its end. */
  onLine(line: string): void;
  /** Called once. */
  onEnd(end: ChildEnd): void;
}

export interface ChildSettings {
  readonly command: ChildCommand;
  readonly handlers: ChildHandlers;
  /** Without a sign of life for so long it is stuck, and is ended. */
  readonly silenceMs: number;
  /** Asked to stop, it may take so long. */
  readonly stopMs: number;
}

/** Signs of life are looked for so often within `silenceMs`: a machine that slept for an hour has missed one look. */
const looksPerSilence = 4;
/** After its end; nobody else holds the other ends of its pipes. */
const readOutMs = 1000;

export class CrawlerChild {
  readonly #settings: ChildSettings;
  readonly #process: ChildProcess;
  readonly #lastWords = new LastWords();
  readonly #startedMs = performance.now();
  readonly ended: Promise<void>;
  readonly #looking: NodeJS.Timeout;
  #resolveEnded: () => void = () => {};
  #missedLooks = 0;
  #refused: string | null = null;
  #endedBecause: string | null = null;
  #asked = false;
  #over = false;

  constructor(settings: ChildSettings) {
    this.#settings = settings;
    this.ended = new Promise((resolve) => {
      this.#resolveEnded = resolve;
    });
    const { args, env } = settings.command;
    this.#process = spawn(process.execPath, args, { env, stdio: ["ignore", "pipe", "pipe", "ipc"] });
    this.#listen();
    this.#looking = setInterval(() => this.#look(), settings.silenceMs / looksPerSilence);
  }

  /** Undefined when it could not be started. */
  get pid(): number | undefined {
    return this.#process.pid;
  }

  send(message: DockMessage): void {
    if (this.#process.connected) this.#process.send(message, () => {});
  }

  /** Asks it to end; ends it when it takes too long. Resolves when it is gone. */
  async stop(): Promise<void> {
    this.#asked = true;
    this.send({ type: "stop" });
    const late = setTimeout(() => {
      this.end(`it did not stop within ${this.#settings.stopMs / 1000} s and was ended`);
    }, this.#settings.stopMs);
    await this.ended;
    clearTimeout(late);
  }

  /** At once. */
  end(because: string): void {
    if (this.#over) return;
    this.#endedBecause ??= because;
    this.#process.kill("SIGKILL");
  }

  #listen(): void {
    const { handlers } = this.#settings;
    const [output, errors] = [
      new LineSplitter(handlers.onLine),
      new LineSplitter((line) => this.#onError(line)),
    ];
    this.#process.stdout?.on("data", (piece: Buffer) => output.add(piece));
    this.#process.stderr?.on("data", (piece: Buffer) => errors.add(piece));
    this.#process.on("message", (message) => this.#take(message));
    this.#process.on("error", (error) => this.#onProcessError(error));
    // Not `close`, which does not come after the child has closed the IPC channel.
    this.#process.on("exit", async (code, signal) => {
      await this.#readOut();
      output.end();
      errors.end();
      this.#end(endWords({ code, signal }), code === 0);
    });
  }

  /** What it said last may still be in the pipes. */
  async #readOut(): Promise<void> {
    const pipes = [this.#process.stdout, this.#process.stderr].filter((pipe) => pipe !== null);
    const signal = AbortSignal.timeout(readOutMs);
    await Promise.all(pipes.map((pipe) => finished(pipe, { signal }).catch(() => {})));
  }

  #onError(line: string): void {
    this.#lastWords.add(line);
    this.#settings.handlers.onLine(line);
  }

  /** It could not be started, or a message to it was lost with it. */
  #onProcessError(error: Error): void {
    if (this.#process.pid === undefined) this.#end(`it could not be started: ${error.message}`, false);
  }

  #take(message: unknown): void {
    const { data } = crawlerToDock.safeParse(message);
    if (data === undefined || this.#over) return;
    this.#missedLooks = 0;
    if (data.type === "refused") this.#refused = data.reason;
    this.#settings.handlers.onMessage(data);
  }

  #look(): void {
    this.#missedLooks += 1;
    if (this.#missedLooks <= looksPerSilence) return;
    this.end(`it gave no sign of life for ${this.#settings.silenceMs / 1000} s and was ended`);
  }

  #end(how: string, wellEnded: boolean): void {
    if (this.#over) return;
    this.#over = true;
    clearInterval(this.#looking);
    const words = this.#lastWords.reason(this.#endedBecause ?? how);
    const inOrder = this.#endedBecause === null && (this.#asked || wellEnded);
    this.#settings.handlers.onEnd({
      words,
      inOrder,
      refused: this.#refused,
      livedMs: performance.now() - this.#startedMs,
    });
    this.#resolveEnded();
  }
}

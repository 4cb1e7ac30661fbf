/** A process that reports its usage: report-usage.mjs is preloaded into it and answers over the IPC channel. */
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";

export interface Usage {
  /** User and system time of all threads since the start. */
  readonly cpuMs: number;
  readonly peakBytes: number;
}

export class MeasuredProcess {
  readonly #child: ChildProcess;
  #output = "";

  constructor(
    script: string,
    options: { readonly args?: readonly string[]; readonly execArgv?: readonly string[] },
  ) {
    const preload = join(import.meta.dirname, "report-usage.mjs");
    this.#child = fork(script, [...(options.args ?? [])], {
      execArgv: ["--import", preload, ...(options.execArgv ?? [])],
      stdio: ["ignore", "pipe", "pipe", "ipc"],
    });
    for (const stream of [this.#child.stdout, this.#child.stderr])
      stream?.on("data", (data) => {
        this.#output = (this.#output + data).slice(-4000);
      });
  }

  usage(): Promise<Usage> {
    return this.ask<Usage>({ type: "usage" }, "usage");
  }

  /** Sends a message and resolves with the answer of that type; throws with the process's output when it ends. */
  async ask<Answer>(message: object, type: string): Promise<Answer> {
    const settled = new AbortController();
    const { signal } = settled;
    const ended = once(this.#child, "exit", { signal }).then(([code]) => {
      throw new Error(`a measured process ended with ${code}: ${this.#output}`);
    });
    const answered = this.#answer<Answer>(type, signal);
    this.#child.send(message);
    try {
      return await Promise.race([answered, ended]);
    } finally {
      ended.catch(() => {});
      answered.catch(() => {});
      settled.abort();
    }
  }

  async stop(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const gone = once(this.#child, "exit");
    this.#child.kill("SIGKILL");
    await gone;
  }

  async #answer<Answer>(type: string, signal: AbortSignal): Promise<Answer> {
    for (;;) {
      const [message] = (await once(this.#child, "message", { signal })) as [
        { type?: string; error?: string },
      ];
      if (message.error !== undefined) throw new Error(message.error);
      if (message.type === type) return message as Answer;
    }
  }
}

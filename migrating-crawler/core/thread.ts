/** Starts a thread from a file `NAME-worker` beside the one that asks for it, in whatever form the program is there. */
import { type ResourceLimits, Worker } from "node:worker_threads";

/** Set by the bundling (ops/bundle-crawler.mjs), which makes one file of everything: by name, the threads that are programs of their own. */
declare const bundledThreads: Readonly<Record<string, string>> | undefined;

interface ThreadStart {
  /** `import.meta.url` of whoever asks. */
  readonly beside: string;
  readonly name: string;
  readonly data?: object;
  readonly limits?: ResourceLimits;
}

/** TypeScript has to be bundled first; what is built is JavaScript; any other thread of a bundle begins in the bundle itself. */
export function startThread({ beside, name, data, limits: resourceLimits = {} }: ThreadStart): Worker {
  if (typeof bundledThreads !== "undefined") {
    const text = bundledThreads[name];
    return new Worker(text ?? new URL(beside), {
      workerData: data,
      resourceLimits,
      eval: text !== undefined,
    });
  }
  const isSource = beside.endsWith(".ts");
  const file = new URL(`./${name}.${isSource ? "ts" : "js"}`, beside);
  if (!isSource) return new Worker(file, { workerData: data, resourceLimits });
  const workerData = { ...data, source: file.href };
  return new Worker(new URL("./thread-from-source.mjs", import.meta.url), { workerData, resourceLimits });
}

/** Starts a thread from the file `NAME-worker` beside the caller, whether from sources, a build or a bundle. */
import { type ResourceLimits, Worker } from "node:worker_threads";

/** The source code of the threads that are separate programs, by name. The bundler (ops/bundle-crawler.mjs) defines it. */
declare const bundledThreads: Readonly<Record<string, string>> | undefined;

interface ThreadStart {
  readonly beside: string;
  readonly name: string;
  readonly data?: object;
  readonly limits?: ResourceLimits;
}

/** TypeScript is bundled first, a build is already JavaScript, and other threads of a bundle run the bundle itself. */
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

/** Starts a thread from a file `NAME-worker` beside the one that asks for it, in whatever form the program is there. */
import { type ResourceLimits, Worker } from "node:worker_threads";

/** Set by the bundling (ops/bundle-crawler.mjs): everything is in one file. */
declare const isOneFile: boolean | undefined;

export interface ThreadStart {
  /** `import.meta.url` of whoever asks. */
  readonly beside: string;
  readonly name: string;
  /** What tells the file, which may be the bundle, what this thread is for. */
  readonly data: { readonly role: string };
  readonly limits?: ResourceLimits;
}

/** TypeScript has to be bundled first; what is built is JavaScript; a bundle is its own file, and looks at the role. */
export function startThread({ beside, name, data, limits: resourceLimits = {} }: ThreadStart): Worker {
  if (typeof isOneFile !== "undefined")
    return new Worker(new URL(beside), { workerData: data, resourceLimits });
  const isSource = beside.endsWith(".ts");
  const file = new URL(`./${name}.${isSource ? "ts" : "js"}`, beside);
  if (!isSource) return new Worker(file, { workerData: data, resourceLimits });
  const workerData = { ...data, source: file.href };
  return new Worker(new URL("./thread-from-source.mjs", import.meta.url), { workerData, resourceLimits });
}

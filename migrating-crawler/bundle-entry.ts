/**
 * Where the one-file bundle begins: in its main thread the crawler, in any other no more than what extracts pages, so that
 * it takes less memory. Whatever is imported in an `await` is only set up then.
 */
import { isMainThread } from "node:worker_threads";

if (isMainThread) await import("./main.ts");
else await import("./extract/extraction-worker.ts");

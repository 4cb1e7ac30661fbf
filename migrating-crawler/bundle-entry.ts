/**
 * The one-file bundle starts here. The main thread runs the crawler, while any other thread loads only what extraction needs,
 * which saves memory. Modules imported with `await` are initialised only when that import runs.
 */
import { isMainThread } from "node:worker_threads";

if (isMainThread) await import("./main.ts");
else await import("./extract/extraction-worker.ts");

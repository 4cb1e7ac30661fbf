/**
 * The partners' one-file program `nearcrawl-crawler.mjs` starts here. The main thread runs the commands, while any other
 * thread loads only what extraction needs.
 */
import { isMainThread } from "node:worker_threads";

if (isMainThread) await import("./main.ts");
else await import("../extract/extraction-worker.ts");

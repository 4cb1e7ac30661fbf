/**
 * Where the partners' one file begins, `nearcrawl-crawler.mjs`: in its main thread the commands, in any other no more than
 * what extracts pages, as `leave` ships what waits.
 */
import { isMainThread } from "node:worker_threads";

if (isMainThread) await import("./main.ts");
else await import("../extract/extraction-worker.ts");

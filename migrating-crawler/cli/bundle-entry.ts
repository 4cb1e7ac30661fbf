/**
 * Where the partners' one file begins, `nearcrawl-crawler.mjs`: in its main thread the commands, in a thread that a
 * command's crawler starts (`leave` ships what waits) no more than what extracts.
 */
import { isMainThread } from "node:worker_threads";

if (isMainThread) await import("./main.ts");
else await import("../extract/extraction-worker.ts");

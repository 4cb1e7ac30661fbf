/**
 * Where the partners' one file begins, `nearcrawl-crawler.mjs`: in its main thread the commands, in any other no more than
 * what that thread is for (the local page; pages to extract, as `leave` ships what waits).
 */
import { isMainThread, workerData } from "node:worker_threads";

if (isMainThread) await import("./main.ts");
else if (workerData?.role === "nearcrawl-page") await import("../status/page-worker.ts");
else await import("../extract/extraction-worker.ts");

// Starts a thread from TypeScript sources in tests and development. Builds do not use it.
import { workerData } from "node:worker_threads";
import { importSource } from "#core/source-thread";

await importSource(new URL(workerData.source));

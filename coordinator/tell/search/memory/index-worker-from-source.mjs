// Starts the process of the index in memory from TypeScript sources, in tests and development. What is built does without.
import { importSource } from "#core/source-thread";

await importSource(new URL("./index-worker.ts", import.meta.url));

// Starts the ranking thread from TypeScript sources, in tests and development. What is built does without.
import { importSource } from "#core/source-thread";

await importSource(new URL("./ranking-worker.ts", import.meta.url));

// Starts the process of the search's index from TypeScript sources, in tests and development. What is built does without.
import { importSource } from "#core/source-thread";

await importSource(new URL("./fts5-worker.ts", import.meta.url));

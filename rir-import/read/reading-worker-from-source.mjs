// Starts the reading thread from TypeScript sources, in tests and development. What is built does without.
import { importSource } from "#core/source-thread";

await importSource(new URL("./reading-worker.ts", import.meta.url));

// Starts the ranking thread from TypeScript sources, in tests and development. A built program does not need it.
import { importSource } from "#core/source-thread";

await importSource(new URL("./ranking-worker.ts", import.meta.url));

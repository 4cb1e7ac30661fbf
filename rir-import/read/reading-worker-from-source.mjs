// Starts the reading thread from TypeScript sources, in tests and development. What is built does without.
import { importSource } from "../../coordinator/core/source-thread.mjs";

await importSource(new URL("./reading-worker.ts", import.meta.url));

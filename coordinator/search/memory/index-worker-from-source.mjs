// Starts the process of the index in memory from TypeScript sources, in tests and development. What is built does without.
import { register } from "tsx/esm/api";

register();
await import("./index-worker.ts");

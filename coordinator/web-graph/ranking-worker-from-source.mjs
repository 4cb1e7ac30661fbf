// Starts the ranking thread from TypeScript sources, in tests and development. What is built does without.
import { register } from "tsx/esm/api";

register();
await import("./ranking-worker.ts");

/** How much memory the embedded Postgres keeps pages of its tables in, by what the machine (or its container) has. */
import { totalmem } from "node:os";

const megabyte = 2 ** 20;
/** Postgres' own default, which runs anywhere. */
const leastMegabytes = 128;
/** Beyond it, the pages that the operating system keeps do as well. */
const mostMegabytes = 1024;

/** An eighth of the memory; for setting shared_buffers. */
export function sharedMegabytes(memoryBytes: number = memoryOfMachine()): number {
  return Math.max(leastMegabytes, Math.min(mostMegabytes, Math.floor(memoryBytes / 8 / megabyte)));
}

/** A container's limit where there is one (cgroups); 0 or a number beyond all memory where there is none. */
function memoryOfMachine(): number {
  const limit = process.constrainedMemory();
  return limit > 0 ? Math.min(limit, totalmem()) : totalmem();
}

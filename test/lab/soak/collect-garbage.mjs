/** Collects garbage in a process that was not started with --expose-gc. */
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

let collect = null;

export function collectGarbage() {
  if (collect === null) {
    setFlagsFromString("--expose-gc");
    collect = runInNewContext("gc");
  }
  collect();
}

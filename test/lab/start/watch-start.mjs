// Loaded before a command: writes down, when it ends, what it cost or how much it loaded. The processor time has all threads of the
// process, from its start; the count takes a thread more, so it has a run of its own.
import { statSync, writeFileSync } from "node:fs";

const { WATCH_START: what, WATCH_OUT: out } = process.env;
if (what === "count") {
  const { watchLoading } = await import("../../support/loaded-files.mjs");
  const loaded = watchLoading();
  process.on("exit", () => {
    const files = loaded();
    write({ files: files.length, bytes: files.reduce((sum, file) => sum + statSync(file).size, 0) });
  });
} else {
  process.on("exit", () => {
    const { user, system } = process.cpuUsage();
    write({ cpuMs: (user + system) / 1000 });
  });
}

function write(told) {
  writeFileSync(out, JSON.stringify(told));
}

// Preloaded into a command that the parse benchmark measures: when it ends, it writes down what it has used.
import { writeFileSync } from "node:fs";
import { isMainThread } from "node:worker_threads";

if (isMainThread) {
  process.once("exit", () => {
    const { user, system } = process.cpuUsage();
    const peakBytes = process.resourceUsage().maxRSS * 1024;
    writeFileSync(
      process.env.NEARCRAWL_BENCH_USAGE,
      JSON.stringify({ cpuSeconds: (user + system) / 1e6, peakBytes }),
    );
  });
}

/** Runs a supervisor as a process that a test can kill: `node … HOME`. */
import { runSupervisor, untilSignal } from "#crawler/supervisor/run-supervisor";
import { quickTiming } from "./release-world.ts";

await runSupervisor({
  home: process.argv[2] ?? "",
  env: {},
  program: "nearcrawl-crawler.mjs",
  print: (line) => void process.stdout.write(`${line}\n`),
  timing: { ...quickTiming, pollMs: 300, mostWatchedStarts: 2 },
  untilAsked: untilSignal,
});

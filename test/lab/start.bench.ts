/**
 * The cost of starting a command: processor time of all threads of the built program's help and of small real commands, with the
 * number and bytes of the loaded modules; optionally in turns with another build.
 *
 * Run: npm run build && npm run bench -- start [--before FOLDER] [--rounds 3]
 * FOLDER is another checkout with its dist/.
 */
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import type { DescribedCommand } from "#ops/cli/described-command";
import { figure, median, spread } from "./figure.ts";

const { values: options } = parseArgs({
  options: {
    before: { type: "string" },
    rounds: { type: "string", default: "3" },
  },
});
const here = resolve(import.meta.dirname, "../..");
const checkouts = [...(options.before === undefined ? [] : [resolve(options.before)]), here];
const watch = join(import.meta.dirname, "start/watch-start.mjs");
const scratch = mkdtempSync(join(tmpdir(), "nearcrawl-bench-start-"));

interface Start {
  readonly cpuMs: number;
  readonly wallMs: number;
  readonly files: number;
  readonly bytes: number;
}

/** Commands of this build; the other refuses unknown ones, which costs as much. */
const described: readonly DescribedCommand[] = JSON.parse(
  readFileSync(join(here, "dist/ops/cli/commands.json"), "utf8"),
);
const page = join(scratch, "page.html");
writeFileSync(page, "<!doctype html><title>A page</title><p>Some words of a page that is read.</p>");
writeFileSync(join(scratch, "robots.txt"), "User-agent: *\nDisallow: /private\n");

interface Measured {
  readonly words: string;
  /** Path in dist/; null: Node without a program. */
  readonly program: string | null;
  /** Several commands are one line with their smallest and largest values, one start each. */
  readonly commands: readonly (readonly string[])[];
}

/** Real commands that need neither database nor network. */
const lines: readonly Measured[] = [
  { words: "node, which does nothing", program: null, commands: [["-e", "0"]] },
  ...[["--version"], ["--help"], ["who", "--help"], ["fleet", "--help"], ["coordinator", "--help"]].map(
    (args) => one(args),
  ),
  {
    words: `each of ${described.length}: --help`,
    program: "ops/cli/main.js",
    commands: described.map(({ name }) => [name, "--help"]),
  },
  { words: "nearcrawl-crawler.mjs --help", program: "nearcrawl-crawler.mjs", commands: [["--help"]] },
  one(["completion", "bash"]),
  one(["who"], "who (refused: no question)"),
  one(["accuracy", "--limit", "x"], "accuracy --limit x (refused by its code)"),
  one(["robots", join(scratch, "robots.txt")], "robots FILE"),
  one(["extract", page], "extract FILE"),
  one(["crawler", "status", "--home", join(scratch, "none")], "crawler status (none there)"),
  one(["coordinator", "--listen", "x"], "coordinator --listen x (refused by its settings)"),
];

function one(args: readonly string[], words = args.join(" ")): Measured {
  return { words, program: "ops/cli/main.js", commands: [args] };
}

try {
  console.log(tableLine(["command", ...checkouts.flatMap((_, index) => heads(index))]));
  console.log(tableLine(["---", ...checkouts.flatMap(() => heads(0).map(() => "---:"))]));
  for (const line of lines) {
    const taken = measured(line);
    console.log(tableLine([`\`${line.words}\``, ...taken.flatMap(cells)]));
    if (line.program !== null) figure(line.words, median(taken.at(-1)!.map(({ cpuMs }) => cpuMs)), "ms CPU");
  }
} finally {
  rmSync(scratch, { recursive: true });
}

function heads(index: number): string[] {
  const of = index === checkouts.length - 1 ? "" : " before";
  return [`CPU ms${of}`, `wall ms${of}`, `files${of}`, `KB${of}`];
}

/** Each checkout's starts, in turns; files are counted in a separate run, since counting takes time. */
function measured({ program, commands }: Measured): Start[][] {
  const argsIn = (checkout: string, args: readonly string[]) =>
    program === null ? args : [join(checkout, "dist", program), ...args];
  const taken: Start[][] = checkouts.map(() => []);
  const counts = checkouts.map((checkout) => start(argsIn(checkout, commands[0]!), "count"));
  const rounds = commands.length > 1 ? 1 : Number(options.rounds);
  for (const args of Array.from({ length: rounds }, () => commands).flat()) {
    for (const [index, checkout] of checkouts.entries())
      taken[index]!.push({ ...counts[index]!, ...timesOf(start(argsIn(checkout, args), "time")) });
  }
  return taken;
}

function timesOf({ cpuMs, wallMs }: Start) {
  return { cpuMs, wallMs };
}

function start(args: readonly string[], what: "count" | "time"): Start {
  const out = join(scratch, "start.json");
  const env = { ...process.env, NEARCRAWL_HOME: join(scratch, "home"), WATCH_START: what, WATCH_OUT: out };
  const startedMs = performance.now();
  spawnSync(process.execPath, ["--import", watch, ...args], {
    env,
    stdio: "ignore",
    timeout: 60_000,
  });
  const wallMs = performance.now() - startedMs;
  return { wallMs, ...JSON.parse(readFileSync(out, "utf8")) };
}

function cells(starts: readonly Start[]): string[] {
  const { files, bytes } = starts[0]!;
  const of = (name: "cpuMs" | "wallMs") =>
    spread(
      starts.map((one) => one[name]),
      0,
    );
  return [of("cpuMs"), of("wallMs"), String(files), (bytes / 1000).toFixed(0)];
}

function tableLine(words: readonly string[]): string {
  return `| ${words.join(" | ")} |`;
}

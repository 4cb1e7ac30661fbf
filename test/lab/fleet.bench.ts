/**
 * A fleet in a box: the real coordinator and an embedded Postgres in processes of their own, and N light crawlers that
 * speak the real protocol over real WebSockets (test/lab/fleet/session.ts). The crawlers are known (key, identity), each
 * is alone in a subnet of its own and has four others, and measures what two places on the globe are apart.
 *
 *   storm    all connect at once; a refused one comes back when it was told to, as the real one does (its own code)
 *   idle     nobody has anything to do
 *   work     a fifth of the fleet has due URLs, and delivers a small page for each
 *   rounds   hosts come in subnets that nobody has
 *   restart  the coordinator is killed and comes again
 *
 * Run: npm run bench -- fleet --crawlers 100,1000,3000 [--steps storm,idle,work] [--out FILE]
 * `npm run bench -- fleet --help` lists all options. Every step is bounded in time, and nothing is left behind.
 */
import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { cpus } from "node:os";
import { parseArgs } from "node:util";
import { FleetBox } from "./fleet/box.ts";
import { FigureList, type Run, tableOf } from "./fleet/figures.ts";
import { type StepSettings, steps } from "./fleet/steps.ts";

const numbers = {
  "storm-seconds": [180, "a storm (or a return) is given so long"],
  "storm-over": [0, "the crawlers come over so many seconds; 0: all at once"],
  "rest-seconds": [15, "before idle is measured"],
  "idle-seconds": [60, "idle is measured for so long"],
  "work-seconds": [30, "work is measured for so long at most"],
  "busy-share": [0.2, "of the fleet, how many have due work"],
  "work-hosts": [60_000, "hosts that are due, over all of them"],
  "urls-per-host": [1, "due URLs of each"],
  "rounds-seconds": [60, "probe rounds are measured for so long at most"],
  "concurrent-hosts": [32, "hosts that a crawler crawls at a time"],
  "fetch-ms": [100, "what fetching a URL takes"],
  subnets: [4, "subnets of each crawler beside its own"],
  "free-subnets": [5000, "subnets that nobody has"],
} as const;

const texts = {
  crawlers: ["100", "sizes of the fleet, one after the other: 100,1000"],
  steps: [Object.keys(steps).join(","), "what is done, in this order"],
  settings: ["{}", "of the coordinator, as JSON"],
  out: ["", "a file for the table"],
} as const;

const all = { ...texts, ...numbers };
const { values } = parseArgs({
  options: {
    help: { type: "boolean" },
    ...Object.fromEntries(Object.keys(all).map((name) => [name, { type: "string" as const }])),
  },
});
const given = values as Record<string, string | undefined>;

if (values.help) {
  for (const [name, [usual, words]] of Object.entries(all))
    console.log(`--${name.padEnd(18)} ${words} (${usual === "" ? "none" : usual})`);
  process.exit();
}

const sizes = text("crawlers")
  .split(",")
  .map((one) => within("--crawlers", Number(one), 1, 20_000));
const wanted = text("steps").split(",").map(stepOf);
const runs: Run[] = [];
for (const crawlers of sizes) runs.push(await run(crawlers));
report();
process.exit();

async function run(crawlers: number): Promise<Run> {
  const start = performance.now();
  const say = (line: string) => console.log(line);
  const list = new FigureList();
  console.log(`\n## ${crawlers} crawlers`);
  const box = await FleetBox.open({
    crawlers,
    subnetsPerCrawler: number("subnets"),
    freeSubnets: number("free-subnets"),
    coordinator: JSON.parse(text("settings")),
    concurrentHosts: number("concurrent-hosts"),
    fetchMs: number("fetch-ms"),
    say,
  });
  const close = () => void box.close().finally(() => process.exit(130));
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, close);
  try {
    for (const name of wanted) {
      console.log(`${name}, ${Math.round((performance.now() - start) / 1000)} s after the start`);
      await steps[name](box, stepSettings(), list);
    }
  } catch (error) {
    list.note("all", `it ended early: ${error instanceof Error ? error.message : String(error)}`);
    process.exitCode = 1;
  } finally {
    for (const signal of ["SIGINT", "SIGTERM"] as const) process.off(signal, close);
    await box.close();
  }
  const done = { crawlers, ...list };
  console.log(`${tableOf([done])}\n${list.notes.join("\n")}`);
  return done;
}

function stepSettings(): StepSettings {
  return {
    stormSeconds: number("storm-seconds"),
    stormOverSeconds: number("storm-over"),
    restSeconds: number("rest-seconds"),
    idleSeconds: number("idle-seconds"),
    workSeconds: number("work-seconds"),
    busyShare: number("busy-share"),
    workHosts: number("work-hosts"),
    urlsPerHost: number("urls-per-host"),
    roundsSeconds: number("rounds-seconds"),
  };
}

function report(): void {
  const table = tableOf(runs);
  if (runs.length > 1) console.log(`\n${table}`);
  if (text("out") === "") return;
  const [{ model = "unknown" } = {}] = cpus();
  const [day] = new Date().toISOString().split("T");
  const machine = `${day}, ${commit()}, Node ${process.versions.node}, ${cpus().length} cores (${model}).`;
  const notes = runs.flatMap((one) => one.notes.map((note) => `- ${one.crawlers}, ${note}`)).join("\n");
  writeFileSync(text("out"), `${machine}\n\n${table}\n\n${notes}\n`);
}

function commit(): string {
  return execFileSync("git", ["log", "-1", "--format=%h"], { encoding: "utf8" }).trim();
}

function text(name: keyof typeof texts): string {
  return given[name] ?? texts[name][0];
}

function number(name: keyof typeof numbers): number {
  return within(`--${name}`, Number(given[name] ?? numbers[name][0]), 0, 10_000_000);
}

function within(name: string, value: number, least: number, most: number): number {
  if (value >= least && value <= most) return value;
  console.error(`${name}: must be a number from ${least} to ${most}`);
  process.exit(2);
}

function stepOf(name: string): keyof typeof steps {
  if (name in steps) return name as keyof typeof steps;
  console.error(`--steps: there is no step "${name}"; there are ${Object.keys(steps).join(", ")}`);
  process.exit(2);
}

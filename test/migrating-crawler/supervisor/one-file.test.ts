/** The partners' built one-file program: `run` on a joined home, with a coordinator's releases available. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { readStopWords } from "#core/words/stop-words-resolver";
import { releaseState } from "#crawler/core/release-state";
import { runningSupervisor } from "#crawler/supervisor/supervisor-home";
import { bundlePartnerProgram } from "../../../ops/bundle-crawler.mjs";
import { until } from "../../support/until.ts";
import { bundleText, type Home, type ReleaseWorld, startReleaseWorld } from "./release-world.ts";

let world: ReleaseWorld;
let file: string;
beforeAll(async () => {
  world = await startReleaseWorld();
  file = join(world.newHome().path, "nearcrawl-crawler.mjs");
  await bundlePartnerProgram({
    root: join(import.meta.dirname, "../../.."),
    outfile: file,
    stopWords: readStopWords(),
  });
}, 60_000);
afterAll(() => world.close());

async function run(home: string): Promise<{ readonly code: number; readonly errors: string }> {
  const program = spawn(process.execPath, [file, "run", "--home", home], {
    stdio: ["ignore", "ignore", "pipe"],
  });
  let errors = "";
  program.stderr.on("data", (data) => (errors += data));
  const [code] = await once(program, "close");
  return { code, errors };
}

it("run fetches the release, runs it in the sandbox without the supervisor's secrets, and ends in order", async () => {
  const home = world.newHome();
  world.offerToAll(world.publish("1.0", curiousBundle));
  const env = { PATH: process.env.PATH, SECRET_OF_THE_DOCK: "s3cret", TZ: "Europe/Athens" };
  const program = spawn(process.execPath, [file, "run", "--home", home.path], { env, stdio: "ignore" });
  await until(() => existsSync(join(home.path, "crawler/found")), 20_000);
  const other = await run(home.path);

  const isRunning = runningSupervisor(home.path);
  program.kill("SIGTERM");
  const [code] = await once(program, "exit");

  expect(JSON.parse(readFileSync(join(home.path, "crawler/found"), "utf8"))).toEqual({
    passwd: "ERR_ACCESS_DENIED",
    outside: "ERR_ACCESS_DENIED",
    process: "ERR_ACCESS_DENIED",
    thread: "done",
    own: ["done", "done", "done", "done", "done"],
    docks: Array(7).fill("ERR_ACCESS_DENIED"),
    moved: "ERR_ACCESS_DENIED",
    environment: ["TZ"],
  });
  expect(isRunning).toBe(program.pid);
  expect(other).toMatchObject({
    code: 2,
    errors: expect.stringMatching(/process \d+ runs the crawler of this folder already/),
  });
  expect(code).toBe(0);
  expect(stateOf(home).current?.version).toBe("1.0");
  expect(runningSupervisor(home.path)).toBe(null);
  const log = join(home.path, "log/crawler.log");
  expect(readFileSync(log, "utf8")).toMatch(/"msg":"the supervisor has stopped"/);
  for (const path of [log, join(home.path, "releases/state.json")])
    expect(statSync(path).mode & 0o077).toBe(0);
});

it("run on a folder that has not joined says what to do", async () => {
  const { code, errors } = await run(join(world.newHome().path, "nothing-here"));

  expect(code).toBe(2);
  expect(errors).toMatch(/belongs to no coordinator yet: run join with an invitation first/);
});

const stateOf = ({ path }: Home) =>
  releaseState.parse(JSON.parse(readFileSync(join(path, "releases/state.json"), "utf8")));

/** Tries what a release must not be able to do, and records the results. */
const curiousBundle = bundleText("1.0")
  .replace(
    `note("1.0 started`,
    `const trial = (work) => { try { work(); return "done"; } catch (error) { return error.code; } };
  const found = {
    passwd: trial(() => readFileSync("/etc/passwd")),
    outside: trial(() => appendFileSync(home + "/../outside", "x")),
    process: trial(() => execFileSync("true")),
    thread: trial(() => new Worker("", { eval: true })),
    own: ["status.json.new", "membership.json.7.new", "spool/id", "moving/pack", "crawler/signing-keys.json.7.new"].map((name) =>
      trial(() => {
        const folder = dirname(home + "/" + name);
        if (!existsSync(folder)) mkdirSync(folder);
        appendFileSync(home + "/" + name, "x");
      })),
    docks: ["releases/pins.json", "releases/state.json", "releases/new.mjs", "settings.toml", "dock.pid",
      "log/crawler.log", "inside"].map((name) => trial(() => appendFileSync(home + "/" + name, "x"))),
    moved: trial(() => renameSync(home + "/releases", home + "/crawler/releases")),
    environment: Object.keys(process.env),
  };
  appendFileSync(home + "/crawler/found.new", JSON.stringify(found));
  renameSync(home + "/crawler/found.new", home + "/crawler/found");
  $&`,
  )
  .replace(
    "const home",
    `import { execFileSync } from "node:child_process"; import { mkdirSync } from "node:fs";
import { dirname } from "node:path"; import { Worker } from "node:worker_threads"; $&`,
  );

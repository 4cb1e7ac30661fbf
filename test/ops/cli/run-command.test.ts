/** A command beside the coordinator: its progress and answers, and that no limit or crash leaves it running. */

import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import type { JobStep } from "#coordinator/run/registry/jobs";
import { isRunning } from "#core/running-process";
import { runCommand } from "#ops/cli/registry/run-command";
import { builtProgram } from "../../support/built-command.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";
import { until } from "../../support/until.ts";

let folder: string;
beforeAll(() => {
  folder = temporaryFolder("run-command-");
});
afterAll(() => rmSync(folder, { recursive: true }));

const steps: JobStep[] = [];

/** Runs a program of these lines. */
function run(lines: string, bounds: { minutes?: number; megabytes?: number } = {}) {
  const entry = join(folder, "program.mjs");
  writeFileSync(entry, lines);
  steps.length = 0;
  return runCommand(
    {
      ...{ entry, execArgv: [], args: ["--word", "x"], env: { SECRET_PLACE: "postgres://" } },
      bounds: { minutes: 1, megabytes: 1024, ...bounds },
    },
    (step) => steps.push(step),
  );
}

const waits = "setInterval(() => {}, 1000);";

it("reports its steps, and answers with its output", async () => {
  const { ended } = run(`
    process.send({ text: "reading 10 %", share: 0.1, done: null });
    process.send({ text: 7, nonsense: true });
    process.send({ text: "x", share: 2, done: null });
    console.log(JSON.stringify({ args: process.argv.slice(2), place: process.env.SECRET_PLACE }));
    process.disconnect();`);

  expect(await ended).toEqual({
    exitCode: 0,
    words: "",
    result: { args: ["--word", "x"], place: "postgres://" },
  });
  expect(steps).toEqual([{ text: "reading 10 %", share: 0.1, done: null }]);
});

it("gives the last output of a failed one, and no partial answer", async () => {
  const { ended } = run(`
    console.error("nearcrawl: no such file");
    process.stdout.write('{"half":');
    process.disconnect();
    process.exitCode = 2;`);

  expect(await ended).toEqual({ exitCode: 2, words: "no such file", result: null });
});

it("ends one that takes too much memory or time, or prints too much", async () => {
  const hungry = `const kept = Buffer.alloc(200e6, 1); ${waits} setInterval(() => kept.length, 9999);`;
  const talking = `const line = "x".repeat(1e6); process.stdout.on("error", () => {}); setInterval(() => process.stdout.write(line), 0);`;

  expect((await run(hungry, { megabytes: 150 }).ended).words).toContain("more than 150 MB of memory");
  expect((await run(waits, { minutes: 0.005 }).ended).words).toContain("longer than 0.005 minutes");
  expect((await run(talking).ended).words).toBe("it printed more than 32 MB");
});

it("ends when it is stopped, and gives the reason", async () => {
  const running = run(`process.send({ text: "there", share: null, done: null }); ${waits}`);
  await until(() => steps.length === 1, 10_000);

  running.stop();

  expect(await running.ended).toEqual({ exitCode: null, words: "it was ended by SIGTERM", result: null });
});

it("reports a failed start", async () => {
  const bounds = { minutes: 1, megabytes: 512 };
  const { ended } = runCommand(
    { entry: join(folder, "none.mjs"), execArgv: [], args: [], env: {}, bounds },
    () => {},
  );

  const { exitCode, words } = await ended;
  expect([exitCode, words]).toEqual([1, expect.stringContaining("none.mjs")]);
});

it("does not outlive a coordinator that is killed", async () => {
  const pidFile = join(folder, "pid");
  const coordinator = await forkCoordinator(pidFile);
  await until(() => existsSync(pidFile) && readFileSync(pidFile, "utf8") !== "", 20_000);
  const pid = Number(readFileSync(pidFile, "utf8"));

  coordinator.kill("SIGKILL");
  await once(coordinator, "exit");

  await until(() => !isRunning(pid), 10_000);
});

/** Starts a command that ends with its coordinator as `nearcrawl rir` does, and writes its process id. */
async function forkCoordinator(pidFile: string): Promise<ChildProcess> {
  const jobSteps = await builtProgram("ops/cli/rir/job-steps");
  const job = join(folder, "job.mjs");
  writeFileSync(
    job,
    `import { writeFileSync } from "node:fs";
     import { endWithCoordinator } from ${JSON.stringify(jobSteps)};
     endWithCoordinator();
     writeFileSync(${JSON.stringify(pidFile)}, String(process.pid));
     ${waits}`,
  );
  const coordinator = join(folder, "coordinator.mjs");
  const options = { detached: true };
  writeFileSync(
    coordinator,
    `import { fork } from "node:child_process";
     fork(${JSON.stringify(job)}, [], { ...${JSON.stringify(options)}, env: { ...process.env, NEARCRAWL_JOB: "1" } });
     ${waits}`,
  );
  return fork(coordinator, [], { execArgv: [] });
}

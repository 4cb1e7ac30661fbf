/** Supervised real processes, with the supervisor on a manual clock. */

import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { isRunning } from "#core/running-process";
import { type ChildSettings, lastLines, SupervisedProcess } from "#ops/cli/up/child-process";
import { builtProgram } from "../../support/built-command.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";
import { until } from "../../support/until.ts";

const root = temporaryFolder("nearcrawl-child-");
const realTimeout = setTimeout;
let children: SupervisedProcess[] = [];
let files = 0;

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
});
afterEach(async () => {
  vi.useRealTimers();
  for (const { pid } of children) if (pid) process.kill(pid, "SIGKILL");
  await Promise.all(children.map((child) => child.stop()));
  children = [];
});

/** A process that runs this text as a module. */
function supervised(source: string, differences: Partial<ChildSettings> = {}) {
  files += 1;
  const entry = join(root, `entry-${files}.mjs`);
  writeFileSync(entry, source);
  const logFile = join(root, "logs", `${files}.log`);
  const deaths: string[] = [];
  const messages: unknown[] = [];
  const child = new SupervisedProcess({
    name: "child",
    entry,
    args: [],
    logFile,
    onDeath: (words) => deaths.push(words),
    onMessage: (message) => messages.push(message),
    ...differences,
  });
  children.push(child);
  child.start();
  return { child, deaths, messages, logFile, log: () => lastLines(logFile, 1000) };
}

/** Waits in real time, although the supervisor's clock stands still. */
async function soon(holds: () => boolean): Promise<void> {
  for (let waited = 0; !holds(); waited += 10) {
    if (waited > 10_000) throw new Error(`not within 10 s: ${holds.toString()}`);
    await new Promise((resolve) => realTimeout(resolve, 10));
  }
}

const stays = "process.send('up'); setInterval(() => {}, 1000);";

it("passes its arguments, secrets and messages, and writes what it prints to its log", async () => {
  const { messages, log } = supervised(
    "console.log('to out'); console.error('to err'); process.send([process.argv[2], process.env.SECRET]);",
    { args: ["argument"], secrets: { SECRET: "secret" }, restart: false },
  );

  await soon(() => messages.length > 0 && log().includes("to err"));

  expect(messages).toEqual([["argument", "secret"]]);
  expect(log()).toContain("to out");
});

it("keeps output that arrives after the end of the process", async () => {
  const { deaths, log } = supervised(
    `import { spawn } from "node:child_process";
     spawn("sh", ["-c", "sleep 0.2; echo last words >&2"], { stdio: "inherit" }).unref();
     process.exit(3);`,
    { restart: false },
  );

  await soon(() => deaths.length > 0 && log().includes("last words"));

  expect(deaths[0]).toMatch(/^child ended with code 3 \(log: /);
});

it("restarts a dead process, at once and with growing delays", async () => {
  const { child, deaths, messages } = supervised(
    "process.send('up'); process.exitCode = 7; process.disconnect();",
  );

  for (const [place, delayMs] of [100, 1000, 2000, 4000].entries()) {
    await soon(() => deaths.length === place + 1);
    vi.advanceTimersByTime(delayMs - 1);
    expect(child.pid).toBeNull();
    vi.advanceTimersByTime(1);
    expect(child.pid).not.toBeNull();
    await soon(() => messages.length === place + 2);
  }

  expect(deaths[0]).toMatch(/^child ended with code 7; starting it again \(log: /);
});

it("reports a death by signal, and does not restart an irreplaceable process", async () => {
  const { child, deaths, messages } = supervised(stays, { restart: false });
  await soon(() => messages.length === 1);

  process.kill(child.pid!, "SIGKILL");
  await soon(() => deaths.length === 1);
  vi.advanceTimersByTime(60_000);

  expect(deaths[0]).toMatch(/^child was ended by SIGKILL \(log: /);
  expect(child.pid).toBeNull();
});

it("stops a process on request, without reporting a death", async () => {
  const { child, deaths, messages } = supervised(stays);
  await soon(() => messages.length === 1);
  const pid = child.pid!;

  await child.stop();
  vi.advanceTimersByTime(60_000);

  expect([isRunning(pid), child.pid, deaths]).toEqual([false, null, []]);
});

it("kills a process that does not stop", async () => {
  const { child, messages } = supervised(`process.on('SIGTERM', () => process.send('no')); ${stays}`);
  await soon(() => messages.length === 1);
  const pid = child.pid!;

  const stopping = child.stop();
  await soon(() => messages.includes("no"));
  vi.advanceTimersByTime(7999);
  expect(isRunning(pid)).toBe(true);
  vi.advanceTimersByTime(1);
  await stopping;

  expect(isRunning(pid)).toBe(false);
});

it("does not restart after a stop between death and restart", async () => {
  const { child, deaths } = supervised("process.exit(1);");
  await soon(() => deaths.length === 1);

  await child.stop();
  vi.advanceTimersByTime(60_000);

  expect(child.pid).toBeNull();
});

it("stops, with the reason in its log, if the program cannot be started", async () => {
  const execPath = process.execPath;
  process.execPath = join(root, "no-such-node");
  const { child, deaths, log } = supervised(stays, { restart: false });
  process.execPath = execPath;

  await soon(() => log().includes("ENOENT"));
  await child.stop();

  expect(deaths).toHaveLength(1);
});

it.each([
  ["is up", 0],
  ["is still starting", 1],
])("ends with its supervisor when that is killed while it %s", async (_, isStarting) => {
  vi.useRealTimers();
  const urlOf = async (program: string) => JSON.stringify(await builtProgram(`ops/cli/${program}`));
  const [asked, supervisor] = [await urlOf("service-process"), await urlOf("up/child-process")];
  const inner = join(root, `inner-${isStarting}.mjs`);
  const up = join(root, `up-${isStarting}`);
  writeFileSync(
    inner,
    `import { writeFileSync } from "node:fs";
     import { setTimeout as delay } from "node:timers/promises";
     import { untilAskedToStop } from ${asked};
     const supervisor = process.ppid;
     const running = setInterval(() => {}, 1000);
     if (${isStarting}) {
       writeFileSync(${JSON.stringify(up)}, "");
       while (process.ppid === supervisor) await delay(10);
       while (process.connected) await delay(10);
     }
     const asked = untilAskedToStop();
     writeFileSync(${JSON.stringify(up)}, "");
     await asked;
     clearInterval(running);`,
  );
  const settings = { name: "inner", entry: inner, args: [], logFile: join(root, "inner.log") };
  const { child, messages } = supervised(
    `import { SupervisedProcess } from ${supervisor};
     const child = new SupervisedProcess(${JSON.stringify(settings)});
     child.start();
     process.send(child.pid);`,
    { restart: false },
  );
  await until(() => messages.length === 1 && existsSync(up), 10_000);
  const innerPid = messages[0] as number;

  process.kill(child.pid!, "SIGKILL");

  await until(() => !isRunning(innerPid), 10_000).finally(
    () => isRunning(innerPid) && process.kill(innerPid, "SIGKILL"),
  );
});

import { spawn } from "node:child_process";
import { once } from "node:events";
import { expect, it } from "vitest";
import { isRunning } from "#core/running-process";

it("a process runs until it has ended", async () => {
  const child = spawn(process.execPath, ["--eval", "setInterval(() => {}, 1000)"]);
  const pid = child.pid as number;

  const before = isRunning(pid);
  child.kill("SIGKILL");
  await once(child, "exit");

  expect([isRunning(process.pid), before, isRunning(pid)]).toEqual([true, true, false]);
});

it("another user's process counts, and an invalid number does not", () => {
  expect(isRunning(1)).toBe(true);
  // 0 and negative numbers denote process groups, including the test's own.
  expect([0, -process.pid, Number.NaN, 1.5, 2 ** 31].map(isRunning)).toEqual([
    false,
    false,
    false,
    false,
    false,
  ]);
});

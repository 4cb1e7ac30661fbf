/** A server that reports recovery without a startup process is ended; any other is left alone. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, expect, it } from "vitest";
import { dataFolderOf } from "#db/embedded-cluster";
import { RecoveryWatch, serverIsAlive } from "#db/embedded-postgres";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { until } from "../support/until.ts";

const running: ChildProcess[] = [];
afterEach(() => {
  for (const server of running.splice(0)) server.kill("SIGKILL");
});

/** Imitates a postmaster by its pid file and the data folder in its command line. It ends at SIGQUIT. */
async function postmaster(child = "") {
  const home = temporaryFolder("nearcrawl-recovery-watch-");
  const dataFolder = dataFolderOf(home);
  mkdirSync(dataFolder, { recursive: true });
  const program = `${child}; process.on("SIGUSR2", () => console.log("here")); setInterval(() => {}, 1000); console.log("up")`;
  const server = spawn(process.execPath, ["-e", program, dataFolder], {
    stdio: ["ignore", "pipe", "ignore"],
  });
  running.push(server);
  await once(server.stdout!, "data");
  writeFileSync(join(dataFolder, "postmaster.pid"), `${server.pid}\n${dataFolder}\n0\n5432\n${home}\n`);
  return { home, server, isAlive: () => serverIsAlive(home) };
}

const startupProcess = `require("node:child_process").spawn("cat", [], { argv0: "postgres: startup recovering" })`;

it("one without a startup process is stopped at the second check", async () => {
  const { home, server, isAlive } = await postmaster();
  const watch = new RecoveryWatch(home, 0);
  await watch.note({ type: "recovering" });
  expect(isAlive()).toBe(true);
  await watch.note({ type: "recovering" });

  await until(() => server.signalCode !== null, 5000);
  expect([server.signalCode, isAlive()]).toEqual(["SIGQUIT", false]);
});

it.each([
  ["that answers in between", "", ["recovering", "busy", "recovering", "silent", "recovering"]],
  ["that is busy otherwise", "", ["busy", "busy", "busy", "silent", "silent"]],
  ["with a startup process", startupProcess, Array(5).fill("recovering")],
] as const)("one %s is not", async (_, child, states) => {
  const { home, server, isAlive } = await postmaster(child);
  const watch = new RecoveryWatch(home, 0);
  for (const type of states) await watch.note({ type });

  // Signals are delivered in order.
  server.kill("SIGUSR2");
  await Promise.race([once(server.stdout!, "data"), once(server, "exit")]);
  expect([server.signalCode, isAlive()]).toEqual([null, true]);
});

/** Watchdog signs sent by the real systemd-notify to a real datagram socket. */
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { afterEach, expect, it } from "vitest";
import { keepWatchdogCalm, signOfLifeMs } from "#ops/cli/service-process";
import { temporaryFolder } from "../../support/temporary-folder.ts";
import { until } from "../../support/until.ts";

const runs = (program: string) => {
  try {
    execFileSync(program, ["--version"], { stdio: "ignore" });
    return true;
  } catch {
    return false;
  }
};
/** Node itself cannot listen on one. */
const canListen = runs("systemd-notify") && runs("python3");
if (!canListen)
  process.stderr.write("skipped: systemd's watchdog: there is no systemd-notify or python3 here\n");

let listener: ChildProcess | null = null;
afterEach(async () => {
  if (listener === null) return;
  listener.kill();
  await once(listener, "close");
  listener = null;
});

const listen = `
import socket, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.bind(sys.argv[1])
while True:
    print(s.recv(1000).decode(), flush=True)
`;

it.runIf(canListen)("systemd is notified three times within its limit, until the end", async () => {
  const socket = join(temporaryFolder("nearcrawl-notify-"), "notify");
  let heard = "";
  listener = spawn("python3", ["-c", listen, socket], { stdio: ["ignore", "pipe", "inherit"] });
  listener.stdout!.on("data", (text) => {
    heard += text;
  });
  await until(() => existsSync(socket), 10_000);
  const faults: string[] = [];

  const env = { ...process.env, NOTIFY_SOCKET: socket, WATCHDOG_USEC: "600000" };
  const watchdog = keepWatchdogCalm((words) => faults.push(words), env);
  await until(() => heard.split("WATCHDOG=1").length > 3, 10_000);
  watchdog.stop();

  expect(faults).toEqual([]);
});

it("a failed notification is reported once", async () => {
  const faults: string[] = [];
  const env = { PATH: "/nowhere", NOTIFY_SOCKET: "/nowhere/notify", WATCHDOG_USEC: "3000" };

  const watchdog = keepWatchdogCalm((words) => faults.push(words), env);
  await until(() => faults.length > 0, 5000);
  watchdog.stop();

  expect(faults).toEqual([
    "systemd's watchdog cannot be told that this process lives: spawn systemd-notify ENOENT",
  ]);
});

it("nothing is sent without a watchdog, or with another process's", () => {
  const env = { NOTIFY_SOCKET: "/run/systemd/notify", WATCHDOG_USEC: "300000000" };

  expect(signOfLifeMs(env, 7)).toBe(100_000);
  expect(signOfLifeMs({ ...env, WATCHDOG_PID: "7" }, 7)).toBe(100_000);
  expect(signOfLifeMs({ ...env, WATCHDOG_PID: "8" }, 7)).toBeNull();
  expect(signOfLifeMs({ NOTIFY_SOCKET: "/run/systemd/notify" }, 7)).toBeNull();
  expect(signOfLifeMs({ ...env, WATCHDOG_USEC: "0" }, 7)).toBeNull();
});

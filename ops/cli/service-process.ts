/** What a process does that systemd or a supervisor runs: its sign of life, and how it is asked to end. */
import { spawn } from "node:child_process";

// A sign of life for systemd's watchdog (sd_watchdog_enabled(3)), where the unit sets one: a coordinator whose loop stands
// still is ended and started again. It says that the process takes turns, and nothing of the database: to start it anew
// would not bring that back. Node has no datagrams on Unix sockets, so systemd-notify sends them, a few times a minute.

/** Further signs make up for a lost one in time. */
const signsInTime = 3;

export function signOfLifeMs(env: NodeJS.ProcessEnv, processId: number): number | null {
  const { NOTIFY_SOCKET: socket = "", WATCHDOG_USEC: microseconds = "", WATCHDOG_PID: pid = "" } = env;
  const isOurs = pid === "" || pid === String(processId);
  if (socket === "" || !isOurs || !/^[1-9]\d{0,14}$/.test(microseconds)) return null;
  return Math.max(1, Math.floor(Number(microseconds) / 1000 / signsInTime));
}

/** Does nothing without a watchdog. `onFault`: no signs can be sent, so the watchdog will end this process. */
export function keepWatchdogCalm(
  onFault: (words: string) => void,
  env: NodeJS.ProcessEnv = process.env,
): { stop(): void } {
  const everyMs = signOfLifeMs(env, process.pid);
  if (everyMs === null) return { stop: () => {} };
  let hasFailed = false;
  const say = () => {
    const notify = spawn("systemd-notify", ["WATCHDOG=1"], { env, stdio: "ignore" });
    notify.on("error", ({ message }) => {
      if (!hasFailed) onFault(`systemd's watchdog cannot be told that this process lives: ${message}`);
      hasFailed = true;
    });
    notify.unref();
  };
  say();
  const timer = setInterval(say, everyMs).unref();
  return { stop: () => clearInterval(timer) };
}

// A second signal within this time is the same one.

const sameSignalMs = 1500;

/** Waits for SIGINT or SIGTERM, or in a supervised process for the supervisor's end. */
export function untilAskedToStop(): Promise<"signal" | "disconnect"> {
  return new Promise((resolve) => {
    const onSignal = () => asked("signal");
    const onDisconnect = () => asked("disconnect");
    const asked = (how: "signal" | "disconnect") => {
      // One Ctrl-C may arrive twice (from the terminal and from npm); a later one ends the process at once.
      setTimeout(() => process.off("SIGINT", onSignal).off("SIGTERM", onSignal), sameSignalMs).unref();
      // A listener on the channel would keep the finished process alive.
      process.off("disconnect", onDisconnect);
      resolve(how);
    };
    process.on("SIGINT", onSignal).on("SIGTERM", onSignal);
    if (process.connected) process.on("disconnect", onDisconnect);
    // Its supervisor ended before this call.
    else if (process.send) asked("disconnect");
  });
}

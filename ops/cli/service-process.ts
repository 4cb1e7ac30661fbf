/** How a process that systemd or a supervisor runs signals that it is alive, and how it is asked to stop. */
import { spawn } from "node:child_process";

// Keep-alive messages for systemd's watchdog (sd_watchdog_enabled(3)), if the unit enables it. systemd restarts a coordinator
// whose event loop is stuck. The messages say nothing about the database, since a restart would not bring it back. Node cannot
// send datagrams on Unix sockets, so systemd-notify sends the messages, a few times a minute.

/** Messages per watchdog interval. Several are sent, so that one may be lost. */
const signsInTime = 3;

export function signOfLifeMs(env: NodeJS.ProcessEnv, processId: number): number | null {
  const { NOTIFY_SOCKET: socket = "", WATCHDOG_USEC: microseconds = "", WATCHDOG_PID: pid = "" } = env;
  const isOurs = pid === "" || pid === String(processId);
  if (socket === "" || !isOurs || !/^[1-9]\d{0,14}$/.test(microseconds)) return null;
  return Math.max(1, Math.floor(Number(microseconds) / 1000 / signsInTime));
}

/** Does nothing without a watchdog. Calls `onFault` when no message can be sent, since systemd will then end this process. */
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

// A second signal within this time counts as the same signal.

const sameSignalMs = 1500;

/** Waits for SIGINT or SIGTERM, or in a supervised process for the end of the supervisor. */
export function untilAskedToStop(): Promise<"signal" | "disconnect"> {
  return new Promise((resolve) => {
    const onSignal = () => asked("signal");
    const onDisconnect = () => asked("disconnect");
    const asked = (how: "signal" | "disconnect") => {
      // One Ctrl-C may arrive twice (from the terminal and from npm). A later signal ends the process immediately.
      setTimeout(() => process.off("SIGINT", onSignal).off("SIGTERM", onSignal), sameSignalMs).unref();
      // Otherwise a listener on the channel would keep the finished process alive.
      process.off("disconnect", onDisconnect);
      resolve(how);
    };
    process.on("SIGINT", onSignal).on("SIGTERM", onSignal);
    if (process.connected) process.on("disconnect", onDisconnect);
    // The supervisor ended before this call.
    else if (process.send) asked("disconnect");
  });
}

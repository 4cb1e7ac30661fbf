/** A second signal within this time is the same one. */
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

/** A second signal so soon after the first is the same one. */
const sameSignalMs = 1500;

/** Waits for SIGINT or SIGTERM, or, in a supervised process, for the supervisor's end. */
export function untilAskedToStop(): Promise<"signal" | "disconnect"> {
  return new Promise((resolve) => {
    const onSignal = () => asked("signal");
    const onDisconnect = () => asked("disconnect");
    const asked = (how: "signal" | "disconnect") => {
      // One Ctrl-C may arrive twice (from the terminal and from npm); a later one means it: end at once.
      setTimeout(() => process.off("SIGINT", onSignal).off("SIGTERM", onSignal), sameSignalMs).unref();
      // A listener on the channel would keep the process alive when its work is done.
      process.off("disconnect", onDisconnect);
      resolve(how);
    };
    process.on("SIGINT", onSignal).on("SIGTERM", onSignal);
    if (process.connected) process.on("disconnect", onDisconnect);
    // Its supervisor ended before it came to ask.
    else if (process.send) asked("disconnect");
  });
}

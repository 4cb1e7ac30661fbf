/** Waits for SIGINT or SIGTERM, or, in a supervised process, for the supervisor's end. */
export function untilAskedToStop(): Promise<"signal" | "disconnect"> {
  return new Promise((resolve) => {
    process.once("SIGINT", () => resolve("signal"));
    process.once("SIGTERM", () => resolve("signal"));
    if (process.connected) process.once("disconnect", () => resolve("disconnect"));
    // Its supervisor ended before it came to ask.
    else if (process.send) resolve("disconnect");
  });
}

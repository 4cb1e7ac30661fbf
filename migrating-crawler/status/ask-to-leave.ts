/** A crawler that was drained has itself end for good, in the way in which everybody else asks for it: by SIGUSR2. */

/** To the dock that runs this process, or to the process itself. Without its dock a docked crawler ends anyway. */
export function askToLeave(isDocked: boolean): void {
  if (!isDocked) process.kill(process.pid, "SIGUSR2");
  else if (process.connected) process.kill(process.ppid, "SIGUSR2");
}

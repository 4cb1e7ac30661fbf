/**
 * Whether the process (of any user) that made a lock, a mark or a folder still runs. False for a number that is no process
 * id.
 */
export function isRunning(pid: number): boolean {
  // Numbers below 1 denote process groups.
  if (!Number.isInteger(pid) || pid < 1) return false;
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}

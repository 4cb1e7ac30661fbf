/** Whether somebody's process is there: of locks, marks and folders that name the process that made them. */

/** Another user's counts, too. A number that is no process's is false. */
export function isRunning(pid: number): boolean {
  // Numbers below 1 stand for groups of processes.
  if (!Number.isInteger(pid) || pid < 1) return false;
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}

/** Runs the work with the zone as the process's time zone. Threads keep theirs, so it needs a process. */
export async function inZone<T>(zone: string, work: () => T | Promise<T>): Promise<T> {
  const before = process.env.TZ;
  process.env.TZ = zone;
  try {
    return await work();
  } finally {
    if (before === undefined) delete process.env.TZ;
    else process.env.TZ = before;
  }
}

/** Runs the work as if the machine's own time were that of the zone. Only in a process of its own: threads keep theirs. */
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

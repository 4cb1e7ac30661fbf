import { timerMs } from "./timer-ms.ts";

/** Returns null when the work takes longer; it continues without anybody waiting. */
export async function within<T>(mostMs: number, work: Promise<T>): Promise<T | null> {
  let late: NodeJS.Timeout | undefined;
  const waited = new Promise<null>((resolve) => {
    late = setTimeout(() => resolve(null), timerMs(mostMs));
  });
  return await Promise.race([work, waited]).finally(() => clearTimeout(late));
}

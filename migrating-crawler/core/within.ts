import { timerMs } from "#core/timer-ms";

/** Resolves with the work or after so long, whichever is first. */
export async function within(ms: number, work: Promise<unknown>): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise((resolve) => {
    timer = setTimeout(resolve, timerMs(ms));
  });
  await Promise.race([work, late]);
  clearTimeout(timer);
}

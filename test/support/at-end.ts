/** What a test starts and has to be ended with it, whatever becomes of it. */
import { onTestFinished } from "vitest";

/** The last one first. Outside a test (what a whole file shares is started there) whoever starts it ends it. */
export function atEnd(...ends: readonly (() => unknown)[]): void {
  for (const end of ends) {
    try {
      onTestFinished(async () => void (await end()), 30_000);
    } catch {
      return;
    }
  }
}

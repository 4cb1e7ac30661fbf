/** Registers what must end with the test, whether it passes or fails. */
import { onTestFinished } from "vitest";

/** Ended in reverse order. Outside a test, the caller ends what it starts. */
export function atEnd(...ends: readonly (() => unknown)[]): void {
  for (const end of ends) {
    try {
      onTestFinished(async () => void (await end()), 30_000);
    } catch {
      return;
    }
  }
}

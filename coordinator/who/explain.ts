/** One line of what stands in the way of a fetch, or how it comes about. */
import type { Standing, StandingCode } from "./who-answer.ts";

export const stop = (code: StandingCode, words: string): Standing => ({ code, stops: true, words });
export const note = (code: StandingCode, words: string): Standing => ({ code, stops: false, words });

/** `: reason` without the reason's own full stop; nothing when there is none. */
export function because(reason: string | null): string {
  const text = reason?.trim().replace(/[.\s]+$/, "") ?? "";
  return text === "" ? "" : `: ${text}`;
}

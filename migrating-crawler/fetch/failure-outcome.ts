/** Failures as outcomes: what is recorded where a URL could not be fetched. */
import type { FetchOutcome } from "#protocol/result";
import type { Failure } from "../net/failure.ts";

export function outcomeOfFailure(failure: Failure): FetchOutcome {
  if (failure.code === "refused-address") {
    return {
      type: "refused-address",
      address: (failure.address ?? "").slice(0, 45),
      block: failure.message.slice(0, 80),
    };
  }
  return { type: "failed", blame: failure.blame, code: failure.code, reason: failure.message.slice(0, 300) };
}

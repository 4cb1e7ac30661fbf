/** What the gateway itself refuses crawlers with, in words for their operators. */
import type { Refusal } from "./connection.ts";

export const replaced: Refusal = {
  code: "replaced",
  reason: "a newer session with the same name and key took the place of this one",
  retry: false,
};
export const shuttingDown: Refusal = {
  code: "shutting-down",
  reason: "the coordinator is shutting down",
  retry: true,
};
export const busyWithTheOther: Refusal = {
  code: "internal-error",
  reason: "what this crawler's session before has sent is still being worked off",
  retry: true,
};
export const unableToAdmit: Refusal = {
  code: "internal-error",
  reason: "the coordinator cannot take anyone now",
  retry: true,
};
/** More come at once than can be let in. */
export function comeBackLater(waiting: number, retryAfterMs: number): Refusal {
  const reason = `${waiting} crawlers wait to be let in; there is room in ${Math.ceil(retryAfterMs / 1000)} s`;
  return { code: "internal-error", reason, retry: true, retryAfterMs };
}
/** Codes of refusals that say nothing bad about whom they went to. */
export const blameless: ReadonlySet<string> = new Set([
  "internal-error",
  "shutting-down",
  "replaced",
  "moved",
]);

/** `leave` ends this crawler for good so that others get its subnets; its folder stays. */
import { UsageError } from "#core/errors";
import { type PartnerContext, type PartnerExitCode, partnerExitCodes } from "../core/partner-context.ts";
import { folderKind } from "../membership/home-folder.ts";
import { type LeaveOutcome, leaveAsOwner } from "./leave-as-owner.ts";

export async function leaveCommand(context: PartnerContext): Promise<PartnerExitCode> {
  const { home, json, print } = context;
  if (folderKind(home) !== "crawler")
    throw new UsageError(`${home} is no crawler's folder: name the right one with --home`);
  const outcome = await leaveAsOwner(context, home);
  if (json) print(JSON.stringify({ home, ...outcome }, null, 2));
  else (hasFailed(outcome) ? context.complain : print)(leaveWords(outcome));
  return hasFailed(outcome) ? partnerExitCodes.failed : partnerExitCodes.done;
}

const hasFailed = ({ type }: LeaveOutcome) => type === "failed" || type === "still-runs";

export function leaveWords(outcome: LeaveOutcome): string {
  switch (outcome.type) {
    case "left":
      return "Left: the coordinator gives this crawler's work to others. Its folder stays; started again, it comes back.";
    case "never-joined":
      return "This folder has joined no coordinator, so there is none to leave.";
    case "refused":
      return `There is nobody to say goodbye to: ${outcome.reason}`;
    case "still-runs":
      return `Not left: ${outcome.reason}.`;
    case "failed":
      return `Not left: ${outcome.reason}. A crawler that stays away loses its work to others by itself, after a while.`;
  }
}

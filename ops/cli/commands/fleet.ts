/** `nearcrawl fleet`: who crawls, and crawlers that are to join, to leave or to come back. */
import type { Command } from "commander";
import { fleetOperations } from "#coordinator/fleet/fleet-ask";
import { inviteCommand, reinviteCommand } from "../fleet/invite.ts";
import { operationGroup } from "../room-command.ts";
import { adviseCommand } from "./of-rooms.ts";

export async function fleetCommand(): Promise<Command> {
  const group = operationGroup(
    "fleet",
    "the crawlers and what each one has; invite, drain, resume or revoke one",
    fleetOperations,
    `

Examples:
  nearcrawl fleet show athens
  nearcrawl fleet invite --name athens --capacity 50000
  nearcrawl fleet incidents --name athens --since 24h
  nearcrawl fleet budget athens --pages-per-day 50000
  nearcrawl fleet domain-sets athens .gr lang:el
  nearcrawl fleet failures --blame crawler
  nearcrawl fleet advise`,
  );
  for (const one of [inviteCommand(), reinviteCommand(), await adviseCommand()]) group.addCommand(one);
  return group;
}

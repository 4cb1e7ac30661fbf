/** `nearcrawl fleet invitations` and `revoke-invitation`: what was handed out, and what is to open nothing any more. */
import { Command } from "commander";
import type { InvitationRecord } from "#coordinator/crawlers/identity";
import { createInvitationStore } from "#coordinator/crawlers/invitation-store";
import { recordCommand } from "../audit-command-change.ts";
import { commandContext, exitCodes } from "../command-context.ts";
import { type DatabaseOptions, withDatabaseOptions } from "../database-options.ts";
import { formatTable, printAnswer } from "../output.ts";
import { printable } from "../printable.ts";
import { readDatabase } from "../read-database.ts";

export function invitationsCommand(): Command {
  return withDatabaseOptions(new Command("invitations"))
    .description("the invitations, the latest first, and what became of each")
    .action(async (options: DatabaseOptions) => {
      const invitations = await readDatabase(
        commandContext(options),
        async ({ pool }) => await createInvitationStore(pool).list(new Date()),
      );
      printAnswer(options, invitations, invitationsText(invitations));
    });
}

export function revokeInvitationCommand(): Command {
  return withDatabaseOptions(new Command("revoke-invitation"))
    .argument("<number-or-name>", "one invitation by its number, or all open ones of a name")
    .description("withdraw an invitation; a crawler that has joined with it stays (nearcrawl fleet revoke)")
    .action(async (which: string, options: DatabaseOptions) => await revokeInvitation(which, options));
}

async function revokeInvitation(which: string, options: DatabaseOptions): Promise<void> {
  const revoked = await readDatabase(commandContext(options), async ({ pool }) => {
    const isNumber = /^\d{1,9}$/.test(which);
    const open = isNumber ? { invitationId: Number(which) } : { name: which };
    const count = await createInvitationStore(pool).revoke(open, new Date());
    const target = isNumber ? `invitation ${which}` : which;
    const words = isNumber ? `Invitation ${which} was withdrawn.` : `${count} of ${which} were withdrawn.`;
    if (count > 0) await recordCommand(pool, { action: "invitation-revoked", target, words });
    return count;
  });
  if (revoked === 0) {
    process.stderr.write(
      `nearcrawl: no invitation "${which.slice(0, 100)}" can still be used: nearcrawl fleet invitations\n`,
    );
    process.exitCode = exitCodes.notFound;
    return;
  }
  printAnswer(options, { revoked }, `withdrawn: ${revoked} ${revoked === 1 ? "invitation" : "invitations"}`);
}

export function invitationsText(invitations: readonly InvitationRecord[]): string {
  if (invitations.length === 0) return "nobody was invited: nearcrawl fleet invite --name NAME";
  return formatTable(
    [
      { title: "number", align: "right" },
      { title: "crawler" },
      { title: "state" },
      { title: "made (UTC)" },
      { title: "by" },
      { title: "good until (UTC)" },
      { title: "pages a day", align: "right" },
      { title: "for" },
    ],
    invitations.map((one) => [
      String(one.invitationId),
      one.name,
      one.state,
      minuteOf(one.createdAt),
      printable(one.createdBy, 30),
      minuteOf(one.expiresAt),
      one.pagesPerDay === null ? "its own" : String(one.pagesPerDay),
      `${one.scopes.includes("crawl") ? "crawling" : "measuring"}${one.renews ? ", new identity" : ""}`,
    ]),
  );
}

const minuteOf = (date: Date): string => date.toISOString().slice(0, 16).replace("T", " ");

/** `nearcrawl access`: what the page /access has: who is signed in, which links are out, and how to end either. */
import { Command } from "commander";
import type { Pool } from "pg";
import { createSessionStore, createSignInLinkStore } from "#coordinator/access/session-store";
import type { Session, SignInLink } from "#core/access-types";
import type { Change } from "#core/audit";
import { recordCommand } from "../audit-command-change.ts";
import { boundedInteger } from "../bounded-number.ts";
import { commandContext } from "../command-context.ts";
import { exitCodes } from "../exit-codes.ts";
import { formatTable, printAnswer, printable } from "../output.ts";
import { type DatabaseOptions, readDatabase, withDatabaseOptions } from "../read-database.ts";

export interface WhoHasAccess {
  readonly sessions: readonly Session[];
  readonly links: readonly SignInLink[];
}

const number = boundedInteger(1, 999_999_999);

export function accessCommand(): Command {
  const command = new Command("access")
    .description("who is signed in to the pages, and unused sign-in links; end either")
    .addHelpText(
      "after",
      "\nnearcrawl sign-in creates links, nearcrawl operator-token creates tokens for programs.\nExit codes: 0 done, 1 failed, 2 wrong usage, 3 there is no session or link with that number.\n\nExamples:\n  nearcrawl access list\n  nearcrawl access end 12",
    );
  command.addCommand(
    withDatabaseOptions(new Command("list"))
      .description("who is signed in, and the unused sign-in links")
      .action(async (options: DatabaseOptions) => {
        const now = new Date();
        const access = await readDatabase(commandContext(options), async ({ pool }) => ({
          sessions: await createSessionStore(pool).list(now),
          links: await createSignInLinkStore(pool).open(now),
        }));
        printAnswer(options, access, accessText(access));
      }),
  );
  command.addCommand(ending("end", "session", "sign somebody out at once", endSession));
  command.addCommand(ending("withdraw", "link", "withdraw an unused sign-in link", withdraw));
  return command;
}

/** Null: there is none of that number. */
type End = (pool: Pool, id: number) => Promise<Change | null>;

function ending(name: string, what: "session" | "link", description: string, end: End): Command {
  return withDatabaseOptions(new Command(name))
    .argument("<number>", `the ${what}'s number: nearcrawl access list`, number)
    .description(description)
    .action(async (id: number, options: DatabaseOptions) => {
      const change = await readDatabase(commandContext(options), async ({ pool }) => {
        const made = await end(pool, id);
        if (made !== null) await recordCommand(pool, made);
        return made;
      });
      if (change !== null) return printAnswer(options, { number: id, ended: true }, change.words);
      process.stderr.write(`nearcrawl: there is no ${what} ${id}: nearcrawl access list\n`);
      process.exitCode = exitCodes.notFound;
    });
}

async function endSession(pool: Pool, sessionId: number): Promise<Change | null> {
  const sessions = createSessionStore(pool);
  const session = (await sessions.list(new Date())).find((one) => one.sessionId === sessionId);
  if (!session || (await sessions.end({ sessionId })) === 0) return null;
  const { name, role } = session;
  const words = `A session of ${name} was ended.`;
  return { action: "session-ended", target: name, words, before: { sessionId, role } };
}

async function withdraw(pool: Pool, linkId: number): Promise<Change | null> {
  const link = await createSignInLinkStore(pool).revoke(linkId, new Date());
  if (link === null) return null;
  const words = `The link for ${link.name} no longer works.`;
  return { action: "sign-in-link-revoked", target: link.name, words, before: { linkId } };
}

export function accessText({ sessions, links }: WhoHasAccess): string {
  return `${sessionsText(sessions)}\n\n${linksText(links)}`;
}

function sessionsText(sessions: readonly Session[]): string {
  if (sessions.length === 0) return "nobody is signed in: nearcrawl sign-in";
  return formatTable(
    [
      { title: "session", align: "right" },
      { title: "who" },
      { title: "role" },
      { title: "last used (UTC)" },
      { title: "from" },
      { title: "ends (UTC)" },
    ],
    sessions.map((one) => [
      String(one.sessionId),
      printable(one.name, 80),
      roleText(one),
      minute(one.lastUsedAt),
      one.remoteAddress ?? "",
      minute(one.endsAt),
    ]),
  );
}

function linksText(links: readonly SignInLink[]): string {
  if (links.length === 0) return "no unused links";
  return formatTable(
    [
      { title: "link", align: "right" },
      { title: "for" },
      { title: "role" },
      { title: "created by" },
      { title: "valid until (UTC)" },
    ],
    links.map((one) => [
      String(one.linkId),
      printable(one.name, 80),
      roleText(one),
      printable(one.issuedBy, 80),
      minute(one.expiresAt),
    ]),
  );
}

const roleText = ({ role, crawlers }: Session | SignInLink) =>
  crawlers.length === 0 ? role : `${role} of ${crawlers.join(", ")}`;
const minute = (at: Date) => at.toISOString().slice(0, 16).replace("T", " ");

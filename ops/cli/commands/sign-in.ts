/** `nearcrawl sign-in`: a link that signs somebody in to the web pages, once. */
import { Command, Option } from "commander";
import type { IssuedLink } from "#coordinator/access/sign-in";
import { linkMinutes } from "#core/access-types";
import { type Role, roles } from "#core/actor";
import { boundedNumber } from "../bounded-number.ts";
import { commandContext } from "../command-context.ts";
import { commandSignInLink, ownName } from "../issue-command-link.ts";
import { printAnswer } from "../output.ts";
import { type DatabaseOptions, readDatabase, withDatabaseOptions } from "../read-database.ts";

interface SignInOptions extends DatabaseOptions {
  readonly role: Role;
  readonly name?: string;
  readonly crawler: readonly string[];
  readonly minutes: number;
}

export function signInCommand(): Command {
  return withDatabaseOptions(new Command("sign-in"))
    .description("print a link that signs in to the web pages, once; there are no passwords")
    .addOption(
      new Option(
        "--role <role>",
        "operator: changes everything; staff: reads everything, submits URLs; partner: its own crawlers",
      )
        .choices(roles)
        .default("operator"),
    )
    .option("--name <name>", "whom it signs in, as shown in the audit log (default: your user name)")
    .option("--crawler <name...>", "the crawlers of a partner", [])
    .option(
      "--minutes <n>",
      "how long the unused link is valid",
      boundedNumber(linkMinutes.least, linkMinutes.most),
      linkMinutes.usual,
    )
    .addHelpText(
      "after",
      "\nWhoever can reach the database can create any link. Unused sign-in links, and who is signed in: nearcrawl access list.\nExit codes: 0 done, 1 failed, 2 wrong usage, or no coordinator has started on this database yet.\n\nExamples:\n  nearcrawl sign-in\n  nearcrawl sign-in --role staff --name anna --minutes 60\n  nearcrawl sign-in --role partner --name ben --crawler athens",
    )
    .action(async (options: SignInOptions) => await signIn(options));
}

async function signIn(options: SignInOptions): Promise<void> {
  const { name = ownName(), role, crawler: crawlers, minutes } = options;
  const link = await readDatabase(
    commandContext(options),
    async ({ pool }) => await commandSignInLink(pool, { name, role, crawlers, minutes }),
  );
  printAnswer(options, link, linkText(link));
}

function linkText({ name, role, crawlers, url, expiresAt }: IssuedLink): string {
  const of = crawlers.length > 0 ? ` of ${crawlers.join(", ")}` : "";
  return `${url}\nsigns in ${name} as ${role}${of}, once, until ${expiresAt.toISOString().slice(0, 16).replace("T", " ")} UTC`;
}

/** What the commands on crawlers' identities share: their options, and what they say of a name that nobody has. */
import { type Command, InvalidArgumentError } from "commander";
import { crawlerName } from "#protocol/invitation";
import { type ContextOptions, exitCodes } from "../command-context.ts";

export interface FleetOptions extends ContextOptions {
  readonly json?: boolean;
}

export function withFleetOptions(command: Command): Command {
  return command
    .option("--home <folder>", "where everything is kept")
    .option("--database-url <url>", "a Postgres server in place of the embedded one")
    .option("--schema <name>", "the database schema")
    .option("--json", "print for programs");
}

/** For commander. */
export function checkedName(text: string): string {
  if (crawlerName.safeParse(text).success) return text;
  throw new InvalidArgumentError(
    "a crawler's name is 1 to 63 lower-case letters, digits, dots, dashes and underscores, and begins with a letter or digit",
  );
}

export function nobodyOfThatName(name: string): void {
  process.stderr.write(`nearcrawl: there is no crawler "${name.slice(0, 100)}": nearcrawl fleet list\n`);
  process.exitCode = exitCodes.notFound;
}

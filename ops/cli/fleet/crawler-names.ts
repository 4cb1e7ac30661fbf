/** How names of crawlers are checked, and what commands say of a name that nobody has. */
import { InvalidArgumentError } from "commander";
import { crawlerName } from "#protocol/invitation";
import { exitCodes } from "../exit-codes.ts";

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

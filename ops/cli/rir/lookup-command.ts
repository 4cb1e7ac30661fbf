/** `nearcrawl rir lookup`: which ranges hold an address, from the database. */
import { Command } from "commander";
import { blocksOf, parseRange } from "#core/ip/range";
import { type FoundSubnet, type LookUp, lookUp, readAsked } from "#rir-import/lookup";
import { exitCodes } from "../exit-codes.ts";
import { formatTable, printable } from "../output.ts";
import { type DatabaseOptions, withDatabaseOptions } from "../read-database.ts";
import { withMigrated } from "./cache-options.ts";

export function lookUpCommand(): Command {
  return withDatabaseOptions(new Command("lookup"))
    .description("the chain of ranges that hold an address or a range; --json: one value a line for each")
    .argument("<address...>", "addresses, a/prefix or 'a - b'")
    .addHelpText("after", help)
    .action(answerAddresses);
}

const help = `
Exit codes: 0 all found, 2 wrong usage, 3 nothing holds one of them.

Examples:
  nearcrawl rir lookup 193.0.6.139
  nearcrawl rir lookup 193.0.6.139 2001:67c:2e8::/48`;

async function answerAddresses(addresses: readonly string[], options: DatabaseOptions): Promise<void> {
  addresses.forEach(readAsked);
  await withMigrated(options, async (database) => {
    for (const [at, address] of addresses.entries()) {
      const found = await lookUp(database, address);
      if (found.chain.length === 0) process.exitCode = exitCodes.notFound;
      const text = options.json ? JSON.stringify(found) : lookUpText(found);
      const gap = at > 0 && !options.json ? "\n" : "";
      if (!(await writeOut(`${gap}${text}\n`))) return;
    }
  });
}

// A look-up for people: the ranges from the least to the most specific, each under the one that holds it.

const deepestIndent = 20;

function lookUpText({ asked, chain, crossing }: LookUp): string {
  if (chain.length === 0) return `nothing in the tree holds ${asked}`;
  const others = crossing.length === 0 ? [] : [`crossing it:\n${subnetTable(crossing, false)}`];
  return [`${asked} lies in`, subnetTable(chain, true), ...blocksText(chain), ...others].join("\n");
}

/** Of ranges that are no CIDR blocks, those that they consist of. */
function blocksText(chain: readonly FoundSubnet[]): readonly string[] {
  return chain.flatMap(({ range: text }) => {
    const range = text.includes("-") ? parseRange(text) : null;
    return range?.family === 4 ? [`${text} is ${blocksOf(range).join(", ")}`] : [];
  });
}

function subnetTable(subnets: readonly FoundSubnet[], indented: boolean): string {
  return formatTable(
    ["range", "registry", "country", "name", "holder", "delegated to"].map((title) => ({ title })),
    subnets.map((subnet, depth) => [
      `${indented ? "  ".repeat(Math.min(depth, deepestIndent)) : ""}${subnet.range}`,
      subnet.registry,
      subnet.country ?? "",
      printable(subnet.name, 40),
      holderText(subnet),
      printable(subnet.delegatedTo ?? "", 40),
    ]),
  );
}

function holderText({ holder, handle }: FoundSubnet): string {
  if (holder === null) return "";
  return handle === null || handle === holder
    ? printable(holder, 60)
    : `${printable(holder, 50)} (${printable(handle, 30)})`;
}

/**
 * Writes to standard output and waits until it is taken, so that a slow reader slows the writer instead of
 * filling its memory. False when nobody reads any more (`… | head`): the command then ends without a word.
 */
export function writeOut(text: string): Promise<boolean> {
  // The failure arrives at the callback too; without a listener it would end the process with a stack.
  if (process.stdout.listenerCount("error") === 0) process.stdout.on("error", () => {});
  return new Promise((resolve, reject) => {
    process.stdout.write(text, (error) => {
      if (!error) resolve(true);
      else if ((error as NodeJS.ErrnoException).code === "EPIPE") resolve(false);
      else reject(error);
    });
  });
}

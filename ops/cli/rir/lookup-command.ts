/** `nearcrawl rir lookup`: which ranges hold an address, from the database or straight from files. */
import { Command } from "commander";
import { UsageError } from "#core/errors";
import { openFileLookUps } from "#rir-import/look-up-in-files";
import { type LookUp, lookUp, readAsked } from "#rir-import/lookup";
import { exitCodes } from "../command-context.ts";
import { type AnsweredLines, answerAddressLines } from "./address-lines.ts";
import { type DatabaseOptions, onDatabase, withMigrated } from "./database-options.ts";
import { lookUpText } from "./lookup-text.ts";
import { withProgress } from "./with-progress.ts";
import { writeOut } from "./write-out.ts";

type Options = DatabaseOptions & { readonly from?: readonly string[] };
type AskOne = (text: string) => LookUp | Promise<LookUp>;

export function lookUpCommand(): Command {
  return onDatabase(new Command("lookup"), "print for programs: one JSON value a line for each address")
    .description("the chain of ranges that hold an address or a range")
    .argument("<address...>", "addresses, a/prefix or 'a - b'; - reads them from standard input, one a line")
    .option("--from <source...>", "files or folders to look in, without a database")
    .addHelpText("after", help)
    .action((addresses: string[], options: Options) =>
      addresses.includes("-") ? answerInput(addresses, options) : answerAddresses(addresses, options),
    );
}

const help = `
Standard input is answered in JSON lines as it comes; a line that is no address gets one with "error" and is
told on standard error, and the others go on.

Exit codes: 0 all found, 2 wrong usage or a line that is no address, 3 nothing holds one of them.

Examples:
  nearcrawl rir lookup 193.0.6.139
  nearcrawl rir lookup 193.0.6.139 2001:67c:2e8::/48 --from downloads/
  cut -d' ' -f1 access.log | nearcrawl rir lookup - --from delegated-ripencc-extended-latest.gz`;

async function answerAddresses(addresses: readonly string[], options: Options): Promise<void> {
  addresses.forEach(readAsked);
  await withLookUps(options, async (ask) => {
    for (const [at, address] of addresses.entries()) {
      const found = await ask(address);
      if (found.chain.length === 0) process.exitCode = exitCodes.notFound;
      const text = options.json ? JSON.stringify(found) : lookUpText(found);
      const gap = at > 0 && !options.json ? "\n" : "";
      if (!(await writeOut(`${gap}${text}\n`))) return;
    }
  });
}

/** Bad lines told on standard error; the answers in standard output have them all. */
const badLinesTold = 20;

async function answerInput(addresses: readonly string[], options: Options): Promise<void> {
  if (addresses.length > 1)
    throw new UsageError("- reads standard input and stands alone; write a range in quotes: 'a - b'");
  await withLookUps(options, async (ask) => {
    let told = 0;
    const counts = await answerAddressLines({
      input: process.stdin,
      lookUp: ask,
      write: writeOut,
      onBadLine: (line, reason) => {
        if (++told <= badLinesTold) process.stderr.write(`nearcrawl: line ${line}: ${reason}\n`);
      },
    });
    if (counts.bad > badLinesTold)
      process.stderr.write(`nearcrawl: and ${counts.bad - badLinesTold} more lines that are no address\n`);
    process.exitCode = exitCodeOf(counts);
  });
}

function exitCodeOf({ bad, notFound }: AnsweredLines): number {
  if (bad > 0) return exitCodes.usage;
  return notFound > 0 ? exitCodes.notFound : exitCodes.done;
}

async function withLookUps(options: Options, work: (ask: AskOne) => Promise<void>): Promise<void> {
  const { from } = options;
  if (from !== undefined) {
    const files = await withProgress((onProgress) => openFileLookUps(from, onProgress));
    await work(files.lookUp);
    return;
  }
  await withMigrated(options, (database) => work((text) => lookUp(database, text)));
}

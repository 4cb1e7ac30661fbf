#!/usr/bin/env node
/** The `nearcrawl` command: picks the sub-command and runs it. */
import { outliveReaders } from "#crawler/cli/closed-output";
import { describedProgram, loadedProgram } from "./commands.ts";
import { tellFailure } from "./exit-codes.ts";

async function main(argv: readonly string[]): Promise<void> {
  const described = describedProgram(argv[2], () => run(argv));
  if (described === null) await run(argv);
  else await described.parseAsync([...argv]);
}

async function run(argv: readonly string[]): Promise<void> {
  const program = await loadedProgram(argv[2]);
  await program.parseAsync([...argv]);
}

outliveReaders("nearcrawl");
try {
  await main(process.argv);
} catch (error) {
  tellFailure(error);
}

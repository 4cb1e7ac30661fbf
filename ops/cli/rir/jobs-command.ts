/** `nearcrawl rir jobs`: what was asked for on the registry's page, how far it is and how it ended. */
import { Command } from "commander";
import { createRegistryJobReads } from "#coordinator/registry/job-store";
import { boundedInteger } from "../bounded-integer.ts";
import { commandContext, exitCodes } from "../command-context.ts";
import { withDatabaseOptions } from "../database-options.ts";
import { printWatched, type WatchedOptions, withWatch } from "../fleet/watched.ts";
import { printAnswer } from "../output.ts";
import { readDatabase } from "../read-database.ts";
import { jobsText, jobText } from "./jobs-text.ts";

const help = `
Jobs are started on the page /registry or over the API; what other commands do is none.

Exit codes: 0 done, 1 failed, 2 wrong usage, 3 there is no such job.

Examples:
  nearcrawl rir jobs
  nearcrawl rir jobs 12 --watch`;

const mostListed = 100;

export function jobsCommand(): Command {
  return withWatch(withDatabaseOptions(new Command("jobs")))
    .description("jobs of the registry's page: what, by whom, how far, how it ended")
    .argument("[number]", "one of them, with what came of it", boundedInteger(1, 2_147_483_647))
    .addHelpText("after", help)
    .action(async (jobId: number | undefined, options: WatchedOptions) => {
      if (jobId === undefined) await showAll(options);
      else await showOne(jobId, options);
    });
}

async function showAll(options: WatchedOptions): Promise<void> {
  await printWatched(
    options,
    async (_pool, database) => ({ jobs: await createRegistryJobReads(database).list(mostListed) }),
    ({ jobs }) => jobsText(jobs),
  );
}

async function showOne(jobId: number, options: WatchedOptions): Promise<void> {
  if (options.watch) return await watchOne(jobId, options);
  const job = await readDatabase(commandContext(options), (database) =>
    createRegistryJobReads(database).find(jobId),
  );
  if (job !== null) return printAnswer(options, job, jobText(job));
  process.stderr.write(`nearcrawl: there is no job ${jobId}: nearcrawl rir jobs\n`);
  process.exitCode = exitCodes.notFound;
}

async function watchOne(jobId: number, options: WatchedOptions): Promise<void> {
  await printWatched(
    options,
    async (_pool, database) => await createRegistryJobReads(database).find(jobId),
    (job) => (job === null ? `there is no job ${jobId}: nearcrawl rir jobs` : jobText(job)),
  );
}

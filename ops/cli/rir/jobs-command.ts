/** `nearcrawl rir jobs`: what was asked for on the registry's page, how far it is and how it ended. */
import { Command } from "commander";
import { createRegistryJobReads } from "#coordinator/registry/job-store";
import { orderWords, type RegistryJob } from "#coordinator/registry/jobs";
import { boundedInteger } from "../bounded-number.ts";
import { commandContext } from "../command-context.ts";
import { exitCodes } from "../exit-codes.ts";
import { printWatched, type WatchedOptions, withWatch } from "../fleet/watched.ts";
import { formatTable, printAnswer, printable } from "../output.ts";
import { readDatabase, withDatabaseOptions } from "../read-database.ts";
import { secondsText } from "./progress-text.ts";

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
    async (database) => ({ jobs: await createRegistryJobReads(database).list(mostListed) }),
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
    async (database) => await createRegistryJobReads(database).find(jobId),
    (job) => (job === null ? `there is no job ${jobId}: nearcrawl rir jobs` : jobText(job)),
  );
}

// The registry's jobs for people: a table, or one of them with the steps on its way.

function jobsText(jobs: readonly RegistryJob[]): string {
  if (jobs.length === 0) return "no job was started yet: the page /registry starts them";
  return formatTable(
    [
      { title: "job", align: "right" },
      { title: "what" },
      { title: "state" },
      { title: "started" },
      { title: "took", align: "right" },
      { title: "by" },
      { title: "" },
    ],
    jobs.map((job) => [
      String(job.jobId),
      orderWords(job.order),
      job.state,
      timeText(job.startedAt),
      tookText(job),
      printable(job.askedBy, 40),
      printable(job.state === "running" ? job.progress.text : (job.words ?? ""), 120),
    ]),
  );
}

function jobText(job: RegistryJob): string {
  const { jobId, order, state, startedAt, askedBy, via, words, progress } = job;
  const ending = state === "running" ? "" : `, took ${tookText(job)}`;
  return [
    `job ${jobId}: ${orderWords(order)}: ${state}`,
    `asked for by ${printable(askedBy, 120)} (${via}), started ${timeText(startedAt)}${ending}`,
    ...(words === null ? [] : words.split("\n").map((line) => `  ${printable(line, 400)}`)),
    ...[...progress.lines, progress.text].map((line) => `  ${printable(line, 400)}`),
    ...next(job),
  ].join("\n");
}

function next({ jobId, order, state }: RegistryJob): readonly string[] {
  if (order.type !== "plan" || state !== "done") return [];
  return [`to be looked at, and applied, on the page /registry/plans/${jobId}`];
}

const timeText = (iso: string) => iso.slice(0, 19).replace("T", " ");

function tookText({ startedAt, endedAt }: RegistryJob): string {
  return endedAt === null ? "" : secondsText((Date.parse(endedAt) - Date.parse(startedAt)) / 1000);
}

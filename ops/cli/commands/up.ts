/** `nearcrawl up`, which `npm start` runs: the whole system in one go, on the emulated Internet or the real web. */
import { Command, Option } from "commander";
import { policyNames } from "#coordinator/place/delegation/policies/policies";
import { UsageError } from "#core/errors";
import { type ContextOptions, contextOfStart } from "../command-context.ts";
import { contactOption } from "../contact.ts";
import { exitCodes } from "../exit-codes.ts";
import { allowOption } from "../options.ts";
import { printJson } from "../output.ts";
import { untilAskedToStop } from "../service-process.ts";
import { runEmulated } from "../up/emulated-run.ts";
import { createRunVoice, limitText } from "../up/follow-run.ts";
import { policyTable, worldParameters } from "../up/policy-comparison.ts";
import { notCrawled, realWebParameters, runRealWeb } from "../up/real-web-run.ts";

interface UpOptions extends ContextOptions {
  readonly [option: string]: unknown;
  readonly world: boolean;
  readonly exit?: boolean;
  readonly json?: boolean;
  readonly fresh?: boolean;
  readonly port: string;
}

export function upCommand(): Command {
  return new Command("up")
    .description("start everything and crawl: an emulated Internet by default, the real web with --no-world")
    .option("--sites <n>", "sites of the emulated Internet (default 500)")
    .option("--crawlers <n>", "crawlers (default 12; 1 on the real web)")
    .addOption(new Option("--policy <name>", "delegation policy (default nearest)").choices([...policyNames]))
    .option("--threshold-ms <n>", "ipmicra: an answer under this is good enough (default 50)")
    .option("--lambda-ms <n>", "nearest: what a probe has to be expected to save (default 2)")
    .option("--pages-per-site <n>", "pages of a site, at most (default 5; 20 on the real web)")
    .option("--seed <n>", "which emulated Internet (default 1)")
    .option(
      "--noise-ms <n>",
      "mean of an exponential delay on every round trip of the emulated Internet (default 0)",
    )
    .option("--no-world", "crawl the real web")
    .option("--url <url...>", "real web: where to begin; its host is crawled")
    .option("--url-file <file>", "real web: a file with one URL a line")
    .option(...contactOption)
    .option(allowOption[0], `real web: ${allowOption[1]}`)
    .option("--port <n>", "the web page's port (the next free one if it is taken)", "7411")
    .option("--exit", "end when the work is done instead of keeping the web page up")
    .option("--fresh", "start over, even if the same run was broken off")
    .option("--json", "print the result for programs; progress goes to standard error")
    .option("--home <folder>", "where everything is kept")
    .option("--database-url <url>", "a Postgres server in place of the embedded one")
    .addHelpText("after", helpText)
    .action((options: UpOptions) => runUp(options));
}

const helpText = `
Examples:
  npm start
  npm start -- --sites 200 --crawlers 6 --exit
  npm start -- --policy ipmicra --threshold-ms 25 --seed 7
  npm start -- --no-world --url https://example.org/ --pages-per-site 50 --contact you@example.org

A run on the emulated Internet that was broken off goes on when it is started again with the same options.
Exit codes: 0 done, 1 failed, or a URL that was asked for cannot be reached, 2 wrong usage or input, such as a URL that is
never crawled (the others are), 130 interrupted before the end.
`;

async function runUp(options: UpOptions): Promise<void> {
  const context = contextOfStart(options);
  const voice = createRunVoice({ json: options.json ?? false });
  const stopRequested = untilAskedToStop();
  const common = { context, voice, stopRequested, port: portOf(options), fresh: options.fresh ?? false };
  if (!options.world) {
    const parameters = realWebParameters(options);
    voice.begin(`a crawl of the real web, ${parameters.crawlers} of its crawlers here`);
    const run = await runRealWeb({ ...common, parameters });
    const { asked, found } = run.refused;
    const refused = [...asked, ...found];
    if (options.json) printJson({ webUrl: run.webUrl, ...run.outcome, refused });
    else process.stdout.write(`${run.summary}\n`);
    for (const line of notCrawled(refused)) process.stderr.write(`nearcrawl: ${line}\n`);
    if (asked.length > 0) process.exitCode = exitCodes.usage;
    else if (found.length > 0) process.exitCode = exitCodes.failed;
    await end(run, options, stopRequested);
    return;
  }
  const parameters = worldParameters(options);
  const { sites, crawlers } = parameters;
  voice.begin(`an emulated Internet of ${sites} sites, its registries, ${crawlers} crawlers`);
  const run = await runEmulated({ ...common, parameters });
  const { webUrl, outcome, policies } = run;
  if (options.json) printJson({ parameters, webUrl, ...outcome, policies });
  else process.stdout.write(`${resultText(run)}\n`);
  await end(run, options, stopRequested);
}

function resultText(run: Awaited<ReturnType<typeof runEmulated>>): string {
  const { outcome, policies } = run;
  const rate = outcome.seconds > 0 ? (outcome.pages / outcome.seconds).toFixed(1) : "–";
  const how = outcome.finished ? "done" : "stopped early";
  return [
    `\n${how}: ${outcome.hostsFetched} of ${outcome.hosts} sites, ${outcome.pages} pages in ${outcome.seconds.toFixed(0)} s (${rate}/s)`,
    ...(outcome.limitedBy === null ? [] : [limitText(outcome.limitedBy)]),
    "",
    policyTable(policies),
    "",
    ...tableWords,
  ].join("\n");
}

const tableWords = [
  "random      any crawler, without asking",
  "ipmicra     the paper's: crawlers are asked until one answers within the threshold",
  "nearest     this system's: asks on while one more probe is expected to save more than it costs",
  "exhaustive  every crawler is asked about every subnet: nobody does better, and nobody can afford it",
  "",
  "best crawler: the share of the subnets that their nearest crawler has; within 5 ms: that one, or one nearly as near.",
  "live: measured in this run, by sockets. computed: the same sites and crawlers by the simulator, with the delays of",
  "the emulated Internet's model and the pages that were fetched. They differ a little: live, probe rounds run at once and",
  "in another order, so that they learn less from each other, and a round trip holds what the machine adds. --policy runs",
  "another one by sockets.",
];

interface EndingRun {
  readonly webUrl: string;
  readonly outcome: { readonly finished: boolean };
  stop(): Promise<void>;
}

async function end(run: EndingRun, options: UpOptions, stopRequested: Promise<unknown>): Promise<void> {
  if (run.outcome.finished && !options.exit) {
    process.stderr.write(`\nthe web page stays up at ${run.webUrl} until Ctrl-C\n`);
    await stopRequested;
  }
  await run.stop();
  if (!run.outcome.finished) process.exitCode = exitCodes.interrupted;
}

function portOf(options: UpOptions): number {
  const port = Number(options.port);
  if (Number.isInteger(port) && port >= 0 && port <= 65_535) return port;
  throw new UsageError(`--port ${options.port}: must be a whole number from 0 to 65535`);
}

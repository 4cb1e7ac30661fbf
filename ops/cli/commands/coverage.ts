/** `nearcrawl coverage`: how far channels and seeds have come, and what cut them short. */
import { Command } from "commander";
import type { Coverage } from "#coordinator/channels/coverage";
import { coverageCsv } from "#coordinator/channels/coverage-page";
import { type CoverageList, coverageList } from "#coordinator/channels/coverage-reads";
import { placeWords } from "#coordinator/channels/page";
import { knownPolicies } from "#coordinator/settings/change";
import { createPolicyStore } from "#coordinator/settings/settings-store";
import { csvText } from "#coordinator/web/html";
import { UsageError } from "#core/errors";
import { hostNamed } from "#core/url-key";
import { boundedInteger } from "../bounded-number.ts";
import { commandContext } from "../command-context.ts";
import { exitCodes } from "../exit-codes.ts";
import { formatTable, printAnswer, printable } from "../output.ts";
import { type DatabaseOptions, readDatabase, withDatabaseOptions } from "../read-database.ts";

interface CoverageOptions extends DatabaseOptions {
  readonly channel?: number;
  readonly submission?: number;
  readonly host?: string;
  readonly csv?: boolean;
  readonly limit: number;
}

const mostNumber = 2_147_483_647;

export function coverageCommand(): Command {
  return withDatabaseOptions(new Command("coverage"))
    .description("how far channels and seeds have come: complete, in progress, cut by budget or by depth")
    .option("--channel <number>", "one channel, as listed", boundedInteger(1, mostNumber))
    .option(
      "--submission <number>",
      "the channels and hosts of the URLs submitted with it (nearcrawl urls add)",
      boundedInteger(1, mostNumber),
    )
    .option("--host <name>", "one whole host")
    .option("--csv", "as CSV, one line per seed")
    .option("--limit <n>", "maximum channels or hosts", boundedInteger(1, 1000), 1000)
    .addHelpText(
      "after",
      "\nWithout an option: every channel. A place is complete when everything found has been requested; cut by budget if its host has more URLs than it has earned or may have, and by depth if its deepest pages link further.\nExit codes: 0 done, 1 failed, 2 wrong usage, 3 there is no such channel, submission or host, or no channel at all.\n\nExamples:\n  nearcrawl coverage\n  nearcrawl coverage --submission 7 --csv > seeds.csv\n  nearcrawl coverage --host www.example.org",
    )
    .action(async (options: CoverageOptions) => await coverage(options));
}

async function coverage(options: CoverageOptions): Promise<void> {
  const { channel = null, submission = null, limit: most } = options;
  const host = options.host === undefined ? null : hostNamed(options.host);
  if (host === null && options.host !== undefined)
    throw new UsageError(
      `--host ${options.host.slice(0, 100)}: must be a host's name, such as www.example.org`,
    );
  if ([channel, submission, host].filter((one) => one !== null).length > 1)
    throw new UsageError("--channel, --submission, --host: name one of them");
  if (options.csv && options.json) throw new UsageError("--csv, --json: one of them");
  const list = await readDatabase(commandContext(options), async ({ pool }) => {
    const { maxDepth } = knownPolicies(await createPolicyStore(pool).read()).settings.scope;
    return await coverageList(pool, { channel, submission, host, most, maxDepth });
  });
  if (list === null) {
    process.stderr.write(
      "nearcrawl: nothing is known about that: nearcrawl channels list, nearcrawl urls status\n",
    );
    process.exitCode = exitCodes.notFound;
    return;
  }
  if (list.coverage.length === 0) process.exitCode = exitCodes.notFound;
  if (options.csv) process.stdout.write(csvText(coverageCsv(list)));
  else printAnswer(options, list, coverageText(list));
}

export function coverageText({ coverage, more }: CoverageList): string {
  if (coverage.length === 0) return "there is no channel: nearcrawl coverage --host NAME";
  const right = (title: string) => ({ title, align: "right" as const });
  const table = formatTable(
    [
      ...[{ title: "channel" }, { title: "what" }, right("fetched"), right("to go"), right("held back")],
      ...[right("too deep"), right("seeds"), { title: "state" }],
    ],
    coverage.map((one) => [
      ...[one.channelId === null ? "" : String(one.channelId), printable(placeWords(one), 100)],
      ...[one.fetched, one.waiting, one.held, one.tooDeep].map((count) => countOf(count, one)),
      ...[String(one.seeds.length), one.words],
    ]),
  );
  return more ? `${table}\n\nthere are more: --limit` : table;
}

const countOf = (count: number, { more }: Coverage) => `${count.toLocaleString("en-GB")}${more ? "+" : ""}`;

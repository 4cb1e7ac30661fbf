/** `nearcrawl alerts`: what needs attention now; its exit code tells scripts. */
import { Command, InvalidArgumentError } from "commander";
import { alertMuted, alertUnmuted, isAlertName, muteWords } from "#coordinator/overview/alert-mute-routes";
import { createAlertMuteStore } from "#coordinator/overview/alert-mute-store";
import { type AlertList, alertNames } from "#coordinator/overview/alert-rules";
import { instantWords } from "#core/format";
import { canParseUrl } from "#core/ip/url-host";
import { AlertsAnywhere } from "../alerts-anywhere.ts";
import { commandActor, recordCommand } from "../audit-command-change.ts";
import { boundedNumber } from "../bounded-number.ts";
import { commandContext } from "../command-context.ts";
import { exitCodes } from "../exit-codes.ts";
import { type WatchedOptions, withWatch } from "../fleet/watched.ts";
import { paint, printAnswer, printable } from "../output.ts";
import { type DatabaseOptions, readDatabase, withDatabaseOptions } from "../read-database.ts";
import { watchAnswer } from "../watch-answer.ts";
import { alertsText } from "./overview.ts";

interface AlertOptions extends WatchedOptions {
  readonly coordinator?: string;
}

interface MuteOptions extends DatabaseOptions {
  readonly of?: string;
  readonly hours: number;
  readonly reason: string;
}

const usualHours = 24;
/** A month. */
const mostHours = 720;

export function alertsCommand(): Command {
  const command = withWatch(withDatabaseOptions(new Command("alerts")))
    .description("what needs attention now, and what to do")
    .option(
      "--coordinator <url>",
      "asked beside the database for what it knows of itself (default: the one that last ran in this home)",
      checkedUrl,
    )
    .addHelpText(
      "after",
      "\nA database that does not answer within 1 s is the first alert, and the others are what the coordinator knows of itself.\nExit codes: 0 nothing needs attention, 1 failed, 2 wrong usage, 4 there are alerts (also when the database does not answer).\nThe runbook (monitoring) has a section for each name.\n\nExamples:\n  nearcrawl alerts --json || mail -s nearcrawl ops@example.org\n  nearcrawl alerts mute crawler-offline --of berlin --hours 48 --reason 'moves to another room'\n  nearcrawl alerts unmute crawler-offline --of berlin",
    )
    // Its sub-commands have options of the same names, and they are their own.
    .enablePositionalOptions()
    .action(async (options: AlertOptions) => await tell(options));
  command.addCommand(
    withDatabaseOptions(new Command("mute"))
      .argument("<name>", "of the alert, as listed", checkedAlert)
      .description("acknowledge an alert: it is told to nobody until an hour that you name")
      .option("--of <target>", "a crawler or release that it names (default: all of the alert)")
      .option("--hours <n>", "for how long", boundedNumber(0.1, mostHours), usualHours)
      .requiredOption("--reason <text>", "why, for whoever wonders")
      .action(async (name: string, options: MuteOptions) => await mute(name, options)),
  );
  command.addCommand(
    withDatabaseOptions(new Command("unmute"))
      .argument("<name>", "of the alert", checkedAlert)
      .description("tell it again")
      .option("--of <target>", "the crawler or release that is muted")
      .action(
        async (name: string, options: Pick<MuteOptions, "of"> & DatabaseOptions) =>
          await unmute(name, options),
      ),
  );
  return command;
}

async function tell(options: AlertOptions): Promise<void> {
  const source = new AlertsAnywhere(commandContext(options), options.coordinator ?? null);
  try {
    const ask = async () => await source.list(new Date());
    if (options.watch) {
      const text = async () => (options.json ? JSON.stringify(await ask()) : listText(await ask()));
      await watchAnswer(text, { everySeconds: options.every });
      return;
    }
    const list = await ask();
    if (list.alerts.length > 0) process.exitCode = exitCodes.alerts;
    printAnswer(options, list, listText(list));
  } finally {
    await source.close();
  }
}

function checkedUrl(text: string): string {
  if (/^https?:\/\/[^/]/.test(text) && canParseUrl(text)) return text;
  throw new InvalidArgumentError("must look like http://127.0.0.1:7411");
}

function checkedAlert(name: string): string {
  if (isAlertName(name)) return name;
  throw new InvalidArgumentError(`there is no such alert; known are ${alertNames.join(", ")}`);
}

function listText({ alerts, muted, incomplete }: AlertList): string {
  const lines = muted.map(
    ({ name, mutedTarget: target, until, mutedBy, reason, words }) =>
      `muted     ${printable(words, 300)}\n          ${muteWords({ name, target })}, until ${instantWords(until)}, by ${printable(mutedBy, 60)}: ${printable(reason, 300)}`,
  );
  const rest = incomplete === null ? [] : [paint("soft", `not all is known: ${printable(incomplete, 600)}`)];
  return [alertsText(alerts), ...lines, ...rest].join("\n");
}

async function mute(name: string, options: MuteOptions): Promise<void> {
  const now = new Date();
  const until = new Date(now.getTime() + options.hours * 3_600_000);
  const { of: target = null, reason } = options;
  const made = { name, target, until, reason: reason.slice(0, 300), mutedBy: commandActor() };
  await readDatabase(commandContext(options), async ({ pool }) => {
    await createAlertMuteStore(pool).mute({ ...made, mutedAt: now });
    await recordCommand(pool, alertMuted(made));
  });
  printAnswer(options, made, alertMuted(made).words);
}

async function unmute(name: string, options: Pick<MuteOptions, "of"> & DatabaseOptions): Promise<void> {
  const muted = { name, target: options.of ?? null };
  const found = await readDatabase(commandContext(options), async ({ pool }) => {
    const wasMuted = await createAlertMuteStore(pool).unmute(muted, new Date());
    if (wasMuted) await recordCommand(pool, alertUnmuted(muted));
    return wasMuted;
  });
  if (found) {
    printAnswer(options, muted, alertUnmuted(muted).words);
    return;
  }
  process.stderr.write(`nearcrawl: ${muteWords(muted)} is not muted: nearcrawl alerts\n`);
  process.exitCode = exitCodes.notFound;
}

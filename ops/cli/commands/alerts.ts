/** `nearcrawl alerts`: what needs attention now; its exit code tells scripts. */
import { Command, InvalidArgumentError } from "commander";
import { channelTested, testedJustNow, testWords } from "#coordinator/alerts/alert-routes";
import { channelsOf, createAlertStore, newMessageId } from "#coordinator/alerts/start";
import { sendTest } from "#coordinator/alerts/tell-alerts";
import { readCoordinatorConfig } from "#coordinator/config";
import { muteWords } from "#coordinator/overview/alert-mute-routes";
import type { AlertList, ShownChannel } from "#coordinator/overview/alert-rules";
import { instantWords } from "#core/format";
import { canParseUrl } from "#core/ip/url-host";
import { createNameResolver } from "#core/name-resolver";
import { AlertsAnywhere } from "../alerts-anywhere.ts";
import { recordCommand } from "../audit-command-change.ts";
import { commandContext } from "../command-context.ts";
import { exitCodes } from "../exit-codes.ts";
import { type WatchedOptions, withWatch } from "../fleet/watched.ts";
import { paint, printAnswer, printable } from "../output.ts";
import { type DatabaseOptions, readDatabase, withDatabaseOptions } from "../read-database.ts";
import { type RoomCommand, roomCommand } from "../room-command.ts";
import { readCoordinatorSettings, withPlaces } from "../setup/coordinator-settings.ts";
import { watchAnswer } from "../watch-answer.ts";
import { alertsText } from "./overview.ts";

interface AlertOptions extends WatchedOptions {
  readonly coordinator?: string;
}

interface TestOptions extends DatabaseOptions {
  readonly config?: string;
}

const usualHours = 24;

/** What the API does about alerts. */
async function deeds(): Promise<readonly RoomCommand[]> {
  const { alertsApi } = await import("#coordinator/alerts/alerts-api");
  const { overviewApi } = await import("#coordinator/overview/overview-api");
  const room = "alerts";
  return [
    {
      ...{ name: "mute", room, operation: overviewApi.muteAlert, named: { target: "of" } },
      usual: () => ({ hours: usualHours }),
    },
    { name: "unmute", room, operation: overviewApi.unmuteAlert, named: { target: "of" } },
    { name: "ack", room, operation: alertsApi.acknowledgeAlert },
    { name: "reopen", room, operation: alertsApi.reopenAlert },
  ];
}

export async function alertsCommand(): Promise<Command> {
  const command = withWatch(withDatabaseOptions(new Command("alerts")))
    .description("what needs attention now, and what to do")
    .option(
      "--coordinator <url>",
      "asked beside the database for what it knows of itself (default: the one that last ran in this home)",
      checkedUrl,
    )
    .addHelpText(
      "after",
      "\nA database that does not answer within 1 s is the first alert, and the others are what the coordinator knows of itself.\nExit codes: 0 nothing needs attention, 1 failed, 2 wrong usage, 4 there are alerts (also when the database does not answer).\nWhat is acknowledged or muted counts for nothing. The runbook (monitoring) has a section for each name, and how to have alerts sent by webhook and e-mail.\n\nExamples:\n  nearcrawl alerts --json\n  nearcrawl alerts ack crawler-offline --note 'called the partner'\n  nearcrawl alerts test email\n  nearcrawl alerts mute crawler-offline --of berlin --hours 48 --reason 'moves to another room'\n  nearcrawl alerts unmute crawler-offline --of berlin",
    )
    // Its sub-commands have options of the same names, and they are their own.
    .enablePositionalOptions()
    .action(async (options: AlertOptions) => await tell(options));
  for (const one of await deeds()) command.addCommand(roomCommand(one));
  command.addCommand(
    withDatabaseOptions(new Command("test"))
      .argument("[channel]", "as listed; left out: all of them")
      .description("send a test by the channels of the coordinator's file")
      .option("--config <file>", "the coordinator's settings (default: coordinator.toml in the home folder)")
      .addHelpText(
        "after",
        "\nExit codes: 0 all were delivered, 1 one was not, 2 wrong usage, 3 there is no such channel.",
      )
      .action(async (channel: string | undefined, options: TestOptions) => await test(channel, options)),
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

function listText({ alerts, acknowledged, muted, channels, incomplete }: AlertList): string {
  const takenUp = acknowledged.map(
    ({ name, words, by, at, note }) =>
      `taken up  ${printable(words, 300)}\n          ${name}, acknowledged by ${printable(by, 60)}, ${instantWords(at)}${note === "" ? "" : `: ${printable(note, 300)}`}`,
  );
  const lines = muted.map(
    ({ name, mutedTarget: target, until, mutedBy, reason, words }) =>
      `muted     ${printable(words, 300)}\n          ${muteWords({ name, target })}, until ${instantWords(until)}, by ${printable(mutedBy, 60)}: ${printable(reason, 300)}`,
  );
  const rest =
    incomplete === null
      ? [paint("soft", channelsText(channels))]
      : [paint("soft", `not all is known: ${printable(incomplete, 600)}`)];
  return [alertsText(alerts), ...takenUp, ...lines, ...rest].join("\n");
}

function channelsText(channels: readonly ShownChannel[]): string {
  if (channels.length === 0)
    return "sent to nobody: the coordinator's file has no channel (runbook: monitoring)";
  const named = channels.map(({ name, place, failingSince }) => {
    return `${name} (${printable(place, 100)}${failingSince === null ? "" : ", failing"})`;
  });
  return `sent to ${named.join(", ")}`;
}

/** By this process, with the coordinator's own file: it need not run. */
async function test(name: string | undefined, options: TestOptions): Promise<void> {
  const context = commandContext(options);
  const { settingsFile: file } = context;
  const config = withPlaces(file, () => readCoordinatorConfig(readCoordinatorSettings(file)));
  const now = () => new Date();
  const all = channelsOf({ resolver: createNameResolver({ servers: config.resolvers }), now }, config);
  const chosen = all.filter((channel) => name === undefined || channel.name === name);
  if (chosen.length === 0)
    return notFound(
      `${file ?? "The coordinator's file, which is not there,"} names ${all.length === 0 ? "no channel" : `no channel ${printable(name ?? "", 60)}, but ${all.map((one) => one.name).join(", ")}`}.`,
    );
  const sent = await readDatabase(context, async ({ pool }) => {
    const store = createAlertStore(pool);
    return await Promise.all(
      chosen.map(async (channel) => {
        const delivery = await sendTest(channel, { store, newId: newMessageId, now });
        if (delivery !== null) await recordCommand(pool, channelTested(channel.name, delivery));
        const words = delivery === null ? testedJustNow(channel.name) : testWords(channel.name, delivery);
        return { channel: channel.name, delivered: delivery?.type === "delivered", words };
      }),
    );
  });
  if (sent.some(({ delivered }) => !delivered)) process.exitCode = exitCodes.failed;
  printAnswer(options, sent, sent.map(({ words }) => printable(words, 500)).join("\n"));
}

function notFound(words: string): void {
  process.stderr.write(`nearcrawl: ${words}\n`);
  process.exitCode = exitCodes.notFound;
}

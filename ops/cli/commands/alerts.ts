/** `nearcrawl alerts`: what needs attention now; its exit code tells scripts. */
import { Command, InvalidArgumentError } from "commander";
import {
  alertAcknowledged,
  alertReopened,
  channelTested,
  notHolding,
  testedJustNow,
  testWords,
} from "#coordinator/alerts/alert-routes";
import { mostNote } from "#coordinator/alerts/alerts-api";
import { channelsOf, createAlertStore, newMessageId } from "#coordinator/alerts/start";
import { sendTest } from "#coordinator/alerts/tell-alerts";
import { readCoordinatorConfig } from "#coordinator/config";
import { alertMuted, alertUnmuted, isAlertName, muteWords } from "#coordinator/overview/alert-mute-routes";
import { createAlertMuteStore } from "#coordinator/overview/alert-mute-store";
import { type AlertList, alertNames, type ShownChannel } from "#coordinator/overview/alert-rules";
import { instantWords } from "#core/format";
import { canParseUrl } from "#core/ip/url-host";
import { createNameResolver } from "#core/name-resolver";
import { AlertsAnywhere } from "../alerts-anywhere.ts";
import { commandActor, recordCommand } from "../audit-command-change.ts";
import { boundedNumber } from "../bounded-number.ts";
import { commandContext } from "../command-context.ts";
import { exitCodes } from "../exit-codes.ts";
import { type WatchedOptions, withWatch } from "../fleet/watched.ts";
import { paint, printAnswer, printable } from "../output.ts";
import { type DatabaseOptions, readDatabase, withDatabaseOptions } from "../read-database.ts";
import { readCoordinatorSettings, withPlaces } from "../setup/coordinator-settings.ts";
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

interface AcknowledgeOptions extends DatabaseOptions {
  readonly note: string;
}

interface TestOptions extends DatabaseOptions {
  readonly config?: string;
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
      "\nA database that does not answer within 1 s is the first alert, and the others are what the coordinator knows of itself.\nExit codes: 0 nothing needs attention, 1 failed, 2 wrong usage, 4 there are alerts (also when the database does not answer).\nWhat is acknowledged or muted counts for nothing. The runbook (monitoring) has a section for each name, and how to have alerts sent by webhook and e-mail.\n\nExamples:\n  nearcrawl alerts --json\n  nearcrawl alerts ack crawler-offline --note 'called the partner'\n  nearcrawl alerts test email\n  nearcrawl alerts mute crawler-offline --of berlin --hours 48 --reason 'moves to another room'\n  nearcrawl alerts unmute crawler-offline --of berlin",
    )
    // Its sub-commands have options of the same names, and they are their own.
    .enablePositionalOptions()
    .action(async (options: AlertOptions) => await tell(options));
  command.addCommand(
    withDatabaseOptions(new Command("mute"))
      .argument("<name>", "of the alert, as listed", checkedAlert)
      .description("tell nobody of an alert until an hour that you name")
      .option("--of <target>", "a crawler or release that it names (default: all of the alert)")
      .option("--hours <n>", "how long", boundedNumber(0.1, mostHours), usualHours)
      .requiredOption("--reason <text>", "why, for whoever wonders")
      .action(async (name: string, options: MuteOptions) => await mute(name, options)),
  );
  command.addCommand(
    withDatabaseOptions(new Command("unmute"))
      .argument("<name>", "of the alert", checkedAlert)
      .description("end a mute")
      .option("--of <target>", "the crawler or release that is muted")
      .action(
        async (name: string, options: Pick<MuteOptions, "of"> & DatabaseOptions) =>
          await unmute(name, options),
      ),
  );
  command.addCommand(
    withDatabaseOptions(new Command("ack"))
      .argument("<name>", "of the alert, as listed", checkedAlert)
      .description("acknowledge an alert: nobody is told again until it ends or names something new")
      .option("--note <text>", "for the others", "")
      .action(async (name: string, options: AcknowledgeOptions) => await acknowledge(name, options)),
  );
  command.addCommand(
    withDatabaseOptions(new Command("reopen"))
      .argument("<name>", "of the alert", checkedAlert)
      .description("withdraw the acknowledgement of an alert")
      .action(async (name: string, options: DatabaseOptions) => await reopen(name, options)),
  );
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

function checkedAlert(name: string): string {
  if (isAlertName(name)) return name;
  throw new InvalidArgumentError(`there is no such alert; known are ${alertNames.join(", ")}`);
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

async function acknowledge(name: string, options: AcknowledgeOptions): Promise<void> {
  const note = options.note.trim().slice(0, mostNote);
  const by = { by: commandActor(), at: new Date(), note };
  const noted = await readDatabase(commandContext(options), async ({ pool }) => {
    const found = await createAlertStore(pool).acknowledge(name, by);
    if (found !== null) await recordCommand(pool, alertAcknowledged(name, note));
    return found;
  });
  if (noted === null) return notFound(notHolding(name));
  const value = { name, ...by, at: by.at.toISOString(), targets: noted.acknowledged?.targets ?? [] };
  printAnswer(options, value, alertAcknowledged(name, note).words);
}

async function reopen(name: string, options: DatabaseOptions): Promise<void> {
  const found = await readDatabase(commandContext(options), async ({ pool }) => {
    const wasAcknowledged = await createAlertStore(pool).reopen(name);
    if (wasAcknowledged) await recordCommand(pool, alertReopened(name));
    return wasAcknowledged;
  });
  if (!found) return notFound(`Nobody has acknowledged ${name}.`);
  printAnswer(options, { name }, alertReopened(name).words);
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
  notFound(`${muteWords(muted)} is not muted: nearcrawl alerts`);
}

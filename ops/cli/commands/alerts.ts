/** `nearcrawl alerts`: what needs attention now; scripts use its exit code. */
import { Command, InvalidArgumentError } from "commander";
import { documentText } from "#coordinator/ask/text-rendering";
import { alertOperations } from "#coordinator/tell/overview/alerts/alerts-ask";
import { anonymousVisit } from "#coordinator/web/access";
import { canParseUrl } from "#core/ip/url-host";
import { AlertsAnywhere } from "../alerts-anywhere.ts";
import { commandContext } from "../command-context.ts";
import { exitCodes, exitsOfRoom } from "../exit-codes.ts";
import { printAnswer, terminalPaper } from "../output.ts";
import { type DatabaseOptions, withDatabaseOptions } from "../read-database.ts";

interface AlertOptions extends DatabaseOptions {
  readonly coordinator?: string;
}

export function alertsCommand(): Command {
  return withDatabaseOptions(new Command("alerts"))
    .description("what needs attention now, and what to do")
    .option(
      "--coordinator <url>",
      "asked beside the database for what it knows of itself (default: the one that last ran in this home)",
      checkedUrl,
    )
    .addHelpText(
      "after",
      `
${exitsOfRoom}

A database that does not answer within 1 s is the first alert, and the others are what the coordinator knows of itself.
Of alerts itself, exit code 4: there are some (also when the database does not answer).
What is acknowledged or muted counts for nothing. The runbook has a section for each name (alerts), and how to have
alerts sent by webhook and e-mail (monitoring).

Examples:
  nearcrawl alerts --json
  nearcrawl alerts ack crawler-offline --note 'called the partner'
  nearcrawl alerts test email
  nearcrawl alerts mute crawler-offline --of berlin --hours 48 --reason 'moves to another room'`,
    )
    .action(async (options: AlertOptions) => await tell(options));
}

async function tell(options: AlertOptions): Promise<void> {
  const source = new AlertsAnywhere(commandContext(options), options.coordinator ?? null);
  try {
    const list = await source.list(new Date());
    if (list.alerts.length > 0) process.exitCode = exitCodes.alerts;
    const shown = { input: {}, viewer: anonymousVisit, now: new Date(list.at) };
    const document = alertOperations.alerts.view!(list, shown);
    printAnswer(options, list, documentText(document, terminalPaper()));
  } finally {
    await source.close();
  }
}

function checkedUrl(text: string): string {
  if (/^https?:\/\/[^/]/.test(text) && canParseUrl(text)) return text;
  throw new InvalidArgumentError("must look like http://127.0.0.1:7411");
}

/** `nearcrawl rir`: registry dumps become the IP tree. Each subcommand has its file in ../rir. */
import { Command } from "commander";
import { applyCommand } from "../rir/apply-command.ts";
import { checkCommand } from "../rir/check-command.ts";
import { fetchCommand } from "../rir/fetch-command.ts";
import { generateCommand } from "../rir/generate-command.ts";
import { historyCommand } from "../rir/history-command.ts";
import { jobsCommand } from "../rir/jobs-command.ts";
import { lookUpCommand } from "../rir/lookup-command.ts";
import { planCommand } from "../rir/plan-command.ts";
import { rdapCommand } from "../rir/rdap-command.ts";
import { rollbackCommand, rollforwardCommand } from "../rir/rollback-command.ts";
import { sourcesCommand } from "../rir/sources-command.ts";
import { statusCommand } from "../rir/status-command.ts";

const help = `
Sources are files or folders: RPSL dumps (RIPE, APNIC, AFRINIC, LACNIC), ARIN's bulk data (XML or text),
delegated statistics, IANA's registries; plain, gzip or ZIP, told by their first bytes.

Every quarter:
  nearcrawl rir fetch
  nearcrawl rir plan --cache --page differences.html
  nearcrawl rir apply --cache
  nearcrawl rir rollback          # if it was not right
  nearcrawl rir rollforward       # if it was right after all

Exit codes: 0 done, 1 failed, 2 a source that is not what it claims to be or wrong usage, 3 not found.`;

export function rirCommand(): Command {
  const command = new Command("rir")
    .description("the registries' data: fetch, check, plan, apply, roll back, look up")
    .addHelpText("after", help);
  for (const subcommand of [
    sourcesCommand,
    fetchCommand,
    checkCommand,
    planCommand,
    applyCommand,
    rollbackCommand,
    rollforwardCommand,
    statusCommand,
    historyCommand,
    jobsCommand,
    lookUpCommand,
    rdapCommand,
    generateCommand,
  ]) {
    command.addCommand(subcommand());
  }
  return command;
}

/** `run` runs the crawler of a joined folder, under its supervisor, until it is asked to stop. */
import { basename } from "node:path";
import { ConfigError, UsageError } from "#core/errors";
import { checkMachine, keepCheck, lastCheckFailed } from "../check/machine-check.ts";
import { factsOfThisMachine } from "../check/machine-findings.ts";
import { type CrawlerLog, lineLog } from "../core/log.ts";
import type { PartnerContext, PartnerExitCode } from "../core/partner-context.ts";
import { runSupervisor, untilSignal } from "../supervisor/run-supervisor.ts";
import { checkedHome } from "./check-command.ts";

export async function runCommand(context: PartnerContext): Promise<PartnerExitCode> {
  const { home, env, print, complain, program } = context;
  // Only the crawler's own user may read the files it writes.
  process.umask(0o077);
  try {
    void recheckAfterFailure(context, lineLog(print, "json", basename(home)));
    await runSupervisor({ home, env, print, program, untilAsked: untilSignal });
    return 0;
  } catch (error) {
    if (!(error instanceof ConfigError || error instanceof UsageError)) throw error;
    complain(error.message);
    return 2;
  }
}

// If the last check failed, repeats it on each start and logs what is still wrong.

/** Never rejects, because a failed check must not prevent the crawler from running. */
export async function recheckAfterFailure(
  { home, env, now }: Pick<PartnerContext, "home" | "env" | "now">,
  log: CrawlerLog,
): Promise<void> {
  if (!lastCheckFailed(home)) return;
  try {
    const report = await checkMachine({ home, env, now, facts: factsOfThisMachine(), ...checkedHome(home) });
    keepCheck(home, report);
    for (const { subject, words } of report.findings.filter(({ state }) => state === "fix")) {
      log.warn({ subject, words }, "something about this machine must be fixed");
    }
    if (report.isUsable) log.info({}, "what the last machine check found is fixed");
  } catch (error) {
    log.warn({ error }, "the machine could not be checked again");
  }
}

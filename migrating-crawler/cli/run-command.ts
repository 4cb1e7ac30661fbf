/** `run`: the crawler of a joined folder, under its dock, until it is asked to stop. */
import { basename } from "node:path";
import { ConfigError, UsageError } from "#core/errors";
import { recheckAfterFailure } from "../check/recheck.ts";
import { lineLog } from "../core/log.ts";
import { runDock, untilSignal } from "../supervisor/run-dock.ts";
import type { PartnerContext, PartnerExitCode } from "./partner-commands.ts";

export async function runCommand(context: PartnerContext): Promise<PartnerExitCode> {
  const { home, env, print, complain, program } = context;
  // What the crawler writes is its user's alone.
  process.umask(0o077);
  try {
    void recheckAfterFailure(context, lineLog(print, "json", basename(home)));
    await runDock({ home, env, print, program, untilAsked: untilSignal });
    return 0;
  } catch (error) {
    if (!(error instanceof ConfigError || error instanceof UsageError)) throw error;
    complain(error.message);
    return 2;
  }
}

/** `run`: the crawler of a joined folder, under its dock, until it is asked to stop. */
import { ConfigError, UsageError } from "#core/errors";
import type { PartnerContext, PartnerExitCode } from "../partner-commands.ts";
import { runDock, untilSignal } from "./run-dock.ts";

export async function runCommand({ home, env, print, complain }: PartnerContext): Promise<PartnerExitCode> {
  try {
    await runDock({ home, env, print, untilAsked: untilSignal });
    return 0;
  } catch (error) {
    if (!(error instanceof ConfigError || error instanceof UsageError)) throw error;
    complain(error.message);
    return 2;
  }
}

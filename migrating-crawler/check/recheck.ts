/** At each start after a check that found something to mend: it is looked at again, and the log says what is left. */

import { checkedHome } from "../cli/check-command.ts";
import type { PartnerContext } from "../cli/partner-commands.ts";
import type { CrawlerLog } from "../core/log.ts";
import { keepCheck, lastCheckFailed } from "./last-check.ts";
import { checkMachine } from "./machine-check.ts";
import { factsOfThisMachine } from "./machine-findings.ts";

/** Never rejects: what cannot be looked at keeps no crawler from running. */
export async function recheckAfterFailure(
  { home, env, now }: Pick<PartnerContext, "home" | "env" | "now">,
  log: CrawlerLog,
): Promise<void> {
  if (!lastCheckFailed(home)) return;
  try {
    const report = await checkMachine({ home, env, now, facts: factsOfThisMachine(), ...checkedHome(home) });
    keepCheck(home, report);
    for (const { subject, words } of report.findings.filter(({ state }) => state === "mend")) {
      log.warn({ subject, words }, "something about this machine is to be mended");
    }
    if (report.isUsable) log.info({}, "what the last machine check found is mended");
  } catch (error) {
    log.warn({ error }, "the machine could not be checked again");
  }
}

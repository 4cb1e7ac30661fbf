/** `check` lists how well this machine and network meet a crawler's needs. */
import { existsSync } from "node:fs";
import type { Finding } from "../check/coordinator-findings.ts";
import { type CheckReport, type CheckSettings, checkMachine, keepCheck } from "../check/machine-check.ts";
import { factsOfThisMachine } from "../check/machine-findings.ts";
import { readMembership } from "../core/membership.ts";
import { type PartnerContext, type PartnerExitCode, partnerExitCodes } from "../core/partner-context.ts";
import { coordinatorRoute } from "../membership/coordinator-route.ts";
import { homeSettings, settingsFile } from "../membership/home-folder.ts";
import { fetchingConfig } from "../settings/config.ts";
import { readSettingsFile } from "../settings/settings-file.ts";

export async function checkCommand(context: PartnerContext): Promise<PartnerExitCode> {
  const { home, env, now } = context;
  const facts = factsOfThisMachine();
  const report = await checkMachine({ home, env, now, facts, ...checkedHome(home) });
  if (existsSync(home)) keepCheck(home, report);
  printReport(context, report);
  return report.isUsable ? partnerExitCodes.done : partnerExitCodes.failed;
}

export function checkedHome(home: string): Pick<CheckSettings, "settings" | "coordinator"> {
  const membership = readMembership(home);
  if (membership !== null) {
    const settings = homeSettings(home);
    return {
      settings,
      coordinator: { url: membership.coordinatorUrl, route: coordinatorRoute(settings, membership) },
    };
  }
  const file = settingsFile(home);
  return { settings: existsSync(file) ? fetchingConfig(readSettingsFile(file)) : null, coordinator: null };
}

function printReport(context: PartnerContext, { at, findings, isUsable }: CheckReport): void {
  const lines = context.json ? [JSON.stringify({ at, isUsable, findings }, null, 2)] : reportLines(findings);
  lines.forEach(context.print);
}

/** Example: `fix  clock        90 s ahead of the coordinator's: set it, …` */
export function reportLines(findings: readonly Finding[]): string[] {
  return findings.map(({ state, subject, words }) => `${state.padEnd(5)} ${subject.padEnd(12)} ${words}`);
}

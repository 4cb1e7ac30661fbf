/** `check`: what this machine and its network have of what a crawler needs, a line for each. */
import { type PartnerContext, type PartnerExitCode, partnerExitCodes } from "../partner-commands.ts";
import type { Finding } from "./finding.ts";
import { factsOfThisMachine, machineFindings } from "./machine-findings.ts";

/** Exit code 1 when something is to be mended. */
export async function checkCommand(context: PartnerContext): Promise<PartnerExitCode> {
  const findings = await machineFindings(factsOfThisMachine(), {
    home: context.home,
    spoolBytes: 256 * 1024 * 1024,
    icmp: true,
  });
  if (context.json) context.print(JSON.stringify({ findings }, null, 2));
  else for (const finding of findings) context.print(lineOf(finding));
  return findings.some(({ state }) => state === "mend") ? partnerExitCodes.failed : partnerExitCodes.done;
}

/** `ok    clock        differs from the coordinator's by 0 s.` */
export function lineOf({ state, subject, words }: Finding): string {
  return `${state.padEnd(5)} ${subject.padEnd(12)} ${words}`;
}

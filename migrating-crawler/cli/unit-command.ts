/** `unit`: the systemd unit for this machine's paths, on standard output. */
import { resolve } from "node:path";
import { systemdUnit, usualPaths } from "../membership/systemd-unit.ts";
import { type PartnerContext, type PartnerExitCode, partnerExitCodes } from "./partner-commands.ts";

/** `program`: else the file that this program was started as, if it is the one file. */
export async function unitCommand(
  context: PartnerContext,
  { program }: { readonly program?: string },
): Promise<PartnerExitCode> {
  const file = program ?? /\S+\.mjs$/.exec(context.program)?.[0] ?? usualPaths.program;
  context.print(systemdUnit({ node: process.execPath, program: resolve(file) }).trimEnd());
  return partnerExitCodes.done;
}

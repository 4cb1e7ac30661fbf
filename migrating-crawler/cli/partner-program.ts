/** Runs the commands as a separate program, `nearcrawl-crawler.mjs`, and turns an error into one line and an exit code. */
import { Command, CommanderError } from "commander";
import { ConfigError, NearcrawlError, UsageError } from "#core/errors";
import { softwareVersion } from "#protocol/software-version";
import { type PartnerExitCode, partnerExitCodes } from "../core/partner-context.ts";
import { addPartnerCommands, type PartnerSurroundings } from "./partner-commands.ts";

/** `args` are the arguments after the program's name. Never rejects. */
export async function runPartnerProgram(
  args: readonly string[],
  surroundings: PartnerSurroundings,
): Promise<void> {
  const program = new Command("nearcrawl-crawler")
    .description(
      "Nearcrawl's crawler: it fetches web sites that are near to you, within the limits that you set.",
    )
    .version(softwareVersion)
    .showHelpAfterError("(--help lists the commands)")
    .addHelpText("after", `\n${exitCodesInWords}`);
  addPartnerCommands(program, surroundings);
  overrideExit(program);
  try {
    await program.parseAsync([...args], { from: "user" });
  } catch (error) {
    const { code, words } = failureOf(error);
    if (words !== null) surroundings.complain(`nearcrawl-crawler: ${words}`);
    surroundings.setExitCode(code);
  }
}

const exitCodesInWords =
  "Exit codes: 0 done, 1 failed, 2 wrong usage, settings or files, 3 nothing there, 4 the coordinator refused, 130 interrupted.";

function overrideExit(command: Command): void {
  command.exitOverride();
  command.commands.forEach(overrideExit);
}

/** `words` is null if commander has already printed the message. */
function failureOf(error: unknown): { readonly code: PartnerExitCode; readonly words: string | null } {
  const { done, usage, failed } = partnerExitCodes;
  if (error instanceof CommanderError) return { code: error.exitCode === 0 ? done : usage, words: null };
  if (error instanceof ConfigError || error instanceof UsageError)
    return { code: usage, words: error.message };
  if (error instanceof NearcrawlError) return { code: failed, words: error.message };
  return { code: failed, words: error instanceof Error ? (error.stack ?? error.message) : String(error) };
}

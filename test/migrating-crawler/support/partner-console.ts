/** A partner's command as its user runs it: a folder, answers to questions, and what is read on the screen. */
import { join } from "node:path";
import type { PartnerSurroundings } from "#crawler/cli/partner-commands";
import { runPartnerProgram } from "#crawler/cli/partner-program";
import { temporaryFolder } from "../../support/temporary-folder.ts";

export interface PartnerConsole {
  /** Below a temporary folder; not made yet. */
  readonly home: string;
  /** Exit code, and all that was printed since. */
  run(...args: string[]): Promise<{ readonly code: number; readonly text: string }>;
}

export function partnerConsole(changes: Partial<PartnerSurroundings> = {}): PartnerConsole {
  const folder = temporaryFolder("nearcrawl-partner-");
  const home = join(folder, "crawler");
  return {
    home,
    run: async (...args) => {
      const lines: string[] = [];
      let code = -1;
      await runPartnerProgram(
        args.includes("--home") || args[0] === "unit" ? args : [...args, "--home", home],
        {
          env: {},
          program: "nearcrawl-crawler.mjs",
          defaultHome: join(folder, "default"),
          print: (line) => void lines.push(line),
          complain: (line) => void lines.push(line),
          ask: null,
          now: () => new Date(),
          setExitCode: (given) => {
            code = given;
          },
          ...changes,
        },
      );
      return { code, text: lines.join("\n") };
    },
  };
}

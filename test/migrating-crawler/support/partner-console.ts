/** Runs a partner's command like its user: a folder, answers to questions, and the output. */
import { join } from "node:path";
import type { PartnerSurroundings } from "#crawler/cli/partner-commands";
import { runPartnerProgram } from "#crawler/cli/partner-program";
import { temporaryFolder } from "../../support/temporary-folder.ts";

export interface PartnerConsole {
  /** In a temporary folder; not created yet. */
  readonly home: string;
  /** Returns the exit code and everything printed since. */
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

/** `nearcrawl rir check`: reads and reports, touches nothing. */
import { Command } from "commander";
import { checkSources } from "#rir-import/check";
import { printAnswer } from "../output.ts";
import { checkText } from "./check-text.ts";
import { withProgress } from "./with-progress.ts";

export function checkCommand(): Command {
  return new Command("check")
    .description("read sources and report, without a database: counts, malformed records, crossing ranges")
    .argument("<source...>", "files or folders")
    .option("--json", "print for programs")
    .addHelpText("after", "\nExample:\n  nearcrawl rir check delegated-afrinic-extended-latest.txt.gz")
    .action(async (sources: string[], options: { json?: boolean }) => {
      const check = await withProgress((onProgress) => checkSources(sources, onProgress));
      printAnswer(options, check, checkText(check));
    });
}

/** The texts of `nearcrawl rir check`, `plan`, `apply`, `rollback` and `status`, which equal those on the registry's pages. */

import { Command } from "commander";
import { plain } from "#coordinator/ask/document";
import type { Node } from "#coordinator/ask/operation";
import { documentText } from "#coordinator/ask/text-rendering";
import { plainText } from "#coordinator/ask/words";
import { reportWords } from "#coordinator/run/registry/job-ask";
import {
  crossingNode,
  differenceTable,
  filesNodes,
  planNodes,
  treeFacts,
  warningNodes,
} from "#coordinator/run/registry/plan-ask";
import { statusNodes } from "#coordinator/run/registry/registry-ask";
import { printable } from "#core/terminal-text";
import type { AppliedImport } from "#rir-import/apply";
import { checkSources, type SourceCheck } from "#rir-import/check";
import { isMuchInUse } from "#rir-import/database/subnets-in-use";
import type { ImportPlan } from "#rir-import/plan";
import type { RolledBack, RolledForward } from "#rir-import/rollback";
import { lostSum, shrunkRegistries } from "#rir-import/shrinkage";
import type { RegistryStatus } from "#rir-import/status";
import { exitCodes } from "../exit-codes.ts";
import { printAnswer, secondsText, terminalPaper } from "../output.ts";
import { withProgress } from "./job-steps.ts";

export const textOf = (nodes: readonly Node[]) => documentText({ title: "", nodes }, terminalPaper());

const mostListed = 10;

export function planText(plan: ImportPlan): string {
  const { inUse, losses, fingerprint, generation, registries, samples } = plan;
  const remove = isMuchInUse(inUse) ? ` --yes-remove ${inUse.going}` : "";
  const lose = losses.length > 0 ? ` --yes-lose ${lostSum(losses)}` : "";
  return textOf([
    plain(`Compared with ${generation === null ? "an empty tree" : `generation ${generation}`}:`),
    ...planNodes(plan, mostListed),
    differenceTable(Object.values(samples).flat(), "Differences"),
    ...warningNodes(plan, shrunkRegistries(registries)),
    plain(`Apply exactly this with: nearcrawl rir apply … --planned ${fingerprint}${remove}${lose}`),
  ]);
}

export function appliedText({ plan, generation, isNew, cleared, seconds }: AppliedImport): string {
  const { reading, comparing, writing, total } = seconds;
  const times = `${secondsText(total)}: reading ${secondsText(reading)}, comparing ${secondsText(comparing)}, writing ${secondsText(writing)}`;
  return textOf([
    ...planNodes(plan, mostListed),
    ...(cleared === 0 ? [] : [plain(`Cleared away what ${cleared} interrupted import left.`)]),
    plain(
      isNew
        ? `Generation ${generation} is in force (${times}). Undo with: nearcrawl rir rollback`
        : `Nothing to do: generation ${generation} was made from the same files (${times}).`,
    ),
  ]);
}

export const rolledBackText = (done: RolledBack): string =>
  `${plainText(reportWords({ type: "rollback", ...done }))} Back with: nearcrawl rir rollforward`;

export const rolledForwardText = (done: RolledForward): string =>
  `${plainText(reportWords({ type: "rollforward", ...done }))} Undo with: nearcrawl rir rollback`;

export const statusText = (status: RegistryStatus): string => textOf(statusNodes(status, new Date()));

function checkText({ files, state, publishedRanges, seconds }: SourceCheck): string {
  const crossing = crossingNode(state, mostListed);
  return textOf([
    ...filesNodes(files),
    treeFacts(state),
    ...(crossing === null ? [] : [crossing]),
    plain(`${publishedRanges} ranges with published places; read in ${secondsText(seconds)}`),
  ]);
}

// `nearcrawl rir check`: reads files and reports on them without changing anything.

export function checkCommand(): Command {
  return new Command("check")
    .description("read sources and report, without a database: counts, malformed records, overlapping ranges")
    .argument("<source...>", "files or folders")
    .option("--json", "print for programs")
    .addHelpText(
      "after",
      `
A file that is broken is reported, and the others are read; the exit code is 2 then.

Example:
  nearcrawl rir check delegated-afrinic-extended-latest.txt.gz`,
    )
    .action(async (sources: string[], options: { json?: boolean }) => {
      const check = await withProgress((onProgress) => checkSources(sources, onProgress));
      if (check.files.length > 0 || options.json) printAnswer(options, check, checkText(check));
      if (check.broken.length === 0) return;
      for (const { file, line, reason } of check.broken)
        process.stderr.write(
          `nearcrawl: ${printable(`${file}${line === null ? "" : `:${line}`}: ${reason}`, 600)}\n`,
        );
      process.exitCode = exitCodes.usage;
    });
}

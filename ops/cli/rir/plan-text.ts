/** What `nearcrawl rir check`, `plan`, `apply`, `rollback` and `status` say to people. */

import { Command } from "commander";
import { printable } from "#core/terminal-text";
import type { AppliedImport } from "#rir-import/apply";
import { checkSources, type SourceCheck } from "#rir-import/check";
import type { Difference, SubnetWords } from "#rir-import/database/differences";
import { goingWords, isMuchInUse } from "#rir-import/database/subnets-in-use";
import type { ImportPlan } from "#rir-import/plan";
import type { FileReport } from "#rir-import/read/file-report";
import type { RolledBack, RolledForward } from "#rir-import/rollback";
import { lossText, lostSum, shrunkRegistries } from "#rir-import/shrinkage";
import type { RegistryStatus } from "#rir-import/status";
import { answerText } from "../answer-text.ts";
import { exitCodes } from "../exit-codes.ts";
import { printAnswer } from "../output.ts";
import { secondsText, withProgress } from "./progress-text.ts";

const count = (value: number) => value.toLocaleString("en");
const joined = (parts: readonly string[]) => parts.filter((part) => part !== "").join("\n\n");

export function planText(plan: ImportPlan): string {
  const { inUse, losses, fingerprint } = plan;
  const remove = isMuchInUse(inUse) ? ` --yes-remove ${inUse.going}` : "";
  const lose = losses.length > 0 ? ` --yes-lose ${lostSum(losses)}` : "";
  return joined([
    importText(plan),
    warningsOf(plan).join("\n"),
    `apply exactly this with: nearcrawl rir apply … --planned ${fingerprint}${remove}${lose}`,
  ]);
}

export function appliedText({ plan, generation, isNew, cleared, seconds }: AppliedImport): string {
  const { reading, comparing, writing, total } = seconds;
  const times = `${secondsText(total)}: reading ${secondsText(reading)}, comparing ${secondsText(comparing)}, writing ${secondsText(writing)}`;
  return joined([
    importText(plan),
    ...heldBackText(plan),
    cleared === 0 ? "" : `cleared away what ${cleared} interrupted import left`,
    isNew
      ? `generation ${generation} is in force (${times}); undo with: nearcrawl rir rollback`
      : `nothing to do: generation ${generation} was made from the same files (${times})`,
  ]);
}

const samplesShown = 10;

function importText({ files, generation, state, registries, changes, samples, ...plan }: ImportPlan): string {
  const { sources, heldBack: _, ...lists } = plan.published;
  const isPublished = lists.lists > 0 || sources.length > 0;
  const words = {
    tree: { ...state, crossingSamples: state.crossingSamples.slice(0, samplesShown) },
    changes,
    ...{ registries, differences: Object.values(samples).flat().map(differenceRow) },
    ...{ holders: plan.holders, delegations: plan.delegations },
    published: isPublished ? { ...lists, sources } : null,
    publishedMoves: sources.flatMap(({ movedSamples }) => movedSamples),
  };
  const columns = {
    registries: "registry before.subnets after.subnets added removed changed moved",
    sources: "source listDate ranges places withoutPlace added removed moved isHeldBack",
  };
  return joined([
    filesText(files),
    `compared with ${generation === null ? "an empty tree" : `generation ${generation}`}:`,
    answerText(words, columns),
  ]);
}

function differenceRow({ kind, range, before, after }: Difference) {
  const words = (subnet: SubnetWords | null) =>
    [subnet?.holder, subnet?.country, subnet?.registry, subnet?.name].filter(Boolean).join(" · ");
  const under = (subnet: SubnetWords | null) => (subnet?.under ? `under ${subnet.under}` : "at the top");
  const say = kind === "moved" ? under : words;
  return { change: kind, range, before: printable(say(before), 60), after: printable(say(after), 60) };
}

function warningsOf(plan: ImportPlan): string[] {
  const percent = (share: number) => `${(100 * share).toFixed(1)} %`;
  const inUse = `${goingWords(plan.inUse)} go: delegated, or with hosts in the frontier`;
  return [
    ...shrunkRegistries(plan.registries).map(
      ({ registry, lostSubnetsShare: subnets, lostIpv4Share: ipv4, lostIpv6Share: ipv6 }) =>
        `WARNING: ${registry} would lose ${percent(subnets)} of its subnets, ${percent(ipv4)} of its ` +
        `IPv4 and ${percent(ipv6)} of its IPv6 addresses: is its file complete?`,
    ),
    ...heldBackText(plan),
    ...plan.outdated.map(
      ({ file, fileDate, ageDays }) =>
        `WARNING: ${printable(file, 200)} is of ${fileDate}, ${count(ageDays)} days old: is it the newest?`,
    ),
    ...plan.losses.map(
      (loss) =>
        `WARNING: ${lossText(loss)} would go: is a file missing? They go only when it is said to be meant`,
    ),
    isMuchInUse(plan.inUse) ? `WARNING: ${inUse}; that many go only when it is said to be meant` : inUse,
  ];
}

const heldBackText = ({ published }: Pick<ImportPlan, "published">): string[] =>
  published.heldBack.map((source) => {
    const name = printable(source, 120);
    return `WARNING: ${name} moves more than 30 % of its ranges to other places: held back, what is in force goes on; if that is meant: --yes-moved "${name}"`;
  });

export function rolledBackText({ rolledBack, generation, undone }: RolledBack): string {
  const now =
    generation === null ? "no registry is in force now" : `generation ${generation} is in force again`;
  const which = rolledBack.length === 1 ? "generation" : "generations";
  return `${which} ${rolledBack.join(", ")} rolled back (${changedText(undone)}); ${now}; back with: nearcrawl rir rollforward`;
}

export function rolledForwardText({ generation, redone }: RolledForward): string {
  return `generation ${generation} is in force again (${changedText(redone)}); undo with: nearcrawl rir rollback`;
}

function changedText(changes: Readonly<Record<string, number>>): string {
  const parts = Object.entries(changes).map(([change, number]) => `${count(number)} ${change}`);
  return parts.join(", ") || "no changes";
}

export function statusText({ counted: _, ...status }: RegistryStatus): string {
  if (status.generation === null)
    return joined([
      "no import yet: nearcrawl rir apply SOURCE…",
      answerText({ unfinished: status.unfinished }),
    ]);
  return answerText(status, {
    sources: "file format registry fileDate ageDays kept malformed",
    history:
      "generation state appliedAt changes.added changes.removed changes.changed changes.moved canRollForward",
  });
}

// What was read of each file, for an operator who has to decide whether to trust it: one row a file, then why records were
// left out, what its text was written in, and each broken record with its line.

const malformedShown = 10;
const reasonsShown = 12;

export function filesText(files: readonly FileReport[]): string {
  const rows = files.map((file) => ({
    ...file,
    ignored: Object.values(file.ignored).reduce((total, number) => total + number, 0),
  }));
  const columns = "file format registry fileDate read kept ignored malformed textBytes seconds";
  return [answerText({ files: rows }, { files: columns }), ...files.flatMap(remarksOf)].join("\n");
}

/** A broken record as `file:line:`, which editors and terminals open. */
function remarksOf({ file, malformed, malformedSamples, ...report }: FileReport): string[] {
  const { ignored, encoding, warnings } = report;
  // The commonest reason first.
  const reasons = Object.entries(ignored).sort(([, a], [, b]) => b - a);
  const shown = reasons.slice(0, reasonsShown).map(([reason, number]) => `${count(number)} × ${reason}`);
  const latin1 = encoding?.firstLatin1Line
    ? ` (the first in the record at line ${encoding.firstLatin1Line})`
    : "";
  const samples = malformedSamples.slice(0, malformedShown);
  const more = malformed - samples.length;
  return [
    ...(shown.length === 0 ? [] : [`  ${file}: ignored ${shown.join(", ")}`]),
    ...(encoding === null
      ? []
      : [
          `  ${file}: encoding: values in UTF-8: ${count(encoding.utf8Values)}, read as Latin-1: ${count(encoding.latin1Values)}${latin1}`,
        ]),
    ...warnings.map((warning) => `  ${file}: warning: ${warning}`),
    ...samples.map(
      ({ file: of, line, reason, value }) =>
        `  ${of}:${line}: ${reason}${value === "" ? "" : `: "${printable(value, 60)}"`}`,
    ),
    ...(more > 0 ? [`  ${file}: and ${count(more)} more malformed records`] : []),
  ];
}

function checkText({ files, state, publishedRanges, seconds }: SourceCheck): string {
  const { crossingSamples, ...counts } = state;
  const tree = { ...counts, crossingSamples: crossingSamples.slice(0, samplesShown), publishedRanges };
  return joined([filesText(files), answerText(tree), `read in ${secondsText(seconds)}`]);
}

// `nearcrawl rir check`: reads and reports, touches nothing.

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

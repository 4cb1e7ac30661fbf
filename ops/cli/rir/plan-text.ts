/** What `nearcrawl rir plan`, `apply`, `rollback` and `status` say to people. */

import { Command } from "commander";
import type { AppliedImport } from "#rir-import/apply";
import { checkSources, type SourceCheck } from "#rir-import/check";
import type { PublishedChange, PublishedPlan } from "#rir-import/database/published-lists";
import { losesTooMany } from "#rir-import/database/routing-tables";
import { goingWords, isMuchInUse } from "#rir-import/database/subnets-in-use";
import type { ImportPlan } from "#rir-import/plan";
import type { RolledBack, RolledForward } from "#rir-import/rollback";
import { lossText, lostSum, shrunkRegistries } from "#rir-import/shrinkage";
import type { RegistryStatus } from "#rir-import/status";
import { exitCodes } from "../exit-codes.ts";
import { type Column, formatTable, printAnswer, printable } from "../output.ts";
import { filesText } from "./files-text.ts";
import { withProgress } from "./lookup-command.ts";
import { secondsText } from "./progress-text.ts";

const count = (value: number) => value.toLocaleString("en");
const left = (title: string): Column => ({ title });
const right = (title: string): Column => ({ title, align: "right" });
const samplesShown = 10;

export function planText(plan: ImportPlan): string {
  const against = plan.generation === null ? "an empty tree" : `generation ${plan.generation}`;
  const parts = [
    filesText(plan.files),
    stateText(plan.state),
    `compared with ${against}:\n${changesText(plan)}`,
    samplesText(plan),
    holdersText(plan),
    delegationsText(plan),
    publishedText(plan.published),
    shrinkageText(plan),
    outdatedText(plan),
    lossesText(plan),
    inUseText(plan),
    routesText(plan),
    `apply exactly this with: nearcrawl rir apply … --planned ${plan.fingerprint}${isMuchInUse(plan.inUse) ? ` --yes-remove ${plan.inUse.going}` : ""}${plan.losses.length > 0 ? ` --yes-lose ${lostSum(plan.losses)}` : ""}${losesTooMany(plan.routes) ? ` --yes-routes ${plan.routes.after}` : ""}`,
  ];
  return parts.filter((part) => part !== "").join("\n\n");
}

/** Registries that would lose suspiciously much. */
function shrinkageText({ registries }: ImportPlan): string {
  const percent = (share: number) => `${(100 * share).toFixed(1)} %`;
  return shrunkRegistries(registries)
    .map(
      ({ registry, lostSubnetsShare, lostIpv4Share, lostIpv6Share }) =>
        `WARNING: ${registry} would lose ${percent(lostSubnetsShare)} of its subnets, ${percent(lostIpv4Share)} of its IPv4 and ${percent(lostIpv6Share)} of its IPv6 addresses: is its file complete?`,
    )
    .join("\n");
}

function lossesText({ losses }: ImportPlan): string {
  return losses
    .map(
      (loss) =>
        `WARNING: ${lossText(loss)} would go: is a file missing? They go only when it is said to be meant`,
    )
    .join("\n");
}

function outdatedText({ outdated }: ImportPlan): string {
  return outdated
    .map(({ file, fileDate, ageDays }) => {
      return `WARNING: ${printable(file, 200)} is of ${fileDate}, ${count(ageDays)} days old: is it the newest?`;
    })
    .join("\n");
}

function inUseText({ inUse }: ImportPlan): string {
  const words = `${goingWords(inUse)} go: delegated, or with hosts in the frontier`;
  return isMuchInUse(inUse) ? `WARNING: ${words}; that many go only when it is said to be meant` : words;
}

/** Who announces what; nothing to say where neither the database nor the files hold a routing table. */
function routesText({ routes }: ImportPlan): string {
  const { before, after, ipv4Prefixes, ipv6Prefixes, asCount, added, removed, changed } = routes;
  if (before + after === 0) return "";
  const asOf = (asNumber: number | null) => (asNumber === null ? "not announced" : `AS${asNumber}`);
  const warning = losesTooMany(routes)
    ? `WARNING: the routing table would keep ${count(after)} of ${count(before)} prefixes: is its file complete? They go only when it is said to be meant`
    : null;
  return [
    ...(warning === null ? [] : [warning]),
    `routing table: ${count(after)} prefixes (${count(ipv4Prefixes)} IPv4, ${count(ipv6Prefixes)} IPv6) of ${count(asCount)} ASes: ${count(added)} new, ${count(removed)} gone, ${count(changed)} from another AS`,
    ...routes.samples
      .slice(0, samplesShown)
      .map(({ prefix, before: was, after: is }) => `  ${prefix}: ${asOf(was)} → ${asOf(is)}`),
    ...multiOriginLines(routes),
  ].join("\n");
}

function multiOriginLines({ multiOrigin, multiOriginSamples }: ImportPlan["routes"]): readonly string[] {
  if (multiOrigin === 0) return [];
  return [
    `${count(multiOrigin)} prefixes come from several ASes; the one that most peers see counts, of equals the lowest:`,
    ...multiOriginSamples
      .slice(0, samplesShown)
      .map(({ prefix, asNumbers }) => `  ${prefix}: ${asNumbers.map((one) => `AS${one}`).join(", ")}`),
  ];
}

export function appliedText(applied: AppliedImport): string {
  const { plan, generation, isNew, cleared, seconds } = applied;
  const { reading, comparing, writing, total } = seconds;
  const times = `${secondsText(total)}: reading ${secondsText(reading)}, comparing ${secondsText(comparing)}, writing ${secondsText(writing)}`;
  const ending = isNew
    ? `generation ${generation} is in force (${times}); undo with: nearcrawl rir rollback`
    : `nothing to do: generation ${generation} was made from the same files (${times})`;
  const parts = [
    filesText(plan.files),
    stateText(plan.state),
    changesText(plan),
    holdersText(plan),
    delegationsText(plan),
    publishedText(plan.published),
    routesText(plan),
    cleared === 0 ? "" : `cleared away what ${cleared} interrupted import left`,
    ending,
  ];
  return parts.filter((part) => part !== "").join("\n\n");
}

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

export function statusText(status: RegistryStatus): string {
  if (status.generation === null) {
    return ["no import yet: nearcrawl rir apply SOURCE…", ...remarksOf(status)].join("\n\n");
  }
  const sources = formatTable(
    [
      left("file"),
      left("format"),
      left("registry"),
      left("date"),
      right("age, days"),
      right("kept"),
      right("malformed"),
    ],
    status.sources.map((source) => [
      source.file,
      source.format,
      source.registry ?? "",
      source.fileDate ?? "",
      source.ageDays === null ? "" : String(source.ageDays),
      count(source.kept),
      count(source.malformed),
    ]),
  );
  const history = formatTable(
    [
      right("generation"),
      left("state"),
      left("applied"),
      right("added"),
      right("removed"),
      right("changed"),
      right("moved"),
    ],
    status.history.map(({ generation, state, appliedAt, changes, canRollForward }) => [
      String(generation),
      canRollForward ? `${state}, can go forward` : state,
      appliedAt?.slice(0, 19).replace("T", " ") ?? "",
      count(changes.added ?? 0),
      count(changes.removed ?? 0),
      count(changes.changed ?? 0),
      count(changes.moved ?? 0),
    ]),
  );
  const totals = `generation ${status.generation}: ${count(status.ipv4Subnets)} IPv4 and ${count(status.ipv6Subnets)} IPv6 subnets, ${count(status.holders)} holders, ${count(status.delegations)} delegations`;
  return [totals, sources, history, ...remarksOf(status)].join("\n\n");
}

function remarksOf({ outdated, unfinished }: RegistryStatus): readonly string[] {
  const since = unfinished?.begunAt.slice(0, 19).replace("T", " ");
  return [
    ...(outdated.length === 0 ? [] : [`older than a quarter: ${outdated.join(", ")}`]),
    ...(unfinished === null
      ? []
      : [
          unfinished.isRunning
            ? `an import is running since ${since}`
            : `an import that began at ${since} was interrupted; the next one clears it away`,
        ]),
  ];
}

function changesText({ changes }: ImportPlan): string {
  const { added, returned, removed, changed, moved, unchanged } = changes;
  const kinds = { added, returned, removed, changed, moved, unchanged };
  return formatTable(Object.keys(kinds).map(right), [Object.values(kinds).map(count)]);
}

function samplesText({ samples }: ImportPlan): string {
  const words = (subnet: ImportPlan["samples"]["added"][number]["before"]) =>
    subnet === null
      ? ""
      : [subnet.holder, subnet.country, subnet.registry, subnet.name].filter(Boolean).join(" · ");
  const under = (subnet: ImportPlan["samples"]["added"][number]["before"]) =>
    subnet?.under ? `under ${subnet.under}` : "at the top";
  const rows = (["added", "returned", "removed", "changed", "moved"] as const).flatMap((kind) =>
    samples[kind].map(({ range, before, after }) => [
      kind,
      range,
      printable(kind === "moved" ? under(before) : words(before), 60),
      printable(kind === "moved" ? under(after) : words(after), 60),
    ]),
  );
  return rows.length === 0 ? "" : formatTable(["change", "range", "before", "after"].map(left), rows);
}

function holdersText({ holders }: ImportPlan): string {
  const { added, gone, renamed, merged, split, mergedSamples, splitSamples } = holders;
  if (added + gone + renamed + merged + split === 0) return "";
  const sample = (word: string, samples: typeof mergedSamples) =>
    samples
      .slice(0, samplesShown)
      .map(({ from, to }) => `  ${word}: ${printable(from, 50)} → ${printable(to.join(" + "), 80)}`);
  return [
    `holders: ${count(added)} new, ${count(gone)} gone, ${count(renamed)} renamed, ${count(merged)} merged into another, ${count(split)} split`,
    ...sample("merged", mergedSamples),
    ...sample("split", splitSamples),
  ].join("\n");
}

function delegationsText({ delegations }: ImportPlan): string {
  const { kept, returned, inherited, lost, inheritedSamples, lostSamples } = delegations;
  return [
    `delegations: ${count(kept)} kept, ${count(returned)} returned, ${count(inherited)} inherited by the subnet above, ${count(lost)} lost`,
    ...inheritedSamples
      .slice(0, samplesShown)
      .map(({ range, from, to, through }) => `  ${range}: ${from} → ${to}, through ${through}`),
    ...lostSamples
      .slice(0, samplesShown)
      .map(({ range, from }) => `  ${range}: ${from} → nobody; the next URL there is probed again`),
  ].join("\n");
}

// What `nearcrawl rir check` says to people: the files, and the tree that they make.

const crossingsShown = 10;

function checkText({ files, state, publishedRanges, seconds }: SourceCheck): string {
  const published = publishedRanges > 0 ? [`published places of ${count(publishedRanges)} ranges`] : [];
  return [filesText(files), stateText(state), ...published, `read in ${secondsText(seconds)}`].join("\n\n");
}

function stateText(state: SourceCheck["state"]): string {
  const lines = [
    `${count(state.subnets)} subnets (${count(state.ipv4Subnets)} IPv4, ${count(state.ipv6Subnets)} IPv6), at most ${state.deepest} deep; ${count(state.holders)} holders, ${count(state.withoutHolder)} subnets without one; ${count(state.duplicates)} records merged with another of the same range`,
  ];
  if (state.crossings > 0) lines.push(`${count(state.crossings)} pairs of overlapping ranges, both kept:`);
  const shown = state.crossingSamples.slice(0, crossingsShown);
  lines.push(...shown.map(({ earlier, later }) => `  ${earlier} × ${later}`));
  if (state.crossings > shown.length) lines.push("  and more: --json lists up to a thousand");
  return lines.join("\n");
}

// `nearcrawl rir check`: reads and reports, touches nothing.

export function checkCommand(): Command {
  return new Command("check")
    .description("read sources and report, without a database: counts, malformed records, overlapping ranges")
    .argument("<source...>", "files or folders")
    .option("--json", "print for programs")
    .addHelpText(
      "after",
      "\nA file that is broken is reported, and the others are read; the exit code is 2 then.\n\nExample:\n  nearcrawl rir check delegated-afrinic-extended-latest.txt.gz",
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

// What an import changes of where networks publish that their ranges lie.

/** Empty where nothing is published, and nothing was. */
export function publishedText({ lists, ranges, sources, geofeeds, ...plan }: PublishedPlan): string {
  if (lists === 0 && sources.length === 0) return "";
  const named =
    geofeeds.lists === 0
      ? ""
      : `; ${count(geofeeds.lists)} of the lists, with ${count(geofeeds.ranges)} ranges, are geofeeds that registry objects name`;
  return [
    `published places: ${count(lists)} lists, ${count(ranges)} ranges; ${count(plan.added)} added, ${count(plan.removed)} removed, ${count(plan.moved)} at another place${named}`,
    ...(sources.length === 0 ? [] : [sourceTable(sources)]),
    ...sources.flatMap(movedText),
  ].join("\n");
}

function sourceTable(sources: readonly PublishedChange[]): string {
  const figures = ["ranges", "places", "without place", "added", "removed", "moved"];
  return formatTable(
    [left("source"), left("list of"), ...figures.map(right)],
    sources.map((source) => [
      printable(source.source, 80),
      source.listDate ?? "",
      ...[source.ranges, source.places, source.withoutPlace].map(count),
      ...[source.added, source.removed, source.moved].map(count),
    ]),
  );
}

function movedText(change: PublishedChange): readonly string[] {
  const { source, moved, rangesBefore, movedSamples, isHeldBack } = change;
  const samples = movedSamples.map(
    ({ range, before, after }) => `  ${range}: ${placeText(before)} → ${placeText(after)}`,
  );
  if (!isHeldBack) return samples;
  const share = ((100 * moved) / rangesBefore).toFixed(1);
  return [
    `WARNING: ${printable(source, 120)} moves ${count(moved)} of its ${count(rangesBefore)} ranges (${share} %) to other places: held back, what is in force goes on; if that is meant: --yes-moved "${printable(source, 120)}"`,
    ...samples,
  ];
}

const placeText = (place: string | null) => (place === null ? "no place" : printable(place, 60));

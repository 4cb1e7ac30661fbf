/** The answers of `nearcrawl rir` for people. */
import type {
  AppliedImport,
  FileReport,
  ImportPlan,
  LookUp,
  RegistryStatus,
  RolledBack,
  SourceCheck,
} from "#rir-import/main";
import { type Column, formatTable } from "../output.ts";
import { secondsText } from "./progress-text.ts";

const count = (value: number) => value.toLocaleString("en");
const left = (title: string): Column => ({ title });
const right = (title: string): Column => ({ title, align: "right" });
const malformedShown = 10;

export function checkText({ files, state, seconds }: SourceCheck): string {
  return [filesText(files), stateText(state), `read in ${secondsText(seconds)}`].join("\n\n");
}

export function planText(plan: ImportPlan): string {
  const against = plan.generation === null ? "an empty tree" : `generation ${plan.generation}`;
  return [
    filesText(plan.files),
    stateText(plan.state),
    `compared with ${against}:\n${changesText(plan)}`,
    samplesText(plan),
    delegationsText(plan),
  ]
    .filter((part) => part !== "")
    .join("\n\n");
}

export function appliedText(applied: AppliedImport): string {
  const { plan, generation, isNew, seconds } = applied;
  const ending = isNew
    ? `generation ${generation} is in force (${secondsText(seconds)}); undo with: nearcrawl rir rollback`
    : `nothing to do: generation ${generation} was made from the same files (${secondsText(seconds)})`;
  return [
    filesText(plan.files),
    stateText(plan.state),
    changesText(plan),
    delegationsText(plan),
    ending,
  ].join("\n\n");
}

export function rolledBackText({ rolledBack, generation, undone }: RolledBack): string {
  const changes = Object.entries(undone).map(([change, number]) => `${count(number)} ${change}`);
  const now = generation === null ? "the tree is empty now" : `generation ${generation} is in force again`;
  return `generation ${rolledBack} is rolled back (${changes.join(", ") || "no changes"}); ${now}`;
}

export function statusText(status: RegistryStatus): string {
  if (status.generation === null) return "no import yet: nearcrawl rir apply SOURCE…";
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
    [right("generation"), left("state"), left("applied"), right("added"), right("removed"), right("changed")],
    status.history.map(({ generation, state, appliedAt, changes }) => [
      String(generation),
      state,
      appliedAt?.slice(0, 19).replace("T", " ") ?? "",
      count(changes.added ?? 0),
      count(changes.removed ?? 0),
      count(changes.changed ?? 0),
    ]),
  );
  const totals = `generation ${status.generation}: ${count(status.ipv4Subnets)} IPv4 and ${count(status.ipv6Subnets)} IPv6 subnets, ${count(status.holders)} holders, ${count(status.delegations)} delegations`;
  const warning = status.outdated.length === 0 ? [] : [`older than a quarter: ${status.outdated.join(", ")}`];
  return [totals, sources, history, ...warning].join("\n\n");
}

export function lookUpText({ asked, chain, crossing }: LookUp): string {
  if (chain.length === 0) return `nothing in the tree holds ${asked}`;
  const table = (subnets: LookUp["chain"]) =>
    formatTable(
      [left("range"), left("registry"), left("country"), left("name"), left("holder"), left("delegated to")],
      subnets.map((subnet, depth) => [
        `${"  ".repeat(Math.min(depth, 20))}${subnet.range}`,
        subnet.registry,
        subnet.country ?? "",
        shortened(subnet.name, 40),
        shortened([subnet.holder, subnet.handle && `(${subnet.handle})`].filter(Boolean).join(" "), 50),
        subnet.delegatedTo ?? "",
      ]),
    );
  const others = crossing.length === 0 ? [] : [`crossing it:\n${table(crossing)}`];
  return [`${asked} lies in`, table(chain), ...others].join("\n");
}

function filesText(files: readonly FileReport[]): string {
  const table = formatTable(
    [left("file"), left("format"), left("registry"), left("date"), ...figures.map(right)],
    files.map((file) => [
      file.file,
      file.format,
      file.registry ?? "",
      file.fileDate ?? "",
      count(file.read),
      count(file.kept),
      count(sumOf(file.ignored)),
      count(file.malformed),
      file.seconds.toFixed(2),
      file.seconds > 0 ? (file.textBytes / 1e6 / file.seconds).toFixed(0) : "",
    ]),
  );
  return [table, ...files.flatMap(remarksOf)].join("\n");
}

const figures = ["read", "kept", "ignored", "malformed", "seconds", "MB/s"];

function remarksOf(file: FileReport): readonly string[] {
  const ignored = Object.entries(file.ignored)
    .sort(([, a], [, b]) => b - a)
    .map(([reason, number]) => `${count(number)} ${reason}`);
  const samples = file.malformedSamples.slice(0, malformedShown);
  const more = file.malformed - samples.length;
  return [
    ...(ignored.length === 0 ? [] : [`  ${file.file}: ignored ${ignored.join(", ")}`]),
    ...file.warnings.map((warning) => `  ${file.file}: warning: ${warning}`),
    ...samples.map(
      ({ line, reason, value }) => `  ${file.file}:${line}: ${reason}: "${shortened(value, 60)}"`,
    ),
    ...(more > 0 ? [`  ${file.file}: and ${count(more)} more malformed records`] : []),
  ];
}

function stateText(state: SourceCheck["state"]): string {
  const lines = [
    `${count(state.subnets)} subnets (${count(state.ipv4Subnets)} IPv4, ${count(state.ipv6Subnets)} IPv6), at most ${state.deepest} deep; ${count(state.holders)} holders, ${count(state.withoutHolder)} subnets without one; ${count(state.duplicates)} records merged with another of the same range`,
  ];
  if (state.crossings > 0) lines.push(`${count(state.crossings)} crossing ranges, kept both:`);
  lines.push(...state.crossingSamples.slice(0, 10).map(({ earlier, later }) => `  ${earlier} × ${later}`));
  return lines.join("\n");
}

function changesText({ changes }: ImportPlan): string {
  const { added, returned, removed, changed, reparented, unchanged } = changes;
  const kinds = { added, returned, removed, changed, reparented, unchanged };
  return formatTable(Object.keys(kinds).map(right), [Object.values(kinds).map(count)]);
}

function samplesText({ samples }: ImportPlan): string {
  const words = (subnet: ImportPlan["samples"]["added"][number]["before"]) =>
    subnet === null
      ? ""
      : [subnet.holder, subnet.country, subnet.registry, subnet.name].filter(Boolean).join(" · ");
  const rows = (["added", "returned", "removed", "changed"] as const).flatMap((kind) =>
    samples[kind].map(({ range, before, after }) => [
      kind,
      range,
      shortened(words(before), 60),
      shortened(words(after), 60),
    ]),
  );
  return rows.length === 0 ? "" : formatTable(["change", "range", "before", "after"].map(left), rows);
}

function delegationsText({ delegations }: ImportPlan): string {
  const { kept, returned, moved, lost, movedSamples, lostSamples } = delegations;
  return [
    `delegations: ${count(kept)} kept, ${count(returned)} returned, ${count(moved)} moved, ${count(lost)} lost`,
    ...movedSamples
      .slice(0, 10)
      .map(({ range, from, to, through }) => `  ${range}: ${from} → ${to}, through ${through}`),
    ...lostSamples
      .slice(0, 10)
      .map(({ range, from }) => `  ${range}: ${from} → nobody; the next URL there is probed anew`),
  ].join("\n");
}

function sumOf(counts: Readonly<Record<string, number>>): number {
  return Object.values(counts).reduce((total, number) => total + number, 0);
}

function shortened(text: string, length: number): string {
  return text.length <= length ? text : `${text.slice(0, length - 1)}…`;
}

/**
 * The page /registry/plans/:id: what applying a plan would change, even if a command made the plan, and applying
 * exactly this plan.
 */
import { z } from "zod";
import { goingWords, isMuchInUse } from "#rir-import/database/subnets-in-use";
import type { ImportPlan } from "#rir-import/plan";
import type { FileReport } from "#rir-import/read/file-report";
import type { Difference, Shrinkage, SubnetsInUse, SubnetWords } from "#rir-import/read/status-api";
import { lossText } from "#rir-import/shrinkage";
import {
  aside,
  column,
  countColumns,
  facts,
  folded,
  form,
  lead,
  list,
  note,
  pager,
  plain,
  present,
  section,
  table,
  tabs,
  tiles,
  warning,
} from "../../ask/document.ts";
import {
  type Column,
  type Document,
  Fault,
  type Inline,
  type Node,
  operationsOf,
} from "../../ask/operation.ts";
import { askAbout, countText, instant, percentText } from "../../web/format.ts";
import { type Html, html, pathWith } from "../../web/html.ts";
import { aboveJobs, jobDocument, jobNumber, jobShown } from "./job-ask.ts";
import { applyRegistry } from "./orders-ask.ts";
import { registryPlan as planSchema, registryJobShown } from "./registry-api.ts";
import { type KnownPlan, knownPlan, losingIn, type RegistryPorts } from "./registry-view.ts";

const { get } = operationsOf<RegistryPorts>();

const differenceKinds = ["added", "removed", "changed", "moved", "returned"] as const;

const registryPlan = get({
  ...{ path: "/api/registry/plans/{jobId}", needs: "read" },
  summary: "What a plan would change, and whether it can still be applied. While its job runs: the job",
  input: z.object({
    jobId: jobNumber,
    kind: z.enum(differenceKinds).optional().describe("Of its page: the differences that are listed."),
    page: z.int().min(1).max(1000).default(1).describe("Of their list."),
  }),
  output: z.union([planSchema, registryJobShown]),
  faults: { 404: "There is no such job" },
  run: async (asked) => {
    const { ports, now, input } = asked;
    const job = await ports.store.find(input.jobId);
    if (job === null || job.order.type !== "plan") return null;
    if (job.state === "running") return await jobShown(job, asked);
    const known = await knownPlan(job, ports, now);
    if (known !== null) return known;
    const { jobId, state, words } = job;
    const said =
      state === "done"
        ? "It was made by another version of this software; make a new one."
        : `Job ${jobId} ended without one: ${words ?? state}`;
    throw new Fault(404, said, "No plan");
  },
  view: (value, { viewer, input }) =>
    "plan" in value ? planDocument(value, input) : jobDocument(value, { viewer }),
});

export const planOperations = { registryPlan };

const rowsShown = 50;

interface Asked {
  readonly kind?: Difference["kind"] | undefined;
  readonly page: number;
}

function planDocument(known: KnownPlan, { kind: asked, page }: Asked): Document {
  const { plan, madeAt, jobId, shrunk } = known;
  const kind = asked ?? differenceKinds.find((one) => plan.changes[one] > 0) ?? "added";
  const all = plan.changes[kind];
  const kept = plan.samples[kind];
  const label = `Subnets that are ${kind}`;
  const [from, to] = [(page - 1) * rowsShown, page * rowsShown];
  return {
    ...{ title: `Plan ${jobId}`, above: aboveJobs },
    nodes: present([
      lead(html`What an import of these files would change in ${against(plan)}. Made ${instant(madeAt)}; nothing is changed
before it is applied.`),
      ...warningNodes(plan, shrunk),
      ...applyNodes(known),
      ...planNodes(plan),
      section(
        "Each difference",
        [
          tabs(
            "Kinds of change",
            differenceKinds.map((one) => ({
              title: `${one} ${countText(plan.changes[one])}`,
              href: `${pathWith(`/registry/plans/${jobId}`, { kind: one })}#differences`,
              isCurrent: one === kind,
            })),
          ),
          differenceTable(kept.slice(from, to), label),
          pager(page, to < kept.length),
          kept.length < all &&
            note(html`The first ${countText(kept.length)} of ${countText(all)}; all of them shows <code>nearcrawl rir plan
--cache --json --samples ${all}</code>.`),
        ],
        { id: "differences" },
      ),
    ]),
    csv: { columns: differenceColumns, rows: kept },
  };
}

function applyNodes(known: KnownPlan): (Node | false)[] {
  const { outdated, jobId, appliedBy, plan } = known;
  const tried =
    appliedBy !== null &&
    plain(html`Applied by <a href="/registry/jobs/${appliedBy.jobId}">job ${appliedBy.jobId}</a>:
${appliedBy.state.replace("-", " ")}.`);
  if (outdated !== null) {
    const words = html`This plan cannot be applied any more. ${outdated} <a href="/registry">Make a new plan</a>.`;
    return [tried, appliedBy?.state !== "done" && warning(words)];
  }
  const losing = losingIn(known);
  const { inUse } = plan;
  const isMuch = inUse !== undefined && isMuchInUse(inUse);
  const words = html`One transaction; coordinators go on serving, and it can be rolled back.${
    losing.length > 0 && ` To be checked, since it is suspiciously much: ${losing.join(", ")}.`
  }${isMuch && html` ${meantWords(inUse)}`}`;
  const without = [
    "planId",
    ...(losing.length > 0 ? [] : ["confirmShrinkage"]),
    ...(isMuch ? [] : ["removeInUse"]),
  ];
  const label = "Apply this plan";
  return [tried, form({ operation: applyRegistry, label, words, values: { planId: jobId }, without })];
}

export const meantWords = ({ going }: SubnetsInUse): Html =>
  html`More than 5 % of the subnets in use go. If that is meant, type how many: <strong>${going}</strong>.`;

/** Says what should be checked before applying. Plans of earlier versions have less of it. */
export function warningNodes(plan: ImportPlan, shrunk: readonly Shrinkage[]): Node[] {
  const { inUse, losses = [], outdated = [] }: Partial<ImportPlan> = plan;
  const going = inUse && html`${goingWords(inUse)} would go: delegated, or with hosts in the frontier.`;
  return [
    ...shrunk.map(({ registry, lostSubnetsShare, lostIpv4Share, lostIpv6Share }) =>
      warning(html`<strong>Suspicious shrinkage.</strong> ${registry} would lose ${percentText(lostSubnetsShare)} of its subnets,
${percentText(lostIpv4Share)} of its IPv4 and ${percentText(lostIpv6Share)} of its IPv6 addresses. A quarter’s honest changes are
smaller: is its file complete?`),
    ),
    ...losses.map((loss) => warning(`${lossText(loss)} would go: is a file missing?`)),
    ...outdated.map(({ file, fileDate, ageDays }) =>
      warning(`${nameOf(file)} is of ${fileDate}, ${countText(ageDays)} days old: is it the newest?`),
    ),
    ...(inUse && going
      ? [isMuchInUse(inUse) ? warning(html`<strong>Subnets in use.</strong> ${going}`) : aside(going)]
      : []),
  ];
}

const against = ({ generation }: Pick<ImportPlan, "generation">) =>
  generation === null ? "an empty tree" : `generation ${generation}`;

/** Shows what an import would change or has changed. `most` limits each list. */
export function planNodes(plan: ImportPlan, most = 200): readonly Node[] {
  const { changes, holders, delegations, state, registries, largest, generation } = plan;
  const { added, returned, removed, changed, moved, unchanged } = changes;
  const counts = (key: string, title: string, of: "before" | "after") =>
    column<RegistryChange>(key, title, (one) => one[of]?.subnets ?? 0, { unit: "count" });
  const change = (title: string, name: "ipv4Addresses" | "ipv6Slash48s"): Column<RegistryChange> => ({
    ...{ key: name, title, kind: "number" },
    cell: ({ before, after }) => difference(before?.[name], after?.[name]),
  });
  const returning = returned === 0 ? "subnets" : `${countText(returned)} of them were there before`;
  const renamedWords = `new; ${countText(holders.gone)} gone, ${countText(holders.renamed)} renamed`;
  const kept =
    delegations.returned === 0 ? "as they are" : `and ${countText(delegations.returned)} that return`;
  const inherited = `${countText(delegations.inherited)} pass to the subnet above`;
  return present([
    tiles([
      ["Added", countText(added + returned), returning],
      ["Removed", countText(removed), "subnets"],
      ["Changed", countText(changed), "in holder, country, registry or name"],
      ["Moved", countText(moved), "only to another place in the tree"],
      ["Unchanged", countText(unchanged), `of ${countText(state.subnets)} subnets afterwards`],
      ["Holders", countText(holders.added), renamedWords],
      ["Delegations kept", countText(delegations.kept), kept],
      ["Delegations lost", countText(delegations.lost), inherited],
    ]),
    section("By registry", [
      table<RegistryChange>({
        ...{ label: "Changes by registry", rows: registries, empty: ["No registry.", ""] },
        columns: [
          column("registry", "Registry", ({ registry }) => registryLink(registry)),
          counts("before", generation === null ? "Now" : `In generation ${generation}`, "before"),
          counts("after", "Afterwards", "after"),
          ...countColumns<RegistryChange>({
            added: "Added",
            removed: "Removed",
            changed: "Changed",
            moved: "Moved",
          }),
          change("IPv4 addresses", "ipv4Addresses"),
          change("IPv6 /48s", "ipv6Slash48s"),
        ],
      }),
    ]),
    largest.length > 0 && section("The largest changes", [differenceTable(largest, "The largest changes")]),
    listed("Delegations lost: probed again with the next URL", {
      ...{ total: delegations.lost, most },
      items: delegations.lostSamples.map(({ range, from }) => html`${askAbout(range)}, now ${from}`),
    }),
    listed("Delegations that pass to the subnet above", {
      ...{ total: delegations.inherited, most },
      items: delegations.inheritedSamples.map(
        ({ range, from, to, through }) =>
          html`${askAbout(range)}: ${from} → ${to}, through ${askAbout(through ?? "")}`,
      ),
    }),
    listed("Holders merged into another", {
      ...{ total: holders.merged, most, items: renamed(holders.mergedSamples) },
    }),
    listed("Holders split", { total: holders.split, most, items: renamed(holders.splitSamples) }),
    crossingNode(state, most),
    publishedSection(plan),
    section("Files", filesNodes(plan.files)),
  ]);
}

type RegistryChange = ImportPlan["registries"][number];

export const registryLink = (registry: string): Html =>
  html`<a href="${pathWith("/explore", { registry })}">${registry}</a>`;

/** For example "+1,024", "−256" or "±0". */
function difference(before = 0, after = 0): string {
  const more = after - before;
  return more === 0 ? "±0" : `${more > 0 ? "+" : "−"}${countText(Math.abs(more))}`;
}

const differenceColumns: readonly Column<Difference>[] = [
  column("range", "Range", ({ range }) => askAbout(range)),
  column("kind", "Change", ({ kind }) => kind),
  column("before", "Was", ({ kind, before }) => wordsOf(kind, before), { kind: "break" }),
  column("after", "Is then", ({ kind, after }) => wordsOf(kind, after), { kind: "break" }),
];

export const differenceTable = (rows: readonly Difference[], label: string): Node =>
  table({ columns: differenceColumns, label, rows, empty: ["None.", ""], kind: "differences" });

function wordsOf(kind: Difference["kind"], subnet: SubnetWords | null): string | null {
  if (kind === "moved") return subnet?.under ? `under ${subnet.under}` : "at the top";
  return subnet && [subnet.holder, subnet.country, subnet.registry, subnet.name].filter(Boolean).join(" · ");
}

const renamed = (samples: ImportPlan["holders"]["mergedSamples"]) =>
  samples.map(({ from, to }) => `${from} → ${to.join(" + ")}`);

interface Listed {
  readonly total: number;
  readonly most: number;
  readonly items: readonly Inline[];
}

function listed(title: string, { total, most, items }: Listed): Node | null {
  const shown = items.slice(0, most);
  const more = total - shown.length;
  const all = more > 0 ? [...shown, `and ${countText(more)} more`] : shown;
  return shown.length === 0 ? null : folded(`${title}: ${countText(total)}`, [list(all, "break")]);
}

export const crossingNode = ({ crossings, crossingSamples }: ImportPlan["state"], most: number) =>
  listed("Overlapping ranges, both kept", {
    ...{ total: crossings, most },
    items: crossingSamples.map(({ earlier, later }) => html`${askAbout(earlier)} × ${askAbout(later)}`),
  });

type PublishedSource = ImportPlan["published"]["sources"][number];

/** Plans of earlier versions do not have this. */
function publishedSection({ published }: Partial<Pick<ImportPlan, "published">>): Node | null {
  if (published === undefined || (published.lists === 0 && published.sources.length === 0)) return null;
  const { lists, ranges, sources, geofeeds, heldBack } = published;
  const moves = sources
    .flatMap(({ movedSamples }) => movedSamples)
    .map(
      ({ range, before, after }) => html`${askAbout(range)} ${before ?? "no place"} → ${after ?? "no place"}`,
    );
  return section("Published places", [
    plain(`${countText(lists)} lists with ${countText(ranges)} ranges say where networks place them;
${countText(geofeeds.lists)} of the lists are geofeeds that registry objects name.`),
    ...heldBack.map((source) =>
      warning(html`<strong>Held back.</strong> ${source} moves more than 30 % of its ranges to other places. What is in force
goes on; if that is meant: <span class="mono">nearcrawl rir apply … --yes-moved "${source}"</span>.`),
    ),
    table<PublishedSource>({
      ...{ label: "Published places", rows: sources, empty: ["No list of its own.", ""] },
      columns: [
        column("source", "Source", ({ source }) => source, { kind: "break" }),
        column("list_date", "List of", ({ listDate }) => listDate, { kind: "nowrap" }),
        ...countColumns<PublishedSource>({
          ranges: "Ranges",
          places: "Places",
          withoutPlace: "Without place",
        }),
        ...countColumns<PublishedSource>({ added: "Added", removed: "Removed", moved: "Moved" }),
      ],
    }),
    moves.length > 0 && list(moves),
  ]);
}

export const treeFacts = (state: ImportPlan["state"]): Node =>
  facts(
    ["Subnets", countText(state.subnets)],
    ["IPv4 subnets", countText(state.ipv4Subnets)],
    ["IPv6 subnets", countText(state.ipv6Subnets)],
    ["Holders", countText(state.holders)],
    ["Without a holder", countText(state.withoutHolder)],
    ["Merged records", countText(state.duplicates)],
    ["Deepest level", countText(state.deepest)],
    ["Overlapping pairs", countText(state.crossings)],
  );

// The files of an import, and their rejected records by file and line.

const nameOf = (file: string) => file.split("/").at(-1) ?? file;

export const fileColumns = <
  Row extends Pick<FileReport, "file" | "fileDate"> & {
    readonly format: string;
    readonly registry: string | null;
  },
>(): readonly Column<Row>[] => [
  column("file", "File", ({ file }) => html`<span title="${file}">${nameOf(file)}</span>`),
  column("format", "Format", ({ format }) => format),
  column("registry", "Registry", ({ registry }) => registry),
  column("file_date", "Data of", ({ fileDate }) => fileDate, { kind: "nowrap" }),
];

const ignoredOf = ({ ignored }: FileReport) => Object.values(ignored).reduce((sum, count) => sum + count, 0);

/** Shows what was read from each file, so that operators can decide whether to trust it. */
export const filesNodes = (files: readonly FileReport[]): readonly Node[] =>
  present([
    table<FileReport>({
      ...{ label: "Files", rows: files, empty: ["No file.", ""] },
      columns: [
        ...fileColumns<FileReport>(),
        ...countColumns<FileReport>({ read: "Records", kept: "Kept" }),
        column("ignored", "Ignored", ignoredOf, { unit: "count" }),
        ...countColumns<FileReport>({ malformed: "Refused" }),
        column("bytes", "Unpacked", ({ textBytes }) => textBytes, { unit: "bytes" }),
      ],
    }),
    ...files.map(remarksNode),
  ]);

/** Names broken records as `file:line:`, which editors and terminals can open. */
function remarksNode(report: FileReport): Node | null {
  const { file, malformed, malformedSamples, warnings, encoding } = report;
  const reasons = Object.entries(report.ignored)
    .sort(([, one], [, other]) => other - one)
    .map(([reason, count]) => `${countText(count)} × ${reason}`);
  const more = malformed - malformedSamples.length;
  const remarks: readonly Inline[] = [
    ...warnings.map((warning) => html`<strong>Warning:</strong> ${warning}`),
    ...malformedSamples.map(
      (one) =>
        html`<span class="mono">${one.file}:${one.line}</span>: ${one.reason}${one.value !== "" && `: "${one.value}"`}`,
    ),
    ...(more > 0 ? [`and ${countText(more)} more refused records`] : []),
    ...(reasons.length > 0 ? [`ignored ${reasons.join(", ")}`] : []),
    ...(encoding ? [encodingWords(encoding)] : []),
  ];
  const ignored = ignoredOf(report);
  const words = [
    malformed > 0 && `${countText(malformed)} refused`,
    ignored > 0 && `${countText(ignored)} ignored`,
    warnings.length > 0 && `${warnings.length} warnings`,
  ].filter(Boolean);
  return remarks.length === 0
    ? null
    : folded(`${nameOf(file)}: ${words.join(", ") || "encoding"}`, [list(remarks, "break")]);
}

function encodingWords({
  utf8Values,
  latin1Values,
  firstLatin1Line,
}: NonNullable<FileReport["encoding"]>): string {
  const first = firstLatin1Line ? ` (the first in the record at line ${firstLatin1Line})` : "";
  return `values in UTF-8: ${countText(utf8Values)}, read as Latin-1: ${countText(latin1Values)}${first}`;
}

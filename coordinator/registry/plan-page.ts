/** /registry/plans/:id: what applying the plan would change, and the button that applies exactly this. */
import type { Difference, SubnetWords } from "#rir-import/database/differences";
import { goingWords, isMuchInUse } from "#rir-import/database/subnets-in-use";
import type { ImportPlan } from "#rir-import/plan";
import type { FileReport } from "#rir-import/read/file-report";
import type { Shrinkage } from "#rir-import/shrinkage";
import { lossText } from "#rir-import/shrinkage";
import { column, dataTable, numberColumn, type TableColumn, tile } from "../web/components.ts";
import { askAbout, countText, instant, percentText } from "../web/format.ts";
import { type Html, html, nothing, pathWith } from "../web/html.ts";
import { formToken, type PageViewer } from "../web/page-frame.ts";
import { inUseField } from "./page.ts";
import type { KnownPlan } from "./registry-view.ts";

export interface PlanPageQuery {
  readonly kind: Difference["kind"];
  readonly from: number;
}

export const differenceKinds = ["added", "removed", "changed", "moved", "returned"] as const;
const rowsShown = 50;

const registryLink = (registry: string) =>
  html`<a href="${pathWith("/explore", { registry })}">${registry}</a>`;
export function planPage(
  known: KnownPlan,
  query: PlanPageQuery,
  { viewer, mayAct }: { readonly viewer: PageViewer; readonly mayAct: boolean },
): Html {
  const { plan, madeAt, jobId } = known;
  const against = plan.generation === null ? "an empty tree" : `generation ${plan.generation}`;
  return html`<p class="registry-path"><a href="/registry">Registry</a> · <a href="/registry/jobs">Jobs</a></p><h1>Plan ${jobId}</h1>
<p class="lead">What an import of these files would change in ${against}. Made ${instant(madeAt)}; nothing is changed before it is applied.</p>
${shrinkageWarning(known.shrunk)}
${outdatedWarning(plan)}
${applySection(known, viewer, mayAct)}
${planReport(plan)}
${samplesSection(known, query)}`;
}

/** A plan of an earlier version has none. */
function outdatedWarning({ outdated = [] }: Partial<Pick<ImportPlan, "outdated">>): Html {
  if (outdated.length === 0) return nothing;
  return html`<div class="warning" role="note"><ul>${outdated.map(
    ({ file, fileDate, ageDays }) => html`<li>${nameOf(file)}
is of ${fileDate}, ${countText(ageDays)} days old: is it the newest?</li>`,
  )}</ul></div>`;
}

function applySection(known: KnownPlan, viewer: PageViewer, mayAct: boolean): Html {
  const { outdated, shrunk, jobId, appliedBy } = known;
  const tried =
    appliedBy === null
      ? nothing
      : html`<p>Applied by <a href="/registry/jobs/${appliedBy.jobId}">job ${appliedBy.jobId}</a>: ${appliedBy.state.replace("-", " ")}.</p>`;
  if (outdated !== null) {
    const words =
      appliedBy?.state === "done"
        ? nothing
        : html`<p class="fault" role="alert">This plan cannot be applied any more. ${outdated} <a href="/registry">Make a new plan</a>.</p>`;
    return html`${tried}${words}`;
  }
  if (!mayAct) return tried;
  const losing = [...shrunk.map(({ registry }) => registry), ...(known.plan.losses ?? []).map(lossText)];
  const confirm =
    losing.length === 0
      ? nothing
      : html`<label class="choice"><input type="checkbox" name="confirmShrinkage" value="yes" required>
${losing.join(", ")} may lose that much: I have checked it</label>`;
  const { inUse } = known.plan;
  const meant = inUse !== undefined && isMuchInUse(inUse) ? inUseField(inUse) : nothing;
  return html`${tried}<form method="post" action="/registry/apply" class="actions">${formToken(viewer)}<input
type="hidden" name="planId" value="${jobId}">${confirm}${meant}<button>Apply this plan</button><span class="small">One
transaction; coordinators go on serving, and it can be rolled back.</span></form>`;
}

function samplesSection({ plan, jobId }: KnownPlan, { kind, from }: PlanPageQuery): Html {
  const all = plan.samples[kind];
  const shown = all.slice(from, from + rowsShown);
  const tabs = differenceKinds.map(
    (one) =>
      html`<a href="${pathWith(`/registry/plans/${jobId}`, { kind: one })}#differences"${
        one === kind
          ? html`
aria-current="true"`
          : nothing
      }>${one} ${countText(plan.changes[one])}</a>`,
  );
  return html`<section id="differences"><h2>Each difference</h2><nav class="tabs" aria-label="Kinds of change">${tabs}</nav>
${shown.length === 0 ? html`<p>None.</p>` : differenceTable(shown, `Subnets that are ${kind}`)}
${pager(known(plan.changes[kind], all.length, from), { jobId, kind, from, size: all.length })}</section>`;
}

/** "1 to 50 of 1,204; the first 300 are kept here, and all of them by the command". */
function known(total: number, kept: number, from: number): string {
  if (total === 0) return "";
  const range = `${countText(from + 1)} to ${countText(Math.min(from + rowsShown, kept))} of ${countText(total)}`;
  return kept < total
    ? `${range}; the first ${countText(kept)} are kept here, all of them shows: nearcrawl rir plan --cache --json --samples ${total}`
    : range;
}

function pager(
  words: string,
  at: { readonly jobId: number; readonly kind: string; readonly from: number; readonly size: number },
): Html {
  const link = (from: number, name: string) =>
    html`<a href="${pathWith(`/registry/plans/${at.jobId}`, { kind: at.kind, from })}#differences">${name}</a>`;
  const earlier = at.from > 0 ? link(Math.max(0, at.from - rowsShown), "Earlier") : nothing;
  const later = at.from + rowsShown < at.size ? link(at.from + rowsShown, "Later") : nothing;
  return html`<p class="small below">${words}</p>
<nav class="pager" aria-label="Pages of the list">${earlier}${later}</nav>`;
}

// The files of an import, and the records of them that were refused, by file and line.

/** Of one file. */
const refusedShown = 20;

const nameOf = (file: string) => file.split("/").at(-1) ?? file;

const fileColumns: readonly TableColumn<FileReport>[] = [
  column("File", ({ file }) => html`<span title="${file}">${nameOf(file)}</span>`),
  column("Format", ({ format }) => format),
  column("Registry", ({ registry }) => registry ?? "–"),
  column("Data of", ({ fileDate }) => html`<span class="nowrap">${fileDate ?? "–"}</span>`),
  numberColumn("Records", ({ read }) => countText(read)),
  numberColumn("Kept", ({ kept }) => countText(kept)),
  numberColumn("Ignored", (file) => countText(ignoredOf(file))),
  numberColumn("Refused", ({ malformed }) => countText(malformed)),
];

const planFiles = (files: readonly FileReport[]): Html => html`<section><h2>Files</h2>
${dataTable("Files of the plan", fileColumns, files)}
${files.map(remarks)}</section>`;

function ignoredOf({ ignored }: FileReport): number {
  return Object.values(ignored).reduce((sum, count) => sum + count, 0);
}

function remarks(file: FileReport): Html {
  const reasons = Object.entries(file.ignored).sort(([, one], [, other]) => other - one);
  if (file.malformed + file.warnings.length + reasons.length === 0) return nothing;
  const name = nameOf(file.file);
  const refused = file.malformedSamples
    .slice(0, refusedShown)
    .map(
      ({ line, reason, value }) =>
        html`<li><span class="mono">${name}:${line}</span> ${reason}${value === "" ? nothing : html`: <q>${value}</q>`}</li>`,
    );
  const more = file.malformed - refused.length;
  return html`<details class="listed"><summary>${name}: ${summary(file)}</summary>
<ul class="break">${file.warnings.map(
    (warning) => html`<li><strong>Warning:</strong>
${warning}</li>`,
  )}${refused}${
    more > 0
      ? html`<li>and ${countText(more)} more refused
records</li>`
      : nothing
  }${reasons.map(([reason, count]) => html`<li>${countText(count)} ignored: ${reason}</li>`)}</ul></details>`;
}

function summary(file: FileReport): string {
  const ignored = ignoredOf(file);
  return [
    file.malformed > 0 ? `${countText(file.malformed)} refused` : "",
    ignored > 0 ? `${countText(ignored)} ignored` : "",
    file.warnings.length > 0 ? `${file.warnings.length} warnings` : "",
  ]
    .filter(Boolean)
    .join(", ");
}

// What an import would change, as sections of the page.

const listed = 200;

export function planReport(plan: ImportPlan): Html {
  return html`${planTiles(plan)}
${inUseWords(plan)}
${registrySection(plan)}
${largestSection(plan)}
${delegationSection(plan)}
${holderSection(plan)}
${crossingSection(plan)}
${publishedSection(plan)}
${planFiles(plan.files)}`;
}

function planTiles({ changes, holders, delegations, state }: ImportPlan): Html {
  const { added, returned, removed, changed, moved, unchanged } = changes;
  const count = (name: string, figure: number, words: string) => tile(name, countText(figure), words);
  const gone = `new; ${countText(holders.gone)} gone, ${countText(holders.renamed)} renamed`;
  return html`<dl class="tiles">
${count("Added", added + returned, returned === 0 ? "subnets" : `${countText(returned)} of them were there before`)}
${count("Removed", removed, "subnets")}
${count("Changed", changed, "in holder, country, registry or name")}
${count("Moved", moved, "only to another place in the tree")}
${count("Unchanged", unchanged, `of ${countText(state.subnets)} subnets afterwards`)}
${count("Holders", holders.added, gone)}
${count(
  "Delegations kept",
  delegations.kept,
  delegations.returned === 0 ? "as they are" : `and ${countText(delegations.returned)} that return`,
)}
${count("Delegations lost", delegations.lost, `${countText(delegations.inherited)} pass to the subnet above`)}
</dl>`;
}

/** Plans of older versions did not count them. */
function inUseWords({ inUse }: ImportPlan): Html {
  if (inUse === undefined) return nothing;
  const words = html`${goingWords(inUse)} would go: delegated, or with hosts in the frontier.`;
  return isMuchInUse(inUse)
    ? html`<div class="warning" role="note"><p><strong>Subnets in use.</strong> ${words}</p></div>`
    : html`<p class="small">${words}</p>`;
}

/** Plans of older versions know of none. */
function publishedSection({ published }: ImportPlan): Html {
  if (published === undefined || (published.lists === 0 && published.sources.length === 0)) return nothing;
  const { lists, ranges, sources, geofeeds } = published;
  const samples = sources
    .flatMap(({ movedSamples }) => movedSamples)
    .map(
      ({ range, before, after }) =>
        html`<li>${askAbout(range)} ${before ?? "no place"} → ${after ?? "no place"}</li>`,
    );
  const heldBack = published.heldBack.map(
    (source) => html`<div class="warning"
role="note"><p><strong>Held back.</strong> ${source} moves more than 30 % of its ranges to other places. What is in force goes on; if that is meant:
<span class="mono">nearcrawl rir apply … --yes-moved "${source}"</span>.</p></div>`,
  );
  return html`<section><h2>Published places</h2>
<p>${countText(lists)} lists with ${countText(ranges)} ranges say where networks place them;
${countText(geofeeds.lists)} of the lists are geofeeds that registry objects name.</p>
${heldBack}
${dataTable("Published places", publishedColumns, sources)}
${samples.length === 0 ? nothing : html`<ul class="plain">${samples}</ul>`}</section>`;
}

type PublishedSource = ImportPlan["published"]["sources"][number];
const publishedCount = (title: string, count: (one: PublishedSource) => number) =>
  numberColumn<PublishedSource>(title, (one) => countText(count(one)));

const publishedColumns: readonly TableColumn<PublishedSource>[] = [
  column("Source", ({ source }) => html`<span class="break">${source}</span>`),
  column("List of", ({ listDate }) => html`<span class="nowrap">${listDate ?? "–"}</span>`),
  publishedCount("Ranges", ({ ranges }) => ranges),
  publishedCount("Places", ({ places }) => places),
  publishedCount("Without place", ({ withoutPlace }) => withoutPlace),
  publishedCount("Added", ({ added }) => added),
  publishedCount("Removed", ({ removed }) => removed),
  publishedCount("Moved", ({ moved }) => moved),
];

/** Null: no registry loses suspiciously much. */
export function shrinkageWarning(shrunk: readonly Shrinkage[]): Html | null {
  if (shrunk.length === 0) return null;
  const items = shrunk.map(
    ({ registry, lostSubnetsShare, lostIpv4Share, lostIpv6Share }) =>
      html`<li><strong>${registry}</strong> would lose ${percentText(lostSubnetsShare)} of its subnets,
${percentText(lostIpv4Share)} of its IPv4 and ${percentText(lostIpv6Share)} of its IPv6 addresses.</li>`,
  );
  return html`<div class="warning" role="note"><p><strong>Suspicious shrinkage.</strong> A quarter’s honest changes
are smaller; mostly a file is incomplete or missing.</p><ul>${items}</ul></div>`;
}

function registrySection({ registries, generation }: ImportPlan): Html {
  type Change = (typeof registries)[number];
  const number = (title: string, count: (one: Change) => number) =>
    numberColumn<Change>(title, (one) => countText(count(one)));
  const columns = [
    column<Change>("Registry", ({ registry }) => registryLink(registry)),
    number(generation === null ? "Now" : `In generation ${generation}`, ({ before }) => before?.subnets ?? 0),
    number("Afterwards", ({ after }) => after?.subnets ?? 0),
    number("Added", ({ added }) => added),
    number("Removed", ({ removed }) => removed),
    number("Changed", ({ changed }) => changed),
    number("Moved", ({ moved }) => moved),
    numberColumn<Change>("IPv4 addresses", (one) =>
      change(one.before?.ipv4Addresses, one.after?.ipv4Addresses),
    ),
    numberColumn<Change>("IPv6 /48s", (one) => change(one.before?.ipv6Slash48s, one.after?.ipv6Slash48s)),
  ];
  return html`<section><h2>By registry</h2>
${dataTable("Changes by registry", columns, registries)}</section>`;
}

/** "+1,024", "−256", "±0": how many more or fewer there are. */
function change(before = 0, after = 0): string {
  const difference = after - before;
  if (difference === 0) return "±0";
  return `${difference > 0 ? "+" : "−"}${countText(Math.abs(difference))}`;
}

function largestSection({ largest }: ImportPlan): Html {
  if (largest.length === 0) return nothing;
  return html`<section><h2>The largest changes</h2>${differenceTable(largest, "The largest changes")}</section>`;
}

const differenceColumns: readonly TableColumn<Difference>[] = [
  column("Range", ({ range }) => askAbout(range)),
  column("Change", ({ kind }) => kind),
  column(
    "Was",
    ({ kind, before }) =>
      html`<span class="break">${kind === "moved" ? under(before) : words(before)}</span>`,
  ),
  column(
    "Is then",
    ({ kind, after }) => html`<span class="break">${kind === "moved" ? under(after) : words(after)}</span>`,
  ),
];

const differenceTable = (differences: readonly Difference[], label: string): Html =>
  dataTable(label, differenceColumns, differences, "differences");

const words = (subnet: SubnetWords | null) =>
  subnet === null
    ? "–"
    : [subnet.holder, subnet.country, subnet.registry, subnet.name].filter(Boolean).join(" · ");

const under = (subnet: SubnetWords | null) => (subnet?.under ? `under ${subnet.under}` : "at the top");

function delegationSection({ delegations }: ImportPlan): Html {
  const { lostSamples, lost, inheritedSamples, inherited } = delegations;
  const lostItems = lostSamples.map(({ range, from }) => html`<li>${askAbout(range)}, now ${from}</li>`);
  const inheritedItems = inheritedSamples.map(
    ({ range, from, to, through }) =>
      html`<li>${askAbout(range)}: ${from} → ${to}, through ${askAbout(through ?? "")}</li>`,
  );
  return html`${itemList("Delegations lost: probed again with the next URL", lostItems, lost)}
${itemList("Delegations that pass to the subnet above", inheritedItems, inherited)}`;
}

function holderSection({ holders }: ImportPlan): Html {
  const items = (samples: typeof holders.mergedSamples) =>
    samples.map(({ from, to }) => html`<li>${from} → ${to.join(" + ")}</li>`);
  return html`${itemList("Holders merged into another", items(holders.mergedSamples), holders.merged)}
${itemList("Holders split", items(holders.splitSamples), holders.split)}`;
}

function crossingSection({ state }: ImportPlan): Html {
  const items = state.crossingSamples
    .slice(0, listed)
    .map(({ earlier, later }) => html`<li>${askAbout(earlier)} × ${askAbout(later)}</li>`);
  return itemList("Overlapping ranges, both kept", items, state.crossings);
}

function itemList(title: string, items: readonly Html[], total: number): Html {
  if (items.length === 0) return nothing;
  const more = total - items.length;
  return html`<details class="listed"><summary>${title}: ${countText(total)}</summary><ul
class="break">${items}</ul>${more > 0 ? html`<p class="small">and ${countText(more)} more</p>` : nothing}</details>`;
}

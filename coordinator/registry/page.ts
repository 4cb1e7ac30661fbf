/** /registry: the generation in force and how old it is, the three steps of a refresh, and what a rollback would do. */
import { bytesText, howMany } from "#core/format";
import { goingWords, isMuchInUse, type SubnetsInUse } from "#rir-import/database/subnets-in-use";
import { pageScript } from "../web/assets.ts";
import { column, dataTable, numberColumn, type TableColumn, tile } from "../web/components.ts";
import { ago, countText, instant } from "../web/format.ts";
import { type Html, html, nothing, pathWith } from "../web/html.ts";
import { formToken, type PageViewer } from "../web/page-frame.ts";
import { jobPanel, jobTable } from "./job-page.ts";
import {
  emptyConfirmation,
  type PastGeneration,
  type RegistryValue,
  rollbackConfirmation,
} from "./registry-view.ts";

/** `mayAct`: the forms are shown to those who may send them. */
export function registryPage(value: RegistryValue, viewer: PageViewer, mayAct: boolean): Html {
  const { runningJob } = value;
  return html`<div class="title-row"><h1>Registry</h1></div>
${emptied(value, viewer, mayAct) ?? lead(value)}
${value.warnings.length === 0 ? nothing : html`<div class="warning" role="note"><ul>${value.warnings.map((words) => html`<li>${words}</li>`)}</ul></div>`}
${runningJob === null ? outsideImport(value) : jobPanel(runningJob, viewer, mayAct)}
${tiles(value)}
${refreshSection(value, viewer, mayAct)}
${countsSection(value)}
${sourcesSection(value)}
${rollbackSection(value, viewer, mayAct)}
${historySection(value, viewer, mayAct && value.canStartJobs)}
${cacheSection(value)}
${jobsSection(value)}
${publisherSection(value.publishers)}
${pageScript("registry.js")}`;
}

/** Of forms that take away more of what is in use than goes by itself. */
export const inUseField = ({ going }: SubnetsInUse): Html =>
  html`<div><label for="removeInUse">More than 5 % of the subnets in use go. If that is meant, type how many:
<strong>${String(going)}</strong></label> <input id="removeInUse" name="removeInUse" required maxlength="10"
pattern="${String(going)}" inputmode="numeric" autocomplete="off" spellcheck="false"></div>`;

/** Where counting takes longer than a page waits: the refusal says the number. */
const uncountedField = html`<div><label for="removeInUse">Where more than 5 % of the subnets in use go, how many (the
answer says it)</label> <input id="removeInUse" name="removeInUse" maxlength="10" inputmode="numeric" autocomplete="off" spellcheck="false"></div>`;

/** Where no registry is in force any more, the way back is one step. */
function emptied(value: RegistryValue, viewer: PageViewer, mayAct: boolean): Html | null {
  const last = value.history.find(({ canRollForward }) => canRollForward);
  if (value.generation !== null || last === undefined) return null;
  const acting = mayAct && value.canStartJobs ? { viewer, runningJob: value.runningJob } : null;
  return html`<div class="warning" role="alert"><p><strong>No registry is in force any more</strong>: generation
${last.generation} was rolled back, and all of IPv4 and all of IPv6 are one subnet each. It can be put in force again,
with its delegations: <code>nearcrawl rir rollforward</code>.${forwardButton(last, acting)}</p></div>`;
}

function lead({ generation, appliedAt, ageDays, now }: RegistryValue): Html {
  if (generation === null || appliedAt === null) {
    return html`<div class="empty"><p>No registry has been imported yet, so no address has a holder. Fetch the
registries’ files and plan an import below, or on the coordinator’s machine: <code>nearcrawl rir fetch</code>,
<code>nearcrawl rir plan --cache</code>, <code>nearcrawl rir apply --cache</code>.</p></div>`;
  }
  const old = ageDays !== null && ageDays > 92;
  return html`<p class="lead"><strong>Generation ${generation}</strong> has been in force since ${instant(appliedAt)}
(${ago(appliedAt, now)})${old ? html`: <strong>older than a quarter</strong>` : nothing}.</p>`;
}

/** The import lock is held, and by none of our jobs. */
function outsideImport({ isImportRunning }: RegistryValue): Html {
  if (!isImportRunning) return nothing;
  return html`<div class="warning" role="note"><p>An import or rollback that was started by command is running. Reload
the page to see whether it has ended.</p></div>`;
}

function tiles({ counted, generation, ageDays }: RegistryValue): Html {
  if (generation === null) return nothing;
  if (counted === null) {
    return html`<p class="small">The tree was imported by an older version, without counts by registry; the next import has them.</p>`;
  }
  const sum = (name: "subnets" | "ipv4Addresses" | "ipv6Slash48s") =>
    counted.registries.reduce((total, one) => total + (one.registry === "iana" ? 0 : one[name]), 0);
  return html`<dl class="tiles">
${tile("Age", howMany(ageDays ?? 0, "day"), "a quarter has 92")}
${tile("Subnets", countText(sum("subnets")), "of the five registries")}
${tile("IPv4 covered", shortCount(sum("ipv4Addresses")), "addresses lie in a subnet")}
${tile("IPv6 covered", shortCount(sum("ipv6Slash48s")), "blocks of a /48 lie in a subnet")}
${tile("Overlapping ranges", countText(counted.crossings), "pairs of ranges that overlap in part")}
</dl>${
    counted.generation === generation
      ? nothing
      : html`<p class="small">Counted with generation
${counted.generation}; some subnets have been probed again since.</p>`
  }`;
}

const short = new Intl.NumberFormat("en-GB", {
  notation: "compact",
  compactDisplay: "long",
  maximumFractionDigits: 1,
});

const shortCount = (count: number) => (count < 100_000 ? countText(count) : short.format(count));

function refreshSection(value: RegistryValue, viewer: PageViewer, mayAct: boolean): Html {
  const plan = value.jobs.find(({ order, state }) => order.type === "plan" && state === "done");
  const body = !value.canStartJobs
    ? html`<p class="empty">This coordinator cannot start jobs. On its machine: <code>nearcrawl rir fetch</code>,
<code>plan</code>, <code>apply</code>, <code>rollback</code>.</p>`
    : mayAct
      ? html`<ol class="refresh-steps">${fetchStep(value, viewer)}${planStep(value, viewer)}<li><h3>Review the plan
and apply it</h3><p>Nothing changes before that. ${
          plan
            ? html`The latest: <a
href="/registry/plans/${plan.jobId}">plan ${plan.jobId}</a>, of ${instant(plan.endedAt ?? plan.startedAt)}.`
            : "There is no plan yet."
        }</p></li></ol>`
      : html`<p>Operators fetch, plan and apply here.${
          plan
            ? html` The latest plan: <a
href="/registry/plans/${plan.jobId}">plan ${plan.jobId}</a>.`
            : nothing
        }</p>`;
  return html`<section><h2>Refresh, once a quarter</h2>${body}</section>`;
}

function fetchStep({ cache, runningJob }: RegistryValue, viewer: PageViewer): Html {
  const had = cache?.sources.filter(({ bytes }) => bytes !== null).length ?? 0;
  const contact =
    cache?.contact === null
      ? html` No contact is set: name one in registry-sources.json, so that registries can write to somebody.`
      : nothing;
  return html`<li><h3>Fetch what the registries publish</h3><p>${
    had === 0 ? "Nothing was fetched yet." : `${had} files are cached; only changes are fetched.`
  }${contact}</p>
<form method="post" action="/registry/fetch" class="actions">${formToken(viewer)}<button${disabled(runningJob)}>Fetch</button>
<label class="choice"><input type="checkbox" name="acceptSmaller" value="yes"> accept files that are much smaller than before</label></form></li>`;
}

function planStep({ filesFolder, runningJob }: RegistryValue, viewer: PageViewer): Html {
  const choices =
    filesFolder === null
      ? html`<input type="hidden" name="from" value="cache">`
      : html`<label for="from">Files</label> <select id="from" name="from"><option value="cache">what was
fetched</option><option value="folder:">${filesFolder.path}</option>${filesFolder.names.map(
          (name) => html`<option
value="folder:${name}">${filesFolder.path}/${name}</option>`,
        )}</select>`;
  return html`<li><h3>Plan the import</h3><p>Reads all files and compares them with the tree in force: what would be added, removed, changed.</p>
<form method="post" action="/registry/plan" class="actions">${formToken(viewer)}${choices}<button${disabled(runningJob)}>Plan</button></form></li>`;
}

function disabled(runningJob: RegistryValue["runningJob"]): Html {
  return runningJob === null ? nothing : html` disabled title="A job is running"`;
}

function rollbackSection(value: RegistryValue, viewer: PageViewer, mayAct: boolean): Html {
  const { rollback } = value;
  if (rollback === null) return nothing;
  const { generation, becomes, becomesAppliedAt, removed, broughtBack, restored, inUse } = rollback;
  const after =
    becomes === null
      ? html`No registry would be in force, and no subnet but the two roots of the address space.`
      : html`Generation ${becomes}${becomesAppliedAt === null ? nothing : html`, applied ${instant(becomesAppliedAt)},`} would be in force again.`;
  const isMuch = inUse !== null && isMuchInUse(inUse);
  const typed = becomes === null ? emptyConfirmation : rollbackConfirmation(generation);
  const textField =
    isMuch && becomes !== null
      ? nothing
      : html`<div><label for="confirmation">${becomes === null ? "It is the first import. To be left without a registry, type" : "To confirm, type"}
<strong>${typed}</strong></label> <input id="confirmation" name="confirmation" required maxlength="40"
pattern="${typed}" autocomplete="off" spellcheck="false"></div>`;
  const form = html`<form method="post" action="/registry/rollback" class="actions">${formToken(viewer)}<input
type="hidden" name="generation" value="${generation}">${textField}${inUse === null ? uncountedField : isMuch ? inUseField(inUse) : nothing}<button
class="danger"${disabled(value.runningJob)}>Roll back generation ${generation}</button></form>`;
  return html`<section id="rollback"><h2>Roll back</h2>
<p>${after} ${countText(removed)} subnets would go, ${countText(broughtBack)} come back, ${countText(restored)} be as
they were; delegations come back with their subnets.${
    inUse === null
      ? nothing
      : html` Of those that would go:
<strong>${goingWords(inUse)}</strong>, delegated or with hosts in the frontier.`
  } What is rolled back can be put in
force again below, as long as nothing else was applied in its place.</p>
${mayAct && value.canStartJobs ? form : nothing}</section>`;
}

function forwardButton({ generation, canRollForward }: PastGeneration, acting: Acting | null): Html {
  if (!canRollForward || acting === null) return nothing;
  return html` <form class="inline" method="post" action="/registry/rollforward">${formToken(acting.viewer)}<input
type="hidden" name="generation" value="${generation}"><button class="quiet slim"${disabled(acting.runningJob)}>Put in force again</button></form>`;
}

/** Null: the reader may not change anything here. */
interface Acting {
  readonly viewer: PageViewer;
  readonly runningJob: RegistryValue["runningJob"];
}

function historySection({ history, runningJob }: RegistryValue, viewer: PageViewer, mayAct: boolean): Html {
  const acting = mayAct ? { viewer, runningJob } : null;
  if (history.length === 0) return nothing;
  const counted = (title: string, ...kinds: readonly string[]) =>
    numberColumn<PastGeneration>(title, ({ changes }) =>
      countText(kinds.reduce((sum, kind) => sum + (changes[kind] ?? 0), 0)),
    );
  const columns = [
    numberColumn<PastGeneration>("Generation", ({ generation }) => generation),
    column<PastGeneration>("State", (past) => html`${stateWords(past)}${forwardButton(past, acting)}`),
    column<PastGeneration>("Applied", ({ appliedAt }) => (appliedAt === null ? "–" : instant(appliedAt))),
    column<PastGeneration>("By", ({ appliedBy }) => appliedBy ?? "–"),
    counted("Added", "added", "returned"),
    ...[counted("Removed", "removed"), counted("Changed", "changed"), counted("Moved", "moved")],
  ];
  return html`<section><h2>Generations</h2>
${dataTable("Generations", columns, history)}</section>`;
}

function stateWords({ state, rolledBackBy }: PastGeneration): string {
  if (state === "applied") return "applied";
  return rolledBackBy === null ? "rolled back" : `rolled back by ${rolledBackBy}`;
}

function jobsSection({ jobs }: RegistryValue): Html {
  if (jobs.length === 0) return nothing;
  return html`<section><h2>Latest jobs</h2>${jobTable(jobs)}<p class="below"><a href="/registry/jobs">All jobs</a></p></section>`;
}

// The tables of /registry: counts by registry, the files in force, the download cache, who publishes on which terms.

function countsSection({ counted, sources }: RegistryValue): Html {
  if (counted === null) return nothing;
  type Counts = (typeof counted.registries)[number];
  const number = (title: string, count: (one: Counts) => number) =>
    numberColumn<Counts>(title, (one) => countText(count(one)));
  const columns = [
    column<Counts>(
      "Registry",
      ({ registry }) => html`<a href="${pathWith("/explore", { registry })}">${registry}</a>`,
    ),
    number("Subnets", ({ subnets }) => subnets),
    number("IPv4", ({ ipv4Subnets }) => ipv4Subnets),
    number("IPv6", ({ ipv6Subnets }) => ipv6Subnets),
    number("Holders", ({ holders }) => holders),
    number("IPv4 addresses", ({ ipv4Addresses }) => ipv4Addresses),
    number("IPv6 /48s", ({ ipv6Slash48s }) => ipv6Slash48s),
    number("Crossing", ({ crossing }) => crossing),
    numberColumn<Counts>("Data, days old", ({ registry }) => newestAge(sources, registry)),
  ];
  return html`<section><h2>What it is made of</h2>
${dataTable("Counts by registry", columns, counted.registries)}</section>`;
}

/** A single answer of a registry says nothing of the age of its files. */
function newestAge(sources: RegistryValue["sources"], registry: string): string {
  const ages = sources
    .filter((source) => source.registry === registry && source.format !== "rdap")
    .flatMap(({ ageDays }) => ageDays ?? []);
  return ages.length === 0 ? "–" : countText(Math.min(...ages));
}

const fileColumns: readonly TableColumn<RegistryValue["sources"][number]>[] = [
  column("File", ({ file }) => html`<span title="${file}">${file.split("/").at(-1) ?? file}</span>`),
  column("Format", ({ format }) => format),
  column("Registry", ({ registry }) => registry ?? "–"),
  column("Data of", ({ fileDate }) => html`<span class="nowrap">${fileDate ?? "–"}</span>`),
  numberColumn("Days old", ({ ageDays }) => (ageDays === null ? "–" : countText(ageDays))),
  numberColumn("Records kept", ({ kept }) => countText(kept)),
  numberColumn("Refused", ({ malformed }) => countText(malformed)),
];

function sourcesSection({ sources }: RegistryValue): Html {
  if (sources.length === 0) return nothing;
  const files = sources.length === 1 ? "file" : `${sources.length} files`;
  return html`<details class="listed"><summary>The ${files} that it was made from</summary>
${dataTable("Files in force", fileColumns, sources)}</details>`;
}

function cacheSection({ cache }: RegistryValue): Html {
  if (cache === null || cache.fault !== null) return nothing;
  const there = cache.sources.filter(({ bytes }) => bytes !== null);
  const bytes = there.reduce((sum, source) => sum + (source.bytes ?? 0), 0);
  return html`<section><h2>Download cache</h2>
<p class="small break">${completeWords(cache.sources)} ${
    there.length === 0 ? nothing : `${there.length} files, ${bytesText(bytes)}. `
  }Kept in <span class="mono">${cache.folder}</span>. Told to the registries as our contact: ${
    cache.contact ?? "nobody"
  }.</p>
${dataTable("Download cache", cacheColumns, cache.sources, "cache")}</section>`;
}

type CachedSource = NonNullable<RegistryValue["cache"]>["sources"][number];

function completeWords(sources: readonly CachedSource[]): string {
  const missing = sources.filter(({ state }) => state === "missing" || state === "changed on disk");
  if (missing.length === 0) return "Complete.";
  const wanted = sources.filter(({ state }) => state !== "off" && state !== "not set up");
  if (missing.length === wanted.length) return "Nothing was fetched yet.";
  return `Not complete, ${missing.map(({ name }) => name).join(", ")} ${missing.length === 1 ? "is" : "are"} missing.`;
}

const stateLooks: Readonly<Record<CachedSource["state"], string>> = {
  fresh: "good",
  stale: "warm",
  "old at its source": "warm",
  missing: "bad",
  "changed on disk": "bad",
  "not set up": "none",
  off: "none",
  "not in the list": "none",
};

const cacheColumns: readonly TableColumn<CachedSource>[] = [
  column("Source", ({ name, access, state, url }) =>
    access.how !== undefined && state === "not set up"
      ? html`${name}<span class="small">on request: ${access.how}</span>`
      : html`${name}<span class="small published-at">${url ?? nothing}</span>`,
  ),
  column("Registry", ({ registry }) => registry ?? "–"),
  column(
    "Our copy",
    ({ state }) => html`<span class="state look-${stateLooks[state]} nowrap">${state}</span>`,
  ),
  numberColumn("Size", ({ bytes }) => (bytes === null ? "–" : bytesText(bytes))),
  column("Data of", ({ dataDate }) => (dataDate === null ? "–" : instant(dataDate))),
  numberColumn("Days old", ({ dataAgeDays }) => dataAgeDays ?? "–"),
  numberColumn("Asked, days ago", ({ checkedDaysAgo }) => checkedDaysAgo ?? "–"),
];

function publisherSection(publishers: RegistryValue["publishers"]): Html {
  const items = publishers.map(
    ({ name, region, publishes, terms, termsUrl }) =>
      html`<div><dt>${name}</dt><dd>${region}: ${publishes}. ${terms} <a href="${termsUrl}" rel="noreferrer">Terms</a></dd></div>`,
  );
  return html`<section><h2>Who publishes it, on which terms</h2><dl class="publishers">${items}</dl>
<p class="small">Hints, no advice: what counts is what the registries say. The cache holds their data; keep its folder to this service.</p></section>`;
}

/** /registry: the generation in force and how old it is, the three steps of a refresh, and what a rollback would do. */
import { bytesText, howMany } from "#core/format";
import { goingWords, isMuchInUse, type SubnetsInUse } from "#rir-import/database/subnets-in-use";
import type { CopyState, SourceRow } from "#rir-import/download/source-status";
import type { RegistryPublisher } from "#rir-import/registry-publishers";
import { pageScript } from "../web/assets.ts";
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
  html`<div><label for="removeInUse">More than 5 % of the subnets in use go. If that is meant, type how many: <strong>${String(going)}</strong></label> <input id="removeInUse" name="removeInUse" required maxlength="10" pattern="${String(going)}" inputmode="numeric" autocomplete="off" spellcheck="false"></div>`;

/** Where counting takes longer than a page waits: the refusal says the number. */
const uncountedField = html`<div><label for="removeInUse">Where more than 5 % of the subnets in use go, how many (the answer says it)</label> <input id="removeInUse" name="removeInUse" maxlength="10" inputmode="numeric" autocomplete="off" spellcheck="false"></div>`;

/** Where no registry is in force any more, the way back is one step. */
function emptied(value: RegistryValue, viewer: PageViewer, mayAct: boolean): Html | null {
  const last = value.history.find(({ canRollForward }) => canRollForward);
  if (value.generation !== null || last === undefined) return null;
  const acting = mayAct && value.canStartJobs ? { viewer, runningJob: value.runningJob } : null;
  return html`<div class="warning" role="alert"><p><strong>No registry is in force any more</strong>: generation ${last.generation} was rolled back, and all of IPv4 and all of IPv6 are one subnet each. It can be put in force again, with its delegations: <code>nearcrawl rir rollforward</code>.${forwardButton(last, acting)}</p></div>`;
}

function lead({ generation, appliedAt, ageDays, now }: RegistryValue): Html {
  if (generation === null || appliedAt === null) {
    return html`<div class="empty"><p>No registry has been imported yet, so no address has a holder. Fetch the registries’ files and plan an import below, or on the coordinator’s machine: <code>nearcrawl rir fetch</code>, <code>nearcrawl rir plan --cache</code>, <code>nearcrawl rir apply --cache</code>.</p></div>`;
  }
  const old = ageDays !== null && ageDays > 92;
  return html`<p class="lead"><strong>Generation ${generation}</strong> has been in force since ${instant(appliedAt)} (${ago(appliedAt, now)})${old ? html`: <strong>older than a quarter</strong>` : nothing}.</p>`;
}

/** The import lock is held, and by none of our jobs. */
function outsideImport({ isImportRunning }: RegistryValue): Html {
  if (!isImportRunning) return nothing;
  return html`<div class="warning" role="note"><p>An import or rollback that was started by command is running. Reload the page to see whether it has ended.</p></div>`;
}

function tiles({ counted, generation, ageDays }: RegistryValue): Html {
  if (generation === null) return nothing;
  if (counted === null) {
    return html`<p class="small">The tree was imported by an older version, without counts by registry; the next import has them.</p>`;
  }
  const sum = (name: "subnets" | "ipv4Addresses" | "ipv6Slash48s") =>
    counted.registries.reduce((total, one) => total + (one.registry === "iana" ? 0 : one[name]), 0);
  const tile = (name: string, figure: string, words: string) =>
    html`<div class="tile"><dt>${name}</dt><dd><span class="figure">${figure}</span><span class="small">${words}</span></dd></div>`;
  return html`<dl class="tiles">
${tile("Age", howMany(ageDays ?? 0, "day"), "a quarter has 92")}
${tile("Subnets", countText(sum("subnets")), "of the five registries")}
${tile("IPv4 covered", shortCount(sum("ipv4Addresses")), "addresses lie in a subnet")}
${tile("IPv6 covered", shortCount(sum("ipv6Slash48s")), "blocks of a /48 lie in a subnet")}
${tile("Overlapping ranges", countText(counted.crossings), "pairs of ranges that overlap in part")}
</dl>${counted.generation === generation ? nothing : html`<p class="small">Counted with generation ${counted.generation}; some subnets have been probed again since.</p>`}`;
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
    ? html`<p class="empty">This coordinator cannot start jobs. On its machine: <code>nearcrawl rir fetch</code>, <code>plan</code>, <code>apply</code>, <code>rollback</code>.</p>`
    : mayAct
      ? html`<ol class="refresh-steps">${fetchStep(value, viewer)}${planStep(value, viewer)}<li><h3>Review the plan and apply it</h3><p>Nothing changes before that. ${plan ? html`The latest: <a href="/registry/plans/${plan.jobId}">plan ${plan.jobId}</a>, of ${instant(plan.endedAt ?? plan.startedAt)}.` : "There is no plan yet."}</p></li></ol>`
      : html`<p>Operators fetch, plan and apply here.${plan ? html` The latest plan: <a href="/registry/plans/${plan.jobId}">plan ${plan.jobId}</a>.` : nothing}</p>`;
  return html`<section><h2>Refresh, once a quarter</h2>${body}</section>`;
}

function fetchStep({ cache, runningJob }: RegistryValue, viewer: PageViewer): Html {
  const had = cache?.sources.filter(({ bytes }) => bytes !== null).length ?? 0;
  const contact =
    cache?.contact === null
      ? html` No contact is set: name one in registry-sources.json, so that registries can write to somebody.`
      : nothing;
  return html`<li><h3>Fetch what the registries publish</h3><p>${had === 0 ? "Nothing was fetched yet." : `${had} files are cached; only changes are fetched.`}${contact}</p>
<form method="post" action="/registry/fetch" class="actions">${formToken(viewer)}<button${disabled(runningJob)}>Fetch</button>
<label class="choice"><input type="checkbox" name="acceptSmaller" value="yes"> accept files that are much smaller than before</label></form></li>`;
}

function planStep({ filesFolder, runningJob }: RegistryValue, viewer: PageViewer): Html {
  const choices =
    filesFolder === null
      ? html`<input type="hidden" name="from" value="cache">`
      : html`<label for="from">Files</label> <select id="from" name="from"><option value="cache">what was fetched</option><option value="folder:">${filesFolder.path}</option>${filesFolder.names.map((name) => html`<option value="folder:${name}">${filesFolder.path}/${name}</option>`)}</select>`;
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
      : html`<div><label for="confirmation">${becomes === null ? "It is the first import. To be left without a registry, type" : "To confirm, type"} <strong>${typed}</strong></label> <input id="confirmation" name="confirmation" required maxlength="40" pattern="${typed}" autocomplete="off" spellcheck="false"></div>`;
  const form = html`<form method="post" action="/registry/rollback" class="actions">${formToken(viewer)}<input type="hidden" name="generation" value="${generation}">${textField}${inUse === null ? uncountedField : isMuch ? inUseField(inUse) : nothing}<button class="danger"${disabled(value.runningJob)}>Roll back generation ${generation}</button></form>`;
  return html`<section id="rollback"><h2>Roll back</h2>
<p>${after} ${countText(removed)} subnets would go, ${countText(broughtBack)} come back, ${countText(restored)} be as they were; delegations come back with their subnets.${inUse === null ? nothing : html` Of those that would go: <strong>${goingWords(inUse)}</strong>, delegated or with hosts in the frontier.`} What is rolled back can be put in force again below, as long as nothing else was applied in its place.</p>
${mayAct && value.canStartJobs ? form : nothing}</section>`;
}

function forwardButton({ generation, canRollForward }: PastGeneration, acting: Acting | null): Html {
  if (!canRollForward || acting === null) return nothing;
  return html` <form class="inline" method="post" action="/registry/rollforward">${formToken(acting.viewer)}<input type="hidden" name="generation" value="${generation}"><button class="quiet slim"${disabled(acting.runningJob)}>Put in force again</button></form>`;
}

/** Null: the reader may not change anything here. */
interface Acting {
  readonly viewer: PageViewer;
  readonly runningJob: RegistryValue["runningJob"];
}

function historySection({ history, runningJob }: RegistryValue, viewer: PageViewer, mayAct: boolean): Html {
  const acting = mayAct ? { viewer, runningJob } : null;
  if (history.length === 0) return nothing;
  return html`<section><h2>Generations</h2>
<div class="scroll" tabindex="0" role="region" aria-label="Generations"><table><thead><tr><th scope="col" class="number">Generation</th><th scope="col">State</th><th scope="col">Applied</th><th scope="col">By</th><th scope="col" class="number">Added</th><th scope="col" class="number">Removed</th><th scope="col" class="number">Changed</th><th scope="col" class="number">Moved</th></tr></thead><tbody>${history.map((one) => historyRow(one, acting))}</tbody></table></div></section>`;
}

function historyRow(past: PastGeneration, acting: Acting | null): Html {
  const { generation, state, appliedAt, changes, appliedBy, rolledBackBy } = past;
  const count = (name: string) => countText(changes[name] ?? 0);
  const undone = state === "rolled-back";
  return html`<tr><th scope="row" class="number">${generation}</th><td>${undone ? html`rolled back${rolledBackBy === null ? nothing : html` by ${rolledBackBy}`}` : "applied"}${forwardButton(past, acting)}</td>
<td>${appliedAt === null ? "–" : instant(appliedAt)}</td><td>${appliedBy ?? "–"}</td>
<td class="number">${countText((changes.added ?? 0) + (changes.returned ?? 0))}</td><td class="number">${count("removed")}</td><td class="number">${count("changed")}</td><td class="number">${count("moved")}</td></tr>`;
}

function jobsSection({ jobs }: RegistryValue): Html {
  if (jobs.length === 0) return nothing;
  return html`<section><h2>Latest jobs</h2>${jobTable(jobs)}<p class="below"><a href="/registry/jobs">All jobs</a></p></section>`;
}

// The tables of /registry: counts by registry, the files in force, the download cache, who publishes on which terms.

function countsSection({ counted, sources }: RegistryValue): Html {
  if (counted === null) return nothing;
  const rows = counted.registries.map(
    (
      one,
    ) => html`<tr><th scope="row"><a href="${pathWith("/explore", { registry: one.registry })}">${one.registry}</a></th>
<td class="number">${countText(one.subnets)}</td><td class="number">${countText(one.ipv4Subnets)}</td><td class="number">${countText(one.ipv6Subnets)}</td><td class="number">${countText(one.holders)}</td>
<td class="number">${countText(one.ipv4Addresses)}</td><td class="number">${countText(one.ipv6Slash48s)}</td><td class="number">${countText(one.crossing)}</td><td class="number">${newestAge(sources, one.registry)}</td></tr>`,
  );
  return html`<section><h2>What it is made of</h2>
<div class="scroll" tabindex="0" role="region" aria-label="Counts by registry"><table><thead><tr><th scope="col">Registry</th><th scope="col" class="number">Subnets</th><th scope="col" class="number">IPv4</th><th scope="col" class="number">IPv6</th><th scope="col" class="number">Holders</th><th scope="col" class="number">IPv4 addresses</th><th scope="col" class="number">IPv6 /48s</th><th scope="col" class="number">Crossing</th><th scope="col" class="number">Data, days old</th></tr></thead><tbody>${rows}</tbody></table></div></section>`;
}

/** A single answer of a registry says nothing of the age of its files. */
function newestAge(sources: RegistryValue["sources"], registry: string): string {
  const ages = sources
    .filter((source) => source.registry === registry && source.format !== "rdap")
    .flatMap(({ ageDays }) => ageDays ?? []);
  return ages.length === 0 ? "–" : countText(Math.min(...ages));
}

function sourcesSection({ sources }: RegistryValue): Html {
  if (sources.length === 0) return nothing;
  const rows = sources.map(
    ({ file, format, registry, fileDate, ageDays, kept, malformed }) =>
      html`<tr><th scope="row" title="${file}">${file.split("/").at(-1) ?? file}</th><td>${format}</td><td>${registry ?? "–"}</td><td class="nowrap">${fileDate ?? "–"}</td><td class="number">${ageDays === null ? "–" : countText(ageDays)}</td><td class="number">${countText(kept)}</td><td class="number">${countText(malformed)}</td></tr>`,
  );
  return html`<details class="listed"><summary>The ${sources.length === 1 ? "file" : `${sources.length} files`} that it was made from</summary>
<div class="scroll" tabindex="0" role="region" aria-label="Files in force"><table><thead><tr><th scope="col">File</th><th scope="col">Format</th><th scope="col">Registry</th><th scope="col">Data of</th><th scope="col" class="number">Days old</th><th scope="col" class="number">Records kept</th><th scope="col" class="number">Refused</th></tr></thead><tbody>${rows}</tbody></table></div></details>`;
}

function cacheSection({ cache }: RegistryValue): Html {
  if (cache === null || cache.fault !== null) return nothing;
  const there = cache.sources.filter(({ bytes }) => bytes !== null);
  const bytes = there.reduce((sum, source) => sum + (source.bytes ?? 0), 0);
  return html`<section><h2>Download cache</h2>
<p class="small break">${completeWords(cache.sources)} ${there.length === 0 ? nothing : `${there.length} files, ${bytesText(bytes)}. `}Kept in <span class="mono">${cache.folder}</span>. Told to the registries as our contact: ${cache.contact ?? "nobody"}.</p>
<div class="scroll cache" tabindex="0" role="region" aria-label="Download cache"><table><thead><tr><th scope="col">Source</th><th scope="col">Registry</th><th scope="col">Our copy</th><th scope="col" class="number">Size</th><th scope="col">Data of</th><th scope="col" class="number">Days old</th><th scope="col" class="number">Asked, days ago</th></tr></thead><tbody>${cache.sources.map(sourceRow)}</tbody></table></div></section>`;
}

function completeWords(sources: readonly SourceRow[]): string {
  const missing = sources.filter(({ state }) => state === "missing" || state === "changed on disk");
  if (missing.length === 0) return "Complete.";
  const wanted = sources.filter(({ state }) => state !== "off" && state !== "not set up");
  if (missing.length === wanted.length) return "Nothing was fetched yet.";
  return `Not complete, ${missing.map(({ name }) => name).join(", ")} ${missing.length === 1 ? "is" : "are"} missing.`;
}

const stateLooks: Readonly<Record<CopyState, string>> = {
  fresh: "good",
  stale: "warm",
  "old at its source": "warm",
  missing: "bad",
  "changed on disk": "bad",
  "not set up": "none",
  off: "none",
  "not in the list": "none",
};

function sourceRow(source: SourceRow): Html {
  const { name, registry, access, url, state, bytes, dataDate, dataAgeDays, checkedDaysAgo } = source;
  const how =
    access.type === "on-request" && state === "not set up"
      ? html`<span class="small">on request: ${access.how}</span>`
      : html`<span class="small published-at">${url ?? nothing}</span>`;
  return html`<tr><th scope="row">${name}${how}</th><td>${registry ?? "–"}</td><td><span class="state look-${stateLooks[state]} nowrap">${state}</span></td>
<td class="number">${bytes === null ? "–" : bytesText(bytes)}</td><td class="nowrap">${dataDate === null ? "–" : instant(dataDate)}</td><td class="number">${dataAgeDays ?? "–"}</td><td class="number">${checkedDaysAgo ?? "–"}</td></tr>`;
}

function publisherSection(publishers: readonly RegistryPublisher[]): Html {
  const items = publishers.map(
    ({ name, region, publishes, terms, termsUrl }) =>
      html`<div><dt>${name}</dt><dd>${region}: ${publishes}. ${terms} <a href="${termsUrl}" rel="noreferrer">Terms</a></dd></div>`,
  );
  return html`<section><h2>Who publishes it, on which terms</h2><dl class="publishers">${items}</dl>
<p class="small">Hints, no advice: what counts is what the registries say. The cache holds their data; keep its folder to this service.</p></section>`;
}

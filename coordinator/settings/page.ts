/** The policies: what holds now, what it does, who changed it, and a form for those who may change it. */
import { mayDo } from "#core/actor";
import { instant } from "../web/format.ts";
import { type Html, html, nothing, pathWith } from "../web/html.ts";
import { formToken, type PageViewer } from "../web/page-frame.ts";
import { type PolicyValue, policyOf, shortRange, valueText } from "./catalogue.ts";
import type { PolicyEffect, PolicyFigure } from "./preview/types.ts";
import type { PolicyName } from "./schema.ts";
import type { PoliciesAnswer, PreviewAnswer, ShownPolicy, ShownVersion } from "./settings-view.ts";

export interface PoliciesPage {
  readonly answer: PoliciesAnswer;
  readonly viewer: PageViewer;
  /** What was typed and cannot be, by name, and why. */
  readonly refused?: { readonly words: string; readonly typed: Readonly<Record<string, string>> };
}

export function policiesPage({ answer, viewer, refused }: PoliciesPage): Html {
  const mayChange = mayDo(viewer.actor, "policy-write");
  const changed = answer.groups.flatMap(({ policies }) => policies).filter(({ changedBy }) => changedBy);
  return html`<h1>Policies</h1>
<p class="lead">What decides how the fleet behaves. A change holds at once, in every running coordinator; before it is saved you see what it would do.</p>
${refused ? html`<p class="fault" role="alert">${refused.words}</p>` : nothing}
${mayChange ? nothing : html`<p class="note">You may look at the policies. Changing them is for operators (scope policy-write)${viewer.signedInAs === null ? html`: <a href="/sign-in">sign in</a>` : nothing}.</p>`}
${answer.ignored.map((fault) => html`<p class="fault">A stored policy is ignored, and the file’s value holds: ${fault}.</p>`)}
<nav class="policy-index" aria-label="Groups of policies">${answer.groups.map(({ name, title }) => html`<a href="#${name}">${title}</a>`)}<a href="#history">History</a></nav>
<p class="small">${changed.length === 0 ? "Nobody has changed anything: the values are those of the coordinator’s file." : html`Changed: ${changed.map(({ name, title }, at) => html`${at === 0 ? nothing : ", "}<a href="#${name}">${title}</a>`)}.`}</p>
${answer.groups.map((group) => groupSection(group, { viewer, mayChange, basedOn: answer.version, refused }))}
${historySection(answer.history, { viewer, mayChange, basedOn: answer.version })}
${startSection(answer)}`;
}

interface Around {
  readonly viewer: PageViewer;
  readonly mayChange: boolean;
  readonly basedOn: number;
  readonly refused?: PoliciesPage["refused"];
}

function groupSection({ name, title, policies }: PoliciesAnswer["groups"][number], around: Around): Html {
  const rows = policies.map((policy) => policyRow(policy, around));
  const heading = html`<h2 id="${name}">${title}</h2>${name === "retention" ? retentionNote : nothing}`;
  if (!around.mayChange) return html`<section class="policies">${heading}${rows}</section>`;
  return html`<section class="policies">${heading}
<form method="post" action="/policies/preview">
${formToken(around.viewer)}<input type="hidden" name="based-on" value="${around.basedOn}">
${rows}
<p class="actions"><button type="submit">Preview</button><span class="small">Shows what would change. Nothing is saved yet.</span></p>
</form></section>`;
}

const retentionNote = html`<p class="small">What each table takes now, and what these come to: <a href="/storage">Storage</a>.</p>`;

function policyRow(policy: ShownPolicy, around: Around): Html {
  const { mayChange, refused } = around;
  const typed = refused?.typed[policy.name];
  return html`<div class="policy${policy.changedBy === null ? "" : " policy-changed"}" id="${policy.name}">
<div class="policy-words">
<p class="policy-title">${mayChange ? html`<label for="field-${policy.name}">${policy.title}</label>` : html`<strong>${policy.title}</strong>`} <code>${policy.name}</code></p>
<p class="small" id="help-${policy.name}">${policy.help} <span class="policy-origin">Default: ${policy.origin}.</span></p>
</div>
<div class="policy-value">
${mayChange ? policyField(policy, typed) : html`<p class="policy-now">${shown(policy, policy.value)}</p>`}
<p class="small" id="range-${policy.name}">${rangeWords(policy)}</p>
${changeLine(policy, around)}
</div>
</div>`;
}

/** `0 to 1,000, default 2 ms; the file says 5 ms`. */
function rangeWords(policy: ShownPolicy): string {
  const usual = `default ${shown(policy, policy.default)}`;
  const range = policy.kind.type === "number" ? `${shortRange(policy.kind)}, ` : "";
  const file =
    policy.fileValue === policy.default ? "" : `; the file says ${shown(policy, policy.fileValue)}`;
  return `${range}${usual}${file}`;
}

function changeLine(policy: ShownPolicy, { mayChange, viewer }: Around): Html {
  if (policy.changedBy === null || policy.changedAt === null) return nothing;
  const mayAudit = mayDo(viewer.actor, "audit-read");
  const who = mayAudit
    ? html`<a href="${pathWith("/audit", { action: "policy-changed" })}">${policy.changedBy}</a>`
    : policy.changedBy;
  return html`<p class="small">changed by ${who}, ${instant(policy.changedAt)}</p>
${mayChange ? html`<button class="quiet slim" type="submit" name="back" value="${policy.name}" formnovalidate>Back to ${shown(policy, policy.fileValue)}</button>` : nothing}`;
}

const shown = ({ name }: ShownPolicy, value: PolicyValue) => valueText(name as PolicyName, value);

function historySection(history: readonly ShownVersion[], around: Around): Html {
  if (history.length === 0) {
    return html`<section><h2 id="history">History</h2><p class="empty">No policy has been changed yet. Each change is listed here, with who made it and why, and can be taken back.</p></section>`;
  }
  return html`<section><h2 id="history">History</h2>
<div class="scroll" tabindex="0" role="region" aria-label="History of the policies"><table>
<thead><tr><th scope="col">Version</th><th scope="col">When</th><th scope="col">Who</th><th scope="col">What</th><th scope="col">Why</th>${around.mayChange ? html`<th scope="col"><span class="hidden">Take back</span></th>` : nothing}</tr></thead>
<tbody>${history.map((version) => versionRow(version, around))}</tbody></table></div></section>`;
}

function versionRow(
  { version, changedAt, changedBy, words, takesBack, changes }: ShownVersion,
  { mayChange, viewer, basedOn }: Around,
): Html {
  const takeBack = html`<td><form method="post" action="/policies/preview">${formToken(viewer)}<input type="hidden" name="based-on" value="${basedOn}"><input type="hidden" name="take-back" value="${version}"><button class="quiet slim" type="submit">Take back<span class="hidden"> version ${version}</span></button></form></td>`;
  return html`<tr><th scope="row">${version}</th><td>${instant(changedAt)}</td><td>${changedBy}</td>
<td class="wide">${changes.map(({ name, before, after }) => html`<div><code>${name}</code> ${valueOr(name, before)} → ${valueOr(name, after)}</div>`)}</td>
<td class="wide">${takesBack === null ? words : html`takes back version ${takesBack}${words === "" ? "" : `: ${words}`}`}</td>${mayChange ? takeBack : nothing}</tr>`;
}

function valueOr(name: PolicyName, value: PolicyValue | null): string {
  return value === null ? "the file’s value" : valueText(name, value);
}

function startSection({ setAtStart }: PoliciesAnswer): Html {
  return html`<section><h2 id="at-start">Read at the start</h2>
<p>These cannot be changed while a coordinator runs. Set them in its file (<code>nearcrawl coordinator --config FILE</code>) and start it again.</p>
<ul class="at-start">${setAtStart.map(({ names, why }) => html`<li>${names.map((name, at) => html`${at === 0 ? nothing : ", "}<code>${name}</code>`)}: ${why}</li>`)}</ul></section>`;
}

// What a policy's value is typed into: by its kind, with its bounds and its help.

/** `typed`: what was sent and refused, to be shown again; left out: the value in force. */
function policyField(policy: ShownPolicy, typed?: string): Html {
  const { name, kind, unit } = policy;
  const value = typed ?? (typeof policy.value === "boolean" ? yesNo(policy.value) : String(policy.value));
  const described = `help-${name} range-${name}`;
  if (kind.type === "number") {
    return html`<p class="policy-input"><input class="number" id="field-${name}" name="${name}" value="${value}" inputmode="${kind.whole ? "numeric" : "decimal"}" autocomplete="off" maxlength="20" aria-describedby="${described}">${unit === null ? nothing : html`<span>${unit}</span>`}</p>`;
  }
  const options = kind.type === "choice" ? kind.options : ["yes", "no"];
  return html`<p class="policy-input"><select id="field-${name}" name="${name}" aria-describedby="${described}">${options.map((option) => html`<option value="${option}"${option === value ? html` selected` : nothing}>${option}</option>`)}</select></p>`;
}

const yesNo = (value: boolean) => (value ? "yes" : "no");

// What a change of policies would come to, and the form that saves it.

export function policyPreviewPage(preview: PreviewAnswer, viewer: PageViewer): Html {
  const { changes, effects, basedOn, takesBack } = preview;
  return html`<div class="preview"><h1>${takesBack === null ? "What would change" : `Take back version ${takesBack}`}</h1>
<p class="lead">Nothing is saved yet.</p>
<div class="scroll"><table>
<caption class="hidden">The policies that change</caption>
<thead><tr><th scope="col">Policy</th><th scope="col">Now</th><th scope="col">Then</th></tr></thead>
<tbody>${changes.map(changeRow)}</tbody></table></div>
<h2>What it would come to</h2>
${effects.map(effectSection)}
<h2>Save</h2>
<form class="form" method="post" action="/policies">
${formToken(viewer)}<input type="hidden" name="based-on" value="${basedOn}">
${takesBack === null ? nothing : html`<input type="hidden" name="take-back" value="${takesBack}">`}
${changes.map(({ name, after, toFile }) => html`<input type="hidden" name="${toFile ? `back:${name}` : name}" value="${String(after)}">`)}
<div><label for="words">Why (for the history, may be left out)</label><input id="words" name="words" maxlength="300" autocomplete="off"></div>
<p class="actions"><button type="submit">Save</button><a class="button quiet" href="/policies">Leave it as it is</a></p>
</form></div>`;
}

function changeRow({ name, before, after, toFile }: PreviewAnswer["changes"][number]): Html {
  const { title } = policyOf(name as PolicyName);
  const text = (value: typeof before) => valueText(name as PolicyName, value);
  return html`<tr><th scope="row">${title}<div class="small"><code>${name}</code></div></th><td>${text(before)}</td><td><strong>${text(after)}</strong>${toFile ? html`<div class="small">as the coordinator’s file says</div>` : nothing}</td></tr>`;
}

function effectSection({ title, figures, basis, limits }: PolicyEffect): Html {
  return html`<section class="effect"><h3>${title}</h3>
${figures.length === 0 ? nothing : figureTable(title, figures)}
<p class="small">${basis}</p>
${limits.length === 0 ? nothing : html`<ul class="small limits">${limits.map((limit) => html`<li>${limit}</li>`)}</ul>`}
</section>`;
}

function figureTable(title: string, figures: readonly PolicyFigure[]): Html {
  return html`<div class="scroll"><table>
<caption class="hidden">${title}</caption>
<thead><tr><th scope="col"><span class="hidden">Figure</span></th><th scope="col" class="number">Now</th><th scope="col" class="number">Then</th><th scope="col" class="number difference">Difference</th></tr></thead>
<tbody>${figures.map(figureRow)}</tbody></table></div>`;
}

function figureRow({ words, unit, before, after }: PolicyFigure): Html {
  const difference = before === null || after === null ? null : after - before;
  return html`<tr><th scope="row">${words}</th><td class="number">${figureText(before, unit)}</td><td class="number">${figureText(after, unit)}</td><td class="number difference">${differenceText(difference, unit)}</td></tr>`;
}

/** Three digits at least below a hundred, none too many above: `3.17 probes`, `12,400 pages/day`, `–`. */
export function figureText(value: number | null, unit: string): string {
  if (value === null) return "–";
  const digits = Number.isInteger(value) || Math.abs(value) >= 100 ? 0 : Math.abs(value) >= 10 ? 1 : 2;
  const number = new Intl.NumberFormat("en-GB", { maximumFractionDigits: digits }).format(value);
  return `${number.replace("-", "−")} ${value === 1 ? unit.replace(/^([A-Za-z]{3,})s$/, "$1") : unit}`.trimEnd();
}

export function differenceText(difference: number | null, unit: string): string {
  if (difference === null) return "–";
  if (Math.abs(difference) < 0.005) return "none";
  return `${difference > 0 ? "+" : "−"}${figureText(Math.abs(difference), unit)}`;
}

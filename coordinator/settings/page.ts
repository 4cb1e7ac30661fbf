/** The policies: what holds now, what it does, who changed it, and a form for those who may change it. */

import { mayDo } from "#core/actor";
import { pageScript } from "../web/assets.ts";
import { tableOf } from "../web/components.ts";
import { instant } from "../web/format.ts";
import { type Html, html, nothing, pathWith } from "../web/html.ts";
import { formToken, type PageViewer } from "../web/page-frame.ts";
import { type PolicyValue, policyOf, shortRange, valueText } from "./catalogue.ts";
import type { PolicyName } from "./schema.ts";
import type {
  PoliciesAnswer,
  PolicyEffect,
  PolicyFigure,
  PreviewAnswer,
  ShownPolicy,
  ShownVersion,
} from "./settings-api.ts";
import { isChanged, searchedPolicies } from "./settings-view.ts";

/** Which policies are listed. */
export type PolicyList = "basic" | "all" | "changed";

export interface PoliciesPage {
  /** Every policy. */
  readonly answer: PoliciesAnswer;
  readonly viewer: PageViewer;
  readonly list: PolicyList;
  /** What was searched for, among all of them; empty: nothing. */
  readonly text: string;
  /** What was typed and cannot be, by name, and why. */
  readonly refused?: { readonly words: string; readonly typed: Readonly<Record<string, string>> };
}

export function policiesPage(page: PoliciesPage): Html {
  const { answer, viewer, refused, list, text } = page;
  const mayChange = mayDo(viewer.actor, "policy-write") && viewer.formToken !== null;
  const around = { ...page, mayChange, basedOn: answer.version };
  return html`<h1>Policies</h1>
<p class="lead">Settings of the fleet's behaviour. A change takes effect at once in every running coordinator; its effect is shown before it is saved.</p>
${refused ? html`<p class="fault" role="alert">${refused.words}</p>` : nothing}
${
  mayDo(viewer.actor, "policy-write")
    ? nothing
    : html`<p class="note">You can view the policies.
Only operators can change them (scope policy-write)${viewer.signedInAs === null ? html`: <a href="/sign-in">sign in</a>` : nothing}.</p>`
}
${answer.ignored.map((fault) => html`<p class="fault">A stored policy is ignored, and the file’s value holds: ${fault}.</p>`)}
${finder(page)}
${listed(around)}
${historySection(answer.history, around)}
${startSection(answer)}
${pageScript("policies.js")}`;

  function listed(within: Around): Html {
    const search = { text, changedOnly: list === "changed", basicOnly: list === "basic" && text === "" };
    const { groups } = searchedPolicies(answer, search);
    if (groups.length === 0) return nothingFound(page);
    // A dozen stand together; all of them fold by groups, and what was looked for is open.
    const rows =
      list === "basic" && text === ""
        ? html`<section class="policies">${groups.flatMap((group) => group.policies.map((policy) => policyRow(policy, within, group.title)))}</section>`
        : html`${groups.map((group) => foldedGroup(group, within, list === "changed" || text !== ""))}`;
    if (!mayChange) return rows;
    return html`<form class="policy-form" method="post" action="/policies/preview">
${formToken(viewer)}<input type="hidden" name="based-on" value="${answer.version}">
${rows}
<p class="actions"><button type="submit">Preview</button><span class="small" id="policy-count">Shows what would change. Nothing is saved yet.</span></p>
</form>`;
  }
}

function finder({ answer, list, text }: PoliciesPage): Html {
  const all = answer.groups.flatMap(({ policies }) => policies);
  const tabs: readonly (readonly [PolicyList, string, number])[] = [
    ["basic", "Basic", all.filter(({ basic }) => basic).length],
    ["all", "All", all.length],
    ["changed", "Differ from the default", all.filter(isChanged).length],
  ];
  const current = (name: PolicyList) => (text === "" && list === name ? html` aria-current="true"` : nothing);
  return html`<div class="policy-finder"><nav class="policy-tabs"
aria-label="Which policies">${tabs.map(
    ([name, title, count]) => html`<a
href="${pathWith("/policies", { show: name === "basic" ? null : name })}"${current(name)}>${title} <span class="count">${count}</span></a>`,
  )}</nav>
<form class="policy-search" role="search" action="/policies"><label class="hidden" for="policy-q">Search the
policies</label><input id="policy-q" type="search" name="q" value="${text}" maxlength="${mostSearched}"
placeholder="Search ${all.length} policies" autocomplete="off"><button class="quiet slim">Search</button></form></div>`;
}

export const mostSearched = 100;

function nothingFound({ list, text }: PoliciesPage): Html {
  if (text !== "")
    return html`<div class="empty"><p><strong>No policy matches <bdi>${text}</bdi>.</strong> <a href="/policies?show=all">All policies</a></p></div>`;
  return list === "changed"
    ? html`<div class="empty"><p><strong>Every policy has its default.</strong> <a href="/policies">Basic policies</a></p></div>`
    : nothing;
}

interface Around extends PoliciesPage {
  readonly mayChange: boolean;
  readonly basedOn: number;
}

function foldedGroup(
  { name, title, policies }: PoliciesAnswer["groups"][number],
  around: Around,
  isOpen: boolean,
): Html {
  const changed = policies.filter(isChanged).length;
  const typed = around.refused?.typed ?? {};
  const holdsTyped = policies.some(
    (policy) => (typed[policy.name] ?? fieldText(policy)) !== fieldText(policy),
  );
  const count = html`<span class="count">${policies.length}</span>${changed === 0 ? nothing : html` <span class="small">${changed} changed</span>`}`;
  return html`<details class="policies" id="group-${name}"${isOpen || holdsTyped ? html` open` : nothing}><summary><h2
id="${name}">${title}</h2> ${count}</summary>
${name === "retention" ? retentionNote : nothing}${policies.map((policy) => policyRow(policy, around))}</details>`;
}

const retentionNote = html`<p class="small">What each table takes now, and what these come to: <a href="/storage">Storage</a>.</p>`;

/** `group`: said where policies of several groups stand together. */
function policyRow(policy: ShownPolicy, around: Around, group?: string): Html {
  const { mayChange, refused } = around;
  const typed = refused?.typed[policy.name];
  const { name, title, help, origin } = policy;
  return html`<div class="policy${isChanged(policy) ? " policy-changed" : ""}" id="${name}">
<div class="policy-words">
<p class="policy-title">${mayChange ? html`<label for="field-${name}">${title}</label>` : html`<strong>${title}</strong>`}
<code>${name}</code>${group === undefined ? nothing : html` <span class="small">${group}</span>`}</p>
<p class="small" id="help-${name}">${help} <span class="policy-origin">Default: ${origin}.</span></p>
</div>
<div class="policy-value">
${mayChange ? policyField(policy, typed) : html`<p class="policy-now">${shown(policy, policy.value)}</p>`}
<p class="small" id="range-${name}">${rangeWords(policy)}</p>
${changeLine(policy, around)}
${mayChange ? html`<div class="policy-effect" aria-live="polite" hidden></div>` : nothing}
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
${
  mayChange
    ? html`<button class="quiet slim" type="submit" name="back" value="${policy.name}" formnovalidate>Back to
${shown(policy, policy.fileValue)}</button>`
    : nothing
}`;
}

const shown = ({ name }: ShownPolicy, value: PolicyValue) => valueText(name as PolicyName, value);

function historySection(history: readonly ShownVersion[], around: Around): Html {
  if (history.length === 0) {
    return html`<section><h2 id="history">History</h2><p class="empty">No policy has been changed yet. Each change is
listed here, with who made it and why, and can be reverted.</p></section>`;
  }
  const [latest, earlier] = [history.slice(0, shownAtOnce), history.slice(shownAtOnce)];
  return html`<section><h2 id="history">History</h2>
${versionTable(latest, around, "History of the policies")}
${
  earlier.length === 0
    ? nothing
    : html`<details class="earlier"><summary>${earlier.length}
earlier</summary>${versionTable(earlier, around, "Earlier history of the policies")}</details>`
}</section>`;
}

/** Versions; the rest is folded. */
const shownAtOnce = 5;

function versionTable(versions: readonly ShownVersion[], around: Around, label: string): Html {
  const { mayChange, viewer, basedOn } = around;
  const heads = ["Version", "When", "Who", "What .wide", "Why .wide", mayChange && "(Revert)"];
  return tableOf(label, heads, versions, ({ version, changedAt, changedBy, words, takesBack, changes }) => [
    ...[version, instant(changedAt), changedBy],
    html`${changes.map(({ name, before, after }) => html`<div><code>${name}</code> ${valueOr(name, before)} → ${valueOr(name, after)}</div>`)}`,
    takesBack === null ? words : `reverts version ${takesBack}${words === "" ? "" : `: ${words}`}`,
    html`<form method="post" action="/policies/preview">${formToken(viewer)}<input type="hidden"
name="based-on" value="${basedOn}"><input type="hidden" name="take-back" value="${version}"><button class="quiet slim"
type="submit">Revert<span class="hidden"> version ${version}</span></button></form>`,
  ]);
}

function valueOr(name: PolicyName, value: PolicyValue | null): string {
  return value === null ? "the file’s value" : valueText(name, value);
}

function startSection({ setAtStart }: PoliciesAnswer): Html {
  return html`<section><details><summary><h2 id="at-start">Read at the start</h2> <span class="count">${setAtStart.length}</span></summary>
<p>These cannot be changed while a coordinator runs. Set them in its file (<code>nearcrawl coordinator --config FILE</code>) and restart it.</p>
<ul class="at-start">${setAtStart.map(
    ({
      names,
      why,
    }) => html`<li>${names.map((name, at) => html`${at === 0 ? nothing : ", "}<code>${name}</code>`)}:
${why}</li>`,
  )}</ul></details></section>`;
}

// What a policy's value is typed into: by its kind, with its bounds and its help.

/** `typed`: what was sent and refused, to be shown again; left out: the value in force. */
function policyField(policy: ShownPolicy, typed?: string): Html {
  const { name, kind, unit } = policy;
  const value = typed ?? fieldText(policy);
  const described = `help-${name} range-${name}`;
  if (kind.type === "number") {
    return html`<p class="policy-input">${slider(policy, kind)}<input class="number" id="field-${name}" name="${name}"
value="${value}" inputmode="${kind.whole ? "numeric" : "decimal"}" autocomplete="off" maxlength="20"
aria-describedby="${described}">${unit === null ? nothing : html`<span>${unit}</span>`}</p>`;
  }
  const options = kind.type === "choice" ? kind.options : ["yes", "no"];
  return html`<p class="policy-input"><select id="field-${name}" name="${name}"
aria-describedby="${described}">${options.map(
    (option) =>
      html`<option value="${option}"${
        option === value
          ? html`
selected`
          : nothing
      }>${option}</option>`,
  )}</select></p>`;
}

const yesNo = (value: boolean) => (value ? "yes" : "no");

const fieldText = ({ value }: ShownPolicy) => (typeof value === "boolean" ? yesNo(value) : String(value));

/** Steps of a slider. */
const sliderSteps = 200;
/** Up to this many of its units a range is divided evenly; a wider one by powers. */
const mostEven = 100;

/** Needs a script, which shows it: by itself it says nothing that is sent. */
function slider({ name, title }: ShownPolicy, kind: Extract<ShownPolicy["kind"], { type: "number" }>): Html {
  const { least, most, whole, above } = kind;
  const scale = most - least <= mostEven ? "even" : "powers";
  return html`<input type="range" class="slider" hidden min="0" max="${sliderSteps}" step="1" aria-label="${title}"
data-for="field-${name}" data-least="${least}" data-most="${most}" data-whole="${whole ? "yes" : "no"}"
data-above="${above ? "yes" : "no"}" data-scale="${scale}">`;
}

// What a change of policies would come to, and the form that saves it.

export function policyPreviewPage(preview: PreviewAnswer, viewer: PageViewer): Html {
  const { changes, effects, basedOn, takesBack } = preview;
  return html`<div class="preview"><h1>${takesBack === null ? "What would change" : `Revert version ${takesBack}`}</h1>
<p class="lead">Nothing is saved yet.</p>
${tableOf("The policies that change", ["Policy", "Now", "Then"], changes, changeCells)}
<h2>Expected effect</h2>
${effects.map(effectSection)}
<h2>Save</h2>
<form class="form" method="post" action="/policies">
${formToken(viewer)}<input type="hidden" name="based-on" value="${basedOn}">
${takesBack === null ? nothing : html`<input type="hidden" name="take-back" value="${takesBack}">`}
${changes.map(({ name, after, toFile }) => html`<input type="hidden" name="${toFile ? `back:${name}` : name}" value="${String(after)}">`)}
<div><label for="words">Why (for the history, optional)</label><input id="words" name="words" maxlength="300" autocomplete="off"></div>
<p class="actions"><button type="submit">Save</button><a class="button quiet" href="/policies">Cancel</a></p>
</form></div>`;
}

function changeCells({ name, before, after, toFile }: PreviewAnswer["changes"][number]): Html[] {
  const text = (value: typeof before) => valueText(name as PolicyName, value);
  const whose = toFile ? html`<div class="small">as the coordinator’s file says</div>` : nothing;
  return [
    html`${policyOf(name as PolicyName).title}<div class="small"><code>${name}</code></div>`,
    html`${text(before)}`,
    html`<strong>${text(after)}</strong>${whose}`,
  ];
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
<thead><tr><th scope="col"><span class="hidden">Figure</span></th><th scope="col" class="number">Now</th><th
scope="col" class="number">Then</th><th scope="col" class="number difference">Difference</th></tr></thead>
<tbody>${figures.map(figureRow)}</tbody></table></div>`;
}

function figureRow({ words, unit, before, after }: PolicyFigure): Html {
  const difference = before === null || after === null ? null : after - before;
  return html`<tr><th scope="row">${words}</th><td class="number">${figureText(before, unit)}</td><td
class="number">${figureText(after, unit)}</td><td class="number difference">${differenceText(difference, unit)}</td></tr>`;
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

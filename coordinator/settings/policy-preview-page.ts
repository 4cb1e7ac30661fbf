/** What a change of policies would come to, and the form that saves it. */

import { type Html, html, nothing } from "../web/html.ts";
import { formToken, type PageViewer } from "../web/page-frame.ts";
import type { PreviewAnswer } from "./answer.ts";
import { policyOf } from "./catalogue.ts";
import type { PolicyName } from "./descriptions.ts";
import { valueText } from "./policy-values.ts";
import type { PolicyEffect, PolicyFigure } from "./preview/types.ts";

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

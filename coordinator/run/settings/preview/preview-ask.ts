/** Shows the effect of a policy change, with the form that saves it. */
import { column, group, lead, list, picture, plain, section, table } from "../../../ask/document.ts";
import type { Document, Node } from "../../../ask/operation.ts";
import { small } from "../../../web/components.ts";
import { html } from "../../../web/html.ts";
import { formToken, type PageViewer } from "../../../web/page-frame.ts";
import { policyOf, valueText } from "../catalogue.ts";
import type { PolicyEffect, PolicyFigure, PreviewAnswer } from "../settings-api.ts";

export function previewDocument(
  preview: PreviewAnswer,
  { viewer }: { readonly viewer: PageViewer },
): Document {
  const { changes, effects, basedOn, takesBack } = preview;
  return {
    title: takesBack === null ? "What would change" : `Revert version ${takesBack}`,
    nodes: [
      lead("Nothing is saved yet."),
      group("preview", [
        table<PreviewAnswer["changes"][number]>({
          ...{ label: "The policies that change", rows: changes, empty: ["Nothing would change.", ""] },
          columns: [
            column("name", "Policy", ({ name }) => policyOf(name).title, {
              more: ({ name }) => html`<code>${name}</code>`,
            }),
            column("before", "Now", (one) => valueText(one.name, one.before)),
            column("after", "Then", (one) => html`<strong>${valueText(one.name, one.after)}</strong>`, {
              more: ({ toFile }) => toFile && "as the coordinator’s file says",
            }),
          ],
        }),
        section("Expected effect", effects.map(effectSection)),
      ]),
      picture(html`<h2>Save</h2>
<form class="form" method="post" action="/policies">
${formToken(viewer)}<input type="hidden" name="based-on" value="${basedOn}">
${takesBack !== null && html`<input type="hidden" name="take-back" value="${takesBack}">`}
${changes.map(({ name, after, toFile }) => html`<input type="hidden" name="${toFile ? `back:${name}` : name}" value="${String(after)}">`)}
<div><label for="words">Why (for the history, optional)</label><input id="words" name="words" maxlength="300" autocomplete="off"></div>
<p class="actions"><button type="submit">Save</button><a class="button quiet" href="/policies">Cancel</a></p>
</form>`),
    ],
  };
}

const effectSection = ({ title, figures, basis, limits }: PolicyEffect): Node =>
  section(
    title,
    [
      figures.length > 0 &&
        table<PolicyFigure>({
          ...{ label: title, rows: figures, empty: ["", ""] },
          columns: [
            column("words", "Figure", ({ words }) => words),
            column("before", "Now", ({ before, unit }) => figureText(before, unit), { kind: "number" }),
            column("after", "Then", ({ after, unit }) => figureText(after, unit), { kind: "number" }),
            column("difference", "Difference", differenceText, { kind: "number" }),
          ],
        }),
      plain(small(basis)),
      limits.length > 0 && list(limits, "small limits"),
    ],
    { kind: "effect" },
  );

/** Formats values below 100 with three digits or more: `3.17 probes`, `12,400 pages/day`, `–`. */
function figureText(value: number | null, unit: string): string {
  if (value === null) return "–";
  const digits = Number.isInteger(value) || Math.abs(value) >= 100 ? 0 : Math.abs(value) >= 10 ? 1 : 2;
  const number = new Intl.NumberFormat("en-GB", { maximumFractionDigits: digits }).format(value);
  return `${number.replace("-", "−")} ${value === 1 ? unit.replace(/^([A-Za-z]{3,})s$/, "$1") : unit}`.trimEnd();
}

function differenceText({ before, after, unit }: PolicyFigure): string {
  if (before === null || after === null) return "–";
  const difference = after - before;
  if (Math.abs(difference) < 0.005) return "none";
  return `${difference > 0 ? "+" : "−"}${figureText(Math.abs(difference), unit)}`;
}

/** The files of an import, and the records of them that were refused, by file and line. */
import type { FileReport } from "#rir-import/read/file-report";
import { countText } from "../web/format.ts";
import { type Html, html, nothing } from "../web/html.ts";

/** Of one file. */
const refusedShown = 20;
const nameOf = (file: string) => file.split("/").at(-1) ?? file;

export function planFiles(files: readonly FileReport[]): Html {
  const rows = files.map(
    (
      file,
    ) => html`<tr><th scope="row" title="${file.file}">${nameOf(file.file)}</th><td>${file.format}</td><td>${file.registry ?? "–"}</td>
<td class="nowrap">${file.fileDate ?? "–"}</td><td class="number">${countText(file.read)}</td><td class="number">${countText(file.kept)}</td><td class="number">${countText(ignoredOf(file))}</td><td class="number">${countText(file.malformed)}</td></tr>`,
  );
  return html`<section><h2>Files</h2>
<div class="scroll" tabindex="0" role="region" aria-label="Files of the plan"><table><thead><tr><th scope="col">File</th><th scope="col">Format</th><th scope="col">Registry</th><th scope="col">Data of</th><th scope="col" class="number">Records</th><th scope="col" class="number">Kept</th><th scope="col" class="number">Ignored</th><th scope="col" class="number">Refused</th></tr></thead><tbody>${rows}</tbody></table></div>
${files.map(remarks)}</section>`;
}

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
<ul class="break">${file.warnings.map((warning) => html`<li><strong>Warning:</strong> ${warning}</li>`)}${refused}${more > 0 ? html`<li>and ${countText(more)} more refused records</li>` : nothing}${reasons.map(([reason, count]) => html`<li>${countText(count)} ignored: ${reason}</li>`)}</ul></details>`;
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

/** What a site states of the uses of a page, as pages show it. */
import { instant } from "../web/format.ts";
import { type Html, html, nothing } from "../web/html.ts";
import { answersWords, type StatedUses, statementLines } from "./stated-uses.ts";

/** Null: nothing is stated. */
export function statedSection(stated: StatedUses | null): Html {
  if (stated === null) return nothing;
  return html`<section aria-labelledby="stated"><h2 id="stated">What the site states</h2>
<p>${answersWords(stated.answers)}</p>
<ul class="plain">${statementLines(stated.statements).map((line) => html`<li class="break">${line}</li>`)}</ul>
<p class="small">Since ${instant(stated.since)}; found again ${instant(stated.confirmedAt)}. Where statements differ, the strictest holds.</p></section>`;
}

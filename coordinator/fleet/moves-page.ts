/** Moves of crawlers to other hosts: where each stands. */
import type { MoveStep } from "../crawlers/moves.ts";
import { crawlerFor, empty, fleetHead } from "../web/components.ts";
import { instant } from "../web/format.ts";
import { type Html, html, nothing } from "../web/html.ts";
import type { PageViewer } from "../web/page-frame.ts";
import { bytesText } from "../who/words.ts";
import type { MoveLine } from "./fleet-ports.ts";

const stepWords: Readonly<Record<MoveStep, string>> = {
  asked: "waits for the coordinator",
  emptying: "the other host ends and ships its own work",
  packing: "the crawler ends its requests and ships its results",
  sending: "what it keeps is sent",
  moved: "moved; it has yet to come from the other host",
  running: "done: it runs on the other host",
  failed: "not moved: both go on as before",
};

export function movesBody(moves: readonly MoveLine[], viewer: PageViewer): Html {
  return html`${fleetHead("/fleet/moves", viewer, "Moves")}
<p class="lead">A crawler goes on on another host of its partner, with its name, subnets and waiting results. A move is asked for on the crawler's page, or with <code>nearcrawl fleet move NAME --to OTHER</code>.</p>
${moves.length === 0 ? empty("No crawler was moved yet.", "") : moveTable(moves, viewer)}`;
}

export function moveTable(moves: readonly MoveLine[], viewer: PageViewer): Html {
  return html`<div class="scroll" tabindex="0" role="region" aria-label="Moves"><table>
<thead><tr><th scope="col">Asked for</th><th scope="col">Crawler</th><th scope="col">To the host of</th><th scope="col">State</th><th scope="col">Since</th></tr></thead>
<tbody>${moves.map(
    (move) =>
      html`<tr><td>${instant(move.askedAt.toISOString())}</td><td>${crawlerFor(viewer, move.name)}</td><td>${crawlerFor(viewer, move.otherName)}</td><td class="why">${stepWords[move.step]}${move.step === "sending" ? html`<span class="small">${bytesText(move.sentBytes)} of ${bytesText(move.bytes)}</span>` : nothing}${move.words === "" ? nothing : html`<span class="small">${move.words}</span>`}</td><td>${instant(move.changedAt.toISOString())}</td></tr>`,
  )}</tbody></table></div>`;
}

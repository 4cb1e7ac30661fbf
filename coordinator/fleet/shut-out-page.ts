/** Before a crawler is shut out: what would happen, in two ways, and the buttons for them. */

import { howMany } from "#core/format";
import { buttonForm, crawlerOr, crawlerPath } from "../web/components.ts";
import { type Html, html, nothing } from "../web/html.ts";
import type { PageViewer } from "../web/page-frame.ts";
import type { FleetEntry, HeirLine } from "./fleet-ports.ts";

export interface ShutOutPreview {
  readonly name: string;
  readonly state: FleetEntry["state"];
  readonly revoked: boolean;
  readonly openLeases: number;
  readonly subnets: number;
  /** To whom they would go as things stand, the largest shares first. */
  readonly heirs: readonly HeirLine[];
}

export function shutOutBody(preview: ShutOutPreview, viewer: PageViewer): Html {
  const { name, state, openLeases, subnets } = preview;
  const session =
    state === "offline" ? "It is not connected now, and cannot connect again." : "Its session ends at once.";
  return html`<h1>Shut ${name} out?</h1>
<p class="lead">No key of it opens anything from then on. What it has fetched stays in the index. A <a href="/fleet/invite?renews=${encodeURIComponent(name)}">new identity</a> takes it back.</p>
<section class="choices">
<div class="choice-card"><h2>Kill: everything at once</h2>
<p>For a machine that is lost, or that nobody answers for.</p>
<ul class="plain"><li>${session}</li>
<li>${openLeases === 0 ? "It holds no leases." : html`Its <strong>${howMany(openLeases, "lease")}</strong> ${openLeases === 1 ? "returns" : "return"} now, and the pages are handed out again.`}</li>
<li>${subnets === 0 ? "It has no subnets." : html`Its <strong>${howMany(subnets, "subnet")}</strong> ${subnets === 1 ? "goes" : "go"} to others now, without waiting for it:`}${heirList(preview)}</li></ul>
${buttonForm(viewer, { path: crawlerPath(name, "/kill"), label: `Kill ${name}`, kind: "danger" })}</div>
<div class="choice-card"><h2>Revoke: the key alone</h2>
<p>For a key that leaked, or a partner that takes a break.</p>
<ul class="plain"><li>${session}</li>
<li>${openLeases === 0 ? "It holds no leases." : "Its leases return when they run out."}</li>
<li>${subnets === 0 ? "It has no subnets." : "Its subnets stay its own for the time of a departure, and then go to others."}</li></ul>
${buttonForm(viewer, { path: crawlerPath(name, "/revoke"), label: `Revoke ${name}`, kind: "danger" })}</div>
</section>
<p><a href="${crawlerPath(name)}">Leave it as it is</a></p>`;
}

function heirList({ heirs }: ShutOutPreview): Html {
  if (heirs.length === 0) return nothing;
  return html`<ul class="plain">${heirs.map(
    ({ crawler, subnets }) =>
      html`<li>${howMany(subnets, "subnet")}: ${crawler === null ? "to whoever turns out to be nearest, measured anew" : html`to ${crawlerOr(crawler, "")}, the runner-up`}</li>`,
  )}</ul>`;
}

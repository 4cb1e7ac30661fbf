/** A crawler's page: which domains it is given, at what pace it is to work, and the form that gives it domains. */

import { howMany } from "#core/format";
import { crawlerPath } from "../web/components.ts";
import { instant } from "../web/format.ts";
import { type Html, html, nothing } from "../web/html.ts";
import { formToken, type PageViewer } from "../web/page-frame.ts";
import type { CrawlerView, Operation } from "./crawler-view.ts";

const paceWords = {
  "slow-down": "slow down: there is little for it to do",
  steady: "steady: a connection for each host that is due, as far as its partner allows",
  "hurry-up": "hurry up: as many connections as its partner allows",
} as const;

export function workFacts({ work: { domainSets, pace } }: Operation): Html {
  const { operator, partner } = domainSets;
  return html`<dl class="facts">
<div><dt>Domain sets that operators give it</dt><dd>${operator.length === 0 ? "every domain" : html`<span class="mono">${operator.join(" or ")}</span>`}</dd></div>
${partner.length === 0 ? nothing : html`<div><dt>Its partner narrows that to</dt><dd class="mono">${partner.join(" or ")}</dd></div>`}
<div><dt>Pace</dt><dd>${pace === null ? "as its partner allows; nothing else was asked of it yet" : html`${paceWords[pace.pace]} <span class="small">${howMany(pace.dueSlices, "host slice")} due or in hand; since ${instant(pace.since.toISOString())}</span>`}</dd></div>
</dl>`;
}

export function domainSetForm({ crawler, operation: { work } }: CrawlerView, viewer: PageViewer): Html {
  return html`<form class="form" method="post" action="${crawlerPath(crawler.name, "/domain-sets")}">${formToken(viewer)}
<h2>Domain sets</h2><p class="small">One a line, such as <span class="mono">.gr</span>, <span class="mono">example.org not shop.example.org</span> or <span class="mono">lang:el</span>; a host must be in one of them. Empty: every domain. Open leases finish, and hosts move within a minute or so.</p>
<div><label for="sets">Sets</label><textarea id="sets" name="sets" rows="4" maxlength="20000" spellcheck="false">${work.domainSets.operator.join("\n")}</textarea></div>
<button class="slim">Give</button></form>`;
}

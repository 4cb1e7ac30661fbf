/** What can be done with a crawler, by whoever looks at its page: buttons and small forms. */

import { linkMinutes } from "#core/access-types";
import { mayDo } from "#core/actor";
import { buttonForm, crawlerPath, onlyOperators } from "../web/components.ts";
import { type Html, html, nothing, pathWith } from "../web/html.ts";
import { formToken, type PageViewer } from "../web/page-frame.ts";
import type { CrawlerView } from "./crawler-view.ts";
import { domainSetForm } from "./web-crawler-work.ts";

export function crawlerDeeds(view: CrawlerView, viewer: PageViewer): Html {
  const { name } = view.crawler;
  const isOperator = mayDo(viewer.actor, "fleet-write");
  if (!isOperator && !mayDo(viewer.actor, "fleet-write", { crawler: name, partnersToo: true })) {
    return onlyOperators(viewer.actor, "fleet-write", "Steering this crawler");
  }
  return html`<div class="actions" role="group" aria-label="What can be done">
${drainOrResume(view, viewer)}
${isOperator ? operatorButtons(view, viewer) : nothing}
${askPartner(view)}
</div>
${isOperator ? operatorForms(view, viewer) : nothing}`;
}

/** A partner takes back what it drained itself. */
function drainOrResume({ crawler, operation: { draining } }: CrawlerView, viewer: PageViewer): Html {
  if (crawler.revoked) return nothing;
  if (draining === null) {
    return buttonForm(viewer, { path: crawlerPath(crawler.name, "/drain"), label: "Drain" });
  }
  const isPartner = viewer.actor.role === "partner";
  if (isPartner && draining.askedBy !== "partner") {
    return html`<p class="small">An operator takes it back: ask there.</p>`;
  }
  return buttonForm(viewer, { path: crawlerPath(crawler.name, "/resume"), label: "Resume", kind: "plain" });
}

function operatorButtons({ crawler, inside, operation }: CrawlerView, viewer: PageViewer): Html {
  const { name, revoked } = crawler;
  const isDoubted = operation.trust === "distrusted" || operation.trust === "probes-doubted";
  const canRotate = !revoked && inside !== null && inside.identity.publicKey !== null;
  return html`${isDoubted ? buttonForm(viewer, { path: crawlerPath(name, "/believe"), label: "Believe it again" }) : nothing}
${canRotate ? buttonForm(viewer, { path: crawlerPath(name, "/rotate"), label: "New key" }) : nothing}
<a class="button quiet slim" href="${pathWith("/fleet/invite", { renews: name })}">New identity</a>
${revoked ? nothing : html`<a class="button danger slim" href="${crawlerPath(name, "/kill")}">Shut out…</a>`}`;
}

function askPartner({ inside, crawler }: CrawlerView): Html {
  const contact = inside?.identity.contact ?? null;
  if (contact === null) return nothing;
  if (/^[^\s@<>"?&%]+@[^\s@<>"?&%]+$/.test(contact)) {
    return html`<a class="button quiet slim" href="mailto:${contact}?subject=${encodeURIComponent(`Your crawler ${crawler.name}`)}">Ask its partner</a>`;
  }
  return html`<span class="small">Its partner: ${contact}</span>`;
}

function operatorForms(view: CrawlerView, viewer: PageViewer): Html {
  return html`<details class="deeds"><summary>Budget, domain sets, move, the partner's sign-in</summary><div class="deed-list">
${budgetForm(view, viewer)}
${domainSetForm(view, viewer)}
${view.crawler.revoked ? nothing : moveForm(view, viewer)}
${mayDo(viewer.actor, "access-write") ? signInForm(view, viewer) : nothing}
</div></details>`;
}

function budgetForm({ crawler, operation: { granted } }: CrawlerView, viewer: PageViewer): Html {
  const gigabytes = granted.bytesPerDay === null ? "" : String(granted.bytesPerDay / 1e9);
  return html`<form class="form" method="post" action="${crawlerPath(crawler.name, "/budget")}">${formToken(viewer)}
<h2>Budget</h2><p class="small">Holds at once. Never more than its partner allows; empty: as its partner allows.</p>
<div><label for="pagesPerDay">Pages a day at most</label><input class="number" id="pagesPerDay" name="pagesPerDay" inputmode="numeric" pattern="[0-9]*" maxlength="10" value="${granted.pagesPerDay}"></div>
<div><label for="gigabytesPerDay">Gigabytes a day at most</label><input class="number" id="gigabytesPerDay" name="gigabytesPerDay" inputmode="decimal" pattern="[0-9]*[.]?[0-9]*" maxlength="12" value="${gigabytes}"></div>
<button class="slim">Grant</button></form>`;
}

function moveForm({ crawler }: CrawlerView, viewer: PageViewer): Html {
  return html`<form class="form" method="post" action="${crawlerPath(crawler.name, "/move")}">${formToken(viewer)}
<h2>Move to another host</h2><p class="small">Invite the new host under any name and start it there; then name it here. ${crawler.name} goes on there with its subnets and waiting results, and the crawler that ran there is no more. Both must be connected.</p>
<div><label for="to">Crawler on the new host</label><input id="to" name="to" required maxlength="63" autocomplete="off" spellcheck="false"></div>
<button class="slim">Move</button></form>`;
}

function signInForm({ crawler }: CrawlerView, viewer: PageViewer): Html {
  return html`<form class="form" method="post" action="${crawlerPath(crawler.name, "/sign-in-link")}">${formToken(viewer)}
<h2>Let its partner sign in</h2><p class="small">A link that is good once: whoever opens it sees this crawler, may drain it and take it back, and sees nothing of others.</p>
<div><label for="partner">Name of the person</label><input id="partner" name="person" required maxlength="63" autocomplete="off"></div>
<div><label for="minutes">Good for so many minutes</label><input class="number" id="minutes" name="minutes" type="number" min="${linkMinutes.least}" max="${linkMinutes.most}" value="${linkMinutes.most}" required></div>
<button class="slim">Make the link</button></form>`;
}

/** Complaints: who minded our requests, what we had done, the paragraph that can be sent on, and the answer. */
import { mayDo } from "#core/actor";
import { howMany } from "#core/format";
import { empty, fleetHead } from "../web/components.ts";
import { askAbout, instant } from "../web/format.ts";
import { type Html, html, nothing } from "../web/html.ts";
import { formToken, type PageViewer } from "../web/page-frame.ts";
import { deedsParagraph, partnerLines } from "./complaint-words.ts";
import type { Complaint } from "./complaints.ts";

export interface ComplaintsPage {
  readonly complaints: readonly Complaint[];
  /** Also those that are closed. */
  readonly all: boolean;
}

export function complaintsBody(
  { complaints, all }: ComplaintsPage,
  viewer: PageViewer,
  fault: string | null = null,
): Html {
  const mayChange = mayDo(viewer.actor, "fleet-write");
  return html`${fleetHead("/fleet/complaints", viewer, "Complaints")}
<p class="lead">Reports of trouble with our requests, each with what we did to that site in the 24 hours before, as it was recorded then.</p>
${fault === null ? nothing : html`<p class="fault" role="alert">${fault}</p>`}
<p class="small"><a href="${all ? "/fleet/complaints" : "/fleet/complaints?all=yes"}">${all ? "Open ones only" : "Also those that are closed"}</a></p>
${complaints.length === 0 ? empty("Nobody complains.", "") : complaints.map((one) => complaintSection(one, viewer, mayChange))}
${mayChange ? addForm(viewer) : nothing}`;
}

function complaintSection(one: Complaint, viewer: PageViewer, mayChange: boolean): Html {
  const { complaintId, target, reporter, words, requester, createdAt, closedAt, closingWords } = one;
  const partners = partnerLines(one);
  return html`<section class="complaint"><h2>No. ${complaintId}: ${askAbout(target)} <span class="small">${instant(createdAt.toISOString())}, from ${reporter}${requester === null ? nothing : `, by the form from ${requester}`}</span></h2>
<blockquote class="break">${words}</blockquote>
<details><summary>What we had done: ${howMany(one.deeds.requests, "request")} in 24 hours</summary>
<p class="small">To be sent on as it stands:</p><pre>${deedsParagraph(one)}</pre>
${partners.length === 0 ? html`<p>No crawler of the fleet had asked it for anything.</p>` : html`<p class="small">Hosted by partners, and no part of the answer:</p><ul class="plain">${partners.map((line) => html`<li>${line}</li>`)}</ul>`}</details>
${closedAt === null ? (mayChange ? closeForm(complaintId, viewer) : nothing) : html`<p><strong>Closed</strong> ${instant(closedAt.toISOString())}: ${closingWords}</p>`}</section>`;
}

function closeForm(complaintId: number, viewer: PageViewer): Html {
  return html`<form class="inline" method="post" action="/fleet/complaints/${complaintId}/close">${formToken(viewer)}<label for="close-${complaintId}">How it ended</label> <input id="close-${complaintId}" name="words" required maxlength="1000" size="30"> <button class="quiet slim">Close no. ${complaintId}</button></form>`;
}

function addForm(viewer: PageViewer): Html {
  return html`<section><h2>Write one down</h2><form class="form" method="post" action="/fleet/complaints">${formToken(viewer)}
<div><label for="target">Site, address or range</label><input id="target" name="target" required maxlength="253" autocomplete="off" spellcheck="false"></div>
<div><label for="from">Who complains, and where to answer</label><input id="from" name="from" required maxlength="200"></div>
<div><label for="text">What is complained of</label><textarea id="text" name="text" required maxlength="5000" rows="4"></textarea></div>
<button class="slim">Write it down with what we did</button></form></section>`;
}

/** Opt-outs: sites and networks that the fleet leaves alone, who asked for it, and what can be done about each. */
import { mayDo } from "#core/actor";
import { buttonForm, dateOr, empty, titleRow } from "../web/components.ts";
import { askAbout, countText, instant } from "../web/format.ts";
import { type Html, html, nothing } from "../web/html.ts";
import { formToken, type PageViewer } from "../web/page-frame.ts";
import { type Complaint, deedsParagraph, partnerLines } from "./complaints.ts";
import { confirmationName, confirmationText } from "./honour.ts";
import {
  hiddenDays,
  type OptOut,
  type OptOutPreview,
  type OptOutScope,
  previewWords,
  scopeWords,
  stateWords,
  unconfirmedDays,
} from "./opt-out.ts";
import { proofFileOf } from "./proof-file.ts";

interface OptOutsPage {
  readonly optOuts: readonly OptOut[];
  /** Also what was lifted or has lapsed. */
  readonly all: boolean;
}

export function optOutsBody(
  { optOuts, all }: OptOutsPage,
  viewer: PageViewer,
  fault: string | null = null,
): Html {
  const mayChange = mayDo(viewer.actor, "fleet-write");
  return html`${titleRow("Opt-outs")}
<p class="lead">Pages, parts of sites, sites and networks that no crawler sends requests to. A request by the <a href="/about-crawler#opt-out">form</a> is honoured at once: its pages are hidden, after ${hiddenDays} days deleted, and it lapses after ${unconfirmedDays} unless the site proves it by DNS or a file, or an operator confirms it; then its pages are deleted at once. Lifting it in the first ${hiddenDays} days shows them again, and the form is not believed for it a second time.</p>
${fault === null ? nothing : html`<p class="fault" role="alert">${fault}</p>`}
${waitingRemark(optOuts)}
<p class="small"><a href="${all ? "/fleet/opt-outs" : "/fleet/opt-outs?all=yes"}">${all ? "In force only" : "Include lifted and lapsed"}</a></p>
${optOuts.length === 0 ? empty("No site or network has opted out.", html`Webmasters opt out by <a href="/about-crawler#opt-out">the form</a>; operators add one below.`) : table(optOuts, viewer, mayChange)}
${mayChange ? previewForm() : nothing}${mayChange ? eraseForm(viewer) : nothing}`;
}

/** A form once more, with what is wrong with what was typed. */
export function optOutsAgain(words: string, form: Html): Html {
  return html`${titleRow("Opt-outs")}<p class="fault" role="alert">${words}</p>${form}<p><a href="/fleet/opt-outs">All opt-outs</a></p>`;
}

type PreviewPage = OptOutPreview & {
  readonly target: string;
  readonly scope: OptOutScope;
  /** As it was asked. */
  readonly text: string;
};

export function previewBody(preview: PreviewPage, viewer: PageViewer): Html {
  const { target, scope, wide, pages, text, known } = preview;
  return html`<p class="registry-path"><a href="/fleet/opt-outs">Opt-outs</a></p>${titleRow("Opt-out preview")}
<p class="lead">The ${scopeWords[scope]} ${target}: ${previewWords(preview)}.${known === null ? nothing : ` It has opted out already (no. ${known.optOutId}, ${stateWords(known)}).`}</p>
${wide === null ? nothing : html`<p class="warn" role="status">${wide}.</p>`}
${mayDo(viewer.actor, "fleet-write") ? addOptOutForm(viewer, { target: text, scope, words: "", pages: wide === null ? null : pages }) : nothing}`;
}

const pagesField = (pages: number): Html =>
  html`<div><label for="removePages">To confirm, type how many pages go: <strong>${String(pages)}</strong></label> <input id="removePages" name="removePages" required maxlength="10" inputmode="numeric" autocomplete="off" spellcheck="false"></div>`;

/** `pages`: to be typed; null: nothing has to be. */
export function addOptOutForm(
  viewer: PageViewer,
  given: {
    readonly target: string;
    readonly scope: string;
    readonly words: string;
    readonly pages: number | null;
  },
): Html {
  return html`<form class="form" method="post" action="/fleet/opt-outs">${formToken(viewer)}<input type="hidden" name="target" value="${given.target}"><input type="hidden" name="scope" value="${given.scope}">
<div><label for="words">Reason</label><input id="words" name="words" maxlength="1000" value="${given.words}"></div>
${given.pages === null ? nothing : pagesField(given.pages)}
<button class="slim">Add opt-out</button></form>`;
}

export function confirmForm(viewer: PageViewer, { number, pages }: { number: number; pages: number }): Html {
  return html`<form class="form" method="post" action="/fleet/opt-outs/${number}/confirm">${formToken(viewer)}${pagesField(pages)}<button class="slim">Confirm no. ${number}</button></form>`;
}

function waitingRemark(optOuts: readonly OptOut[]): Html {
  const waiting = optOuts.filter(({ state }) => state === "waiting").length;
  if (waiting === 0) return nothing;
  return html`<p class="warn" role="status">${countText(waiting)} ${waiting === 1 ? "waits" : "wait"} for proof or for an operator: many came in one day, many hosts or pages would go, or an operator lifted the like before.</p>`;
}

function table(optOuts: readonly OptOut[], viewer: PageViewer, mayChange: boolean): Html {
  return html`<div class="scroll"><table>
<thead><tr><th scope="col" class="number">No.</th><th scope="col">What</th><th scope="col">State</th><th scope="col" class="number">Hosts</th><th scope="col" class="number">URLs</th><th scope="col" class="number">Pages</th><th scope="col">From</th>${mayChange ? html`<th scope="col"><span class="hidden">Change</span></th>` : nothing}</tr></thead>
<tbody>${optOuts.map((one) => row(one, viewer, mayChange))}</tbody></table></div>`;
}

function row(one: OptOut, viewer: PageViewer, mayChange: boolean): Html {
  const said = [one.replyTo, one.words, one.endingWords].filter((text) => text !== null && text !== "");
  return html`<tr><td class="number">${one.optOutId}</td><th scope="row">${one.scope === "prefix" || one.scope === "host" ? one.target : askAbout(one.target)}<span class="small">${scopeWords[one.scope]}${one.erasedAt === null ? nothing : ", erased"}</span>${howToConfirm(one)}</th>
<td class="why">${stateWords(one)}<span class="small">since ${instant(one.createdAt)}<br>until ${one.endedAt === null ? dateOr(one.lapsesAt, "it is lifted") : instant(one.endedAt)}</span></td>
<td class="number">${countText(one.hosts)}</td><td class="number">${countText(one.urls)}</td><td class="number">${countText(one.pages)}</td><td class="break">${one.requester ?? one.source}${said.length === 0 ? nothing : html`<span class="small">${said.join(" · ")}</span>`}</td>${mayChange ? html`<td>${buttons(one, viewer)}</td>` : nothing}</tr>`;
}

function howToConfirm({ state, site, token }: OptOut): Html {
  if (site === null || (state !== "waiting" && state !== "unconfirmed")) return nothing;
  return html`<span class="small break">proved by ${confirmationName(site)} TXT "${confirmationText(token)}" or that text at ${proofFileOf(site)}</span>`;
}

function buttons({ optOutId, state }: OptOut, viewer: PageViewer): Html {
  if (state === "lifted" || state === "lapsed") return nothing;
  const path = `/fleet/opt-outs/${optOutId}`;
  return html`<div class="actions tight">${state === "confirmed" ? nothing : buttonForm(viewer, { path: `${path}/confirm`, label: `Confirm no. ${optOutId}` })}${buttonForm(viewer, { path: `${path}/lift`, label: `Lift no. ${optOutId}` })}</div>`;
}

function previewForm(): Html {
  return html`<section><h2>Add an opt-out</h2><form class="form" method="get" action="/fleet/opt-outs/preview">
<div><label for="target">Page, site or network</label><p class="small" id="target-hint">www.example.org (with everything below it), https://www.example.org/page (that page alone), https://www.example.org/part/* (with what is below it), https://www.example.org/* (that host alone), or 192.0.2.0/24. In force until it is lifted; its pages are deleted from the index.</p><input id="target" name="target" required maxlength="2048" aria-describedby="target-hint" autocomplete="off" spellcheck="false"></div>
<button class="slim">Show what it covers</button></form></section>`;
}

function eraseForm(viewer: PageViewer): Html {
  return html`<section><h2>Erase a page</h2><form class="form" method="post" action="/fleet/opt-outs/erase">${formToken(viewer)}
<div><label for="url">URL</label><p class="small" id="url-hint">What is kept of this one page goes: its text, links, visits and history, in exports and at crawlers, too. Its URL is opted out. This cannot be undone.</p><input id="url" name="url" required maxlength="2048" aria-describedby="url-hint" autocomplete="off" spellcheck="false"></div>
<div><label for="erase-words">Reason</label><input id="erase-words" name="words" maxlength="1000"></div>
<button class="slim">Erase page</button></form></section>`;
}

interface ComplaintsPage {
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
  return html`${titleRow("Complaints")}
<p class="lead">Reports about our requests, each with what we sent to that site in the 24 hours before, as recorded then.</p>
${fault === null ? nothing : html`<p class="fault" role="alert">${fault}</p>`}
<p class="small"><a href="${all ? "/fleet/complaints" : "/fleet/complaints?all=yes"}">${all ? "Open only" : "Include closed"}</a></p>
${complaints.length === 0 ? empty("No open complaints.", html`Reports by <a href="/about-crawler">the form</a> appear here.`) : complaints.map((one) => complaintSection(one, viewer, mayChange))}
${mayChange ? addComplaintForm(viewer) : nothing}`;
}

function complaintSection(one: Complaint, viewer: PageViewer, mayChange: boolean): Html {
  const { complaintId, target, reporter, words, requester, createdAt, closedAt, closingWords } = one;
  const partners = partnerLines(one);
  return html`<section class="complaint"><h2>No. ${complaintId}: ${askAbout(target)} <span class="small">${instant(createdAt)}, from ${reporter}${requester === null ? nothing : `, by the form from ${requester}`}</span></h2>
<blockquote class="break">${words}</blockquote>
<details><summary>Our requests: ${countText(one.deeds.requests)} in the 24 hours before</summary>
<p class="small">To forward as is:</p><pre>${deedsParagraph(one)}</pre>
${partners.length === 0 ? html`<p>No crawler of the fleet had sent it a request.</p>` : html`<p class="small">Hosted by partners (not part of the reply):</p><ul class="plain">${partners.map((line) => html`<li>${line}</li>`)}</ul>`}</details>
${closedAt === null ? (mayChange ? closeForm(complaintId, viewer) : nothing) : html`<p><strong>Closed</strong> ${instant(closedAt)}: ${closingWords}</p>`}</section>`;
}

function closeForm(complaintId: number, viewer: PageViewer): Html {
  return html`<form class="inline" method="post" action="/fleet/complaints/${complaintId}/close">${formToken(viewer)}<label for="close-${complaintId}">Outcome</label> <input id="close-${complaintId}" name="words" required maxlength="1000" size="30"> <button class="quiet slim">Close no. ${complaintId}</button></form>`;
}

function addComplaintForm(viewer: PageViewer): Html {
  return html`<section><h2>Record a complaint</h2><form class="form" method="post" action="/fleet/complaints">${formToken(viewer)}
<div><label for="target">Site, address or range</label><input id="target" name="target" required maxlength="253" autocomplete="off" spellcheck="false"></div>
<div><label for="from">Who complains, and where to reply</label><input id="from" name="from" required maxlength="200"></div>
<div><label for="text">Complaint</label><textarea id="text" name="text" required maxlength="5000" rows="4"></textarea></div>
<button class="slim">Record complaint</button></form></section>`;
}

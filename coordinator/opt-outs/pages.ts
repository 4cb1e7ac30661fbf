/** Opt-outs: sites and networks that the fleet leaves alone, who asked for it, and what can be done about each. */
import { mayDo } from "#core/actor";
import { buttonForm, column, dataTable, dateOr, empty, numberColumn, titleRow } from "../web/components.ts";
import { askAbout, countText, instant } from "../web/format.ts";
import { type Html, html, nothing } from "../web/html.ts";
import { formToken, type PageViewer } from "../web/page-frame.ts";
import { type Complaint, deedsParagraph, partnerLines } from "./complaints.ts";
import { confirmationName, confirmationText } from "./honour.ts";
import {
  hiddenDays,
  type OptOut,
  type OptOutPreview,
  previewWords,
  scopeWords,
  stateWords,
  unconfirmedDays,
} from "./opt-out.ts";
import type { OptOutScope } from "./opt-outs-api.ts";
import { proofFileOf } from "./proof-file.ts";

interface OptOutsPage {
  readonly optOuts: readonly OptOut[];
  /** Also what was lifted or has lapsed. */
  readonly all: boolean;
}

export function optOutsBody({ optOuts, all }: OptOutsPage, viewer: PageViewer): Html {
  const form = html`<a href="/about-crawler#opt-out">form</a>`;
  return html`${titleRow("Opt-outs")}
<p class="lead">Pages, parts of sites, sites and networks that no crawler sends requests to. A request by the ${form} is
honoured at once: its pages are hidden, after ${hiddenDays} days deleted, and it lapses after ${unconfirmedDays} unless the
site proves it by DNS or a file, or an operator confirms it; then its pages are deleted at once. Lifting it in the first
${hiddenDays} days shows them again, and the form is not believed for it a second time.</p>
${waitingRemark(optOuts)}
${allOrFew("/fleet/opt-outs", all, ["In force only", "Include lifted and lapsed"])}
${
  optOuts.length === 0
    ? empty(
        "No site or network has opted out.",
        html`Webmasters opt out by the ${form}; operators add one below.`,
      )
    : table(optOuts, viewer)
}
${mayDo(viewer.actor, "fleet-write") ? html`${previewForm()}${eraseForm(viewer)}` : nothing}`;
}

const allOrFew = (path: string, all: boolean, [few, more]: readonly [few: string, more: string]): Html =>
  html`<p class="small"><a href="${all ? path : `${path}?all=yes`}">${all ? few : more}</a></p>`;

/** A form once more, with what is wrong with what was typed. */
export function optOutsAgain(words: string, form: Html): Html {
  return html`${titleRow("Opt-outs")}<p class="fault" role="alert">${words}</p>${form}
<p><a href="/fleet/opt-outs">All opt-outs</a></p>`;
}

type PreviewPage = OptOutPreview & {
  readonly target: string;
  readonly scope: OptOutScope;
  /** As it was asked. */
  readonly text: string;
};

export function previewBody(preview: PreviewPage, viewer: PageViewer): Html {
  const { target, scope, wide, pages, text, known } = preview;
  const already = known && ` It has opted out already (no. ${known.optOutId}, ${stateWords(known)}).`;
  const given = { target: text, scope, words: "", pages: wide === null ? null : pages };
  return html`<p class="page-path"><a href="/fleet/opt-outs">Opt-outs</a></p>${titleRow("Opt-out preview")}
<p class="lead">The ${scopeWords[scope]} ${target}: ${previewWords(preview)}.${already ?? nothing}</p>
${wide === null ? nothing : html`<p class="warn" role="status">${wide}.</p>`}
${mayDo(viewer.actor, "fleet-write") ? addOptOutForm(viewer, given) : nothing}`;
}

const pagesField = (pages: number): Html =>
  html`<div><label for="removePages">To confirm, type how many pages go: <strong>${String(pages)}</strong></label>
<input id="removePages" name="removePages" required maxlength="10" inputmode="numeric" autocomplete="off"
spellcheck="false"></div>`;

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
  return html`<form class="form" method="post" action="/fleet/opt-outs">${formToken(viewer)}
<input type="hidden" name="target" value="${given.target}"><input type="hidden" name="scope" value="${given.scope}">
${textField("Reason", "words", html` maxlength="1000" value="${given.words}"`)}
${given.pages === null ? nothing : pagesField(given.pages)}
<button class="slim">Add opt-out</button></form>`;
}

export function confirmForm(viewer: PageViewer, { number, pages }: { number: number; pages: number }): Html {
  return html`<form class="form" method="post" action="/fleet/opt-outs/${number}/confirm">${formToken(viewer)}
${pagesField(pages)}<button class="slim">Confirm no. ${number}</button></form>`;
}

function waitingRemark(optOuts: readonly OptOut[]): Html {
  const waiting = optOuts.filter(({ state }) => state === "waiting").length;
  if (waiting === 0) return nothing;
  return html`<p class="warn" role="status">${countText(waiting)} ${waiting === 1 ? "waits" : "wait"} for proof or for an
operator: many came in one day, many hosts or pages would go, or an operator lifted the like before.</p>`;
}

function table(optOuts: readonly OptOut[], viewer: PageViewer): Html {
  const columns = [
    column<OptOut>("What", whatOptedOut),
    numberColumn<OptOut>("No.", ({ optOutId }) => String(optOutId)),
    column<OptOut>("State", stateAndTimes),
    numberColumn<OptOut>("Hosts", ({ hosts }) => countText(hosts)),
    numberColumn<OptOut>("URLs", ({ urls }) => countText(urls)),
    numberColumn<OptOut>("Pages", ({ pages }) => countText(pages)),
    column<OptOut>("From", whoAsked),
    ...(mayDo(viewer.actor, "fleet-write") ? [column<OptOut>("Change", (one) => buttons(one, viewer))] : []),
  ];
  return dataTable("Opt-outs", columns, optOuts);
}

function whatOptedOut(one: OptOut): Html {
  const { scope, target, erasedAt } = one;
  const name = scope === "prefix" || scope === "host" ? html`${target}` : askAbout(target);
  const kind = `${scopeWords[scope]}${erasedAt === null ? "" : ", erased"}`;
  return html`${name}<span class="small">${kind}</span>${howToConfirm(one)}`;
}

function stateAndTimes(one: OptOut): Html {
  const until = one.endedAt === null ? dateOr(one.lapsesAt, "it is lifted") : dateOr(one.endedAt, "");
  const since = dateOr(one.createdAt, "");
  return html`${stateWords(one)}<span class="small">since ${since}<br>until ${until}</span>`;
}

function whoAsked({ requester, source, replyTo, words, endingWords }: OptOut): Html {
  const said = [replyTo, words, endingWords].filter((text) => text !== null && text !== "").join(" · ");
  return html`<span class="break">${requester ?? source}</span>${
    said === "" ? nothing : html`<span class="small break">${said}</span>`
  }`;
}

function howToConfirm({ state, site, token }: OptOut): Html {
  if (site === null || (state !== "waiting" && state !== "unconfirmed")) return nothing;
  const record = `${confirmationName(site)} TXT "${confirmationText(token)}"`;
  return html`<span class="small break">proved by ${record} or that text at ${proofFileOf(site)}</span>`;
}

function buttons({ optOutId, state }: OptOut, viewer: PageViewer): Html {
  if (state === "lifted" || state === "lapsed") return nothing;
  const to = (deed: "confirm" | "lift", label: string) =>
    buttonForm(viewer, { path: `/fleet/opt-outs/${optOutId}/${deed}`, label: `${label} no. ${optOutId}` });
  const confirm = state === "confirmed" ? nothing : to("confirm", "Confirm");
  return html`<div class="actions tight">${confirm}${to("lift", "Lift")}</div>`;
}

/** A field of a form, whose name its id is. */
function textField(label: Html | string, name: string, attributes: Html, hint: string | null = null): Html {
  const described = hint === null ? nothing : html` aria-describedby="${name}-hint"`;
  return html`<div><label for="${name}">${label}</label>${
    hint === null ? nothing : html`<p class="small" id="${name}-hint">${hint}</p>`
  }<input id="${name}" name="${name}"${attributes}${described}></div>`;
}

const unspelt = html` required autocomplete="off" spellcheck="false"`;

function previewForm(): Html {
  const hint =
    "www.example.org (with everything below it), https://www.example.org/page (that page alone), " +
    "https://www.example.org/part/* (with what is below it), https://www.example.org/* (that host " +
    "alone), or 192.0.2.0/24. In force until it is lifted; its pages are deleted from the index.";
  return html`<section><h2>Add an opt-out</h2><form class="form" method="get" action="/fleet/opt-outs/preview">
${textField("Page, site or network", "target", html`${unspelt} maxlength="2048"`, hint)}
<button class="slim">Show what it covers</button></form></section>`;
}

function eraseForm(viewer: PageViewer): Html {
  const hint =
    "What is kept of this one page goes: its text, links, visits and history, in exports and at crawlers, too. Its URL is opted out. This cannot be undone.";
  return html`<section><h2>Erase a page</h2><form class="form" method="post" action="/fleet/opt-outs/erase">
${formToken(viewer)}${textField("URL", "url", html`${unspelt} maxlength="2048"`, hint)}
${textField("Reason", "words", html` maxlength="1000"`)}
<button class="slim">Erase page</button></form></section>`;
}

interface ComplaintsPage {
  readonly complaints: readonly Complaint[];
  /** Also those that are closed. */
  readonly all: boolean;
}

export function complaintsBody({ complaints, all }: ComplaintsPage, viewer: PageViewer): Html {
  const mayChange = mayDo(viewer.actor, "fleet-write");
  return html`${titleRow("Complaints")}
<p class="lead">Reports about our requests, each with what we sent to that site in the 24 hours before, as recorded then.</p>
${allOrFew("/fleet/complaints", all, ["Open only", "Include closed"])}
${
  complaints.length === 0
    ? empty("No open complaints.", html`Reports by <a href="/about-crawler">the form</a> appear here.`)
    : complaints.map((one) => complaintSection(one, viewer, mayChange))
}
${mayChange ? addComplaintForm(viewer) : nothing}`;
}

function complaintSection(one: Complaint, viewer: PageViewer, mayChange: boolean): Html {
  const { complaintId, target, reporter, words, requester, createdAt, closedAt, closingWords } = one;
  const partners = partnerLines(one);
  const from = requester === null ? "" : `, by the form from ${requester}`;
  const hosts = html`<p class="small">Hosted by partners (not part of the reply):</p>
<ul class="plain">${partners.map((line) => html`<li>${line}</li>`)}</ul>`;
  const closed =
    closedAt && html`<p><strong>Closed</strong> ${instant(closedAt.toISOString())}: ${closingWords}</p>`;
  return html`<section class="complaint"><h2>No. ${complaintId}: ${askAbout(target)}
<span class="small">${instant(createdAt.toISOString())}, from ${reporter}${from}</span></h2>
<blockquote class="break">${words}</blockquote>
<details><summary>Our requests: ${countText(one.deeds.requests)} in the 24 hours before</summary>
<p class="small">To forward as is:</p><pre>${deedsParagraph(one)}</pre>
${partners.length === 0 ? html`<p>No crawler of the fleet had sent it a request.</p>` : hosts}</details>
${closed ?? (mayChange ? closeForm(complaintId, viewer) : nothing)}</section>`;
}

function closeForm(complaintId: number, viewer: PageViewer): Html {
  const id = `close-${complaintId}`;
  return html`<form class="inline" method="post" action="/fleet/complaints/${complaintId}/close">${formToken(viewer)}
<label for="${id}">Outcome</label> <input id="${id}" name="words" required maxlength="1000" size="30">
<button class="quiet slim">Close no. ${complaintId}</button></form>`;
}

function addComplaintForm(viewer: PageViewer): Html {
  return html`<section><h2>Record a complaint</h2><form class="form" method="post" action="/fleet/complaints">
${formToken(viewer)}${textField("Site, address or range", "target", html`${unspelt} maxlength="253"`)}
${textField("Who complains, and where to reply", "from", html` required maxlength="200"`)}
<div><label for="text">Complaint</label>
<textarea id="text" name="text" required maxlength="5000" rows="4"></textarea></div>
<button class="slim">Record complaint</button></form></section>`;
}

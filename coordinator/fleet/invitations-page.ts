/** Invitations: the form that makes one, the page that shows it this once, and what became of those before. */

import { mayDo } from "#core/actor";
import {
  firstReleaseWords,
  type IssuedInvitation,
  invitationHours,
  pinnedKeyWords,
} from "../access/invitations.ts";
import type { InvitationRecord } from "../crawlers/identity.ts";
import { pageScript } from "../web/assets.ts";
import { buttonForm, crawlerPath, empty, titleRow } from "../web/components.ts";
import { countText, crawlerLink, instant } from "../web/format.ts";
import { type Html, html, nothing } from "../web/html.ts";
import { formToken, type PageViewer } from "../web/page-frame.ts";
import type { InvitationProgress } from "./invitation-api.ts";

export function invitationsBody(invitations: readonly InvitationRecord[], viewer: PageViewer): Html {
  const add = mayDo(viewer.actor, "fleet-write")
    ? html`<a class="button slim" href="/fleet/invite">Add a partner</a>`
    : nothing;
  return html`${titleRow("Invitations", add)}
${
  invitations.length === 0
    ? empty(
        "No invitations yet.",
        html`<a href="/fleet/invite">Add a partner</a>: its crawler joins with one command.`,
      )
    : invitationTable(invitations, viewer)
}`;
}

const stateWords: Readonly<Record<InvitationRecord["state"], string>> = {
  open: "open",
  joining: "used; the crawler has not confirmed its key yet",
  joined: "joined",
  expired: "expired",
  revoked: "withdrawn",
};

export function invitationTable(invitations: readonly InvitationRecord[], viewer: PageViewer): Html {
  const mayWithdraw = mayDo(viewer.actor, "fleet-write");
  return html`<div class="scroll"><table>
<thead><tr><th scope="col" class="number">No.</th><th scope="col">Crawler</th><th scope="col">State</th><th scope="col">Created</th><th scope="col">Valid until</th><th scope="col" class="number">Pages per day</th><th scope="col">For</th>${mayWithdraw ? html`<th scope="col"><span class="hidden">Withdraw</span></th>` : nothing}</tr></thead>
<tbody>${invitations.map(
    (
      one,
    ) => html`<tr><td class="number"><a href="/fleet/invitations/${one.invitationId}">${one.invitationId}</a></td><th scope="row">${one.redeemedAt === null && !one.renews ? one.name : crawlerLink(one.name)}</th><td>${stateWords[one.state]}</td>
<td>${instant(one.createdAt)}<span class="small">by ${one.createdBy}</span></td><td>${instant(one.expiresAt)}</td>
<td class="number">${one.pagesPerDay === null ? "partner's limit" : countText(one.pagesPerDay)}</td>
<td>${one.scopes.includes("crawl") ? "crawling" : "measuring only"}${one.renews ? ", reissued" : nothing}</td>${mayWithdraw ? html`<td>${withdraw(one, viewer)}</td>` : nothing}</tr>`,
  )}</tbody></table></div>`;
}

function withdraw({ invitationId, state }: InvitationRecord, viewer: PageViewer): Html {
  if (state !== "open" && state !== "joining") return nothing;
  return buttonForm(viewer, {
    path: `/fleet/invitations/${invitationId}/revoke`,
    label: `Withdraw no. ${invitationId}`,
  });
}

export interface InviteValues {
  readonly name: string;
  readonly renews: boolean;
  readonly pagesPerDay: string;
  readonly gigabytesPerDay: string;
  readonly expiresHours: string;
  readonly probeOnly: boolean;
}

export const freshInvite: InviteValues = {
  name: "",
  renews: false,
  pagesPerDay: "",
  gigabytesPerDay: "",
  expiresHours: String(invitationHours.usual),
  probeOnly: false,
};

export function inviteBody(values: InviteValues, viewer: PageViewer, fault: string | null = null): Html {
  const { least, most } = invitationHours;
  return html`<h1>${values.renews ? `Reissue the credentials of ${values.name}` : "Add a partner"}</h1>
<p class="lead">${
    values.renews
      ? "For a crawler whose folder was lost or copied, or whose access was revoked. It keeps its subnets; its old identity and keys end when it joins again."
      : "You get one command to send to your partner. It runs on any machine with Node.js and starts a crawler that only connects outwards and keeps to the limits that its host sets."
  }</p>
${fault === null ? nothing : html`<p class="fault" role="alert">${fault}</p>`}
<form class="form" method="post" action="/fleet/invite">${formToken(viewer)}
${
  values.renews
    ? html`<input type="hidden" name="name" value="${values.name}"><input type="hidden" name="renews" value="yes">`
    : html`<div><label for="name">Crawler name</label><p class="small" id="name-hint">Its permanent name in the fleet, such as <code>athens</code> or <code>uni-athens.2</code>: up to 63 lower-case letters, digits, dots, dashes, underscores.</p>
<input id="name" name="name" required maxlength="63" pattern="[a-z0-9][a-z0-9._\\-]*" value="${values.name}" aria-describedby="name-hint" autocomplete="off" spellcheck="false"></div>`
}
<div><label for="pagesPerDay">Maximum pages per day</label><p class="small" id="pages-hint">Empty: as many as the partner allows. You can change it later.</p>
<input class="number" id="pagesPerDay" name="pagesPerDay" inputmode="numeric" pattern="[0-9]*" maxlength="10" value="${values.pagesPerDay}" aria-describedby="pages-hint"></div>
<div><label for="gigabytesPerDay">Maximum gigabytes per day</label><p class="small" id="bytes-hint">Fetched over the wire; 1 GB is 1,000,000,000 bytes. Empty: as the partner allows.</p>
<input class="number" id="gigabytesPerDay" name="gigabytesPerDay" inputmode="decimal" pattern="[0-9]*[.]?[0-9]*" maxlength="10" value="${values.gigabytesPerDay}" aria-describedby="bytes-hint"></div>
<fieldset><legend>What it may do</legend>
<label class="choice"><input type="radio" name="scopes" value="crawl"${values.probeOnly ? nothing : html` checked`}> Measure distances and crawl</label>
<label class="choice"><input type="radio" name="scopes" value="probe"${values.probeOnly ? html` checked` : nothing}> Measure distances only: it is given no pages</label></fieldset>
<div><label for="expiresHours">Valid for (hours)</label><p class="small" id="hours-hint">From ${least} to ${most}; it works once.</p>
<input class="number" id="expiresHours" name="expiresHours" type="number" min="${least}" max="${most}" step="any" value="${values.expiresHours}" required aria-describedby="hours-hint"></div>
<div class="actions"><button>${values.renews ? "Reissue" : "Invite"}</button><a href="${values.renews ? crawlerPath(values.name) : "/fleet"}">Cancel</a></div>
</form>`;
}

export function invitedBody(issued: IssuedInvitation): Html {
  const { invitationId, name, renews, coordinatorUrl, certificatePin, expiresAt, token, commands } = issued;
  return html`<h1>${renews ? `New credentials for ${name}` : `${name} is invited`}</h1>
${pageScript("fleet.js")}
<p class="lead">Copy it now: the token is <strong>shown only once</strong>; just a hash of it is kept. It works once, until ${instant(expiresAt)}.</p>
<section><h2>Send this to the partner</h2>
<label class="hidden" for="letter">The letter with the command</label>
<textarea class="letter mono" id="letter" readonly rows="18" spellcheck="false">${letter(issued)}</textarea>
<p class="actions"><button class="quiet slim" type="button" data-copy="letter" hidden>Copy the letter</button> <a class="button quiet slim" href="${mailLink(issued)}">Open as an e-mail without the token</a></p></section>
<section><h2>The parts of the letter</h2>
<dl class="facts column">
<div><dt>Token</dt><dd><code class="break" id="token">${token}</code></dd></div>
<div><dt>The command, with only Node.js installed</dt><dd><code class="break">${commands.download}</code></dd></div>
<div><dt>The command, with nearcrawl installed</dt><dd><code class="break">${commands.installed}</code></dd></div>
<div><dt>Connects to</dt><dd>${coordinatorUrl} and to nothing else of ours</dd></div>
<div><dt>Accepts as certificate</dt><dd>${pinWords(certificatePin, coordinatorUrl)}</dd></div>
<div><dt>Takes releases signed by</dt><dd><code class="break">${pinnedKeyWords(issued)}</code></dd></div>
<div><dt>Runs first</dt><dd>${firstReleaseWords(issued)}</dd></div>
</dl></section>
<section><h2>What happens next</h2>
<p class="actions"><a class="button slim" href="/fleet/invitations/${invitationId}">Watch its progress</a></p><ol class="plain">
<li>The partner runs the command as an ordinary user in an empty folder, pastes the token, and starts the crawler.</li>
<li>It shows on <a href="${crawlerPath(name)}">its page</a> as connected, gets the subnet that it is in, and starts to measure.</li>
<li>Within minutes it gets the subnets that it is nearest to. Others fetch 15 % of its first 2,000 pages again to compare them.</li>
<li>If it does not appear: <a href="/fleet/invitations">the invitation</a> says whether the token was used. If interrupted, the command can be run again on the same folder for three days.</li>
</ol></section>`;
}

/** Each step, live: downloaded, checked, joined, running, first page. */
export function invitationStepsBody({
  invitationId,
  name,
  steps,
  waitsFor,
  isOver,
}: InvitationProgress): Html {
  const done = steps.filter(({ isDone }) => isDone).length;
  const head =
    waitsFor === null ? `${name} is crawling` : isOver ? `${name} did not join` : `${name} is joining`;
  return html`<p class="crumbs"><a href="/fleet/invitations">Invitations</a></p>
<h1>${head}</h1>
<p class="lead">Invitation ${invitationId}: ${done} of ${steps.length} steps${waitsFor === null || isOver ? "" : "; this page updates itself"}.</p>
<ol class="steps">${steps.map(
    ({ words, isDone, at }) =>
      html`<li class="${isDone ? "done" : "open"}"><span class="hidden">${isDone ? "Done: " : "Open: "}</span>${words}${at === null ? nothing : html` <span class="small">${instant(at)}</span>`}</li>`,
  )}</ol>
${waitsFor === null ? html`<p><a class="button slim" href="${crawlerPath(name)}">Its page</a></p>` : html`<p class="note" role="status">${waitsFor}</p>`}`;
}

function letter({ name, token, commands, expiresAt }: IssuedInvitation): string {
  return `Hello,

here is the invitation for the crawler "${name}". On its machine, as an
ordinary user with Node.js 20.19 or newer, in an empty folder, run:

${commands.download}

It asks for this token: paste it, press Enter, then Ctrl-D.

${token}

The token works once, until ${expiresAt.toISOString().slice(0, 16).replace("T", " ")} UTC; please keep it to
yourself. The crawler only connects outwards, does nothing but measure and
fetch public web pages, and keeps to the limits that you set in its
settings.toml. Its own page, on your machine alone, shows what it does.
`;
}

/** A mail goes through other hands: the token goes another way. */
function mailLink({ name, commands }: IssuedInvitation): string {
  const body = `In an empty folder, with Node.js 20.19 or newer:\n\n${commands.download}\n\nThe token that it asks for comes to you separately.\n`;
  return `mailto:?subject=${encodeURIComponent(`Your crawler ${name}`)}&body=${encodeURIComponent(body)}`;
}

function pinWords(pin: string | null, url: string): Html {
  if (pin !== null) return html`the key <code class="break">${pin}</code> and no other`;
  return html`${url.startsWith("ws:") ? "none: it is on this machine, so nothing is encrypted" : "any that a public CA vouches for"}`;
}

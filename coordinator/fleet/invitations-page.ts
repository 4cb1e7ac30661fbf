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
import { buttonForm, crawlerPath, empty, fact, small, tableOf, titleRow } from "../web/components.ts";
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
  const heads = [
    ...["No. .number", "Crawler", "State", "Created", "Valid until", "Pages per day .number", "For"],
    mayWithdraw && "(Withdraw)",
  ];
  return tableOf("Invitations", heads, invitations, (one) => [
    html`<a href="/fleet/invitations/${one.invitationId}">${one.invitationId}</a>`,
    one.redeemedAt === null && !one.renews ? one.name : crawlerLink(one.name),
    stateWords[one.state],
    html`${instant(one.createdAt)}${small(`by ${one.createdBy}`)}`,
    instant(one.expiresAt),
    one.pagesPerDay === null ? "partner's limit" : countText(one.pagesPerDay),
    html`${one.scopes.includes("crawl") ? "crawling" : "measuring only"}${one.renews && ", reissued"}`,
    withdraw(one, viewer),
  ]);
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
  const field = (name: string, label: string, hint: Html | string, input: Html) =>
    html`<div><label for="${name}">${label}</label><p class="small" id="${name}-hint">${hint}</p>
<input id="${name}" name="${name}" aria-describedby="${name}-hint" ${input}></div>`;
  const scope = (value: string, isChosen: boolean, words: string) =>
    html`<label class="choice"><input type="radio" name="scopes" value="${value}"${isChosen && html` checked`}> ${words}</label>`;
  return html`<h1>${values.renews ? `Reissue the credentials of ${values.name}` : "Add a partner"}</h1>
<p class="lead">${
    values.renews
      ? html`For a crawler whose folder was lost or copied, or whose access was revoked. It keeps its subnets; its old identity and keys end
when it joins again.`
      : html`You get one command to send to your partner. It runs on any machine with Node.js and starts a crawler that only connects
outwards and keeps to the limits that its host sets.`
  }</p>
${fault !== null && html`<p class="fault" role="alert">${fault}</p>`}
<form class="form" method="post" action="/fleet/invite">${formToken(viewer)}
${
  values.renews
    ? html`<input type="hidden" name="name" value="${values.name}"><input type="hidden" name="renews" value="yes">`
    : field(
        "name",
        "Crawler name",
        html`Its permanent name in the fleet, such as <code>athens</code> or <code>uni-athens.2</code>: up to 63 lower-case letters,
digits, dots, dashes, underscores.`,
        html`required maxlength="63" pattern="[a-z0-9][a-z0-9._\\-]*" value="${values.name}" autocomplete="off" spellcheck="false"`,
      )
}
${field(
  "pagesPerDay",
  "Maximum pages per day",
  "Empty: as many as the partner allows. You can change it later.",
  html`class="number" inputmode="numeric" pattern="[0-9]*" maxlength="10" value="${values.pagesPerDay}"`,
)}
${field(
  "gigabytesPerDay",
  "Maximum gigabytes per day",
  "Fetched over the wire; 1 GB is 1,000,000,000 bytes. Empty: as the partner allows.",
  html`class="number" inputmode="decimal" pattern="[0-9]*[.]?[0-9]*" maxlength="10" value="${values.gigabytesPerDay}"`,
)}
<fieldset><legend>What it may do</legend>
${scope("crawl", !values.probeOnly, "Measure distances and crawl")}
${scope("probe", values.probeOnly, "Measure distances only: it is given no pages")}</fieldset>
${field(
  "expiresHours",
  "Valid for (hours)",
  `From ${least} to ${most}; it works once.`,
  html`class="number" type="number" min="${least}" max="${most}" step="any" value="${values.expiresHours}" required`,
)}
<div class="actions"><button>${values.renews ? "Reissue" : "Invite"}</button><a
href="${values.renews ? crawlerPath(values.name) : "/fleet"}">Cancel</a></div>
</form>`;
}

export function invitedBody(issued: IssuedInvitation): Html {
  const { invitationId, name, renews, coordinatorUrl, certificatePin, expiresAt, token, commands } = issued;
  return html`<h1>${renews ? `New credentials for ${name}` : `${name} is invited`}</h1>
${pageScript("fleet.js")}
<p class="lead">Copy it now: the token is <strong>shown only once</strong>; just a hash of it is kept. It works once, until
${instant(expiresAt)}.</p>
<section><h2>Send this to the partner</h2>
<label class="hidden" for="letter">The letter with the command</label>
<textarea class="letter mono" id="letter" readonly rows="18" spellcheck="false">${letter(issued)}</textarea>
<p class="actions"><button class="quiet slim" type="button" data-copy="letter" hidden>Copy the letter</button>
<a class="button quiet slim" href="${mailLink(issued)}">Open as an e-mail without the token</a></p></section>
<section><h2>The parts of the letter</h2>
<dl class="facts column">
${fact("Token", html`<code class="break" id="token">${token}</code>`)}
${fact("The command, with only Node.js installed", html`<code class="break">${commands.download}</code>`)}
${fact("The command, with nearcrawl installed", html`<code class="break">${commands.installed}</code>`)}
${fact("Connects to", `${coordinatorUrl} and to nothing else of ours`)}
${fact("Accepts as certificate", pinWords(certificatePin, coordinatorUrl))}
${fact("Takes releases signed by", html`<code class="break">${pinnedKeyWords(issued)}</code>`)}
${fact("Runs first", firstReleaseWords(issued))}
</dl></section>
<section><h2>What happens next</h2>
<p class="actions"><a class="button slim" href="/fleet/invitations/${invitationId}">Watch its progress</a></p><ol class="plain">
<li>The partner runs the command as an ordinary user in an empty folder, pastes the token, and starts the crawler.</li>
<li>It shows on <a href="${crawlerPath(name)}">its page</a> as connected, gets the subnet that it is in, and starts to measure.</li>
<li>Within minutes it gets the subnets that it is nearest to. Others fetch 15 % of its first 2,000 pages again to compare them.</li>
<li>If it does not appear: <a href="/fleet/invitations">the invitation</a> says whether the token was used. If interrupted, the command
can be run again on the same folder for three days.</li>
</ol></section>`;
}

/** Each step, live: downloaded, checked, joined, running, first page. */
export function invitationStepsBody(progress: InvitationProgress): Html {
  const { invitationId, name, steps, waitsFor, isOver } = progress;
  const done = steps.filter(({ isDone }) => isDone).length;
  const head =
    waitsFor === null ? `${name} is crawling` : isOver ? `${name} did not join` : `${name} is joining`;
  return html`<p class="crumbs"><a href="/fleet/invitations">Invitations</a></p>
<h1>${head}</h1>
<p class="lead">Invitation ${invitationId}: ${done} of ${steps.length} steps${waitsFor === null || isOver ? "" : "; this page updates itself"}.</p>
<ol class="steps">${steps.map(
    ({ words, isDone, at }) =>
      html`<li class="${isDone ? "done" : "open"}"><span class="hidden">${isDone ? "Done: " : "Open: "}</span>${words}${
        at !== null && html` ${small(instant(at))}`
      }</li>`,
  )}</ol>
${
  waitsFor === null
    ? html`<p><a class="button slim" href="${crawlerPath(name)}">Its page</a></p>`
    : html`<p class="note" role="status">${waitsFor}</p>`
}`;
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

/** The page of coordinators: the parent, the children, what waits for each, and a form that invites a child. */
import { mayDo } from "#core/actor";
import { buttonForm, empty, fleetHead, onlyOperators } from "../web/components.ts";
import { countText, sentence } from "../web/format.ts";
import { type Html, html, nothing } from "../web/html.ts";
import { formToken, type PageViewer } from "../web/page-frame.ts";
import { linkWords, ownsWords, parentAwayWords, standingWords } from "./coordinator-words.ts";
import type { Coordinators, RelatedCoordinator } from "./exchange-ports.ts";
import { type InvitedChild, invitedSettings } from "./invite-child.ts";

export interface InviteForm {
  readonly name: string;
  readonly fault: string | null;
}

export const emptyInvite: InviteForm = { name: "", fault: null };

export function coordinatorsBody(
  { coordinators, now }: { readonly coordinators: Coordinators; readonly now: Date },
  form: InviteForm,
  viewer: PageViewer,
): Html {
  const { parent, children } = coordinators;
  const away = parentAwayWords(parent);
  const all = [
    ...(parent === null ? [] : [{ ...parent, isParent: true }]),
    ...children.map((one) => ({ ...one, isParent: false })),
  ];
  return html`${fleetHead("/coordinators", viewer, "Coordinators")}
<p class="lead">${standingWords(coordinators)}</p>
${away === null ? nothing : html`<p class="fault" role="alert">${sentence(away)}</p>`}
${all.length === 0 ? empty("This coordinator is alone.", "It crawls whatever it finds. Others can join below it, each with domains or address blocks of its own.") : relatedTable(all, { now, viewer })}
<section id="invite"><h2>A coordinator below this one</h2>${mayDo(viewer.actor, "fleet-write") && viewer.formToken !== null ? inviteForm(form, viewer) : onlyOperators(viewer.actor, "fleet-write", "Inviting and removing coordinators")}</section>`;
}

type Shown = RelatedCoordinator & { readonly isParent: boolean };

function relatedTable(all: readonly Shown[], at: { readonly now: Date; readonly viewer: PageViewer }): Html {
  return html`<div class="scroll"><table>
<thead><tr><th scope="col">Coordinator</th><th scope="col">Owns</th><th scope="col">State</th><th scope="col" class="number">URLs waiting</th><th scope="col" class="number">Sent</th><th scope="col" class="number">Received</th><th scope="col" class="number">Given up</th><th scope="col"><span class="hidden">Action</span></th></tr></thead>
<tbody>${all.map((one) => relatedRow(one, at))}</tbody></table></div>`;
}

function relatedRow(one: Shown, { now, viewer }: { readonly now: Date; readonly viewer: PageViewer }): Html {
  const owns = one.isParent ? "what is not ours" : ownsWords(one);
  return html`<tr><th scope="row">${one.name}<span class="small">${one.isParent ? " parent" : " child"}</span></th><td>${owns}</td><td>${sentence(linkWords(one, now))}</td>
<td class="number">${countText(one.waiting)}</td><td class="number">${countText(one.urlsSent)}</td><td class="number">${countText(one.urlsReceived)}</td><td class="number">${countText(one.urlsDropped)}</td>
<td>${one.isParent ? nothing : removeButton(one.name, viewer)}</td></tr>`;
}

function removeButton(name: string, viewer: PageViewer): Html {
  if (!mayDo(viewer.actor, "fleet-write") || viewer.formToken === null) return nothing;
  return buttonForm(viewer, {
    path: `/coordinators/${encodeURIComponent(name)}/remove`,
    label: `Remove ${name}`,
  });
}

function inviteForm({ name, fault }: InviteForm, viewer: PageViewer): Html {
  return html`<form class="form" method="post" action="/coordinators/invite#invite">${formToken(viewer)}
${fault === null ? nothing : html`<p class="fault" role="alert">${fault}</p>`}
<div><label for="child-name">Name</label><p class="small" id="child-name-hint">How this coordinator calls it: up to 63 lower-case letters, digits, dots, dashes, underscores.</p>
<input id="child-name" name="name" value="${name}" maxlength="63" required pattern="[a-z0-9][a-z0-9._\\-]*" autocomplete="off" spellcheck="false" aria-describedby="child-name-hint"></div>
<button>Invite</button></form>`;
}

/** Shown this once. */
export function invitedChildBody(invited: InvitedChild): Html {
  return html`<h1>${invited.name} may join</h1>
<p class="lead">Copy it now: the key is <strong>shown this once</strong>. These lines go into the settings of the coordinator that is to join (<code>nearcrawl coordinator --config FILE</code>); <code>owns</code> names its domains or its address blocks.</p>
<pre><code>${invitedSettings(invited)}</code></pre>
<p><a href="/coordinators">Back to the coordinators</a></p>`;
}

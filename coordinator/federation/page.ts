/** The page of coordinators: the parent, the children, what waits for each, and a form that invites a child. */

import { mayDo } from "#core/actor";
import { howMany, instantWords, whenWords } from "#core/format";
import type { ToldOf } from "../web/api-operation.ts";
import {
  actionColumn,
  column,
  confirmForm,
  dataTable,
  empty,
  numberColumn,
  onlyOperators,
  titleRow,
} from "../web/components.ts";
import { countText, sentence } from "../web/format.ts";
import { type Html, html, nothing } from "../web/html.ts";
import { formToken, type PageViewer } from "../web/page-frame.ts";
import type { invitedCoordinator } from "./federation-api.ts";
import type { Coordinators, RelatedCoordinator } from "./related-store.ts";

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
  return html`${titleRow("Coordinators")}
<p class="lead">${standingWords(coordinators)}</p>
${away === null ? nothing : html`<p class="fault" role="alert">${sentence(away)}</p>`}
${
  all.length === 0
    ? empty(
        "No related coordinators.",
        "This one crawls whatever it finds. Invite a coordinator below it to hand over domains.",
      )
    : relatedTable(all, { now, viewer })
}
<section id="invite"><h2>Invite a child coordinator</h2>
${
  mayDo(viewer.actor, "fleet-write") && viewer.formToken !== null
    ? inviteForm(form, viewer)
    : onlyOperators(viewer.actor, "fleet-write", "Inviting and removing coordinators")
}</section>`;
}

type Shown = RelatedCoordinator & { readonly isParent: boolean };

const relatedTable = (
  all: readonly Shown[],
  { now, viewer }: { readonly now: Date; readonly viewer: PageViewer },
) =>
  dataTable<Shown>(
    "Related coordinators",
    [
      column(
        "Coordinator",
        ({ name, isParent }) => html`${name}<span class="small">${isParent ? " parent" : " child"}</span>`,
      ),
      column("Owns", (one) => (one.isParent ? "everything else" : ownsWords(one))),
      column("State", (one) => sentence(linkWords(one, now))),
      numberColumn("URLs waiting", ({ waiting }) => countText(waiting)),
      numberColumn("Sent", ({ urlsSent }) => countText(urlsSent)),
      numberColumn("Received", ({ urlsReceived }) => countText(urlsReceived)),
      numberColumn("Given up", ({ urlsDropped }) => countText(urlsDropped)),
      actionColumn("Action", ({ isParent, name }) => (isParent ? nothing : removeButton(name, viewer))),
    ],
    all,
  );

function removeButton(name: string, viewer: PageViewer): Html {
  if (!mayDo(viewer.actor, "fleet-write") || viewer.formToken === null) return nothing;
  return html`<details><summary>Remove</summary>
<p class="small">Its key stops working, and URLs that wait for it are rerouted. Invite it again to take it back.</p>${confirmForm(
    viewer,
    {
      path: `/coordinators/${encodeURIComponent(name)}/remove`,
      label: `Remove ${name}`,
      typed: name,
      id: `remove-${name}`,
    },
  )}</details>`;
}

function inviteForm({ name, fault }: InviteForm, viewer: PageViewer): Html {
  return html`<form class="form" method="post" action="/coordinators/invite#invite">${formToken(viewer)}
${fault === null ? nothing : html`<p class="fault" role="alert">${fault}</p>`}
<div><label for="child-name">Name</label>
<p class="small" id="child-name-hint">Its name here: up to 63 lower-case letters, digits, dots, dashes, underscores.</p>
<input id="child-name" name="name" value="${name}" maxlength="63" required
  pattern="[a-z0-9][a-z0-9._\\-]*" autocomplete="off" spellcheck="false" aria-describedby="child-name-hint"></div>
<button>Invite</button></form>`;
}

/** Shown this once. */
export function invitedChildBody(invited: InvitedChild): Html {
  return html`<h1>${invited.name} may join</h1>
<p class="lead">Copy the key now: it is <strong>shown only once</strong>. Put these lines into the settings of the joining coordinator
(<code>nearcrawl coordinator --config FILE</code>); <code>owns</code> names its domains.</p>
<pre><code>${invitedSettings(invited)}</code></pre>
<p><a href="/coordinators">Back to the coordinators</a></p>`;
}

function linkWords(related: RelatedCoordinator, now: Date): string {
  const { state, failure, failingSince, contactedAt } = related;
  const since = failingSince === null ? "" : `, since ${instantWords(failingSince)}`;
  if (failure !== null) return `${failure}${since}`;
  if (contactedAt === null) return "never connected";
  const spoke = `last seen ${whenWords(contactedAt, now)}`;
  return state === "silent" ? `not responding, ${spoke}` : `connected, ${spoke}`;
}

function ownsWords({ owns }: RelatedCoordinator): string {
  if (owns.length === 0) return "nothing yet";
  const shown = owns.slice(0, 8).join(", ");
  return owns.length > 8 ? `${shown} and ${owns.length - 8} more` : shown;
}

/** Where this coordinator stands, in one or two sentences. */
function standingWords({ parent, children, above, settling }: Coordinators): string {
  const up =
    parent === null
      ? "Top-level coordinator. It owns whatever no child owns."
      : `Its parent is ${parent.name}; it owns ${ownsWords(parent)}, and sends the rest up.`;
  const higher = above.length === 0 ? "" : ` Above the parent: ${howMany(above.length, "coordinator")}.`;
  const down = children.length === 0 ? "" : ` Below it: ${howMany(children.length, "coordinator")}.`;
  const moving = settling ? " Ownership has changed: hosts are being handed over." : "";
  return `${up}${higher}${down}${moving}`;
}

/** What an away parent means for the crawl; null: it is not away. */
function parentAwayWords(parent: RelatedCoordinator | null): string | null {
  if (parent === null || parent.failure === null) return null;
  const since = parent.failingSince === null ? "" : ` since ${instantWords(parent.failingSince)}`;
  return (
    `The parent has accepted nothing${since} (${parent.failure}). This coordinator keeps crawling ` +
    `its own hosts. Waiting to be sent: ${howMany(parent.waiting, "URL")} of other coordinators.`
  );
}

/** What goes into the child's file, but for what it is to own. */
export type InvitedChild = ToldOf<typeof invitedCoordinator>;

/** The file's part as a person pastes it; `owns` is an example to change. */
function invitedSettings({ parent }: InvitedChild): string {
  return JSON.stringify({ parent: { ...parent, owns: [".gr"] } }, null, 2);
}

/** A partner's sign-in link, shown this once. */

import { crawlerPath } from "../web/components.ts";
import { instant } from "../web/format.ts";
import { type Html, html } from "../web/html.ts";
import type { IssuedLink } from "./sign-in.ts";

export function partnerLinkBody({ url, name: person, expiresAt }: IssuedLink, crawler: string): Html {
  return html`<h1>A link for ${person}</h1>
<script src="/assets/fleet.js" type="module"></script>
<p class="lead">Send it to ${person} alone: whoever opens it first is signed in as the partner of <a href="${crawlerPath(crawler)}">${crawler}</a>. It is <strong>shown this once</strong>, works once, and until ${instant(expiresAt.toISOString())}.</p>
<label class="hidden" for="link">The link</label>
<textarea class="letter mono" id="link" readonly rows="2" spellcheck="false">${url}</textarea>
<p class="actions"><button class="quiet slim" type="button" data-copy="link" hidden>Copy the link</button></p>
<p>${person} sees this crawler and its past, may drain it and take it back, and sees nothing of other partners'.</p>`;
}

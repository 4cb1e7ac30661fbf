/** The way in: what to type to get a link, the one button that uses it up, and a link that is over. */
import type { SignInLink } from "#core/access-types";
import { instant } from "../web/format.ts";
import { type Html, html, nothing } from "../web/html.ts";

/** `signedInAs` null: nobody is, with this browser. `isOut`: somebody was until now. */
export function signInBody(signedInAs: string | null, isOut: boolean): Html {
  return html`<div class="sign-in"><h1>${isOut ? "You are signed out" : "Sign in"}</h1>
${signedInAs === null ? nothing : html`<p class="lead">You are signed in as <strong>${signedInAs}</strong>: <a href="/account">your account</a>.</p>`}
<p>There are no passwords here. A link signs you in, once, and it is made on the coordinator's machine:</p>
<pre><code>nearcrawl sign-in</code></pre>
<p>Type that there, or ask an operator for a link. It is good for 15 minutes, and the session that it begins for 7 days, or until it was not used for 8 hours.</p>
<section><h2>For others</h2>
<p>Operators get links for others the same way, or on <a href="/access">the page of access</a>:</p>
<pre><code>nearcrawl sign-in --role staff --name anna
nearcrawl sign-in --role partner --name ben --crawler athens</code></pre>
<p class="small">Staff look at everything and change nothing. A partner sees the crawlers that it hosts. Programs have tokens: <code>nearcrawl operator-token create</code>.</p></section></div>`;
}

/** Looking at it uses nothing up: mail programs and browsers look ahead. */
export function confirmBody(link: SignInLink, secret: string, signedInAs: string | null): Html {
  return html`<div class="sign-in"><h1>Sign in as ${link.name}</h1>
<p class="lead">${roleWords(link)} ${link.issuedBy} made this link; it is good once, until ${instant(link.expiresAt.toISOString())}.</p>
<form method="post" action="/sign-in" class="form">
<input type="hidden" name="link" value="${secret}">
<button autofocus>Sign in</button>
</form>
${signedInAs === null ? nothing : html`<p class="small">You are signed in as ${signedInAs} with this browser; that session ends.</p>`}
<p class="small">Not expecting this? Close the page; nothing has happened.</p></div>`;
}

function roleWords({ role, crawlers }: SignInLink): string {
  if (role === "operator") return "As an operator: sees and changes everything.";
  if (role === "staff") return "As staff: sees everything and changes nothing.";
  return `As a partner: sees and steers ${crawlers.join(", ")}.`;
}

/** `state` null: no such link is kept. */
export function linkOverBody(state: SignInLink["state"] | null): Html {
  return html`<div class="sign-in"><h1>${state === "used" ? "This link was used already" : "This link opens nothing"}</h1>
<p>${state === null ? overWords.unknown : overWords[state]}</p>
<p>Another one is made on the coordinator's machine:</p>
<pre><code>nearcrawl sign-in</code></pre>
<p><a href="/sign-in">More about signing in</a></p></div>`;
}

const overWords = {
  used: "A link signs in once. If it was not you, end that session: sign in, and look at your account.",
  expired: "Its time is over.",
  revoked: "It was withdrawn.",
  open: "It was used up just now.",
  unknown: "It was cut off on its way, or is long over.",
} as const;

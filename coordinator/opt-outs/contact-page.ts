/** For webmasters who find our requests in their logs: who we are, what we do, and how to stop it. */

import { type Html, html, nothing } from "../web/html.ts";
import { type ContactForms, optOutForm, reportForm } from "./contact-forms.ts";

export interface ContactSettings {
  readonly userAgent: string;
  /** Whom to write to, as an e-mail address or a URL; null when the operator states none. */
  readonly contact: string | null;
  /** Fewest seconds between two requests to one host. */
  readonly politenessSeconds: number | null;
  /** Requests are signed by crawlers that can. */
  readonly signRequests?: boolean;
}

/** `forms` null: this coordinator takes none. */
export function contactBody(settings: ContactSettings, forms: ContactForms | null): Html {
  return html`<h1>About this crawler</h1>
<p class="lead">You are here because a request in your server's log named this page. It came from Nearcrawl, a web crawler that builds a search index. Partner organisations host many small crawlers, and each page is fetched by the one that is nearest to its server in the network: that takes the least time and the least of everybody's bandwidth.</p>
<ul class="ways">
<li><a href="#robots">Say it in robots.txt</a></li>
${forms === null ? nothing : html`<li><a href="#opt-out">Take a site out</a></li><li><a href="#report">Report a problem</a></li>`}
<li><a href="#recognise">Is it really us?</a></li>
</ul>
${robotsSection(productToken(settings.userAgent))}
${forms === null ? nothing : optOutForm(forms)}
${recogniseSection(settings, forms !== null)}
${honourSection(settings.politenessSeconds)}
${forms === null ? nothing : reportForm(forms)}
${writeSection(settings.contact)}`;
}

function robotsSection(product: string): Html {
  const wish = (title: string, lines: string) =>
    html`<div><h3>${title}</h3><pre><code>User-agent: ${product}
${lines}</code></pre></div>`;
  return html`<section id="robots"><h2>Say it in robots.txt</h2>
<p>It is read before anything else and again at least once a day. We go by the group for <code>${product}</code>, or by <code>*</code> where there is none (RFC 9309).</p>
<div class="wishes">
${wish("Ask for nothing", "Disallow: /")}
${wish("Leave a part alone", "Disallow: /private/\nDisallow: /*?print=")}
${wish("Go slower", "Crawl-delay: 30")}
</div></section>`;
}

function recogniseSection({ userAgent, signRequests }: ContactSettings, hasLists: boolean): Html {
  return html`<section id="recognise"><h2>Is it really us?</h2>
<p>Every request carries this User-Agent; a partner may add its own contact behind it:</p>
<pre><code>${userAgent}</code></pre>
${
  hasLists
    ? html`<p>Anybody can write that. What shows that a request is ours is its address: <a href="/about-crawler/addresses.json">addresses of the fleet</a> (JSON, in the form that search engines use). Some partners do not list theirs.</p>`
    : nothing
}
${
  signRequests
    ? html`<p>Requests are signed (Web Bot Auth, RFC 9421), and <a href="/.well-known/http-message-signatures-directory">our public keys</a> verify them.</p>`
    : nothing
}
<p>Of one network, one crawler is in charge at a time, so that one pace holds for your server.</p></section>`;
}

function honourSection(politenessSeconds: number | null): Html {
  const pace = politenessSeconds === null ? "" : `, ${politenessSeconds} s or more apart`;
  return html`<section id="honour"><h2>What we keep to</h2>
<dl class="manners">
<div><dt>robots.txt</dt><dd>When your server fails to deliver it, nothing is fetched at all.</dd></div>
<div><dt>Pace</dt><dd>One request at a time${pace}; longer when your <code>Crawl-delay</code> says so or your server takes its time.</dd></div>
<div><dt>429, 503</dt><dd><code>Retry-After</code> is waited for, seconds or date; without it a minute, doubling up to a day.</dd></div>
<div><dt>Pages</dt><dd><code>noindex</code>, <code>nofollow</code>, <code>nosnippet</code>, <code>max-snippet</code> and <code>unavailable_after</code>, in a <code>meta</code> element or as <code>X-Robots-Tag</code>, for everybody or for us by name.</dd></div>
<div><dt>Links</dt><dd><code>rel="nofollow"</code> is not followed.</dd></div>
<div><dt>Return visits</dt><dd>We ask whether a page has changed before we fetch it again (<code>If-None-Match</code>, <code>If-Modified-Since</code>).</dd></div>
<div><dt>Measuring</dt><dd>Now and then a few crawlers measure how far away your server is, by a TCP connection or a <code>HEAD</code> request, once for your whole network.</dd></div>
<div><dt>What is kept</dt><dd>What an index needs (title, words, links), not your pages.</dd></div>
</dl></section>`;
}

function writeSection(contact: string | null): Html {
  if (contact === null) return nothing;
  const href = /^https?:\/\//.test(contact) ? contact : `mailto:${contact}`;
  return html`<section id="write"><h2>Write to us</h2><p><a href="${href}">${contact}</a>. Tell us your host name and a line of your log, and we find out who fetched what.</p></section>`;
}

/** `Nearcrawl` of `Nearcrawl/0.1 (+https://…)`: what robots.txt is matched by (RFC 9309 section 2.2.1). */
function productToken(userAgent: string): string {
  return /^[A-Za-z_-]+/.exec(userAgent)?.[0] ?? "Nearcrawl";
}

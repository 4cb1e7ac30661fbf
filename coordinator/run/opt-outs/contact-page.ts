/** The page for webmasters who find our requests in their logs: who we are, what we do, and how to stop it. */
import { productToken } from "#protocol/user-agent";
import { formHtml } from "../../ask/html-rendering.ts";
import type { AnyOperation } from "../../ask/operation.ts";
import { anonymousVisit } from "../../web/access.ts";
import { type Html, html, nothing } from "../../web/html.ts";
import { contactOperations } from "./contact-ask.ts";
import { hiddenDays, mostHostsUnconfirmed, mostPagesUnconfirmed, unconfirmedDays } from "./opt-out.ts";
import { type PublishedSettings, publishedPaths } from "./published.ts";

export function contactBody(settings: PublishedSettings): Html {
  return html`<h1>About this crawler</h1>
<p class="lead">You are here because a request in your server's log named this page. It came from Nearcrawl, a web crawler
that builds a search index. Partner organisations host many small crawlers, and each page is fetched by the crawler nearest
to its server in the network, which takes the least time and bandwidth.</p>
<ul class="ways">
<li><a href="#robots">Use robots.txt</a></li>
<li><a href="#opt-out">Opt a site out</a></li>
<li><a href="#report">Report a problem</a></li>
<li><a href="#recognise">Is it really us?</a></li>
</ul>
${robotsSection(productToken(settings.userAgent))}
${optOutForm()}
${recogniseSection(settings)}
${honourSection(settings.politenessSeconds)}
${reportForm()}
${writeSection(settings.contact)}`;
}

function robotsSection(product: string): Html {
  const wish = (title: string, lines: string) =>
    html`<div><h3>${title}</h3><pre><code>User-agent: ${product}
${lines}</code></pre></div>`;
  return html`<section id="robots"><h2>Use robots.txt</h2>
<p>We read it before anything else, and again at least once a day. We follow the group for <code>${product}</code>, or by
<code>*</code> where there is none (RFC 9309).</p>
<div class="wishes">
${wish("Block everything", "Disallow: /")}
${wish("Block a part", "Disallow: /private/\nDisallow: /*?print=")}
${wish("Slow down", "Crawl-delay: 30")}
${wish("Follow links, but keep out of search", "Content-Signal: search=no")}
</div></section>`;
}

function recogniseSection({ userAgent, signRequests }: PublishedSettings): Html {
  return html`<section id="recognise"><h2>Is it really us?</h2>
<p>Every request carries this User-Agent; a partner may append its own contact:</p>
<pre><code>${userAgent}</code></pre>
<p>Anybody can send that. The source address shows whether a request is ours:
<a href="${publishedPaths.addresses}">addresses of the fleet</a> (JSON, in the format that search engines use). Some partners
do not list theirs.</p>
${
  signRequests
    ? html`<p>Requests by https are signed (Web Bot Auth, RFC 9421), and <a href="${publishedPaths.keys}">our public
keys</a> verify them; <a href="${publishedPaths.card}">our card</a> tells programs what this page says. An unsigned request
may still be ours: a crawler that has just joined starts to sign a few minutes later.</p>`
    : nothing
}
<p>One crawler at a time is in charge of a network, so your server sees one pace.</p></section>`;
}

function honourSection(politenessSeconds: number | null): Html {
  const pace = politenessSeconds === null ? "" : `, ${politenessSeconds} s or more apart`;
  return html`<section id="honour"><h2>Our rules</h2>
<dl class="manners">
<div><dt>robots.txt</dt><dd>If your server fails to deliver it, we fetch nothing at all.</dd></div>
<div><dt>Pace</dt><dd>One request at a time${pace}; longer if your <code>Crawl-delay</code> says so or your server is slow.</dd></div>
<div><dt>429, 503</dt><dd>We wait for <code>Retry-After</code>, in seconds or as a date; without it a minute, doubling up to a day.</dd></div>
<div><dt>Pages</dt><dd><code>noindex</code>, <code>nofollow</code>, <code>nosnippet</code>, <code>max-snippet</code> and
<code>unavailable_after</code>, in a <code>meta</code> element or as <code>X-Robots-Tag</code>, for all crawlers or for ours
by name.</dd></div>
<div><dt>Uses</dt><dd>A page whose <code>Content-Signal</code>, <code>Content-Usage</code> or license denies search is not
indexed or shown. What you state about AI or text and data mining is kept with the page and passed on.</dd></div>
<div><dt>402</dt><dd>We do not pay, and do not request the page again for a month.</dd></div>
<div><dt>Links</dt><dd><code>rel="nofollow"</code> is not followed.</dd></div>
<div><dt>Return visits</dt><dd>We ask whether a page has changed before we fetch it again (<code>If-None-Match</code>,
<code>If-Modified-Since</code>), and use what you report as changed: <code>lastmod</code> in sitemaps and feeds.</dd></div>
<div><dt>Measuring</dt><dd>Occasionally a few crawlers measure how far away your server is, with a TCP connection or a
<code>HEAD</code> request, once for your whole network.</dd></div>
<div><dt>Storage</dt><dd>We keep what an index needs (title, words, links), not your pages.</dd></div>
</dl></section>`;
}

function writeSection(contact: string | null): Html {
  if (contact === null) return nothing;
  const href = /^https?:\/\//.test(contact) ? contact : `mailto:${contact}`;
  return html`<section id="write"><h2>Write to us</h2><p><a href="${href}">${contact}</a>. Send us your host name and a line
of your log, and we will find out who fetched what.</p></section>`;
}

const formOf = (operation: AnyOperation) =>
  formHtml({ type: "form", operation, title: "" }, { viewer: anonymousVisit });

function optOutForm(): Html {
  return html`<section id="opt-out"><h2>Opt a site out</h2>
<p>For a site whose <code>robots.txt</code> you cannot change, or when it must stop at once: within a minute no crawler gets
any of its pages, running crawlers stop, open requests included, and searches no longer find it.
Only crawlers with an old release cannot be stopped: they finish the few pages that they have, at their pace.</p>
${formOf(contactOperations.optOut)}
<p class="small">It lasts ${unconfirmedDays} days, and permanently once you prove that the site is yours with a DNS record
or a file, shown next. Until then its pages are hidden; after ${hiddenDays} days they are deleted. More than
${mostPagesUnconfirmed.toLocaleString("en-GB")} indexed pages or ${mostHostsUnconfirmed} hosts wait for the proof or for us,
and so does what we lifted as abuse, and one more after many of a domain or network in a day. A public suffix such as co.uk
or github.io is nobody's site, and cannot be opted out here. We keep the address that this form is sent from, so that nobody
can opt out other people's sites by the hundred.</p></section>`;
}

function reportForm(): Html {
  return html`<section id="report"><h2>Report a problem</h2>
<p>We record our requests to your site in the last 24 hours with your report: how many, how fast, by which crawler and with
what answers. You get a reply with them, and so does the partner who hosts that crawler.</p>
${formOf(contactOperations.report)}</section>`;
}

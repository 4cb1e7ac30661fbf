/** For webmasters who find our requests in their logs: who we are, what we do, and how to stop it. */
import { type Html, html, nothing } from "./html.ts";

export interface ContactSettings {
  readonly userAgent: string;
  /** Whom to write to, as an e-mail address or a URL; null when the operator states none. */
  readonly contact: string | null;
  /** Fewest seconds between two requests to one host. */
  readonly politenessSeconds: number | null;
}

export function contactBody(settings: ContactSettings): Html {
  const product = productToken(settings.userAgent);
  return html`<h1>About this crawler</h1>
<p>You are here because a request in your server's log named this page. It came from Nearcrawl, a web crawler that builds a search index. Partner organisations host many small crawlers, and each page is fetched by the one that is nearest to its server in the network: that takes the least time and the least of everybody's bandwidth.</p>
<section><h2>How to know it</h2>
<p>Every request carries this User-Agent:</p>
<pre><code>${settings.userAgent}</code></pre>
<p>Requests come from the addresses of several organisations. Of one network, one crawler is in charge at a time, so that one pace holds for your server.</p></section>
<section><h2>What it does</h2>
<ul>
<li>It reads <code>robots.txt</code> first and follows it (RFC 9309). When your server fails to deliver it, nothing is fetched at all.</li>
<li>It fetches one page of a host at a time${settings.politenessSeconds === null ? "" : `, ${settings.politenessSeconds} s or more apart`}, longer when your <code>Crawl-delay</code> or <code>Retry-After</code> says so.</li>
<li>It asks whether a page has changed before it fetches the page again (<code>If-None-Match</code>, <code>If-Modified-Since</code>).</li>
<li>It leaves out of the index what <code>noindex</code> covers, and follows no <code>nofollow</code> link.</li>
<li>Now and then it measures how far away your server is: a <code>HEAD</code> request or a TCP connection, from a few crawlers, once for your whole network.</li>
<li>It keeps what an index needs (title, words, links), not your pages.</li>
</ul></section>
<section><h2>How to stop it, or slow it down</h2>
<p>In your <code>robots.txt</code>:</p>
<pre><code>User-agent: ${product}
Disallow: /</code></pre>
<p>or, for a slower pace:</p>
<pre><code>User-agent: ${product}
Crawl-delay: 30</code></pre>
<p>It is read again at least once a day.</p></section>
${contactSection(settings.contact)}`;
}

function contactSection(contact: string | null): Html {
  if (contact === null) return nothing;
  const href = /^https?:\/\//.test(contact) ? contact : `mailto:${contact}`;
  return html`<section><h2>Write to us</h2><p><a href="${href}">${contact}</a>. Tell us your host name and a line of your log, and we find out who fetched what.</p></section>`;
}

/** `Nearcrawl` of `Nearcrawl/0.1 (+https://…)`: what robots.txt is matched by (RFC 9309 section 2.2.1). */
function productToken(userAgent: string): string {
  return /^[A-Za-z_-]+/.exec(userAgent)?.[0] ?? "Nearcrawl";
}

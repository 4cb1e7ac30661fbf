/** For webmasters who find our requests in their logs: who we are, what we do, and how to stop it. */
import { productToken } from "#protocol/user-agent";
import { options } from "../web/components.ts";
import { type Html, html, nothing } from "../web/html.ts";
import { confirmationName, confirmationText } from "./honour.ts";
import {
  hiddenDays,
  mostHostsUnconfirmed,
  mostPagesUnconfirmed,
  type OptOut,
  scopeWords,
  unconfirmedDays,
} from "./opt-out.ts";
import { proofFileOf } from "./proof-file.ts";
import { type PublishedSettings, publishedPaths } from "./published.ts";

export function contactBody(settings: PublishedSettings, forms: ContactForms): Html {
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
${optOutForm(forms)}
${recogniseSection(settings)}
${honourSection(settings.politenessSeconds)}
${reportForm(forms)}
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

/** What was typed, and what is wrong with it; both forms are empty at first. */
export interface ContactForms {
  readonly optOut: FormState;
  readonly report: FormState;
}

interface FormState {
  readonly values: Readonly<Record<string, string>>;
  /** A sentence; null: nothing. */
  readonly fault: string | null;
}

export const emptyForms: ContactForms = {
  optOut: { values: {}, fault: null },
  report: { values: {}, fault: null },
};

export const formPaths = { optOut: "/about-crawler/opt-out", report: "/about-crawler/report" } as const;

/** Most characters of a field. */
export const fieldLengths = { site: 2048, words: 2000, reply: 200 } as const;

/** What a form may say where the site's text does not; empty: as the text says. */
export const formScopes = ["url", "prefix", "host", "subdomains"] as const;

const formScopeWords: Readonly<Record<(typeof formScopes)[number] | "", string>> = {
  "": "as entered above",
  url: "this page alone",
  prefix: "this page and below",
  host: "this host alone",
  subdomains: "the whole site",
};

/** A field that people do not see; what fills it in is a program. */
export const trapField = "website";

const siteHint =
  "example.org is all of it, www.example.org included; https://example.org/page is that page alone.";

function optOutForm({ optOut }: ContactForms): Html {
  return html`<section id="opt-out"><h2>Opt a site out</h2>
<p>For a site whose <code>robots.txt</code> you cannot change, or when it must stop at once: within a minute no crawler gets
any of its pages, running crawlers stop, open requests included, and searches no longer find it.
Only crawlers with an old release cannot be stopped: they finish the few pages that they have, at their pace.</p>
<form class="letter" method="post" action="${formPaths.optOut}#opt-out">
${fault(optOut)}
${textField({ id: "opt-out-site", name: "site", label: "Site or page", hint: siteHint, state: optOut })}
${scopeField(optOut)}
${textField({ id: "opt-out-reply", name: "reply", label: "Where we can reach you (optional)", state: optOut })}
${wordsField({ id: "opt-out-words", label: "Anything we should know (optional)", isRequired: false, state: optOut })}
${trap("opt-out")}
<button>Opt out</button>
<p class="small">It lasts ${unconfirmedDays} days, and permanently once you prove that the site is yours with a DNS record
or a file, shown next. Until then its pages are hidden; after ${hiddenDays} days they are deleted. More than
${mostPagesUnconfirmed.toLocaleString("en-GB")} indexed pages or ${mostHostsUnconfirmed} hosts wait for the proof or for us,
and so does what we lifted as abuse, and one more after many of a domain or network in a day. A public suffix such as co.uk
or github.io is nobody's site, and cannot be opted out here. We keep the address that this form is sent from, so that nobody
can opt out other people's sites by the hundred.</p>
</form></section>`;
}

function reportForm({ report }: ContactForms): Html {
  return html`<section id="report"><h2>Report a problem</h2>
<p>We record our requests to your site in the last 24 hours with your report: how many, how fast, by which crawler and with
what answers. You get a reply with them, and so does the partner who hosts that crawler.</p>
<form class="letter" method="post" action="${formPaths.report}#report">
${fault(report)}
${textField({ id: "report-site", name: "site", label: "Site or address", hint: "Such as www.example.org, 192.0.2.17 or 192.0.2.0/24.", state: report })}
${textField({ id: "report-reply", name: "reply", label: "Who you are and where we can reply", state: report, isRequired: true })}
${wordsField({ id: "report-words", label: "What happened; a line of your log helps", isRequired: true, state: report })}
${trap("report")}
<button>Send the report</button>
</form></section>`;
}

/** After a form was taken. */
export function optOutTaken(optOut: OptOut, hasFile: boolean): Html {
  const narrow = html`<p>This is the ${scopeWords[optOut.scope]} alone: the rest of ${optOut.site} is still crawled. For all
of it, <a href="/about-crawler#opt-out">opt out ${optOut.site}</a>.</p>`;
  return html`<h1>${optOut.state === "waiting" ? "Recorded, and waiting for confirmation" : `${optOut.target} has opted out`}</h1>
<p class="lead">${takenWords(optOut)}</p>
${optOut.scope === "subdomains" ? nothing : narrow}
${optOut.state === "confirmed" ? nothing : confirmSection(optOut, hasFile)}
<section><p><a href="/who?q=${encodeURIComponent(optOut.target)}">What we know about ${optOut.target}</a> ·
<a href="/about-crawler">About this crawler</a></p></section>`;
}

export function reportTaken(complaintId: number, target: string): Html {
  return html`<h1>Report ${complaintId} received</h1>
<p class="lead">Our requests to ${target} in the last 24 hours are recorded with it. Quote number ${complaintId} when you write to us again.</p>
<section><p>If it has to stop now: <a href="/about-crawler#opt-out">opt the site out</a>, or use <a href="/about-crawler#robots">robots.txt</a>.</p></section>`;
}

function takenWords({ target, scope, state, lapsesAt, deletesAt }: OptOut): string {
  if (state === "waiting") {
    return (
      "It takes effect as soon as you prove that the site is yours, as shown below, or we confirm it: " +
      `${target} covers many of our hosts or pages, or many requests came today from your network or for ` +
      "this domain, or an earlier request for it was lifted as abuse. robots.txt always stops us."
    );
  }
  const what =
    scope === "url"
      ? `requests ${target} any more`
      : `gets any more pages of ${target}${scope === "subdomains" ? " or anything below it" : ""}`;
  const open = scope === "url" || scope === "prefix" ? "" : ", open requests included";
  const now =
    `None of our crawlers ${what}; running ones stop within a minute${open}. Only crawlers with an old ` +
    "release cannot be stopped: they finish the few pages that they have, at their pace. No search finds " +
    `${scope === "url" ? "it" : "its pages"}.`;
  const day = (date: Date) => date.toISOString().slice(0, 10);
  const deleted =
    deletesAt !== null && state !== "confirmed"
      ? ` They are hidden until ${day(deletesAt)}, then deleted.`
      : "";
  return lapsesAt === null ? now : `${now}${deleted} Unless proven, it ends on ${day(lapsesAt)}.`;
}

function confirmSection({ target, site, scope, token }: OptOut, hasFile: boolean): Html {
  const name = site ?? target;
  return html`<section><h2>Make it permanent</h2>
<p>Prove that the request comes from the site, in one of two ways; then its pages are deleted from the index, and you may remove the proof.</p>
<p>Publish this record in the DNS of ${name}. We check every ten minutes or so.</p>
<pre><code>${confirmationName(name)}. TXT "${confirmationText(token)}"</code></pre>
<p>Or put a file with this line at this URL, without a redirect, and let us check it. It proves the host ${name}; a domain
with other hosts takes the record.</p>
<pre><code>${proofFileOf(name)}
${confirmationText(token)}</code></pre>
${hasFile ? html`<p role="status">We look for the file within a minute, at most every ten minutes. Check again to see what we found.</p>` : nothing}
<form method="post" action="${formPaths.optOut}"><input type="hidden" name="site" value="${target}">
<input type="hidden" name="scope" value="${scope}"><input type="hidden" name="proof" value="file">
<button>Check the file</button></form></section>`;
}

interface Field {
  readonly id: string;
  readonly name: string;
  readonly label: string;
  readonly hint?: string;
  readonly state: FormState;
  readonly isRequired?: boolean;
}

function textField({ id, name, label, hint, state, isRequired = name === "site" }: Field): Html {
  const most = name === "site" ? fieldLengths.site : fieldLengths.reply;
  const described = hint === undefined ? nothing : html` aria-describedby="${id}-hint"`;
  const hinted = hint === undefined ? nothing : html`<p class="small" id="${id}-hint">${hint}</p>`;
  return html`<div><label for="${id}">${label}</label>${hinted}
<input id="${id}" name="${name}" value="${state.values[name] ?? ""}" maxlength="${most}"${described}${requiredIf(isRequired)}
autocomplete="off" spellcheck="false"></div>`;
}

const requiredIf = (isRequired = false): Html => (isRequired ? html` required` : nothing);

function scopeField({ values }: FormState): Html {
  const scopes = options(Object.entries(formScopeWords), values.scope ?? "");
  return html`<div><label for="opt-out-scope">How much of it</label><select id="opt-out-scope" name="scope">${scopes}</select></div>`;
}

function wordsField(field: Omit<Field, "name">): Html {
  const { id, label, isRequired, state } = field;
  return html`<div><label for="${id}">${label}</label><textarea id="${id}" name="words" rows="3"
maxlength="${fieldLengths.words}"${requiredIf(isRequired)}>${state.values.words ?? ""}</textarea></div>`;
}

function trap(form: string): Html {
  const id = `${form}-${trapField}`;
  return html`<div class="hidden" aria-hidden="true"><label for="${id}">Leave this empty</label>
<input id="${id}" name="${trapField}" tabindex="-1" autocomplete="off"></div>`;
}

function fault({ fault: words }: FormState): Html {
  return words === null ? nothing : html`<p class="fault" role="alert">${words}</p>`;
}

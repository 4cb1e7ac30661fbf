/** For webmasters who find our requests in their logs: who we are, what we do, and how to stop it. */
import { productToken } from "#protocol/user-agent";
import { type Html, html, nothing } from "../web/html.ts";
import { confirmationName, confirmationText } from "./honour.ts";
import { type OptOut, unconfirmedDays } from "./opt-out.ts";
import { type PublishedSettings, publishedPaths } from "./published.ts";

/** `forms` null: this coordinator takes none. */
export function contactBody(settings: PublishedSettings, forms: ContactForms | null): Html {
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
${wish("Follow links, show nothing", "Content-Signal: search=no")}
</div></section>`;
}

function recogniseSection({ userAgent, signRequests }: PublishedSettings, hasLists: boolean): Html {
  return html`<section id="recognise"><h2>Is it really us?</h2>
<p>Every request carries this User-Agent; a partner may add its own contact behind it:</p>
<pre><code>${userAgent}</code></pre>
${
  hasLists
    ? html`<p>Anybody can write that. What shows that a request is ours is its address: <a href="${publishedPaths.addresses}">addresses of the fleet</a> (JSON, in the form that search engines use). Some partners do not list theirs.</p>`
    : nothing
}
${
  signRequests
    ? html`<p>Requests by https are signed (Web Bot Auth, RFC 9421), and <a href="${publishedPaths.keys}">our public keys</a> verify them; <a href="${publishedPaths.card}">our card</a> says the same to programs as this page. A request that claims to be ours and is not signed may still be: a crawler that has just joined signs a few minutes later.</p>`
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
<div><dt>Uses</dt><dd>A page whose <code>Content-Signal</code>, <code>Content-Usage</code> or license denies search is not indexed or shown. What you state of AI or of text and data mining is kept with the page and passed on.</dd></div>
<div><dt>402</dt><dd>Taken as “not for us”: nothing is paid, and the page is not asked for again for a month.</dd></div>
<div><dt>Links</dt><dd><code>rel="nofollow"</code> is not followed.</dd></div>
<div><dt>Return visits</dt><dd>We ask whether a page has changed before we fetch it again (<code>If-None-Match</code>, <code>If-Modified-Since</code>), and listen to what you say has changed: <code>lastmod</code> in sitemaps, IndexNow at <code>/indexnow</code>.</dd></div>
<div><dt>Measuring</dt><dd>Now and then a few crawlers measure how far away your server is, by a TCP connection or a <code>HEAD</code> request, once for your whole network.</dd></div>
<div><dt>What is kept</dt><dd>What an index needs (title, words, links), not your pages.</dd></div>
</dl></section>`;
}

function writeSection(contact: string | null): Html {
  if (contact === null) return nothing;
  const href = /^https?:\/\//.test(contact) ? contact : `mailto:${contact}`;
  return html`<section id="write"><h2>Write to us</h2><p><a href="${href}">${contact}</a>. Tell us your host name and a line of your log, and we find out who fetched what.</p></section>`;
}

// The two forms for webmasters, and what they answer. They need no script, no cookie and no account.

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

/** A field that people do not see; what fills it in is a program. */
export const trapField = "website";

function optOutForm({ optOut }: ContactForms): Html {
  return html`<section id="opt-out"><h2>Take a site out</h2>
<p>For a site whose <code>robots.txt</code> you cannot change, or when it has to be at once: within a minute no crawler is given any page of it, crawlers at work stop, requests under way included, and its pages are no longer found. Only crawlers of an old release cannot be told: they finish the few pages that they were given, at their pace.</p>
<form class="letter" method="post" action="${formPaths.optOut}#opt-out">
${fault(optOut)}
${textField({ id: "opt-out-site", name: "site", label: "Site", hint: "With everything below it: example.org is www.example.org, too.", state: optOut })}
${textField({ id: "opt-out-reply", name: "reply", label: "Where we can reach you (optional)", state: optOut })}
${wordsField({ id: "opt-out-words", label: "Anything we should know (optional)", isRequired: false, state: optOut })}
${trap("opt-out")}
<button>Take it out</button>
<p class="small">It holds for ${unconfirmedDays} days, and for good once you confirm it with a record in your DNS, which you are told next. A domain with several hosts and many pages of ours waits for that record or for us; one host does not. A public suffix such as co.uk or github.io is nobody's site, and cannot be taken out here. We keep the address that this form comes from, so that nobody can take out others' sites by the hundred.</p>
</form></section>`;
}

function reportForm({ report }: ContactForms): Html {
  return html`<section id="report"><h2>Report a problem</h2>
<p>What we did to your site in the last 24 hours is written down together with your report: how much, how fast, by which crawler and what was answered. You get an answer with it, and so does the partner who hosts that crawler.</p>
<form class="letter" method="post" action="${formPaths.report}#report">
${fault(report)}
${textField({ id: "report-site", name: "site", label: "Site or address", hint: "Such as www.example.org, 192.0.2.17 or 192.0.2.0/24.", state: report })}
${textField({ id: "report-reply", name: "reply", label: "Who you are and where we can answer", state: report, isRequired: true })}
${wordsField({ id: "report-words", label: "What happened; a line of your log helps", isRequired: true, state: report })}
${trap("report")}
<button>Send the report</button>
</form></section>`;
}

/** After a form was taken. */
export function optOutTaken(optOut: OptOut): Html {
  return html`<h1>${optOut.state === "waiting" ? "Noted, and waiting to be confirmed" : `${optOut.target} is taken out`}</h1>
<p class="lead">${takenWords(optOut)}</p>
${optOut.state === "confirmed" ? nothing : confirmSection(optOut)}
<section><p><a href="/who?q=${encodeURIComponent(optOut.target)}">What we know of ${optOut.target}</a> · <a href="/about-crawler">About this crawler</a></p></section>`;
}

export function reportTaken(complaintId: number, target: string): Html {
  return html`<h1>Report ${complaintId} is with us</h1>
<p class="lead">What we did to ${target} in the last 24 hours is written down with it. Name the number ${complaintId} when you write to us again.</p>
<section><p>If it has to stop now: <a href="/about-crawler#opt-out">take the site out</a>, or say it in <a href="/about-crawler#robots">robots.txt</a>.</p></section>`;
}

function takenWords({ target, state, lapsesAt }: OptOut): string {
  if (state === "waiting") {
    return `Many sites were taken out today, or ${target} stands for many hosts or pages of ours: it takes effect once it is confirmed, by the record below or by us. A single host of it, such as www.${target}, is taken out at once; and robots.txt always stops us.`;
  }
  const now = `No crawler of ours is given a page of ${target}, or of anything below it, any more: those at work are told now, and within a minute they have stopped, requests under way included. Only crawlers of an old release cannot be told: they finish the few pages that they were given, at their pace. No search finds its pages.`;
  return lapsesAt === null
    ? now
    : `${now} Without a confirmation it ends on ${lapsesAt.toISOString().slice(0, 10)}.`;
}

function confirmSection({ target, token }: OptOut): Html {
  return html`<section><h2>Make it last</h2>
<p>Publish this record in the DNS of ${target}. It shows that the site itself wishes it; we look for it every ten minutes or so. Then its pages are deleted from the index, and you may remove the record.</p>
<pre><code>${confirmationName(target)}. TXT "${confirmationText(token)}"</code></pre></section>`;
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
  return html`<div><label for="${id}">${label}</label>${hint === undefined ? nothing : html`<p class="small" id="${id}-hint">${hint}</p>`}<input id="${id}" name="${name}" value="${state.values[name] ?? ""}" maxlength="${most}"${described}${isRequired ? html` required` : nothing} autocomplete="off" spellcheck="false"></div>`;
}

function wordsField(field: Omit<Field, "name">): Html {
  const { id, label, isRequired, state } = field;
  return html`<div><label for="${id}">${label}</label><textarea id="${id}" name="words" rows="3" maxlength="${fieldLengths.words}"${isRequired ? html` required` : nothing}>${state.values.words ?? ""}</textarea></div>`;
}

function trap(form: string): Html {
  return html`<div class="hidden" aria-hidden="true"><label for="${form}-${trapField}">Leave this empty</label><input id="${form}-${trapField}" name="${trapField}" tabindex="-1" autocomplete="off"></div>`;
}

function fault({ fault: words }: FormState): Html {
  return words === null ? nothing : html`<p class="fault" role="alert">${words}</p>`;
}

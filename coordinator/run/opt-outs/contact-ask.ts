/** The two forms for webmasters, which need no session: to opt out, and to report a problem. */
import { LRUCache } from "lru-cache";
import { z } from "zod";
import type { Log } from "#core/log";
import { growingTo } from "#core/small-collections";
import { productToken } from "#protocol/user-agent";
import { picture } from "../../ask/document.ts";
import { formHtml } from "../../ask/html-rendering.ts";
import {
  type AnyOperation,
  type Asked,
  type Document,
  Fault,
  type Form,
  operationsOf,
} from "../../ask/operation.ts";
import { anonymousVisit } from "../../web/access.ts";
import { dateTime, orNull, record } from "../../web/api-operation.ts";
import { type Html, html, nothing } from "../../web/html.ts";
import { networkOf, originOf } from "../../web/limits.ts";
import type { ComplaintStore } from "./complaint-store.ts";
import { confirmationName, confirmationText, proofFileOf } from "./honour.ts";
import {
  hiddenDays,
  mostHostsUnconfirmed,
  mostPagesUnconfirmed,
  type OptOut,
  readOptOut,
  readTarget,
  scopeWords,
  targetText,
  unconfirmedDays,
} from "./opt-out.ts";
import { optOutScope } from "./opt-outs-api.ts";
import { type PublishedSettings, publishedPaths } from "./published.ts";
import type { OptOutStore } from "./store.ts";

interface ContactFormPorts {
  readonly optOuts: Pick<OptOutStore, "request">;
  readonly complaints: Pick<ComplaintStore, "add">;
  readonly limits: FormLimits;
  readonly log: Log;
}

const { post } = operationsOf<ContactFormPorts>();

/** Maximum size of all fields together, encoded. */
const mostBytes = 16 * 1024;

const faults = {
  400: "Something is missing or unreadable",
  403: "A browser sent it from another site's page",
  413: "Longer than 16 KB",
  429: "Too many forms from this address, or too many reports today",
};

const words = z.string().max(2000);
const replyTo = z.string().max(200);

/** Throws a Fault if the target is no site, or if its sender sends too much. */
function accepted<Target>(
  target: Target | string,
  { requester, ports }: Pick<Asked<ContactFormPorts, unknown>, "requester" | "ports">,
): Target {
  if (typeof target === "string") throw new Fault(400, target);
  if (!ports.limits.mayCome(requester)) throw new Fault(429, tooManyWords);
  return target;
}

const optOut = post({
  ...{ path: "/about-crawler/opt-out", needs: null, isOpen: true, mostBytes, label: "Opt out" },
  summary:
    "Opt a page, a part of a site or a site out of crawl and search. A browser gets a page, Accept: application/json gets JSON.",
  input: z.object({
    site: z.string().max(2048).meta({
      title: "Site or page",
      description:
        "example.org is all of it, www.example.org included; https://example.org/page is that page alone, and with /* at its end all below it.",
    }),
    scope: z
      .enum(["url", "prefix", "host", "subdomains"])
      .optional()
      .meta({
        title: "How much of it",
        "x-unchosen": "as entered above",
        "x-enumDescriptions": {
          url: "this page alone",
          prefix: "this page and below",
          host: "this host alone",
          subdomains: "the whole site",
        },
      }),
    reply: replyTo.optional().meta({ title: "Where we can reach you (optional)" }),
    words: words.optional().meta({ title: "Anything we should know (optional)", "x-field": "long" }),
    proof: z.enum(["file"]).optional().meta({
      description: "file: the file of proof is there, and is asked for.",
      "x-field": "hidden",
    }),
  }),
  output: record("OptOutTaken", {
    site: z.string().describe("What has opted out, by its scope."),
    scope: optOutScope,
    state: z
      .enum(["waiting", "unconfirmed", "confirmed"])
      .describe(
        "waiting: takes effect when it is proven or an operator confirms it: more than 100 hosts or " +
          "1,000 indexed pages, too many in a day, or lifted before. A public suffix (publicsuffix.org) or " +
          "a network is answered with 400.",
      ),
    createdAt: dateTime(),
    deletesAt: orNull(dateTime(), "Its pages are hidden until then, and deleted then."),
    lapsesAt: dateTime().nullable(),
    confirmation: z
      .strictObject({ type: z.enum(["TXT"]), name: z.string(), value: z.string(), file: z.string() })
      .describe(
        "What proves it: the record in DNS, or its value in the file; then the form again with proof=file.",
      ),
  }),
  answer: { status: 201, description: "Accepted; the same if repeated, which has its proof looked for" },
  faults,
  run: async (asked) => {
    const { input, ports, requester, now } = asked;
    const { site: typed, scope: meant = null, words: said = "", reply = "", proof } = input;
    const target = accepted(readOptOut(typed, "sites-only", meant), asked);
    const hasFile = proof === "file";
    const from = { words: said, replyTo: reply.trim() || null, requester, hasFile, source: "form" } as const;
    const made = await ports.optOuts.request({ target, ...from, confirmed: false }, now);
    const { target: site, scope, createdAt, deletesAt, lapsesAt } = made;
    // A new request cannot have ended.
    const state = made.state as Exclude<OptOut["state"], "lapsed" | "lifted">;
    ports.log[state === "waiting" ? "warn" : "info"]({ site, state }, "a site opts out");
    const name = made.site ?? site;
    const value = confirmationText(made.token);
    const confirmation = {
      type: "TXT",
      name: confirmationName(name),
      value,
      file: proofFileOf(name),
    } as const;
    return { site, scope, state, createdAt, deletesAt, lapsesAt, confirmation, made, hasFile };
  },
  told: ({ made: _, hasFile: __, ...told }) => told,
  view: ({ made, hasFile }) => page(takenBody(made, hasFile)),
});

const report = post({
  ...{ path: "/about-crawler/report", needs: null, isOpen: true, mostBytes, label: "Send the report" },
  summary: "Report a problem with our requests to a site, an address or a network.",
  input: z.object({
    site: z.string().max(2048).meta({
      title: "Site or address",
      description: "Such as www.example.org, 192.0.2.17 or 192.0.2.0/24.",
    }),
    reply: replyTo.meta({ title: "Who you are and where we can reply" }),
    words: words.meta({ title: "What happened; a line of your log helps", "x-field": "long" }),
  }),
  output: record("ReportTaken", { complaintId: z.int(), target: z.string() }),
  answer: { status: 201, description: "Accepted, with our requests to the target in the last 24 hours" },
  faults,
  run: async (asked) => {
    const { input, ports, requester, now } = asked;
    const { site, words: said, reply: reporter } = input;
    const target = accepted(readTarget(site, "networks"), asked);
    const from = { words: said, reporter, requester, source: "form" } as const;
    const complaint = await ports.complaints.add({ target, targetText: targetText(target), ...from }, now);
    if (complaint === null) throw new Fault(429, "Too many reports came today. Write to us instead.");
    const { complaintId, target: about, deeds } = complaint;
    ports.log.warn({ complaintId, target: about, requests: deeds.requests }, "somebody complains");
    return { complaintId, target: about };
  },
  view: ({ complaintId, target }) => page(reportTakenBody(complaintId, target)),
});

export const contactOperations = { optOut, report };

const page = (body: Html): Document => ({
  ...{ title: "About this crawler", hasOwnHeading: true, nodes: [picture(body)] },
});

/** The opt-out form, with these values in hidden fields. */
const checkFile = (values: Readonly<Record<string, string>>): Form => ({
  ...{ type: "form", operation: optOut, title: "", label: "Check the file" },
  ...{ values, without: ["site", "scope", "reply", "words", "proof"] },
});

function takenBody(optOut: OptOut, hasFile: boolean): Html {
  const narrow = html`<p>This is the ${scopeWords[optOut.scope]} alone: the rest of ${optOut.site} is still crawled. For all
of it, <a href="/about-crawler#opt-out">opt out ${optOut.site}</a>.</p>`;
  return html`<h1>${optOut.state === "waiting" ? "Recorded, and waiting for confirmation" : `${optOut.target} has opted out`}</h1>
<p class="lead">${takenWords(optOut)}</p>
${optOut.scope === "subdomains" ? nothing : narrow}
${optOut.state === "confirmed" ? nothing : confirmSection(optOut, hasFile)}
<section><p><a href="/who?q=${encodeURIComponent(optOut.target)}">What we know about ${optOut.target}</a> ·
<a href="/about-crawler">About this crawler</a></p></section>`;
}

function reportTakenBody(complaintId: number, target: string): Html {
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
      ? ` ${scope === "url" ? "It is" : "They are"} hidden until ${day(deletesAt)}, then deleted.`
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
${formHtml(checkFile({ site: target, scope, proof: "file" }), { viewer: anonymousVisit })}</section>`;
}

// Limits floods through a public form.

/** Maximum forms per hour from one address (or IPv6 /64). */
export const formsPerHour = 10;

/** Maximum forms per hour from one /24 or /48. */
const formsPerHourOfNetwork = 50;

const tooManyWords =
  `More than ${formsPerHour} forms came from your address, or ${formsPerHourOfNetwork} from its network, ` +
  "within an hour. Try again later, or write to us.";

const hourMs = 3_600_000;
const rememberedAddresses = 20_000;

export class FormLimits {
  readonly #now: () => number;
  readonly #sent = new LRUCache<string, { count: number; readonly sinceMs: number }>({
    ...growingTo(rememberedAddresses),
  });

  /** `now` reads a monotonic clock in ms. */
  constructor(now: () => number) {
    this.#now = now;
  }

  mayCome(requester: string | null): boolean {
    if (requester === null) return this.#isWithin("unknown", formsPerHour);
    return (
      this.#isWithin(originOf(requester), formsPerHour) &&
      this.#isWithin(networkOf(requester), formsPerHourOfNetwork)
    );
  }

  #isWithin(origin: string, most: number): boolean {
    const before = this.#sent.get(origin);
    const isFresh = before !== undefined && this.#now() - before.sinceMs < hourMs;
    const count = isFresh ? before.count + 1 : 1;
    this.#sent.set(origin, { count, sinceMs: isFresh ? before.sinceMs : this.#now() });
    return count <= most;
  }
}

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
<p>Only one crawler serves your network at a time, so your server sees one pace.</p></section>`;
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

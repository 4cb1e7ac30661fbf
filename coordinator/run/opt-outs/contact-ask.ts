/** The two forms for webmasters, which need no session: opting out and reporting a problem. */
import { LRUCache } from "lru-cache";
import { z } from "zod";
import type { Log } from "#core/log";
import { growingTo } from "#core/small-collections";
import { picture } from "../../ask/document.ts";
import { formHtml } from "../../ask/html-rendering.ts";
import { type Asked, type Document, Fault, type Form, operationsOf } from "../../ask/operation.ts";
import { anonymousVisit } from "../../web/access.ts";
import { dateTime, orNull, record } from "../../web/api-operation.ts";
import { type Html, html, nothing } from "../../web/html.ts";
import { networkOf, originOf } from "../../web/limits.ts";
import type { ComplaintStore } from "./complaint-store.ts";
import { confirmationName, confirmationText } from "./honour.ts";
import { type OptOut, readOptOut, readTarget, scopeWords, targetText } from "./opt-out.ts";
import { optOutScope } from "./opt-outs-api.ts";
import { proofFileOf } from "./proof-file.ts";
import type { OptOutStore } from "./store.ts";

interface ContactFormPorts {
  readonly optOuts: Pick<OptOutStore, "request">;
  readonly complaints: Pick<ComplaintStore, "add">;
  readonly limits: FormLimits;
  readonly log: Log;
}

const { post } = operationsOf<ContactFormPorts>();

/** All fields together, encoded. */
const mostBytes = 16 * 1024;

const faults = {
  400: "Something is missing or unreadable",
  403: "A browser sent it from another site's page",
  413: "Longer than 16 KB",
  429: "Too many forms from this address, or too many reports today",
};

const words = z.string().max(2000);
const replyTo = z.string().max(200);

/** Throws a Fault when the target is no site or its client sends too much. */
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
    // A new request has not ended.
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

/** The opt-out form with these values as hidden fields. */
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

// Limits against floods through a public form.

/** Forms per hour of one address (or IPv6 /64). */
export const formsPerHour = 10;

/** Per /24 or /48. */
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

  /** `now` is monotonic, in ms. */
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

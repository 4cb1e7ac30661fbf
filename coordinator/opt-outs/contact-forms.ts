/** The two forms for webmasters, and what they answer. They need no script, no cookie and no account. */

import { type Html, html, nothing } from "../web/html.ts";
import { confirmationName, confirmationText } from "./honour.ts";
import { type OptOut, unconfirmedDays } from "./opt-out.ts";

/** What was typed, and what is wrong with it; both forms are empty at first. */
export interface ContactForms {
  readonly optOut: FormState;
  readonly report: FormState;
}

export interface FormState {
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

export function optOutForm({ optOut }: ContactForms): Html {
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

export function reportForm({ report }: ContactForms): Html {
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

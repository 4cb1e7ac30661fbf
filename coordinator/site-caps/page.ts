/** The page of caps: sites that operators have slowed down, and the form for another one. */
import { mayDo } from "#core/actor";
import { buttonForm, empty, tableOf, titleRow } from "../web/components.ts";
import { askAbout, countText, instant } from "../web/format.ts";
import { type CsvTable, type Html, html, nothing } from "../web/html.ts";
import { formToken, type PageViewer } from "../web/page-frame.ts";
import { type ListedCap, mostDelaySeconds, mostWords } from "./site-cap.ts";

interface SiteCapsPage {
  readonly caps: readonly ListedCap[];
  readonly viewer: PageViewer;
  /** What was typed, and what is wrong with it. */
  readonly typed?: { readonly values: Readonly<Record<string, string>>; readonly fault: string };
}

export function siteCapsBody({ caps, viewer, typed }: SiteCapsPage): Html {
  const mayChange = mayDo(viewer.actor, "policy-write");
  return html`${titleRow("Caps on sites")}
<p class="lead">A cap is the shortest time between two requests to a host of a site. robots.txt, the site's answers and the
<a href="/policies?show=all#pace">usual pace</a> apply as well; the slowest wins.</p>
${typed ? html`<p class="fault" role="alert">${typed.fault}</p>` : list(caps, viewer, mayChange)}
${mayChange ? form(viewer, typed?.values ?? {}) : nothing}`;
}

function list(caps: readonly ListedCap[], viewer: PageViewer, mayChange: boolean): Html {
  if (caps.length === 0)
    return empty(
      "No caps.",
      html`Hosts in progress, and how fast: <a href="/fleet/in-hand">In progress</a>.`,
    );
  const heads = [
    "Site .break",
    "Seconds between requests .number",
    "Known hosts .number",
    "Reason .wide break",
    "Set by",
    "Since",
  ];
  return tableOf("Caps on sites", [...heads, mayChange && "(Change)"], caps, (cap) => [
    askAbout(cap.site),
    cap.delayMs / 1000,
    countText(cap.hosts),
    cap.words || "–",
    cap.setBy,
    instant(cap.setAt),
    buttonForm(viewer, {
      path: `/fleet/site-caps/${cap.site}/remove`,
      label: `Remove the cap on ${cap.site}`,
    }),
  ]);
}

function form(viewer: PageViewer, values: Readonly<Record<string, string>>): Html {
  return html`<section><h2>Add a cap</h2>
<form class="channel-form" method="post" action="/fleet/site-caps">${formToken(viewer)}
<div><label for="cap-site">Site and all its subdomains</label><input id="cap-site" name="site" required maxlength="2000"
placeholder="example.org" spellcheck="false" value="${values.site ?? ""}"></div>
<div><label for="cap-seconds">Seconds between requests to one host</label><input id="cap-seconds" name="seconds" required
inputmode="decimal" pattern="\\d{1,4}(\\.\\d{1,3})?" placeholder="10" value="${values.seconds ?? ""}"><span
class="small">up to ${mostDelaySeconds}</span></div>
<div><label for="cap-words">Reason</label><input id="cap-words" name="words" maxlength="${mostWords}"
placeholder="asked for by its webmaster" value="${values.words ?? ""}"></div>
<button>Add cap</button></form></section>`;
}

export function siteCapsCsv(caps: readonly ListedCap[]): CsvTable {
  return {
    columns: ["site", "delay_ms", "hosts", "words", "set_by", "set_at"],
    rows: caps.map(({ site, delayMs, hosts, words, setBy, setAt }) => [
      ...[site, delayMs, hosts, words, setBy, setAt.toISOString()],
    ]),
  };
}

/** The report as a page for a browser on this machine: plain sentences, bars, no script, nothing from elsewhere. Pure. */
import { createHash } from "node:crypto";
import { minuteOf, plural } from "./running-report.ts";
import type { StatusReport } from "./status-report.ts";
import {
  blameWords,
  connectionFacts,
  contributedWords,
  type Fact,
  type GroupedError,
  groupedErrors,
  type LimitLine,
  limitLines,
  versionFacts,
  workFacts,
} from "./status-text.ts";

/** A page that looks again by itself; a reader may hold it still (WCAG 2.2, 2.2.1). */
export const refreshSeconds = 5;

const mostErrors = 20;

/** The local page's style sheet: one column on a telephone, two beside each other where there is room; dark is a second set of colours. */
export const pageStyle = `
:root{color-scheme:light dark;--ground:#f6f7f6;--card:#fff;--ink:#17201f;--soft:#5a6866;--line:#dfe4e2;--accent:#0b6b66;
--track:#e6ecea;--warm:#a64b07;--warm-soft:#fdf0dc;--good:#1b7f4b;--bad:#b3261e;--other:#8aa09d}
@media (prefers-color-scheme:dark){:root{--ground:#0f1514;--card:#171f1e;--ink:#e4ebe9;--soft:#94a5a2;--line:#27312f;
--accent:#4cc4b8;--track:#27312f;--warm:#f0a94b;--warm-soft:#33260f;--good:#5fd08f;--bad:#ff8a80;--other:#5d726f}}
*{box-sizing:border-box}
body{margin:0;background:var(--ground);color:var(--ink);font:16px/1.5 system-ui,-apple-system,"Segoe UI","Noto Sans","Liberation Sans",sans-serif;
font-variant-numeric:tabular-nums}
.width{max-width:1200px;margin:0 auto;padding-inline:clamp(16px,4vw,32px)}
main{padding-block:28px 48px}
.top{background:var(--card);border-bottom:1px solid var(--line)}
.brand{display:flex;gap:9px;align-items:center;margin-block:0;padding-block:12px;font-weight:650;font-size:1.0625rem;letter-spacing:-.01em}
.brand span{font-weight:400;color:var(--soft);overflow-wrap:anywhere}
.mark{width:24px;height:24px;flex:none}
.mark path{fill:none;stroke:var(--accent);stroke-width:2.4;stroke-linecap:round}
.mark circle{fill:var(--accent)}
h1{font-size:clamp(1.375rem,1.1rem + 1.2vw,1.75rem);line-height:1.25;letter-spacing:-.015em;font-weight:600;margin:0 0 20px;
text-wrap:balance;overflow-wrap:anywhere}
.dot{display:inline-block;width:.6em;height:.6em;border-radius:50%;background:var(--other);margin-right:.4em}
.crawling .dot{background:var(--good)}.paused .dot,.draining .dot,.waiting .dot{background:var(--warm)}
.not-connected .dot{background:var(--bad)}
h2{font-size:1rem;font-weight:600;margin:0 0 12px}
.held{background:var(--warm-soft);border:1px solid var(--warm);border-radius:12px;padding:14px 18px;margin:0 0 16px}
.held h2{color:var(--warm);margin-bottom:4px}
.held ul{margin:0;padding-left:1.1em}
.cards{display:grid;gap:16px;grid-template-columns:repeat(auto-fit,minmax(min(100%,420px),1fr));align-items:start}
section{background:var(--card);border:1px solid var(--line);border-radius:12px;padding:18px 20px;min-width:0}
.wide{grid-column:1/-1}
.limit{display:grid;grid-template-columns:1fr auto;gap:2px 12px;font-size:.9375rem}
.limit+.limit{margin-top:14px}
.limit .used{text-align:right}
.limit .note{grid-column:1/-1;color:var(--soft);font-size:.8125rem}
.limit .note.warm{color:var(--warm)}
svg.bar{grid-column:1/-1;width:100%;height:8px;display:block;border-radius:4px;background:var(--track)}
svg.bar rect{fill:var(--accent)}
.over svg.bar rect{fill:var(--warm)}
dl{margin:0;display:grid;grid-template-columns:max-content 1fr;gap:8px 18px;font-size:.9375rem}
dt{color:var(--soft)}
dd{margin:0;min-width:0;overflow-wrap:anywhere}
.tiles{display:grid;grid-template-columns:1fr 1fr;gap:14px;margin:0 0 16px}
@media (min-width:700px){.wide .tiles{grid-template-columns:repeat(4,1fr)}}
.tiles>div{min-width:0}
.figure{display:block;font-size:1.5rem;line-height:1.2;font-weight:600;letter-spacing:-.02em}
.tiles small,.soft{color:var(--soft);font-size:.8125rem}
.errors{list-style:none;margin:0;padding:0;font-size:.875rem}
.errors li{padding:8px 0;border-top:1px solid var(--line);overflow-wrap:anywhere}
.errors time{color:var(--soft);margin-right:.5em}
.blame{display:inline-block;border:1px solid var(--line);border-radius:999px;padding:0 .6em;font-size:.75rem;color:var(--soft);margin-right:.4em}
.steer{margin:-8px 0 16px}
.steer button{font:inherit;padding:7px 18px;border:1px solid var(--accent);border-radius:8px;background:var(--card);color:var(--accent);cursor:pointer}
.days{display:grid;grid-template-columns:max-content 1fr max-content;gap:6px 12px;align-items:center;font-size:.875rem}
.days svg.bar{grid-column:auto}
footer{color:var(--soft);font-size:.8125rem;margin-top:20px}
a{color:var(--accent)}
@media (max-width:480px){dl{grid-template-columns:1fr;gap:0}dd{margin-bottom:10px}}
`;

/** Nothing may be loaded, run or framed but the style sheet in the page itself; nor sent, but the buttons where they are. */
export const pagePolicy = (hasButtons: boolean): string =>
  `default-src 'none'; style-src 'sha256-${createHash("sha256").update(pageStyle).digest("base64")}'; base-uri 'none'; form-action ${hasButtons ? "'self'" : "'none'"}; frame-ancestors 'none'`;

interface PageView {
  /** It stays as it is until it is loaded again. */
  readonly isStill: boolean;
  /** Who has it may pause and resume; null: the page is to look at. */
  readonly key: string | null;
}

export function statusPage(report: StatusReport, view: PageView = { isStill: false, key: null }): string {
  const { crawler, state, words, at } = report;
  const page = html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="robots" content="noindex">
<title>${crawler.name ?? "crawler"} · Nearcrawl</title>
<style>${styleOfPage}</style>
</head>
<body>
<header class="top"><p class="width brand">${brandMark}Nearcrawl <span>crawler ${crawler.name ?? ""}</span></p></header>
<main class="width ${state}">
<h1><span class="dot"></span>${words}</h1>
${steering(report, view)}
${held(report)}
<div class="cards">
${limitCard(report)}
${workCard(report)}
${connectionCard(report)}
${versionCard(report)}
${historyCard(report)}
${errorCard(report)}
${meaningCard(report)}
</div>
<footer>As of ${minuteOf(at)}; ${lookingAgain(view)}. <a href="/status.json">The same as JSON</a>. It is served to this machine alone${view.key === null ? ", and changes nothing: pause and resume by the link that `status` prints, or by command" : null}.</footer>
</main>
</body>
</html>
`;
  return page.text;
}

function lookingAgain({ isStill, key }: PageView): Markup {
  const live = key === null ? "/" : `/?key=${key}`;
  const still = key === null ? "/?still" : `/?key=${key}&still`;
  return isStill
    ? html`the page stays as it is. <a href="${live}">Look again every ${refreshSeconds} seconds</a>`
    : html`the page looks again every ${refreshSeconds} seconds. <a href="${still}">Hold it still</a>`;
}

/** One button: pause, or resume. */
function steering({ pause }: StatusReport, { key }: PageView): Markup | null {
  if (key === null) return null;
  const [path, words] = pause === null ? ["/pause", "Pause"] : ["/resume", "Resume"];
  return html`<form class="steer" method="post" action="${path}"><input type="hidden" name="key" value="${key}"><button>${words}</button></form>`;
}

function historyCard(report: StatusReport): Markup {
  const { days } = report.contribution;
  const most = Math.max(1, ...days.map(({ pages }) => pages));
  const bars = days.slice(0, shownDays);
  return html`<section class="wide"><h2>What it contributed</h2>
<p>${contributedWords(report)}. They went to the search engine's index, each fetched from nearby and not from afar.</p>
${
  bars.length === 0
    ? html`<p class="soft">The days before today will be listed here.</p>`
    : html`<div class="days">${bars.map(
        ({ day, pages, urls }) =>
          html`<span>${day}</span><svg class="bar" viewBox="0 0 100 8" preserveAspectRatio="none" role="img" aria-label="${plural(pages, "page")}"><rect width="${Math.round((1000 * pages) / most) / 10}" height="8"/></svg><span class="used">${pages.toLocaleString("en")} of ${urls.toLocaleString("en")}</span>`,
      )}</div>`
}</section>`;
}

/** Days that the page lists; the JSON has all. */
const shownDays = 14;

function meaningCard({ coordinator }: StatusReport): Markup {
  return html`<section class="wide"><h2>What hosting it means</h2>
<p>Web sites see this machine's address: requests come from here, and complaints may come here, too. Each request names the operator
and a page for webmasters${coordinator.contactPage === null ? null : html` (${safeLink(coordinator.contactPage)})`}; send complaints on to them, they have to answer them. It obeys robots.txt, asks one page at a time of
a site, signs in nowhere, and fetches public pages alone; what it read it sends on and does not keep. Networks that are private, and those
that you deny, are never touched. You owe nobody anything: pausing, leaving and removing it take one command each, and nobody can raise your
limits. Which law holds for copies of public pages differs by country; who runs the search engine answers for the index.</p></section>`;
}

/**
 * Templates for the local page that escape by default: whatever is put into `html` is text, unless `html` made it.
 * Attribute values stand in double quotes; then no value can leave its attribute. (The coordinator's pages have a
 * template of their own; the crawler ships as one file without them.)
 */
class Markup {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

const styleOfPage = new Markup(pageStyle);
const brandMark = html`<svg class="mark" viewBox="0 0 32 32" aria-hidden="true"><path d="M4 27a23 23 0 0 1 23-23M10 27a17 17 0 0 1 17-17M16 27a11 11 0 0 1 11-11"/><circle cx="25" cy="25" r="4"/></svg>`;

function held({ holdingBack, notTold }: StatusReport): Markup | null {
  const all = [...holdingBack, ...notTold];
  if (all.length === 0) return null;
  return html`<div class="held"><h2>What holds it back right now</h2><ul>${all.map((words) => html`<li>${words}</li>`)}</ul></div>`;
}

function limitCard({ limits, at }: StatusReport): Markup {
  const lines = limitLines(limits, new Date(at));
  return html`<section><h2>Your limits</h2>${lines.map(limitRow)}<p class="soft">They stand in settings.toml; nobody else can raise them.</p></section>`;
}

function limitRow({ name, used, share, resets, holdingBack }: LimitLine): Markup {
  const percent = Math.round(1000 * (share ?? 0)) / 10;
  const bar = html`<svg class="bar" viewBox="0 0 100 8" preserveAspectRatio="none" role="img" aria-label="${percent} %"><rect width="${percent}" height="8"/></svg>`;
  const note = holdingBack === "" ? resets : `${holdingBack}${resets === "" ? "" : `; ${resets}`}`;
  return html`<div class="${holdingBack === "" ? "limit" : "limit over"}"><span>${name}</span><span class="used">${used}</span>${share === null ? null : bar}${note === "" ? null : html`<span class="${holdingBack === "" ? "note" : "note warm"}">${note}</span>`}</div>`;
}

function workCard(report: StatusReport): Markup | null {
  const { work, shipping } = report;
  if (work === null || shipping === null) return null;
  const { timesSmaller } = shipping;
  const times = timesSmaller === null || timesSmaller < 1 ? "–" : `1/${timesSmaller.toFixed(1)}`;
  return html`<section><h2>What it does</h2>
<div class="tiles">
${tile(work.openHosts, "sites open")}
${tile(work.lastMinute.urls, "URLs in the last minute")}
${tile(work.today.urls, "URLs today")}
${tile(times, "of the pages' bytes shipped")}
</div>
<dl>
${workFacts(report).map(row)}
</dl></section>`;
}

function connectionCard(report: StatusReport): Markup {
  return html`<section><h2>For whom</h2><dl>
${connectionFacts(report).map(row)}
</dl></section>`;
}

function versionCard(report: StatusReport): Markup {
  const [end] = report.lastEnds;
  return html`<section><h2>What runs</h2><dl>
${versionFacts(report).map(row)}
${end === undefined ? null : row(["last end", `${minuteOf(end.at)}: ${end.reason}`])}
</dl></section>`;
}

function errorCard({ errors }: StatusReport): Markup {
  const { target, network, crawler, us } = errors.today;
  return html`<section class="wide"><h2>Errors</h2>
<div class="tiles">${tile(target, "of sites today")}${tile(network, "of the network")}${tile(crawler, "of this machine")}${tile(us, "of our software")}</div>
${errors.latest.length === 0 ? html`<p class="soft">None so far.</p>` : html`<ul class="errors">${groupedErrors(errors.latest).slice(0, mostErrors).map(errorRow)}</ul>`}
</section>`;
}

function errorRow({ at, blame, host, code, words, times }: GroupedError): Markup {
  const often = times === 1 ? null : html` <strong>${times} times in a row</strong>`;
  return html`<li><time datetime="${at}">${minuteOf(at)}</time><span class="blame">${blameWords[blame]}</span>${host}: ${words} <span class="soft">${code}</span>${often}</li>`;
}

const tile = (figure: number | string, words: string): Markup =>
  html`<div><span class="figure">${typeof figure === "number" ? figure.toLocaleString("en") : figure}</span><small>${words}</small></div>`;

function row([label, words]: Fact): Markup | null {
  if (words === null || words === "") return null;
  const shown = label === "who and why" ? safeLink(words) : words;
  return html`<dt>${label[0]!.toUpperCase() + label.slice(1)}</dt><dd>${shown}</dd>`;
}

/** The coordinator states it: the web's own schemes alone. */
function safeLink(url: string): Markup | string {
  return /^https?:\/\//.test(url) ? html`<a href="${url}" rel="noreferrer">${url}</a>` : url;
}

type MarkupValue = Markup | string | number | null | readonly MarkupValue[];

function html(strings: TemplateStringsArray, ...values: readonly MarkupValue[]): Markup {
  return new Markup(
    strings.reduce((text, part, index) => `${text}${textOf(values[index - 1] ?? null)}${part}`),
  );
}

function textOf(value: MarkupValue): string {
  if (value === null) return "";
  if (value instanceof Markup) return value.text;
  if (typeof value === "number") return String(value);
  if (typeof value === "string")
    return value.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
  return value.map(textOf).join("");
}

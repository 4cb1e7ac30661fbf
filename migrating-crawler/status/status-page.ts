/** Renders the report as a page for a local browser: plain sentences, bars, no script, no external content. Pure functions. */
import { createHash } from "node:crypto";
import { type Html, type HtmlValue, html, safeHref } from "#core/html";
import { minuteOf, plural, type StatusReport } from "./status-report.ts";
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

/** The page reloads itself, but readers can stop that (WCAG 2.2, 2.2.1). */
export const refreshSeconds = 5;

const mostErrors = 20;

/** The style sheet: one column on a telephone, two on wider screens. The dark scheme is a second set of colours. */
const style = html`
:root{color-scheme:light dark;--ground:#f6f7f6;--card:#fff;--ink:#17201f;--soft:#5a6866;--line:#dfe4e2;--accent:#0b6b66;
--track:#e6ecea;--warm:#a64b07;--warm-soft:#fdf0dc;--good:#1b7f4b;--bad:#b3261e;--other:#8aa09d}
@media (prefers-color-scheme:dark){:root{--ground:#0f1514;--card:#171f1e;--ink:#e4ebe9;--soft:#94a5a2;--line:#27312f;
--accent:#4cc4b8;--track:#27312f;--warm:#f0a94b;--warm-soft:#33260f;--good:#5fd08f;--bad:#ff8a80;--other:#5d726f}}
*{box-sizing:border-box}
body{margin:0;background:var(--ground);color:var(--ink);
font:16px/1.5 system-ui,-apple-system,"Segoe UI","Noto Sans","Liberation Sans",sans-serif;font-variant-numeric:tabular-nums}
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

/** Only the page's own style sheet may load, nothing may run or frame the page, and forms are allowed only with the buttons. */
export function pagePolicy(hasButtons: boolean): string {
  const digest = createHash("sha256").update(style.markup).digest("base64");
  const action = hasButtons ? "'self'" : "'none'";
  return `default-src 'none'; style-src 'sha256-${digest}'; base-uri 'none'; form-action ${action}; frame-ancestors 'none'`;
}

interface PageView {
  readonly isStill: boolean;
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
<style>${style}</style>
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
${card("For whom", facts(connectionFacts(report)))}
${versionCard(report)}
${historyCard(report)}
${errorCard(report)}
${meaningCard(report)}
</div>
<footer>As of ${minuteOf(at)}; ${lookingAgain(view)}. <a href="/status.json">The same as JSON</a>.
It is served to this machine alone${view.key === null ? readOnlyWords : null}.</footer>
</main>
</body>
</html>
`;
  return page.markup;
}

const readOnlyWords =
  ", and changes nothing: pause and resume by the link that `status` prints, or by command";

const brandMark = html`<svg class="mark" viewBox="0 0 32 32" aria-hidden="true">
<path d="M4 27a23 23 0 0 1 23-23M10 27a17 17 0 0 1 17-17M16 27a11 11 0 0 1 11-11"/><circle cx="25" cy="25" r="4"/></svg>`;

const card = (title: string, content: HtmlValue, name = ""): Html =>
  html`<section class="${name}"><h2>${title}</h2>${content}</section>`;

const facts = (all: readonly Fact[]): Html => html`<dl>${all.map(row)}</dl>`;

function row([label, words]: Fact): Html | null {
  if (words === null || words === "") return null;
  const shown = label === "who and why" ? link(words) : words;
  return html`<dt>${label[0]!.toUpperCase() + label.slice(1)}</dt><dd>${shown}</dd>`;
}

/** The URL is checked, because it comes from the coordinator. */
function link(url: string): Html | string {
  const href = safeHref(url);
  return href === null ? url : html`<a href="${href}" rel="noreferrer">${url}</a>`;
}

const tile = (figure: number | string, words: string): Html =>
  html`<div><span class="figure">${figure.toLocaleString("en")}</span><small>${words}</small></div>`;

function bar(percent: number, label: string): Html {
  return html`<svg class="bar" viewBox="0 0 100 8" preserveAspectRatio="none" role="img"
 aria-label="${label}"><rect width="${Math.round(10 * percent) / 10}" height="8"/></svg>`;
}

function lookingAgain({ isStill, key }: PageView): Html {
  const live = key === null ? "/" : `/?key=${key}`;
  const still = key === null ? "/?still" : `/?key=${key}&still`;
  return isStill
    ? html`the page stays as it is. <a href="${live}">Look again every ${refreshSeconds} seconds</a>`
    : html`the page looks again every ${refreshSeconds} seconds. <a href="${still}">Hold it still</a>`;
}

function steering({ pause }: StatusReport, { key }: PageView): Html | null {
  if (key === null) return null;
  const [path, words] = pause === null ? ["/pause", "Pause"] : ["/resume", "Resume"];
  return html`<form class="steer" method="post" action="${path}"><input type="hidden" name="key" value="${key}">
<button>${words}</button></form>`;
}

function held({ holdingBack, notTold }: StatusReport): Html | null {
  const all = [...holdingBack, ...notTold].map((words) => html`<li>${words}</li>`);
  if (all.length === 0) return null;
  return html`<div class="held"><h2>Why it is idle</h2><ul>${all}</ul></div>`;
}

function limitCard({ limits, at }: StatusReport): Html {
  const rows = limitLines(limits, new Date(at)).map(limitRow);
  const whose = html`<p class="soft">They stand in settings.toml; nobody else can raise them.</p>`;
  return card("Your limits", [...rows, whose]);
}

function limitRow({ name, used, share, resets, holdingBack }: LimitLine): Html {
  const percent = 100 * (share ?? 0);
  const [limit, kind] = holdingBack === "" ? ["limit", "note"] : ["limit over", "note warm"];
  const note = [holdingBack, resets].filter((words) => words !== "").join("; ");
  return html`<div class="${limit}"><span>${name}</span><span class="used">${used}</span>
${share === null ? null : bar(percent, `${Math.round(10 * percent) / 10} %`)}
${note === "" ? null : html`<span class="${kind}">${note}</span>`}</div>`;
}

function workCard(report: StatusReport): Html | null {
  const { work, shipping } = report;
  if (work === null || shipping === null) return null;
  const { timesSmaller } = shipping;
  const times = timesSmaller === null || timesSmaller < 1 ? "–" : `1/${timesSmaller.toFixed(1)}`;
  const tiles = [
    tile(work.openHosts, "sites open"),
    tile(work.lastMinute.urls, "URLs in the last minute"),
    tile(work.today.urls, "URLs today"),
    tile(times, "of the pages' bytes shipped"),
  ];
  return card("What it does", html`<div class="tiles">${tiles}</div>${facts(workFacts(report))}`);
}

function versionCard(report: StatusReport): Html {
  const ends = report.lastEnds.slice(0, 1).map(({ at, reason }): Fact => {
    return ["last end", `${minuteOf(at)}: ${reason}`];
  });
  return card("What runs", facts([...versionFacts(report), ...ends]));
}

const shownDays = 14;

function historyCard(report: StatusReport): Html {
  const { days } = report.contribution;
  const most = Math.max(1, ...days.map(({ pages }) => pages));
  const rows = days.slice(0, shownDays).map(({ day, pages, urls }) => {
    const words = `${pages.toLocaleString("en")} of ${urls.toLocaleString("en")}`;
    return html`<span>${day}</span>${bar((100 * pages) / most, plural(pages, "page"))}<span class="used">${words}</span>`;
  });
  const shown =
    rows.length === 0
      ? html`<p class="soft">The days before today will be listed here.</p>`
      : html`<div class="days">${rows}</div>`;
  const words = `${contributedWords(report)}. They went to the search engine's index, each fetched from nearby and not from afar.`;
  return card("What it contributed", html`<p>${words}</p>${shown}`, "wide");
}

function errorCard({ errors }: StatusReport): Html {
  const { target, network, crawler, us } = errors.today;
  const tiles = [
    tile(target, "of sites today"),
    tile(network, "of the network"),
    tile(crawler, "of this machine"),
    tile(us, "of our software"),
  ];
  const rows = groupedErrors(errors.latest).slice(0, mostErrors).map(errorRow);
  const list =
    rows.length === 0 ? html`<p class="soft">None so far.</p>` : html`<ul class="errors">${rows}</ul>`;
  return card("Errors", html`<div class="tiles">${tiles}</div>${list}`, "wide");
}

function errorRow({ at, blame, host, code, words, times }: GroupedError): Html {
  const often = times === 1 ? null : html` <strong>${times} times in a row</strong>`;
  return html`<li><time datetime="${at}">${minuteOf(at)}</time><span class="blame">${blameWords[blame]}</span>${host}:
${words} <span class="soft">${code}</span>${often}</li>`;
}

function meaningCard({ coordinator: { contactPage } }: StatusReport): Html {
  const page = contactPage === null ? null : html` (${link(contactPage)})`;
  return card(
    "What hosting it means",
    html`<p>Web sites see this machine's address: requests come from here, and complaints may come here, too. Each request
names the operator and a page for webmasters${page}; send complaints on to them, they have to answer them. It obeys robots.txt,
asks one page at a time of a site, signs in nowhere, and fetches public pages alone; what it read it sends on and does not keep.
Networks that are private, and those that you deny, are never touched. You owe nobody anything: pausing, leaving and removing it
take one command each, and nobody can raise your limits. Which law holds for copies of public pages differs by country; who runs
the search engine answers for the index.</p>`,
    "wide",
  );
}

/** The page of one host: what it is and how it stands, and one of its parts. */
import { mayDo } from "#core/actor";
import { bytesText, howMany, leastSamples, msText, spanWords, whenWords } from "#core/format";
import { rangeQuery, rangeWords } from "#core/time-range";
import { perHourWords } from "#protocol/pace-words";
import { changeKinds } from "../changes/changes-api.ts";
import { differenceList } from "../changes/difference-page.ts";
import { type ChangeKind, kindWords } from "../changes/page-change.ts";
import { delayWords } from "../frontier/pace-reasons.ts";
import { fetchAgainForm, handInForm } from "../submissions/page.ts";
import { confirmForm, crawlerFor, empty, fact, onlyOperators, options, tile } from "../web/components.ts";
import { askAbout, country, countText, instant, msOrDash, percentText, sentence } from "../web/format.ts";
import { type CsvTable, type Html, html, nothing, pathWith } from "../web/html.ts";
import type { PageViewer } from "../web/page-frame.ts";
import { rangePicker, timeChart } from "../web/time-chart.ts";
import { type AskedSite, firstUrlOf, siteNamed } from "./site.ts";
import {
  mostFetchedAgain,
  type Site,
  type SiteAnswer,
  type SiteChanges,
  type SiteLinks,
  type SiteOverview,
  type SitePages,
  type SitePart,
  type SiteRobots,
  type SiteSpeed,
  type SiteUrl,
  siteParts,
  type UrlFilter,
  urlFilters,
} from "./site-api.ts";
import { stateNames } from "./sites-list.ts";

export interface SitePage {
  readonly answer: SiteAnswer;
  readonly asked: AskedSite;
  readonly viewer: PageViewer;
}

export const sitePath = (host: string): string => `/sites/${encodeURIComponent(host)}`;

const partNames: Readonly<Record<SitePart, string>> = {
  overview: "Overview",
  pages: "Pages",
  changes: "Changes",
  robots: "Robots and preferences",
  speed: "Speed and pace",
  links: "Links",
};

export function siteBody(page: SitePage): Html {
  const { answer } = page;
  if (answer.site === null) return unknownBody(page);
  return html`${head(answer.site, answer.now, page.viewer)}
<nav class="tabs" aria-label="Parts of this host">${siteParts.map(
    (part) =>
      html`<a href="${partPath(answer.host, part)}"${part === answer.part ? html` aria-current="page"` : nothing}>${partNames[part]}</a>`,
  )}</nav>
${partBody(page, answer.site)}`;
}

const partPath = (host: string, part: SitePart) =>
  pathWith(sitePath(host), { part: part === "overview" ? null : part });

function unknownBody({ answer: { host, words }, asked, viewer }: SitePage): Html {
  const isHost = siteNamed(asked.host) !== null;
  return html`<p class="crumbs"><a href="/sites">Sites</a></p><h1 class="break"><bdi>${host}</bdi></h1>
<div class="empty"><p><strong>${words ?? ""}</strong></p>${
    isHost
      ? html`<p><a href="${pathWith("/who", { q: host })}">Who would crawl it</a>${
          mayDo(viewer.actor, "url-write") ? html` · <a href="/submit">Submit URLs of it</a>` : nothing
        }</p>${handInForm(viewer, firstUrlOf(host))}`
      : html`<p><a href="/sites">All hosts</a></p>`
  }</div>`;
}

// Above every part: name, state, where it lies, who crawls it.

function head(site: Site, now: string, viewer: PageViewer): Html {
  const notes = site.standing.filter(({ words, code }) => words !== site.words && code !== "ready");
  return html`<p class="crumbs"><a href="/sites">Sites</a></p>
<div class="title-row"><h1 class="break"><bdi>${site.name}</bdi></h1><span class="state state-${site.state}">${stateNames[site.state]}</span></div>
${site.name === site.host ? nothing : html`<p class="mono small break">${site.host}</p>`}
<p class="lead site-lead">${sentence(site.words)}</p>
${notes.length === 0 ? nothing : html`<ul class="standing">${notes.map((line) => html`<li class="${line.stops ? "stops" : "notes"}">${sentence(line.words)}</li>`)}</ul>`}
<dl class="facts">
${fact("Crawler", crawlerFact(site, viewer))}
${fact("Subnet", subnetFact(site))}
${fact("Addresses", addressesFact(site))}
${site.organisation ? fact("Organisation", html`<a href="${pathWith("/who", { q: site.organisation.handle ?? site.organisation.name })}"><bdi>${site.organisation.name}</bdi></a>`) : nothing}
${fact("Language", site.language ?? "not known yet")}
${fact("Channels", channelsFact(site))}
${fact("Cap", site.capDelayMs === null ? html`none <a class="small" href="/fleet/site-caps">caps</a>` : html`one request every ${delayWords(site.capDelayMs)} <a class="small" href="/fleet/site-caps">caps</a>`)}
${fact("Opt-out", site.optOut === null ? html`none <a class="small" href="/about-crawler">for webmasters</a>` : html`${sentence(site.optOut)}`)}
${site.complaints.all === 0 ? nothing : fact("Complaints", html`${countText(site.complaints.all)} <span class="small">${site.complaints.open === 0 ? "all closed" : `${countText(site.complaints.open)} open`}</span>`)}
${fact("Next fetch", site.nextAt === null ? "none scheduled" : html`${whenWords(site.nextAt, new Date(now))} <span class="small">${instant(site.nextAt)}</span>`)}
${fact("Known since", instant(site.knownSince))}
</dl>`;
}

function crawlerFact({ crawler, host }: Site, viewer: PageViewer): Html {
  const why = html`<a class="small" href="${pathWith("/who", { q: host })}">why in full</a>`;
  if (crawler === null) return html`nobody ${why}`;
  const rtt = crawler.rttMs === null ? "" : `${msText(crawler.rttMs)}; `;
  return html`<strong>${crawlerFor(viewer, crawler.name)}</strong> <span class="small">${rtt}${crawler.words}</span> ${why}`;
}

function subnetFact({ subnet, country: code }: Site): Html {
  if (subnet === null) return html`not registered`;
  return html`${askAbout(subnet.range)} <span class="small"><bdi>${subnet.name}</bdi> ${country(code)}</span>`;
}

function addressesFact({ addresses }: Site): Html {
  if (addresses.length === 0) return html`not looked up yet`;
  const more =
    addresses.length > 4
      ? html` <span class="small">and ${countText(addresses.length - 4)} more</span>`
      : nothing;
  return html`${addresses.slice(0, 4).map((address, at) => html`${at === 0 ? "" : ", "}${askAbout(address)}`)}${more}`;
}

function channelsFact({ channels }: Site): Html {
  if (channels.length === 0)
    return html`none: crawled as the scope says <a class="small" href="/channels">channels</a>`;
  const directories = channels.flatMap((channel) => channel.directories).slice(0, 5);
  return html`${directories.join(", ")} <a class="small" href="/channels">channels</a>`;
}

function partBody(page: SitePage, site: Site): Html {
  const { overview, pages, changes, robots, speed, links } = page.answer;
  if (overview !== null) return overviewPart(overview, site, page);
  if (pages !== null) return pagesPart(pages, page);
  if (changes !== null) return changesPart(changes, page);
  if (robots !== null) return robotsPart(robots, page);
  if (speed !== null) return speedPart(speed, page);
  return links === null ? nothing : linksPart(links);
}

// Overview.

function overviewPart(
  { urls, freshness, failures, needsScripts }: SiteOverview,
  site: Site,
  page: SitePage,
): Html {
  const { host } = page.answer;
  const to = (filter: UrlFilter) => pathWith(sitePath(host), { part: "pages", filter });
  const linked = (count: number, filter: UrlFilter) =>
    count === 0 ? html`0` : html`<a href="${to(filter)}">${countText(count)}</a>`;
  return html`<dl class="tiles site-tiles">
${tile("URLs", countText(site.urls), urls.more ? `${countText(urls.counted)} of them counted here` : `${countText(site.fetchedUrls)} fetched so far`)}
${tile("Due", linked(urls.due, "due"), `${countText(urls.inProgress)} in progress`)}
${tile("Scheduled", linked(urls.scheduled, "scheduled"), html`${linked(urls.failing, "failing")} failing`)}
${tile("Not fetched", linked(urls.blockedByRobots, "blocked-by-robots"), html`by robots.txt; ${linked(urls.refused, "refused")} refused, ${linked(urls.gone, "gone")} gone, ${linked(site.heldUrls, "held")} held`)}
${tile("Downloaded", bytesText(site.fetchedBytes), site.fetches === 1 ? "in one fetch" : `in ${countText(site.fetches)} fetches`)}
${tile("Linked from", countText(site.outsideLinks), "links of other hosts")}
</dl>
<section aria-labelledby="fresh"><h2 id="fresh">How fresh its pages are</h2>${freshnessBody(freshness)}
${needsScripts.pages === 0 ? nothing : html`<p>${howMany(needsScripts.pages, "page")} ${needsScripts.pages === 1 ? "is" : "are"} <strong>empty without scripts</strong>: an application draws ${needsScripts.pages === 1 ? "it" : "them"} in the browser, so that there is no text to index. ${needsScripts.urls.slice(0, 3).map((url) => html`${askAbout(url)} `)}</p>`}</section>
<section aria-labelledby="failures"><h2 id="failures">What failed</h2>
${rangePicker(sitePath(host), {}, page.asked.range)}
${failuresBody(failures, page)}</section>
${againSection(page, site)}`;
}

function freshnessBody({
  pages,
  withinDay,
  within7Days,
  within30Days,
  within90Days,
  oldestAt,
}: SiteOverview["freshness"]): Html {
  if (pages === 0)
    return empty("No page has been fetched yet.", "How old they are will be here once there are some.");
  const spans: readonly (readonly [string, number])[] = [
    ["within a day", withinDay],
    ["1 to 7 days ago", within7Days - withinDay],
    ["7 to 30 days ago", within30Days - within7Days],
    ["30 to 90 days ago", within90Days - within30Days],
    ["earlier", pages - within90Days],
  ];
  const share = (count: number) => (pages < leastSamples ? "" : percentText(count / pages));
  return html`<p class="lead">Of ${howMany(pages, "page")} ${
    pages < leastSamples
      ? html`(too few yet for shares), ${countText(withinDay)} were fetched within a day, ${countText(within7Days)} within 7 days and ${countText(within30Days)} within 30`
      : html`<strong>${percentText(withinDay / pages)}</strong> were fetched within a day, <strong>${percentText(within7Days / pages)}</strong> within 7 days, <strong>${percentText(within30Days / pages)}</strong> within 30`
  }.${oldestAt === null ? nothing : html` The oldest: ${instant(oldestAt)}.`}</p>
<div class="scroll" tabindex="0" role="region" aria-label="Age of the pages"><table class="site-ages"><thead><tr><th scope="col">Last fetched</th><th scope="col" class="number">Pages</th><th scope="col" class="number">Share</th><th scope="col" class="bar-column"><span class="hidden">Share as a bar</span></th></tr></thead>
<tbody>${spans.map(([name, count]) => html`<tr><th scope="row">${name}</th><td class="number">${countText(count)}</td><td class="number">${share(count) || "–"}</td><td class="bar-column">${bar(count / pages)}</td></tr>`)}</tbody></table></div>`;
}

function bar(share: number): Html {
  const width = Math.round(Math.min(1, Math.max(0, share)) * 1000) / 10;
  return html`<svg class="bar" viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true"><rect class="bar-ground" width="100" height="8"/><rect class="bar-value" width="${width}" height="8"/></svg>`;
}

const blameNames = {
  target: "The site",
  network: "The network path",
  crawler: "The crawler",
  us: "Our software",
} as const;

type Blame = keyof typeof blameNames;

function failuresBody(failures: SiteOverview["failures"], { asked, answer }: SitePage): Html {
  if (failures.fetches === 0)
    return empty(`Nothing of it was fetched in ${rangeWords(asked.range)}.`, "Choose a longer range above.");
  const failed = failures.kinds.reduce((sum, { fetches }) => sum + fetches, 0);
  const share =
    failures.fetches < leastSamples ? "too few yet for a share" : percentText(failed / failures.fetches);
  const lines = (Object.keys(blameNames) as Blame[]).filter((blame) =>
    failures.points.some((point) => point[blame] > 0),
  );
  return html`<p class="lead">${countText(failed)} of ${failures.more ? "the latest " : ""}${countText(failures.fetches)} fetches in ${rangeWords(asked.range)} failed (${share}).</p>
${
  failed === 0
    ? nothing
    : html`${
        lines.length === 0
          ? nothing
          : timeChart({
              title: "Failed fetches by whose fault it was",
              range: asked.range,
              series: lines.map((blame) => ({
                name: blameNames[blame],
                points: failures.points.map((point) => ({ at: new Date(point.at), value: point[blame] })),
              })),
              text: countText,
            })
      }<div class="scroll" tabindex="0" role="region" aria-label="Failures by kind"><table><thead><tr><th scope="col">Kind</th><th scope="col">Whose fault</th><th scope="col" class="number">Fetches</th><th scope="col">URLs</th></tr></thead>
<tbody>${failures.kinds.map(({ outcome, status, blame, fetches }) => html`<tr><th scope="row">${outcomeText(outcome, status)}</th><td>${blame === null ? "nobody's" : blameNames[blame as Blame]}</td><td class="number">${countText(fetches)}</td><td><a href="${pathWith(sitePath(answer.host), { part: "pages", outcome, status })}">with this outcome</a></td></tr>`)}</tbody></table></div>`
}`;
}

function againSection({ answer: { host }, viewer }: SitePage, site: Site): Html {
  const may = mayDo(viewer.actor, "url-write") && viewer.formToken !== null;
  const many = mostFetchedAgain.toLocaleString("en-GB");
  return html`<section aria-labelledby="again"><h2 id="again">Fetch it again</h2>
<p class="small">Its pages that are scheduled for later become due now, the next ${many} of them. The host keeps its pace: it takes ${spanWords(Math.min(site.urls, mostFetchedAgain) * paceSeconds(site))} or more. Single URLs: by their button under <a href="${partPath(host, "pages")}">Pages</a>.</p>
${may ? confirmForm(viewer, { path: `${sitePath(host)}/fetch-again`, label: "Fetch its pages again", typed: host, id: "again-host" }) : onlyOperators(viewer.actor, "url-write", "Fetching it again")}</section>`;
}

const paceSeconds = ({ capDelayMs }: Site) => Math.max(1, (capDelayMs ?? 0) / 1000);

// Pages.

const filterNames: Readonly<Record<UrlFilter, string>> = {
  all: "All in the frontier",
  due: "Due",
  scheduled: "Scheduled",
  "in-progress": "In progress",
  failing: "Failing",
  "blocked-by-robots": "Blocked by robots.txt",
  refused: "Refused",
  gone: "Gone",
  held: "Held over the budget",
  rejected: "Rejected when given",
};

function pagesPart(pages: SitePages, { answer: { host, now }, asked, viewer }: SitePage): Html {
  const query = { part: "pages", filter: pages.filter, outcome: pages.outcome, status: pages.status };
  const isFiltered = pages.filter !== "all" || pages.outcome !== null || pages.status !== null;
  return html`${leftOutList(pages, host)}
<form class="feed-filters" action="${sitePath(host)}"><input type="hidden" name="part" value="pages">
<div><label for="site-filter">State</label><select id="site-filter" name="filter">${options(
    urlFilters.map((filter) => [filter, filterNames[filter]] as const),
    pages.filter,
  )}</select></div>
<div><label for="site-outcome">Last outcome</label><select id="site-outcome" name="outcome">${options(outcomeChoices(pages.outcome), pages.outcome ?? "")}</select></div>
<div><label for="site-status">Last status</label><input id="site-status" name="status" value="${pages.status ?? ""}" placeholder="404" inputmode="numeric" maxlength="3" pattern="[1-9][0-9][0-9]" autocomplete="off"></div>
<button>Show</button>${isFiltered ? html`<a class="button quiet" href="${partPath(host, "pages")}">Show all</a>` : nothing}</form>
${
  pages.urls.length === 0
    ? empty(
        pages.next === null ? "No URL of it is like that." : "None of the URLs looked at is like that.",
        pages.next === null ? html`<a href="${partPath(host, "pages")}">All of its URLs</a>` : "Go on below.",
      )
    : html`<div class="scroll" tabindex="0" role="region" aria-label="URLs of this host"><table class="site-urls">
<thead><tr><th scope="col">URL</th><th scope="col">State</th><th scope="col">Last fetch</th><th scope="col">Outcome</th><th scope="col">Next</th>${viewer.formToken !== null && mayDo(viewer.actor, "url-write") ? html`<th scope="col"><span class="hidden">Action</span></th>` : nothing}</tr></thead>
<tbody>${pages.urls.map((url) => urlRow(url, now, viewer))}</tbody></table></div>`
}
${pager(host, query, { after: asked.after, next: pages.next, words: pages.looked === null ? "Next →" : `Look through the next ${countText(pages.looked)} URLs →` })}`;
}

/** What has one, or was asked for. */
function outcomeChoices(asked: string | null): (readonly [string, string])[] {
  const known = Object.entries(outcomeNames);
  const isKnown = asked === null || asked in outcomeNames;
  return [["", "any"], ...known, ...(isKnown ? [] : [[asked, asked] as const])];
}

const outcomeNames: Readonly<Record<string, string>> = {
  fetched: "fetched",
  unchanged: "unchanged",
  redirected: "redirected",
  "http-error": "error status",
  failed: "no answer",
  "soft-not-found": "“not found” with status 200",
  challenged: "a bot gate's challenge",
  "payment-required": "payment required",
  unsupported: "content type not indexed",
  "refused-by-robots": "disallowed by robots.txt",
  "refused-address": "special-purpose address",
  "outside-channel": "skipped by its channel",
  "opted-out": "opted out",
};

const outcomeText = (outcome: string, status: number | null) =>
  `${outcomeNames[outcome] ?? outcome}${status === null ? "" : ` ${status}`}`;

function leftOutList({ leftOut }: SitePages, host: string): Html {
  if (leftOut.length === 0) return nothing;
  const to = (reason: string) => (urlFilters as readonly string[]).includes(reason);
  return html`<section aria-labelledby="left-out"><h2 id="left-out">Skipped, because</h2><ul class="site-left-out">${leftOut.map(
    ({ reason, words, count }) =>
      html`<li>${to(reason) ? html`<a href="${pathWith(sitePath(host), { part: "pages", filter: reason })}"><strong>${countText(count)}</strong></a>` : html`<strong>${countText(count)}</strong>`} ${words}</li>`,
  )}</ul></section>`;
}

function urlRow(one: SiteUrl, now: string, viewer: PageViewer): Html {
  const { url, title, state, outcome, status, reason, fetchedAt, nextAt, failures, visits } = one;
  const isOpen = viewer.formToken !== null && mayDo(viewer.actor, "url-write");
  const shownNext = state === "scheduled" || state === "due" ? nextAt : null;
  return html`<tr><th scope="row" class="break">${askAbout(url)}${title === null ? nothing : html`<span class="small"><a href="${pathWith("/pages", { url })}"><bdi>${title}</bdi></a></span>`}</th><td>${filterNames[state]}${failures > 0 ? html`<span class="small">${howMany(failures, "failure")} in a row</span>` : nothing}</td><td>${fetchedAt === null ? "never" : html`${instant(fetchedAt)}<span class="small">${howMany(visits, "visit")}</span>`}</td><td class="break">${outcome === null ? "–" : outcomeText(outcome, status)}${reason === null || reason === "" ? nothing : html`<span class="small"><bdi>${reason}</bdi></span>`}</td><td>${shownNext === null ? "–" : html`<span title="${shownNext}">${whenWords(shownNext, new Date(now))}</span>`}</td>${isOpen ? html`<td>${state === "rejected" || state === "in-progress" ? nothing : fetchAgainForm(viewer, url)}</td>` : nothing}</tr>`;
}

interface Stretch {
  readonly after: string;
  readonly next: string | number | null;
  readonly words: string;
}

function pager(
  host: string,
  query: Readonly<Record<string, string | number | null>>,
  { after, next, words }: Stretch,
): Html {
  if (after === "" && next === null) return nothing;
  return html`<nav class="pager" aria-label="Parts of the list">${after === "" ? nothing : html`<a href="${pathWith(sitePath(host), query)}">← From the beginning</a>`}${
    next === null
      ? nothing
      : html`<a rel="next" href="${pathWith(sitePath(host), { ...query, after: next })}">${words}</a>`
  }</nav>`;
}

// Changes.

const dayNames: readonly (readonly [string, string])[] = [
  ["1", "in 24 hours"],
  ["7", "in 7 days"],
  ["30", "in 30 days"],
];

function changesPart(changes: SiteChanges, { answer: { host }, asked }: SitePage): Html {
  const query = { part: "changes", days: changes.days, kind: changes.kind };
  const all = changes.counts.reduce((sum, one) => sum + one.changes, 0);
  const kinds: (readonly [ChangeKind | "", string])[] = [
    ["", "everything"],
    ...changeKinds.map((kind) => [kind, kindWords[kind]] as const),
  ];
  return html`<form class="feed-filters" action="${sitePath(host)}"><input type="hidden" name="part" value="changes">
<div><label for="site-days">Noticed</label><select id="site-days" name="days">${options(dayNames, String(changes.days))}</select></div>
<div><label for="site-kind">What</label><select id="site-kind" name="kind">${options(kinds, changes.kind ?? "")}</select></div>
<button>Show</button></form>
<p class="lead">${all === 0 ? "Nothing" : changes.counts.map((one) => `${kindWords[one.kind]} ${countText(one.changes)}`).join(" · ")} ${all === 0 ? "changed" : ""} ${dayNames.find(([days]) => days === String(changes.days))?.[1] ?? ""}.</p>
${
  changes.changes.length === 0
    ? empty(
        "No such change was noticed in that time.",
        html`What visits find new, changed or gone will be here. <a href="${pathWith("/changes", { host })}">All changes of this host</a>.`,
      )
    : html`<ol class="site-changes">${changes.changes.map(changeItem)}</ol>`
}
${pager(host, query, { after: asked.after, next: changes.next, words: "Earlier →" })}`;
}

function changeItem({
  kind,
  url,
  seenAt,
  words,
  difference,
  titleAfter,
  titleBefore,
}: SiteChanges["changes"][number]): Html {
  const title = titleAfter || titleBefore;
  return html`<li><p class="site-change-head"><span class="kind kind-${kind}">${kindWords[kind]}</span> <span class="small">${instant(seenAt.toISOString())}</span></p>
<p class="break">${title ? html`<a href="${pathWith("/pages", { url })}"><bdi>${title}</bdi></a> ` : nothing}<span class="small">${askAbout(url)}</span></p>
<p class="small"><bdi>${words}</bdi></p>${difference === null ? nothing : differenceList(difference)}</li>`;
}

// Robots and preferences.

function robotsPart(
  { robots, crawlDelayMs, blocked, stated, notSearched, payment }: SiteRobots,
  { answer: { host } }: SitePage,
): Html {
  const toBlocked = pathWith(sitePath(host), { part: "pages", filter: "blocked-by-robots" });
  return html`<section aria-labelledby="robots"><h2 id="robots">robots.txt</h2>
<p class="lead">${robots === null ? "Its robots.txt has not been asked for yet: the first fetch brings it." : html`${capital(robots.words)}, as found ${instant(robots.at)}.`}${crawlDelayMs === null ? nothing : html` It asks for ${delayWords(crawlDelayMs)} between requests (Crawl-delay).`}</p>
${
  blocked.urls === 0
    ? html`<p class="small">It keeps none of the ${blocked.more ? "URLs that were looked at" : "known URLs"} from being fetched.</p>`
    : html`<p><a href="${toBlocked}"><strong>${countText(blocked.urls)}</strong> ${blocked.urls === 1 ? "URL is" : "URLs are"} blocked</a>${blocked.more ? ", of those that were looked at" : ""}, by these rules:</p>
<div class="scroll" tabindex="0" role="region" aria-label="Rules that block URLs"><table><thead><tr><th scope="col">Rule</th><th scope="col" class="number">URLs</th><th scope="col">Such as</th></tr></thead>
<tbody>${blocked.rules.map(({ rule, urls, example }) => html`<tr><th scope="row" class="break mono">${rule.replace(/^robots\.txt: /, "") || "not kept"}</th><td class="number">${countText(urls)}</td><td class="break">${askAbout(example)}</td></tr>`)}</tbody></table></div>`
}
${payment === null ? nothing : html`<p>${sentence(payment)}</p>`}</section>
<section aria-labelledby="stated"><h2 id="stated">Stated preferences</h2>
${
  stated.sets.length === 0
    ? empty(
        "It states nothing of the uses of its pages.",
        `Looked at: ${howMany(stated.pages, "page")} in the index${stated.more ? ", and there are more" : ""}. Content-Signal, Content-Usage, TDMRep and RSL would be here.`,
      )
    : html`<p class="lead">Of ${stated.more ? "the first " : ""}${howMany(stated.pages, "page")} in the index:</p>
<div class="scroll" tabindex="0" role="region" aria-label="Stated preferences"><table><thead><tr><th scope="col">Use</th><th scope="col">Answer</th><th scope="col" class="number">Pages</th></tr></thead><tbody>${stated.counts.map(({ use, answer, pages }) => html`<tr><th scope="row">${use}</th><td>${answer}</td><td class="number">${countText(pages)}</td></tr>`)}</tbody></table></div>
<details><summary>As written</summary><ul class="plain">${stated.sets.map(({ pages, statements }) => html`<li class="break">${statements.map((one) => html`<bdi>${one}</bdi> `)}<span class="small">${howMany(pages, "page")}</span></li>`)}</ul></details>`
}
${
  notSearched.pages === 0
    ? nothing
    : html`<h3>Not searched</h3><p>${howMany(notSearched.pages, "page")} ${notSearched.pages === 1 ? "is" : "are"} kept without text, since the site states that ${notSearched.pages === 1 ? "it is" : "they are"} not to be searched; such as</p><ul class="plain">${notSearched.urls.map((url) => html`<li>${askAbout(url)}</li>`)}</ul>`
}</section>`;
}

const capital = (words: string) => words.charAt(0).toUpperCase() + words.slice(1);

// Speed and pace.

function speedPart(speed: SiteSpeed, { answer: { host }, asked, viewer }: SitePage): Html {
  const { all, points, crawlers, pace, moves } = speed;
  const { range } = asked;
  const line = (name: string, of: (point: SiteSpeed["points"][number]) => number | null) => ({
    name,
    points: points.map((point) => ({ at: new Date(point.at), value: of(point) })),
  });
  const marks = moves.map(({ at, words }) => ({ at: new Date(at), words }));
  return html`<section aria-labelledby="pace"><h2 id="pace">Pace</h2><dl class="facts">
${fact("Between requests", pace.delayMs === null ? "the crawler's usual pace" : delayWords(pace.delayMs))}
${pace.notBefore === null ? nothing : fact("Left alone until", instant(pace.notBefore))}
${fact("Crawl-delay", pace.crawlDelayMs === null ? "none" : delayWords(pace.crawlDelayMs))}
${fact("Cap", pace.capDelayMs === null ? html`none <a class="small" href="/fleet/site-caps">caps</a>` : html`${delayWords(pace.capDelayMs)} <a class="small" href="/fleet/site-caps">caps</a>`)}
${fact("Tolerates", pace.toleratedPerHour === null ? "no limit found" : perHourWords(pace.toleratedPerHour))}
${pace.backOffMs === null || pace.backedOffAt === null ? nothing : fact("Back-off", html`${delayWords(pace.backOffMs)} <span class="small">since ${instant(pace.backedOffAt)}</span>`)}
${pace.usualMs === null ? nothing : fact("Usually answers in", msText(pace.usualMs))}
</dl>
${
  pace.reasons.length + pace.said.length === 0
    ? html`<p class="small">The site has said nothing of our pace: no Crawl-delay, no 429 or 503, no complaint.</p>`
    : html`<ul class="plain">${pace.reasons.map((words) => html`<li>${sentence(`${capital(words)}.`)}</li>`)}${pace.said.map((words) => html`<li>${sentence(words)}</li>`)}</ul>`
}</section>
<section aria-labelledby="times"><h2 id="times">How fast it answers</h2>
${rangePicker(sitePath(host), { part: "speed" }, range)}
${
  all.samples === 0
    ? empty(
        `It answered no fetch in ${rangeWords(range)}.`,
        "Fetches are kept for a time (policy retention.fetchDays).",
      )
    : html`<dl class="tiles">
${tile("Connecting", msOrDash(all.rttMs), "median: one round trip")}
${tile("First byte", msOrDash(all.firstByteMs), "median")}
${tile("Whole page", msOrDash(all.totalMs), "median")}
${tile("Answers", countText(all.samples), all.samples < leastSamples ? "too few yet for firm figures" : `${bytesText(all.wireBytes)} over the wire${speed.more ? "; the latest of more" : ""}`)}
</dl>
${timeChart({ title: "Connecting and first byte", range, marks, text: msText, series: [line("Connecting", ({ rttMs }) => rttMs), line("First byte", ({ firstByteMs }) => firstByteMs)] })}
${timeChart({ title: "Downloading a page", range, marks, text: msText, series: [line("Whole page", ({ totalMs }) => totalMs)] })}
${timeChart({ title: "Fetches", range, text: countText, series: [line("Fetches", ({ samples }) => samples)] })}
<h3>By crawler</h3><div class="scroll" tabindex="0" role="region" aria-label="By crawler"><table><thead><tr><th scope="col">Crawler</th><th scope="col" class="number">Answers</th><th scope="col" class="number">Connecting</th><th scope="col" class="number">First byte</th><th scope="col" class="number">Whole page</th></tr></thead>
<tbody>${crawlers.map((one) => html`<tr><th scope="row">${crawlerFor(viewer, one.name)}</th><td class="number">${countText(one.samples)}</td><td class="number">${msOrDash(one.rttMs)}</td><td class="number">${msOrDash(one.firstByteMs)}</td><td class="number">${msOrDash(one.totalMs)}</td></tr>`)}</tbody></table></div>`
}
${moves.length === 0 ? nothing : html`<details><summary>${howMany(moves.length, "change")} of its crawler in that time</summary><ul class="plain">${moves.map(({ at, words }) => html`<li>${instant(at)} ${words}</li>`)}</ul></details>`}
<p class="small">The same range: <a href="${pathWith(sitePath(host), rangeQuery(range))}">what failed</a>.</p></section>`;
}

// Links.

function linksPart({ to, toLooked, from, fromLooked }: SiteLinks): Html {
  const hostLink = (host: string) => html`<a class="mono" href="${sitePath(host)}">${host}</a>`;
  const table = (label: string, rows: readonly { readonly host: string; readonly pages: number }[]) =>
    html`<div class="scroll" tabindex="0" role="region" aria-label="${label}"><table><thead><tr><th scope="col">Host</th><th scope="col" class="number">Pages</th></tr></thead><tbody>${rows.map(({ host, pages }) => html`<tr><th scope="row" class="break">${hostLink(host)}</th><td class="number">${countText(pages)}</td></tr>`)}</tbody></table></div>`;
  return html`<div class="site-columns"><section aria-labelledby="from"><h2 id="from">Hosts that link to it</h2>
<p class="small">By the links to its ${howMany(fromLooked.urls, "most linked URL")}${fromLooked.more ? "; there may be more" : ""}. Pages: of that host, with such a link.</p>
${from.length === 0 ? empty("No page of another host links to it.", "Links count once their page has been fetched.") : table("Hosts that link to it", from)}</section>
<section aria-labelledby="to"><h2 id="to">Hosts that it links to</h2>
<p class="small">Of ${howMany(toLooked.pages, "page")} looked at${toLooked.more ? "; there are more" : ""}. Pages: of this host, with a link there.</p>
${to.length === 0 ? empty("It links to no host that the crawl knows.", "Links count once their page has been fetched.") : table("Hosts that it links to", to)}</section></div>`;
}

export function siteUrlsCsv(urls: readonly SiteUrl[]): CsvTable {
  return {
    columns: [
      "url",
      "state",
      "title",
      "outcome",
      "status",
      "reason",
      "failures",
      "visits",
      "fetched_at",
      "next_at",
    ],
    rows: urls.map((one) => [
      ...[one.url, one.state, one.title, one.outcome, one.status, one.reason, one.failures, one.visits],
      ...[one.fetchedAt, one.nextAt],
    ]),
  };
}

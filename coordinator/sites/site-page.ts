/** The page of one host: what it is and how it stands, and one of its parts. */

import { mayDo } from "#core/actor";
import { bytesText, howMany, leastSamples, msText, spanWords, whenWords } from "#core/format";
import { rangeQuery, rangeWords } from "#core/time-range";
import { perHourWords } from "#protocol/pace-words";
import { actions } from "../ask/document.ts";
import { nodesHtml } from "../ask/html-rendering.ts";
import { changeKinds } from "../changes/changes-api.ts";
import { differenceList } from "../changes/difference-page.ts";
import { type ChangeKind, kindWords } from "../changes/page-change.ts";
import { delayWords } from "../frontier/pace-reasons.ts";
import { fetchAgain, handIn } from "../submissions/submissions-ask.ts";
import {
  confirmForm,
  crawlerFor,
  empty,
  fact,
  onlyOperators,
  options,
  shareBar,
  small,
  tableOf,
  tile,
} from "../web/components.ts";
import {
  askAbout,
  country,
  countText,
  instant,
  msOrDash,
  percentText,
  sentence,
  stateBadge,
} from "../web/format.ts";
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
      html`<a href="${partPath(answer.host, part)}"${part === answer.part && html` aria-current="page"`}>${partNames[part]}</a>`,
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
        }</p>${nodesHtml([actions(handIn(firstUrlOf(host)))], viewer)}`
      : html`<p><a href="/sites">All hosts</a></p>`
  }</div>`;
}

// Above every part: name, state, where it lies, who crawls it.

function head(site: Site, now: string, viewer: PageViewer): Html {
  const { organisation, complaints, optOut, nextAt } = site;
  const notes = site.standing.filter(({ words, code }) => words !== site.words && code !== "ready");
  const standing = notes.map(
    (line) => html`<li class="${line.stops ? "stops" : "notes"}">${sentence(line.words)}</li>`,
  );
  const q = organisation?.handle ?? organisation?.name;
  const open = complaints.open === 0 ? "all closed" : `${countText(complaints.open)} open`;
  const cap = site.capDelayMs === null ? "none" : `one request every ${delayWords(site.capDelayMs)}`;
  return html`<p class="crumbs"><a href="/sites">Sites</a></p>
<div class="title-row"><h1 class="break"><bdi>${site.name}</bdi></h1>${stateBadge(site.state, stateNames[site.state])}</div>
${site.name !== site.host && html`<p class="mono small break">${site.host}</p>`}
<p class="lead site-lead">${sentence(site.words)}</p>
${notes.length > 0 && html`<ul class="standing">${standing}</ul>`}
<dl class="facts">
${fact("Crawler", crawlerFact(site, viewer))}
${fact("Subnet", subnetFact(site))}
${fact("Addresses", addressesFact(site))}
${organisation && fact("Organisation", html`<a href="${pathWith("/who", { q })}"><bdi>${organisation.name}</bdi></a>`)}
${fact("Language", site.language ?? "not known yet")}
${fact("Channels", channelsFact(site))}
${fact("Cap", html`${cap} ${toCaps}`)}
${fact("Opt-out", optOut === null ? html`none <a class="small" href="/about-crawler">for webmasters</a>` : sentence(optOut))}
${complaints.all > 0 && fact("Complaints", html`${countText(complaints.all)} ${small(open)}`)}
${fact("Next fetch", nextAt === null ? "none scheduled" : html`${whenWords(nextAt, new Date(now))} ${small(instant(nextAt))}`)}
${fact("Known since", instant(site.knownSince))}
</dl>`;
}

const toCaps = html`<a class="small" href="/fleet/site-caps">caps</a>`;

function crawlerFact({ crawler, host }: Site, viewer: PageViewer): Html {
  const why = html`<a class="small" href="${pathWith("/who", { q: host })}">why in full</a>`;
  if (crawler === null) return html`nobody ${why}`;
  const rtt = crawler.rttMs === null ? "" : `${msText(crawler.rttMs)}; `;
  return html`<strong>${crawlerFor(viewer, crawler.name)}</strong> ${small(rtt + crawler.words)} ${why}`;
}

function subnetFact({ subnet, country: code }: Site): Html {
  if (subnet === null) return html`not registered`;
  return html`${askAbout(subnet.range)} ${small(html`<bdi>${subnet.name}</bdi> ${country(code)}`)}`;
}

function addressesFact({ addresses }: Site): Html {
  if (addresses.length === 0) return html`not looked up yet`;
  const more = addresses.length > 4 && html` ${small(`and ${countText(addresses.length - 4)} more`)}`;
  const shown = addresses.slice(0, 4).map((address, at) => html`${at > 0 && ", "}${askAbout(address)}`);
  return html`${shown}${more}`;
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
  const unread = needsScripts.pages;
  const counted = urls.more
    ? `${countText(urls.counted)} of them counted here`
    : `${countText(site.fetchedUrls)} fetched so far`;
  return html`<dl class="tiles site-tiles">
${tile("URLs", countText(site.urls), counted)}
${tile("Due", linked(urls.due, "due"), `${countText(urls.inProgress)} in progress`)}
${tile("Scheduled", linked(urls.scheduled, "scheduled"), html`${linked(urls.failing, "failing")} failing`)}
${tile(
  "Not fetched",
  linked(urls.blockedByRobots, "blocked-by-robots"),
  html`by robots.txt; ${linked(urls.refused, "refused")} refused,
${linked(urls.gone, "gone")} gone, ${linked(site.heldUrls, "held")} held`,
)}
${tile("Downloaded", bytesText(site.fetchedBytes), site.fetches === 1 ? "in one fetch" : `in ${countText(site.fetches)} fetches`)}
${tile("Linked from", countText(site.outsideLinks), "links of other hosts")}
</dl>
<section aria-labelledby="fresh"><h2 id="fresh">How fresh its pages are</h2>${freshnessBody(freshness)}
${
  unread > 0 &&
  html`<p>${howMany(unread, "page")} ${unread === 1 ? "is" : "are"} <strong>empty without scripts</strong>: an application
draws ${unread === 1 ? "it" : "them"} in the browser, so that there is no text to index.
${needsScripts.urls.slice(0, 3).map((url) => html`${askAbout(url)} `)}</p>`
}</section>
<section aria-labelledby="failures"><h2 id="failures">What failed</h2>
${rangePicker(sitePath(host), {}, page.asked.range)}
${failuresBody(failures, page)}</section>
${againSection(page, site)}`;
}

function freshnessBody(freshness: SiteOverview["freshness"]): Html {
  const { pages, withinDay, within7Days, within30Days, within90Days, oldestAt } = freshness;
  if (pages === 0)
    return empty("No page has been fetched yet.", "How old they are will be here once there are some.");
  const spans: readonly (readonly [string, number])[] = [
    ["within a day", withinDay],
    ["1 to 7 days ago", within7Days - withinDay],
    ["7 to 30 days ago", within30Days - within7Days],
    ["30 to 90 days ago", within90Days - within30Days],
    ["earlier", pages - within90Days],
  ];
  const isFew = pages < leastSamples;
  const part = (count: number) =>
    isFew ? countText(count) : html`<strong>${percentText(count / pages)}</strong>`;
  const heads = ["Last fetched", "Pages .number", "Share .number", "(Share as a bar) .bar-column"];
  return html`<p class="lead">Of ${howMany(pages, "page")}${isFew && " (too few yet for shares)"}, ${part(withinDay)} were fetched within
a day, ${part(within7Days)} within 7 days, ${part(within30Days)} within 30.${oldestAt && html` The oldest: ${instant(oldestAt)}.`}</p>
${tableOf(
  "Age of the pages",
  heads,
  spans,
  ([name, count]) => {
    const share = count / pages;
    return [name, countText(count), isFew ? "–" : percentText(share), shareBar(share)];
  },
  "site-ages",
)}`;
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
  const latest = failures.more ? "the latest " : "";
  const words = `${countText(failed)} of ${latest}${countText(failures.fetches)} fetches in ${rangeWords(asked.range)} failed (${share}).`;
  if (failed === 0) return html`<p class="lead">${words}</p>`;
  const to = (query: Readonly<Record<string, string | number | null>>) =>
    pathWith(sitePath(answer.host), { part: "pages", ...query });
  const chart = timeChart({
    title: "Failed fetches by whose fault it was",
    range: asked.range,
    series: lines.map((blame) => ({
      name: blameNames[blame],
      points: failures.points.map((point) => ({ at: new Date(point.at), value: point[blame] })),
    })),
    text: countText,
  });
  const heads = ["Kind", "Whose fault", "Fetches .number", "URLs"];
  return html`<p class="lead">${words}</p>
${lines.length > 0 && chart}${tableOf(
  "Failures by kind",
  heads,
  failures.kinds,
  ({ outcome, status, blame, fetches }) => [
    outcomeText(outcome, status),
    blame === null ? "nobody's" : blameNames[blame as Blame],
    countText(fetches),
    html`<a href="${to({ outcome, status })}">with this outcome</a>`,
  ],
)}`;
}

function againSection({ answer: { host }, viewer }: SitePage, site: Site): Html {
  const may = mayDo(viewer.actor, "url-write") && viewer.formToken !== null;
  const took = spanWords(Math.min(site.urls, mostFetchedAgain) * paceSeconds(site));
  const form = {
    path: `${sitePath(host)}/fetch-again`,
    label: "Fetch its pages again",
    typed: host,
    id: "again-host",
  };
  return html`<section aria-labelledby="again"><h2 id="again">Fetch it again</h2>
<p class="small">Its pages that are scheduled for later become due now, the next ${countText(mostFetchedAgain)} of them. The host keeps its
pace: it takes ${took} or more. Single URLs: by their button under <a href="${partPath(host, "pages")}">Pages</a>.</p>
${may ? confirmForm(viewer, form) : onlyOperators(viewer.actor, "url-write", "Fetching it again")}</section>`;
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
  const states = urlFilters.map((filter) => [filter, filterNames[filter]] as const);
  const [all, isLast] = [partPath(host, "pages"), pages.next === null];
  const words = pages.looked === null ? "Next →" : `Look through the next ${countText(pages.looked)} URLs →`;
  return html`${leftOutList(pages, host)}
<form class="feed-filters" action="${sitePath(host)}"><input type="hidden" name="part" value="pages">
${choice("filter", "State", states, pages.filter)}
${choice("outcome", "Last outcome", outcomeChoices(pages.outcome), pages.outcome ?? "")}
<div><label for="site-status">Last status</label><input id="site-status" name="status" value="${pages.status ?? ""}" placeholder="404"
inputmode="numeric" maxlength="3" pattern="[1-9][0-9][0-9]" autocomplete="off"></div>
<button>Show</button>${isFiltered && html`<a class="button quiet" href="${all}">Show all</a>`}</form>
${
  pages.urls.length === 0
    ? empty(
        isLast ? "No URL of it is like that." : "None of the URLs looked at is like that.",
        isLast ? html`<a href="${all}">All of its URLs</a>` : "Go on below.",
      )
    : urlTable(pages.urls, now, viewer)
}
${pager(host, query, { after: asked.after, next: pages.next, words })}`;
}

const choice = (name: string, label: string, values: Parameters<typeof options>[0], chosen: string) =>
  html`<div><label for="site-${name}">${label}</label><select id="site-${name}" name="${name}">${options(values, chosen)}</select></div>`;

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
  const figure = ({ reason, count }: SitePages["leftOut"][number]) => {
    const number = html`<strong>${countText(count)}</strong>`;
    if (!(urlFilters as readonly string[]).includes(reason)) return number;
    return html`<a href="${pathWith(sitePath(host), { part: "pages", filter: reason })}">${number}</a>`;
  };
  return html`<section aria-labelledby="left-out"><h2 id="left-out">Skipped, because</h2>
<ul class="site-left-out">${leftOut.map((one) => html`<li>${figure(one)} ${one.words}</li>`)}</ul></section>`;
}

function urlTable(urls: readonly SiteUrl[], now: string, viewer: PageViewer): Html {
  const isOpen = viewer.formToken !== null && mayDo(viewer.actor, "url-write");
  const heads = ["URL .break", "State", "Last fetch", "Outcome .break", "Next", isOpen && "(Action)"];
  const cells = ({
    url,
    title,
    state,
    outcome,
    status,
    reason,
    fetchedAt,
    nextAt,
    failures,
    visits,
  }: SiteUrl) => {
    const next = state === "scheduled" || state === "due" ? nextAt : null;
    const page = html`<a href="${pathWith("/pages", { url })}"><bdi>${title}</bdi></a>`;
    return [
      html`${askAbout(url)}${title !== null && small(page)}`,
      html`${filterNames[state]}${failures > 0 && small(`${howMany(failures, "failure")} in a row`)}`,
      fetchedAt === null ? "never" : html`${instant(fetchedAt)}${small(howMany(visits, "visit"))}`,
      html`${outcome === null ? "–" : outcomeText(outcome, status)}${reason && small(html`<bdi>${reason}</bdi>`)}`,
      next === null ? "–" : html`<span title="${next}">${whenWords(next, new Date(now))}</span>`,
      state !== "rejected" && state !== "in-progress" && nodesHtml([actions(fetchAgain(url))], viewer),
    ];
  };
  return tableOf("URLs of this host", heads, urls, cells, "site-urls");
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
  const to = (from: string | number | null) => pathWith(sitePath(host), { ...query, after: from });
  return html`<nav class="pager" aria-label="Parts of the list">${after !== "" && html`<a href="${to(null)}">← From the beginning</a>`}${
    next !== null && html`<a rel="next" href="${to(next)}">${words}</a>`
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
  const counts = changes.counts.map((one) => `${kindWords[one.kind]} ${countText(one.changes)}`).join(" · ");
  return html`<form class="feed-filters" action="${sitePath(host)}"><input type="hidden" name="part" value="changes">
${choice("days", "Noticed", dayNames, String(changes.days))}
${choice("kind", "What", kinds, changes.kind ?? "")}
<button>Show</button></form>
<p class="lead">${all === 0 ? "Nothing changed" : counts} ${dayNames.find(([days]) => days === String(changes.days))?.[1]}.</p>
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

function changeItem(change: SiteChanges["changes"][number]): Html {
  const { kind, url, words, difference, titleAfter, titleBefore } = change;
  const title = titleAfter || titleBefore;
  return html`<li><p class="site-change-head"><span class="kind kind-${kind}">${kindWords[kind]}</span> ${small(instant(change.seenAt))}</p>
<p class="break">${title && html`<a href="${pathWith("/pages", { url })}"><bdi>${title}</bdi></a> `}${small(askAbout(url))}</p>
<p class="small"><bdi>${words}</bdi></p>${difference && differenceList(difference)}</li>`;
}

// Robots and preferences.

function robotsPart(
  { robots, crawlDelayMs, blocked, stated, notSearched, payment }: SiteRobots,
  { answer: { host } }: SitePage,
): Html {
  const toBlocked = pathWith(sitePath(host), { part: "pages", filter: "blocked-by-robots" });
  return html`<section aria-labelledby="robots"><h2 id="robots">robots.txt</h2>
<p class="lead">${
    robots === null
      ? "Its robots.txt has not been asked for yet: the first fetch brings it."
      : html`${capital(robots.words)}, as found ${instant(robots.at)}.`
  }${crawlDelayMs !== null && ` It asks for ${delayWords(crawlDelayMs)} between requests (Crawl-delay).`}</p>
${
  blocked.urls === 0
    ? html`<p class="small">It keeps none of the ${blocked.more ? "URLs that were looked at" : "known URLs"} from being fetched.</p>`
    : html`<p><a href="${toBlocked}"><strong>${countText(blocked.urls)}</strong> ${blocked.urls === 1 ? "URL is" : "URLs are"} blocked</a>${
        blocked.more && ", of those that were looked at"
      }, by these rules:</p>
${tableOf(
  "Rules that block URLs",
  ["Rule .break mono", "URLs .number", "Such as .break"],
  blocked.rules,
  ({ rule, urls, example }) => [
    rule.replace(/^robots\.txt: /, "") || "not kept",
    countText(urls),
    askAbout(example),
  ],
)}`
}
${payment && html`<p>${sentence(payment)}</p>`}</section>
<section aria-labelledby="stated"><h2 id="stated">Stated preferences</h2>
${
  stated.sets.length === 0
    ? empty(
        "It states nothing of the uses of its pages.",
        html`Looked at: ${howMany(stated.pages, "page")} in the index${stated.more && ", and there are more"}.
Content-Signal, Content-Usage, TDMRep and RSL would be here.`,
      )
    : html`<p class="lead">Of ${stated.more && "the first "}${howMany(stated.pages, "page")} in the index:</p>
${tableOf(
  "Stated preferences",
  ["Use", "Answer", "Pages .number"],
  stated.counts,
  ({ use, answer, pages }) => [use, answer, countText(pages)],
)}
<details><summary>As written</summary><ul class="plain">${stated.sets.map(
        ({ pages, statements }) =>
          html`<li class="break">${statements.map((one) => html`<bdi>${one}</bdi> `)}${small(howMany(pages, "page"))}</li>`,
      )}</ul></details>`
}
${
  notSearched.pages > 0 &&
  html`<h3>Not searched</h3><p>${howMany(notSearched.pages, "page")} ${notSearched.pages === 1 ? "is" : "are"} kept without text, since the
site states that ${notSearched.pages === 1 ? "it is" : "they are"} not to be searched; such as</p>
<ul class="plain">${notSearched.urls.map((url) => html`<li>${askAbout(url)}</li>`)}</ul>`
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
  const why = [...pace.reasons.map((words) => `${capital(words)}.`), ...pace.said];
  const answers =
    all.samples < leastSamples
      ? "too few yet for firm figures"
      : `${bytesText(all.wireBytes)} over the wire${speed.more ? "; the latest of more" : ""}`;
  const chart = (title: string, series: ReturnType<typeof line>[]) =>
    timeChart({
      title,
      range,
      text: msText,
      series,
      marks: moves.map(({ at, words }) => ({ at: new Date(at), words })),
    });
  const heads = [
    "Crawler",
    "Answers .number",
    "Connecting .number",
    "First byte .number",
    "Whole page .number",
  ];
  return html`<section aria-labelledby="pace"><h2 id="pace">Pace</h2><dl class="facts">
${fact("Between requests", pace.delayMs === null ? "the crawler's usual pace" : delayWords(pace.delayMs))}
${pace.notBefore && fact("Left alone until", instant(pace.notBefore))}
${fact("Crawl-delay", pace.crawlDelayMs === null ? "none" : delayWords(pace.crawlDelayMs))}
${fact("Cap", html`${pace.capDelayMs === null ? "none" : delayWords(pace.capDelayMs)} ${toCaps}`)}
${fact("Tolerates", pace.toleratedPerHour === null ? "no limit found" : perHourWords(pace.toleratedPerHour))}
${
  pace.backOffMs !== null &&
  pace.backedOffAt !== null &&
  fact("Back-off", html`${delayWords(pace.backOffMs)} ${small(html`since ${instant(pace.backedOffAt)}`)}`)
}
${pace.usualMs !== null && fact("Usually answers in", msText(pace.usualMs))}
</dl>
${
  why.length === 0
    ? html`<p class="small">The site has said nothing of our pace: no Crawl-delay, no 429 or 503, no complaint.</p>`
    : html`<ul class="plain">${why.map((words) => html`<li>${sentence(words)}</li>`)}</ul>`
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
${tile("Answers", countText(all.samples), answers)}
</dl>
${chart("Connecting and first byte", [line("Connecting", ({ rttMs }) => rttMs), line("First byte", ({ firstByteMs }) => firstByteMs)])}
${chart("Downloading a page", [line("Whole page", ({ totalMs }) => totalMs)])}
${timeChart({ title: "Fetches", range, text: countText, series: [line("Fetches", ({ samples }) => samples)] })}
<h3>By crawler</h3>${tableOf(
        "By crawler",
        heads,
        crawlers,
        ({ name, samples, rttMs, firstByteMs, totalMs }) => [
          crawlerFor(viewer, name),
          countText(samples),
          ...[rttMs, firstByteMs, totalMs].map(msOrDash),
        ],
      )}`
}
${
  moves.length > 0 &&
  html`<details><summary>${howMany(moves.length, "change")} of its crawler in that time</summary><ul class="plain">${moves.map(
    ({ at, words }) => html`<li>${instant(at)} ${words}</li>`,
  )}</ul></details>`
}
<p class="small">The same range: <a href="${pathWith(sitePath(host), rangeQuery(range))}">what failed</a>.</p></section>`;
}

// Links.

function linksPart({ to, toLooked, from, fromLooked }: SiteLinks): Html {
  const table = (label: string, hosts: SiteLinks["to"], none: string) =>
    hosts.length === 0
      ? empty(none, "Links count once their page has been fetched.")
      : tableOf(label, ["Host .break", "Pages .number"], hosts, ({ host, pages }) => [
          html`<a class="mono" href="${sitePath(host)}">${host}</a>`,
          countText(pages),
        ]);
  return html`<div class="site-columns"><section aria-labelledby="from"><h2 id="from">Hosts that link to it</h2>
<p class="small">By the links to its ${howMany(fromLooked.urls, "most linked URL")}${fromLooked.more && "; there may be more"}. Pages: of that
host, with such a link.</p>
${table("Hosts that link to it", from, "No page of another host links to it.")}</section>
<section aria-labelledby="to"><h2 id="to">Hosts that it links to</h2>
<p class="small">Of ${howMany(toLooked.pages, "page")} looked at${toLooked.more && "; there are more"}. Pages: of this host, with a link there.</p>
${table("Hosts that it links to", to, "It links to no host that the crawl knows.")}</section></div>`;
}

export function siteUrlsCsv(urls: readonly SiteUrl[]): CsvTable {
  return {
    columns: "url state title outcome status reason failures visits fetched_at next_at".split(" "),
    rows: urls.map((one) => [
      ...[one.url, one.state, one.title, one.outcome, one.status, one.reason, one.failures, one.visits],
      ...[one.fetchedAt, one.nextAt],
    ]),
  };
}

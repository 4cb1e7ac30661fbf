/** The parts of a host's page: overview, URLs, changes, robots and preferences, speed and pace, links. */
import { bytesText, howMany, leastSamples, msText, percentText, whenWords } from "#core/format";
import { rangeQuery, rangeWords, type TimeRange } from "#core/time-range";
import { perHourWords } from "#protocol/result";
import {
  column,
  empty,
  facts,
  filters,
  folded,
  history,
  lead,
  list,
  member,
  note,
  onward,
  plain,
  section,
  table,
  tiles,
} from "../../ask/document.ts";
import type { Node } from "../../ask/operation.ts";
import { differenceList, kindBadge } from "../../crawl/changes/changes-ask.ts";
import { kindWords } from "../../crawl/changes/page-change.ts";
import { delayWords } from "../../crawl/frontier/host-pace.ts";
import { fetchAgain } from "../../crawl/submissions/submissions-ask.ts";
import type { Visit } from "../../web/access.ts";
import { chartHistory, type HistoryChart } from "../../web/chart-history.ts";
import { crawlerFor, shareBar, small } from "../../web/components.ts";
import { askAbout, countText, instant, msOrDash, sentence } from "../../web/format.ts";
import { html, pathWith } from "../../web/html.ts";
import {
  type Site,
  type SiteChanges,
  type SiteLinks,
  type SiteOverview,
  type SitePages,
  type SiteRobots,
  type SiteSpeed,
  type SiteUrl,
  type UrlFilter,
  urlFilters,
} from "./site-api.ts";

export interface PartSeen {
  readonly host: string;
  readonly viewer: Visit;
  readonly now: Date;
  readonly range: TimeRange;
}

type Nodes = readonly (Node | null | false)[];

export const sitePath = (host: string): string => `/sites/${encodeURIComponent(host)}`;

const toPages = (host: string, query: Readonly<Record<string, string | number | null>>) =>
  pathWith(sitePath(host), { part: "pages", ...query });

export const toCaps = html`<a class="small" href="/fleet/site-caps">caps</a>`;

const verb = (count: number) => (count === 1 ? "is" : "are");

export function overviewPart(
  { urls, freshness, failures, needsScripts }: SiteOverview,
  site: Site,
  { host, range }: PartSeen,
): Nodes {
  const linked = (count: number, filter: UrlFilter) =>
    count === 0 ? html`0` : html`<a href="${toPages(host, { filter })}">${countText(count)}</a>`;
  const counted = urls.more
    ? `${countText(urls.counted)} of them counted here`
    : `${countText(site.fetchedUrls)} fetched so far`;
  const fetches = site.fetches === 1 ? "in one fetch" : `in ${countText(site.fetches)} fetches`;
  const others = html`by robots.txt; ${linked(urls.refused, "refused")} refused,
${linked(urls.gone, "gone")} gone, ${linked(site.heldUrls, "held")} held`;
  const unread = needsScripts.pages;
  return [
    tiles(
      [
        ["URLs", countText(site.urls), counted],
        ["Due", linked(urls.due, "due"), `${countText(urls.inProgress)} in progress`],
        ["Scheduled", linked(urls.scheduled, "scheduled"), html`${linked(urls.failing, "failing")} failing`],
        ["Not fetched", linked(urls.blockedByRobots, "blocked-by-robots"), others],
        ["Downloaded", bytesText(site.fetchedBytes), fetches],
        ["Linked from", countText(site.outsideLinks), "links of other hosts"],
      ],
      "site-tiles",
    ),
    section("Freshness", [
      ...freshnessNodes(freshness),
      unread > 0 &&
        plain(html`${howMany(unread, "page")} ${verb(unread)} <strong>empty without scripts</strong>: an application
draws ${unread === 1 ? "it" : "them"} in the browser, so that there is no text to index.
${needsScripts.urls.slice(0, 3).map((url) => html`${askAbout(url)} `)}`),
    ]),
    section("Failures", failureNodes(failures, { host, range }), { id: "failures" }),
    history(
      chartHistory(
        range,
        [
          {
            ...{ key: "failures", title: "Failed fetches by cause", unit: "count" },
            times: failures.points.map(({ at }) => at),
            series: blames
              .filter((blame) => failures.points.some((point) => point[blame] > 0))
              .map((blame) => ({
                ...{ name: blameNames[blame], values: failures.points.map((point) => point[blame]) },
              })),
            whenEmpty: `Nothing failed in ${rangeWords(range)}.`,
          },
        ],
        { marks: [], more: 0 },
      ),
    ),
  ];
}

function freshnessNodes(freshness: SiteOverview["freshness"]): Nodes {
  const { pages, withinDay, within7Days, within30Days, within90Days, oldestAt } = freshness;
  if (pages === 0) return [empty("No page has been fetched yet.", "Their age is shown once there are some.")];
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
  const oldest = oldestAt && html` The oldest: ${instant(oldestAt)}.`;
  return [
    lead(html`Of ${howMany(pages, "page")}${isFew && " (shares are shown from 30)"}, ${part(withinDay)} were fetched within
a day, ${part(within7Days)} within 7 days, ${part(within30Days)} within 30.${oldest}`),
    table<(typeof spans)[number]>({
      ...{ label: "Age of the pages", rows: spans, empty: ["No page.", ""] },
      columns: [
        column("last_fetched", "Last fetched", ([name]) => name),
        column("pages", "Pages", ([, count]) => count, { unit: "count" }),
        column("share", "Share", ([, count]) => (isFew ? null : count / pages), { unit: "share" }),
        column("", "(Share as a bar)", ([, count]) => shareBar(count / pages), {
          ...{ kind: "bar-column", isPicture: true },
        }),
      ],
    }),
  ];
}

const blameNames = {
  target: "The site",
  network: "The network path",
  crawler: "The crawler",
  us: "Our software",
} as const;

type Blame = keyof typeof blameNames;

const blames = Object.keys(blameNames) as Blame[];

function failureNodes(
  { fetches, kinds, more }: SiteOverview["failures"],
  { host, range }: Pick<PartSeen, "host" | "range">,
): Nodes {
  if (fetches === 0)
    return [empty(`Nothing of it was fetched in ${rangeWords(range)}.`, "Choose a longer range below.")];
  const failed = kinds.reduce((sum, kind) => sum + kind.fetches, 0);
  const share = fetches < leastSamples ? "share shown from 30" : percentText(failed / fetches);
  const of = `${more ? "the latest " : ""}${countText(fetches)} fetches`;
  return [
    lead(`${countText(failed)} of ${of} in ${rangeWords(range)} failed (${share}).`),
    failed > 0 &&
      table<(typeof kinds)[number]>({
        ...{ label: "Failures by kind", rows: kinds, empty: ["None.", ""] },
        columns: [
          column("outcome", "Kind", ({ outcome, status }) => outcomeText(outcome, status)),
          column("blame", "Cause", ({ blame }) => (blame === null ? "nobody's" : blameNames[blame as Blame])),
          member("fetches", "Fetches", { unit: "count" }),
          column(
            "",
            "URLs",
            ({ outcome, status }) =>
              html`<a href="${toPages(host, { outcome, status })}">with this outcome</a>`,
            { isPicture: true },
          ),
        ],
      }),
  ];
}

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

export function pagesPart({ leftOut, urls, next, looked }: SitePages, { host, now }: PartSeen): Nodes {
  const figure = ({ reason, count }: SitePages["leftOut"][number]) => {
    const number = html`<strong>${countText(count)}</strong>`;
    if (!(urlFilters as readonly string[]).includes(reason)) return number;
    return html`<a href="${toPages(host, { filter: reason })}">${number}</a>`;
  };
  return [
    leftOut.length > 0 &&
      section("Skipped, because", [
        list(
          leftOut.map((one) => html`${figure(one)} ${one.words}`),
          "site-left-out",
        ),
      ]),
    filters({
      ...{ label: "URLs of this host", names: ["filter", "outcome", "status"] },
      choices: { filter: filterNames, outcome: outcomeNames },
    }),
    table<SiteUrl>({
      ...{ label: "URLs of this host", rows: urls, columns: urlColumns(now) },
      actions: ({ url, state }) => (state === "rejected" || state === "in-progress" ? [] : [fetchAgain(url)]),
      empty:
        next === null
          ? ["No URL matches.", html`<a href="${toPages(host, {})}">All of its URLs</a>`]
          : ["None of these URLs matches.", "Continue below."],
    }),
    onward({
      next,
      words: looked === null ? "Next →" : `Scan the next ${countText(looked)} URLs →`,
      first: "← From the beginning",
    }),
  ];
}

const of = member<SiteUrl>;

const urlColumns = (now: Date) => [
  of("url", "URL", {
    ...{ kind: "break", cell: ({ url }) => askAbout(url) },
    more: ({ url, title }) =>
      title !== null && html`<a href="${pathWith("/pages", { url })}"><bdi>${title}</bdi></a>`,
  }),
  of("state", "State", {
    cell: ({ state }) => filterNames[state],
    more: ({ failures }) => failures > 0 && `${howMany(failures, "failure")} in a row`,
  }),
  of("title"),
  of("outcome", "Last outcome", {
    cell: ({ outcome, status }) => outcome && outcomeText(outcome, status),
    more: ({ reason }) => reason && html`<bdi>${reason}</bdi>`,
  }),
  ...(["status", "reason", "failures", "visits"] as const).map((name) => of(name)),
  of("fetchedAt", "Fetched", {
    ...{ none: "never", cell: ({ fetchedAt }) => fetchedAt && instant(fetchedAt) },
    more: ({ fetchedAt, visits }) => fetchedAt !== null && howMany(visits, "visit"),
  }),
  of("nextAt", "Next fetch", {
    cell: ({ state, nextAt }) =>
      nextAt !== null && (state === "scheduled" || state === "due")
        ? html`<span title="${nextAt}">${whenWords(nextAt, now)}</span>`
        : null,
  }),
];

const dayNames: Readonly<Record<string, string>> = { 1: "in 24 hours", 7: "in 7 days", 30: "in 30 days" };

export function changesPart({ counts, changes, days, next }: SiteChanges, { host }: PartSeen): Nodes {
  const words = counts.map((one) => `${kindWords[one.kind]} ${countText(one.changes)}`).join(" · ");
  return [
    filters({
      ...{ label: "Changes of this host", names: ["days", "kind"] },
      choices: { days: dayNames, kind: kindWords },
    }),
    lead(`${words === "" ? "Nothing changed" : words} ${dayNames[days]}.`),
    changes.length === 0
      ? empty(
          "No such change was noticed in that time.",
          html`New, changed and gone pages appear here. <a href="${pathWith("/changes", { host })}">All changes of this host</a>.`,
        )
      : list(changes.map(changeItem), "site-changes"),
    onward({ next, words: "Earlier →", first: "← From the beginning" }),
  ];
}

function changeItem(change: SiteChanges["changes"][number]) {
  const { kind, url, words, difference, titleAfter, titleBefore, seenAt } = change;
  const title = titleAfter || titleBefore;
  return html`<p>${kindBadge(kind)} ${small(instant(seenAt))}</p>
<p class="break">${title && html`<a href="${pathWith("/pages", { url })}"><bdi>${title}</bdi></a> `}${small(askAbout(url))}</p>
<p class="small"><bdi>${words}</bdi></p>${difference && differenceList(difference)}`;
}

export function robotsPart(
  { robots, crawlDelayMs, blocked, stated, notSearched, payment }: SiteRobots,
  { host }: PartSeen,
): Nodes {
  const toBlocked = toPages(host, { filter: "blocked-by-robots" });
  const found =
    robots === null
      ? "Its robots.txt has not been fetched yet; the first fetch requests it."
      : html`${capital(robots.words)}, as found ${instant(robots.at)}.`;
  const delay =
    crawlDelayMs !== null && ` It asks for ${delayWords(crawlDelayMs)} between requests (Crawl-delay).`;
  const known = blocked.more ? "checked URLs" : "known URLs";
  const none = notSearched.pages;
  return [
    section("robots.txt", [
      lead(html`${found}${delay}`),
      blocked.urls === 0
        ? plain(small(`It keeps none of the ${known} from being fetched.`))
        : plain(
            html`<a href="${toBlocked}"><strong>${countText(blocked.urls)}</strong> ${blocked.urls === 1 ? "URL is" : "URLs are"} blocked</a>${
              blocked.more && ", of those checked"
            }, by these rules:`,
          ),
      blocked.urls > 0 &&
        table<SiteRobots["blocked"]["rules"][number]>({
          ...{ label: "Rules that block URLs", rows: blocked.rules, empty: ["None.", ""] },
          columns: [
            column("rule", "Rule", ({ rule }) => rule.replace(/^robots\.txt: /, ""), {
              ...{ none: "not kept", kind: "break" },
            }),
            member("urls", "URLs", { unit: "count" }),
            column("example", "Such as", ({ example }) => askAbout(example), { kind: "break" }),
          ],
        }),
      payment !== null && plain(sentence(payment)),
    ]),
    section("Stated preferences", [
      ...statedNodes(stated),
      none > 0 &&
        section("Not searched", [
          plain(html`${howMany(none, "page")} ${verb(none)} kept without text, since the
site states that ${none === 1 ? "it is" : "they are"} not to be searched; such as`),
          list(notSearched.urls.map((url) => askAbout(url))),
        ]),
    ]),
  ];
}

function statedNodes({ pages, more, counts, sets }: SiteRobots["stated"]): Nodes {
  const inIndex = `${howMany(pages, "page")} in the index`;
  if (sets.length === 0)
    return [
      empty(
        "It states no preferences.",
        html`Checked: ${inIndex}${more && ", and there are more"}.
Content-Signal, Content-Usage, TDMRep and RSL are recognised.`,
      ),
    ];
  return [
    lead(`Of ${more ? "the first " : ""}${inIndex}:`),
    table<(typeof counts)[number]>({
      ...{ label: "Stated preferences", rows: counts, empty: ["None.", ""] },
      columns: [
        member("use", "Use"),
        member("answer", "Answer"),
        member("pages", "Pages", { unit: "count" }),
      ],
    }),
    folded("As written", [
      list(
        sets.map(
          (one) =>
            html`${one.statements.map((words) => html`<bdi>${words}</bdi> `)}${small(howMany(one.pages, "page"))}`,
        ),
      ),
    ]),
  ];
}

const capital = (words: string) => words.charAt(0).toUpperCase() + words.slice(1);

export function speedPart(speed: SiteSpeed, { host, range, viewer }: PartSeen): Nodes {
  const { all, points, crawlers, pace, moves } = speed;
  const { delayMs, notBefore, crawlDelayMs, capDelayMs, toleratedPerHour, backOffMs, backedOffAt, usualMs } =
    pace;
  const why = [...pace.reasons.map((words) => `${capital(words)}.`), ...pace.said];
  const volume =
    all.samples < leastSamples
      ? "few samples"
      : `${bytesText(all.wireBytes)} over the wire${speed.more ? "; the latest of more" : ""}`;
  const chart = (
    title: string,
    unit: HistoryChart["unit"],
    lines: readonly (readonly [string, (point: SiteSpeed["points"][number]) => number | null])[],
  ): HistoryChart => ({
    ...{ key: title, title, unit, times: points.map(({ at }) => at) },
    series: lines.map(([name, of]) => ({ name, values: points.map(of) })),
    whenEmpty: `It answered no fetch in ${rangeWords(range)}.`,
  });
  return [
    section("Pace", [
      facts(
        ["Between requests", delayMs === null ? "the crawler's usual pace" : delayWords(delayMs)],
        notBefore !== null && ["Paused until", instant(notBefore)],
        ["Crawl-delay", crawlDelayMs === null ? "none" : delayWords(crawlDelayMs)],
        ["Cap", html`${capDelayMs === null ? "none" : delayWords(capDelayMs)} ${toCaps}`],
        ["Tolerates", toleratedPerHour === null ? "no limit found" : perHourWords(toleratedPerHour)],
        backOffMs !== null &&
          backedOffAt !== null && [
            "Back-off",
            html`${delayWords(backOffMs)} ${small(html`since ${instant(backedOffAt)}`)}`,
          ],
        usualMs !== null && ["Usually answers in", msText(usualMs)],
      ),
      why.length === 0
        ? note("No limits stated: no Crawl-delay, no 429 or 503, no complaint.")
        : list(why.map(sentence)),
    ]),
    section("Speed", [
      all.samples === 0
        ? empty(
            `It answered no fetch in ${rangeWords(range)}.`,
            "Fetches are kept for a time (policy retention.fetchDays).",
          )
        : tiles([
            ["Connecting", msOrDash(all.rttMs), "median: one round trip"],
            ["First byte", msOrDash(all.firstByteMs), "median"],
            ["Whole page", msOrDash(all.totalMs), "median"],
            ["Answers", countText(all.samples), volume],
          ]),
      all.samples > 0 &&
        table<SiteSpeed["crawlers"][number]>({
          ...{ label: "By crawler", rows: crawlers, empty: ["None.", ""] },
          columns: [
            column("crawler", "Crawler", ({ name }) => crawlerFor(viewer, name)),
            member("samples", "Answers", { unit: "count" }),
            member("rttMs", "Connecting", { unit: "ms" }),
            member("firstByteMs", "First byte", { unit: "ms" }),
            member("totalMs", "Whole page", { unit: "ms" }),
          ],
        }),
      moves.length > 0 &&
        folded(`${howMany(moves.length, "change")} of its crawler in this range`, [
          list(moves.map(({ at, words }) => html`${instant(at)} ${words}`)),
        ]),
      note(html`The same range: <a href="${pathWith(sitePath(host), rangeQuery(range))}">failures</a>.`),
    ]),
    history(
      chartHistory(
        range,
        [
          chart("Connecting and first byte", "ms", [
            ["Connecting", ({ rttMs }) => rttMs],
            ["First byte", ({ firstByteMs }) => firstByteMs],
          ]),
          chart("Downloading a page", "ms", [["Whole page", ({ totalMs }) => totalMs]]),
          chart("Fetches", "count", [["Fetches", ({ samples }) => samples]]),
        ],
        { marks: moves.map((one) => ({ ...one, link: null })), more: 0 },
      ),
    ),
  ];
}

export function linksPart({ to, toLooked, from, fromLooked }: SiteLinks): Node {
  const hosts = (label: string, rows: SiteLinks["to"], [looked, none]: readonly [string, string]) =>
    section(label, [
      note(looked),
      table<SiteLinks["to"][number]>({
        ...{ label, rows, empty: [none, "Links count once their page has been fetched."] },
        columns: [
          column("host", "Host", ({ host }) => html`<a class="mono" href="${sitePath(host)}">${host}</a>`, {
            kind: "break",
          }),
          member("pages", "Pages", { unit: "count" }),
        ],
      }),
    ]);
  const most = howMany(fromLooked.urls, "most linked URL");
  return section(
    "Links",
    [
      hosts("Hosts that link to it", from, [
        `By the links to its ${most}${fromLooked.more ? "; there may be more" : ""}. Pages: of that host, with such a link.`,
        "No page of another host links to it.",
      ]),
      hosts("Hosts that it links to", to, [
        `Of ${howMany(toLooked.pages, "page")} checked${toLooked.more ? "; there are more" : ""}. Pages: of this host, with a link there.`,
        "It links to no host that the crawl knows.",
      ]),
    ],
    { kind: "site-columns" },
  );
}

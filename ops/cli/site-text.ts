/** One host for people in a terminal: how it stands, and the part that was asked for. */
import { kindWords } from "#coordinator/changes/page-change";
import { differenceText } from "#coordinator/changes/text-difference";
import type {
  Site,
  SiteAnswer,
  SiteChanges,
  SiteLinks,
  SiteOverview,
  SitePages,
  SiteRobots,
  SiteSpeed,
} from "#coordinator/sites/site-api";
import { bytesText, howMany, instantWords, msText } from "#core/format";
import { perHourWords } from "#protocol/pace-words";
import { formatTable, printable } from "./output.ts";

export function siteText(answer: SiteAnswer): string {
  const { site, overview, pages, changes, robots, speed, links } = answer;
  if (site === null)
    return `${printable(answer.words ?? "")}\nHand a URL of it in: nearcrawl urls add. Who would crawl it: nearcrawl who ${printable(answer.host)}`;
  const parts = [
    overview && overviewText(overview, site),
    pages && pagesText(pages),
    changes && changesText(changes),
    robots && robotsText(robots),
    speed && speedText(speed),
    links && linksText(links),
  ];
  return [headText(site), ...parts.filter((part) => part !== null)].join("\n\n");
}

const named = (rows: readonly (readonly [string, string | null])[]): string =>
  rows
    .flatMap(([name, value]) =>
      value === null || value === "" ? [] : [`${name.padEnd(16)}${printable(value, 300)}`],
    )
    .join("\n");

const count = (number: number) => number.toLocaleString("en-GB");
const ms = (value: number | null) => (value === null ? "–" : msText(value));
const when = (instant: string | null) => (instant === null ? "–" : instantWords(instant));

/** Of the pages that have the same, in the same order. */
function headText(site: Site): string {
  const { crawler, subnet, organisation, channels, capDelayMs } = site;
  const notes = site.standing.filter(({ words, code }) => words !== site.words && code !== "ready");
  return [
    printable(site.name === site.host ? site.host : `${site.name} (${site.host})`),
    `${site.state.replace("-", " ")}: ${printable(site.words)}`,
    ...notes.map(({ stops, words }) => `${stops ? "!" : "-"} ${printable(words)}`),
    named([
      [
        "crawler",
        crawler
          ? `${crawler.name}${crawler.rttMs === null ? "" : `, ${msText(crawler.rttMs)}`}; ${crawler.words}`
          : "nobody",
      ],
      [
        "subnet",
        subnet && `${subnet.range} ${subnet.name}${site.country === null ? "" : ` (${site.country})`}`,
      ],
      ["addresses", site.addresses.slice(0, 8).join(", ")],
      [
        "organisation",
        organisation &&
          `${organisation.name}${organisation.handle === null ? "" : ` (${organisation.handle})`}`,
      ],
      ["language", site.language],
      [
        "channels",
        channels
          .flatMap(({ directories }) => directories)
          .slice(0, 5)
          .join(", "),
      ],
      ["cap", capDelayMs === null ? null : `one request every ${capDelayMs / 1000} s`],
      ["opt-out", site.optOut],
      [
        "complaints",
        site.complaints.all === 0 ? null : `${site.complaints.all}, ${site.complaints.open} of them open`,
      ],
      ["next fetch", site.nextAt && instantWords(site.nextAt)],
      ["known since", instantWords(site.knownSince)],
    ]),
  ].join("\n");
}

/** A share of fewer tells nothing yet. */
const fewest = 30;

const shareText = (part: number, all: number) =>
  all < fewest ? "too few yet" : `${((100 * part) / all).toFixed(1)} %`;

function overviewText({ urls, freshness, failures, needsScripts }: SiteOverview, site: Site): string {
  const { pages } = freshness;
  const ages: readonly (readonly [string, number])[] = [
    ["a day", freshness.withinDay],
    ["7 days", freshness.within7Days],
    ["30 days", freshness.within30Days],
    ["90 days", freshness.within90Days],
  ];
  const failed = failures.kinds.reduce((sum, { fetches }) => sum + fetches, 0);
  return [
    named([
      [
        "URLs",
        `${count(site.urls)}${urls.more ? `, ${count(urls.counted)} of them counted here` : ""}, ${count(site.fetchedUrls)} fetched so far`,
      ],
      [
        "by state",
        `${count(urls.due)} due, ${count(urls.inProgress)} in progress, ${count(urls.scheduled)} scheduled, ${count(urls.failing)} failing`,
      ],
      [
        "not fetched",
        `${count(urls.blockedByRobots)} by robots.txt, ${count(urls.refused)} refused, ${count(urls.gone)} gone, ${count(site.heldUrls)} held`,
      ],
      ["downloaded", `${bytesText(site.fetchedBytes)} in ${count(site.fetches)} fetches`],
      [
        "no text",
        needsScripts.pages === 0
          ? null
          : `${count(needsScripts.pages)} pages are empty without scripts, such as ${needsScripts.urls[0]}`,
      ],
      ["linked from", `${count(site.outsideLinks)} links of other hosts`],
    ]),
    `Pages: ${count(pages)}${freshness.oldestAt === null ? "" : `, the oldest fetched ${instantWords(freshness.oldestAt)}`}\n${formatTable(
      [{ title: "fetched within" }, { title: "pages", align: "right" }, { title: "share", align: "right" }],
      ages.map(([name, some]) => [name, count(some), shareText(some, pages)]),
    )}`,
    `Failures ${instantWords(failures.since)} to ${instantWords(failures.until)}: ${count(failed)} of ${count(failures.fetches)} fetches (${shareText(failed, failures.fetches)})${
      failures.kinds.length === 0
        ? ""
        : `\n${formatTable(
            [
              { title: "outcome" },
              { title: "status", align: "right" },
              { title: "fault" },
              { title: "fetches", align: "right" },
            ],
            failures.kinds.map((kind) => [
              kind.outcome,
              kind.status === null ? "–" : String(kind.status),
              kind.blame ?? "–",
              count(kind.fetches),
            ]),
          )}`
    }`,
  ].join("\n\n");
}

function pagesText({ leftOut, urls, next, looked, filter }: SitePages): string {
  const table = formatTable(
    [
      { title: "URL" },
      { title: "state" },
      { title: "last fetch (UTC)" },
      { title: "outcome" },
      { title: "why" },
    ],
    urls.map(({ url, state, fetchedAt, outcome, status, reason }) => [
      ...[
        printable(url, 100),
        state,
        fetchedAt === null ? "never" : fetchedAt.slice(0, 19).replace("T", " "),
      ],
      ...[
        outcome === null ? "–" : `${outcome}${status === null ? "" : ` ${status}`}`,
        printable(reason ?? "", 80),
      ],
    ]),
  );
  const more =
    next === null
      ? []
      : [
          `${looked === null ? "more" : `none but these among ${count(looked)} URLs; further`}: --after '${printable(next, 2100)}'`,
        ];
  return [
    ...(leftOut.length === 0
      ? []
      : [
          `Skipped, because\n${leftOut.map((one) => `  ${count(one.count)} ${printable(one.words)} (${one.reason})`).join("\n")}`,
        ]),
    [`URLs (${filter})`, ...(urls.length === 0 ? ["none"] : [table]), ...more].join("\n"),
  ].join("\n\n");
}

function changesText({ days, counts, changes, next }: SiteChanges): string {
  const summary = counts.map(({ kind, changes: some }) => `${kindWords[kind]} ${count(some)}`).join(", ");
  const lines = changes.flatMap(({ seenAt, kind, url, words, difference }) => [
    `${when(seenAt.toISOString())}  ${kindWords[kind]}  ${printable(url, 200)}`,
    `  ${printable(words, 300)}`,
    ...(difference === null ? [] : [`  ${printable(differenceText(difference), 600)}`]),
  ]);
  return [
    `Changes in ${howMany(days, "day")}: ${summary || "none"}`,
    ...lines,
    ...(next === null ? [] : [`earlier ones: --after ${next}`]),
  ].join("\n");
}

function robotsText({ robots, crawlDelayMs, blocked, stated, notSearched, payment }: SiteRobots): string {
  return [
    named([
      ["robots.txt", robots ? `${robots.words}, as found ${instantWords(robots.at)}` : "not asked for yet"],
      ["Crawl-delay", crawlDelayMs === null ? null : msText(crawlDelayMs)],
      ["blocked", `${howMany(blocked.urls, "URL")}${blocked.more ? ", of those looked at" : ""}`],
      ["payment", payment],
    ]),
    ...(blocked.rules.length === 0
      ? []
      : [
          formatTable(
            [{ title: "rule" }, { title: "URLs", align: "right" }, { title: "such as" }],
            blocked.rules.map(({ rule, urls, example }) => [
              printable(rule, 80),
              count(urls),
              printable(example, 100),
            ]),
          ),
        ]),
    stated.sets.length === 0
      ? `Stated preferences: none on ${howMany(stated.pages, "page")}`
      : `Stated preferences, of ${howMany(stated.pages, "page")}\n${formatTable(
          [{ title: "use" }, { title: "answer" }, { title: "pages", align: "right" }],
          stated.counts.map(({ use, answer, pages }) => [use, answer, count(pages)]),
        )}\n${stated.sets.flatMap(({ statements }) => statements.map((line) => `  ${printable(line, 300)}`)).join("\n")}`,
    ...(notSearched.pages === 0
      ? []
      : [
          `Not searched: ${howMany(notSearched.pages, "page")}\n${notSearched.urls.map((url) => `  ${printable(url, 200)}`).join("\n")}`,
        ]),
  ].join("\n\n");
}

function speedText({ since, until, all, crawlers, pace, moves, points }: SiteSpeed): string {
  const columns = [
    { title: "answers", align: "right" },
    { title: "connecting", align: "right" },
    { title: "first byte", align: "right" },
    { title: "whole page", align: "right" },
  ] as const;
  const cells = (one: Pick<typeof all, "samples" | "rttMs" | "firstByteMs" | "totalMs">) => [
    ...[count(one.samples), ms(one.rttMs), ms(one.firstByteMs), ms(one.totalMs)],
  ];
  return [
    named([
      [
        "pace",
        pace.delayMs === null ? "the crawler's usual one" : `one request every ${pace.delayMs / 1000} s`,
      ],
      ["tolerates", pace.toleratedPerHour === null ? "no limit found" : perHourWords(pace.toleratedPerHour)],
      ["left alone until", pace.notBefore && instantWords(pace.notBefore)],
    ]),
    ...[...pace.reasons, ...pace.said].map((words) => `- ${printable(words)}`),
    `Answers ${instantWords(since)} to ${instantWords(until)}, medians${all.samples < fewest ? " (too few yet for firm figures)" : ""}\n${formatTable(
      [{ title: "crawler" }, ...columns],
      [...crawlers.map((one) => [printable(one.name, 60), ...cells(one)]), ["all", ...cells(all)]],
    )}`,
    ...(points.length === 0
      ? []
      : [
          formatTable(
            [{ title: "from (UTC)" }, ...columns],
            points.slice(-40).map((point) => [point.at.slice(0, 16).replace("T", " "), ...cells(point)]),
          ),
        ]),
    ...(moves.length === 0
      ? []
      : [
          `Crawlers\n${moves.map(({ at, words }) => `  ${instantWords(at)} ${printable(words, 300)}`).join("\n")}`,
        ]),
  ].join("\n\n");
}

function linksText({ from, fromLooked, to, toLooked, duplicates, duplicatesLooked }: SiteLinks): string {
  const table = (rows: readonly { readonly host: string; readonly pages: number }[]) =>
    rows.length === 0
      ? "none"
      : formatTable(
          [{ title: "host" }, { title: "pages", align: "right" }],
          rows.map(({ host, pages }) => [printable(host, 100), count(pages)]),
        );
  return [
    `Hosts that link to it, by its ${howMany(fromLooked.urls, "most linked URL")}${fromLooked.more ? " (there may be more)" : ""}\n${table(from)}`,
    `Hosts that it links to, of ${howMany(toLooked.pages, "page")}${toLooked.more ? " (there are more)" : ""}\n${table(to)}`,
    `Pages of other hosts with the same text, of ${howMany(duplicatesLooked.pages, "page")}${duplicatesLooked.more ? " (there are more)" : ""}\n${
      duplicates.length === 0
        ? "none"
        : formatTable(
            [{ title: "host" }, { title: "pages", align: "right" }, { title: "such as" }, { title: "there" }],
            duplicates.map(({ host, pages, url, otherUrl }) => [
              printable(host, 80),
              count(pages),
              printable(url, 100),
              printable(otherUrl, 100),
            ]),
          )
    }`,
  ].join("\n\n");
}

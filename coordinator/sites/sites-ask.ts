/** The list of hosts, /sites: a page of it at a time; whole it is a file, /sites.csv. */
import type { z } from "zod";
import { howMany, instantWords, spanWords } from "#core/format";
import { column, filters, note, onward, plain, present, table } from "../ask/document.ts";
import { type Document, operationsOf, type Seen } from "../ask/operation.ts";
import { small } from "../web/components.ts";
import { country, countryName, countText, crawlerLink, instant } from "../web/format.ts";
import { html, pathWith } from "../web/html.ts";
import { type ListedSite, type SiteSort, type SitesAnswer, sites, sitesInput } from "./sites-api.ts";
import {
  countWords,
  isUnfiltered,
  languageName,
  sinceWords,
  sitesQuestion,
  stateNames,
  stateWords,
  usualDirection,
} from "./sites-list.ts";
import type { SitesReads } from "./sites-reads.ts";

interface SitesFound extends SitesAnswer {
  /** For its form: null where there are so many that people type the name. */
  readonly crawlers: readonly string[] | null;
}

/** Crawlers that the form offers. */
const crawlersOffered = 200;

export const sitesOperations = {
  sites: operationsOf<SitesReads>().get({
    ...{ path: "/api/sites", needs: "read" },
    summary: "Hosts, filtered and sorted",
    description:
      "Hosts without a value stand last in either direction. " +
      "Figures follow the crawl within seconds; what registries and delegations change, within progress.roundSeconds.",
    input: sitesInput,
    output: sites,
    command: {
      name: "list",
      says: "hosts that the crawl knows, filtered and sorted (all of them as CSV: GET /sites.csv)",
      help: "\n\nExamples:\n  nearcrawl site list --sort failures\n  nearcrawl site list --country CY --language el --sort pages --json",
    },
    run: async ({ input, ports, now }): Promise<SitesFound> => {
      const question = sitesQuestion(input);
      const [answer, names] = await Promise.all([
        ports.answer(question, now),
        ports.crawlerNames(crawlersOffered + 1),
      ]);
      return { ...answer, crawlers: names.length > crawlersOffered ? null : names };
    },
    told: ({ crawlers: _, ...answer }) => answer,
    view: sitesDocument,
  }),
};

type Asked = z.output<typeof sitesInput>;

function sitesDocument(found: SitesFound, { input }: Seen<Asked>): Document {
  const { at, progress, crawlers, sort, order } = found;
  const { after: _, limit: _most, ...asked } = input;
  const names = Object.keys(sitesInput.shape).filter(
    (name) => !["sort", "order", "after", "limit"].includes(name),
  );
  const of = progress.knownHosts > 0 ? ` of about ${countText(progress.knownHosts)} known hosts` : "";
  const isFilling = progress.isFirstRound && found.sites.length > 0;
  const round = progress.roundSeconds ?? 0;
  return {
    title: "Sites",
    nodes: present([
      filters({
        ...{ label: "Sites", names, shown: shownCodes },
        choices: {
          state: stateNames,
          channel: { with: "with a channel", without: "without" },
          ...(crawlers && { crawler: Object.fromEntries(crawlers.map((name) => [name, name])) }),
        },
      }),
      found.sites.length > 0 && plain(small(countWords(found))),
      found.sites.length > 0 && isUnfiltered(found.filter) && note(html`Sort by ${shortcuts}`),
      isFilling &&
        plain(
          html`<span role="status">The list is being filled: some${of} are still missing. Reload the page in a moment.</span>`,
        ),
      table<ListedSite>({
        ...{ label: "Sites", kind: "sites", rows: found.sites, columns: siteColumns(at) },
        ...{ empty: noSites(found, input), order: { sort, direction: order } },
      }),
      onward({ next: found.next, words: "Next sites →" }),
      note(html`As of ${instant(at)}: the list follows the crawl within seconds, and registries, delegations and languages ${
        round < 60 ? "within a minute" : `within ${spanWords(round)}`
      }.
Failed are fetches of the last seven days (UTC) without a usable answer; RTT is that of the delegation.
All of it, up to 1,000,000 sites: <a href="${pathWith("/sites.csv", asked)}">CSV</a>.`),
    ]),
  };
}

function noSites({ progress, filter }: SitesAnswer, { after, limit: _, ...asked }: Asked) {
  if (after !== undefined)
    return [
      "That was the last page.",
      html`<a href="${pathWith("/sites", asked)}">Back to the first</a>`,
    ] as const;
  const name = filter.host ?? filter.under;
  const lookUp =
    name &&
    html` Or <a href="${pathWith("/who", { q: name })}">look up ${name}</a>: what the crawl has never met can be asked about, too.`;
  if (!isUnfiltered(filter))
    return [
      "No site matches.",
      html`${progress.isFirstRound && "The list is still being filled. "}Remove a filter above, or <a href="/sites">show all sites</a>.${lookUp}`,
    ] as const;
  if (progress.isFirstRound && progress.knownHosts > 0)
    return [
      "The list is being filled.",
      `The crawl knows about ${howMany(progress.knownHosts, "host")}. Reload the page in a moment.`,
    ] as const;
  return [
    "No site is known yet.",
    html`The crawl begins with URLs that somebody hands in: <a
href="/submit">submit some</a>, or run <code>nearcrawl urls add https://www.example.org/</code>. Their hosts are listed here seconds later.`,
  ] as const;
}

/** As people read them, however they typed them. */
const shownCodes = {
  language: (code: string) => languageName(code.toLowerCase()),
  country: (code: string) => countryName(code.toUpperCase()),
};

const shortcutNames: readonly (readonly [SiteSort, string])[] = [
  ["failures", "failures"],
  ["due", "due URLs"],
  ["fetched", "longest not fetched"],
  ["rtt", "RTT to the crawler"],
  ["bytes", "bytes"],
];

const shortcuts = shortcutNames.map(
  ([sort, words], at) => html`${at > 0 && ", "}<a href="${pathWith("/sites", { sort })}">${words}</a>`,
);

const sorts = (sort: SiteSort) => ({ sort: [sort, usualDirection[sort]] as const });
const count = (sort: SiteSort) => ({ ...sorts(sort), unit: "count" as const });

/** Those without a title are for files alone. */
const siteColumns = (now: Date) => [
  column<ListedSite>("host", "Host", hostLink, {
    ...sorts("host"),
    ...{ value: ({ host }) => host, more: asAsked },
  }),
  column<ListedSite>("name", null, ({ name }) => name),
  column<ListedSite>(
    "state",
    "State",
    ({ state }) => html`<span class="state state-${state}">${stateNames[state]}</span>`,
    {
      ...{ value: ({ state }) => state, more: (site) => stateWords(site, now)[1] },
    },
  ),
  column<ListedSite>("reason", null, ({ reason }) => reason),
  column<ListedSite>("due_at", null, ({ dueAt }) => dueAt),
  column<ListedSite>(
    "crawler",
    "Crawler",
    ({ crawler }) => (crawler === null ? html`<span class="soft">not assigned</span>` : crawlerLink(crawler)),
    { value: ({ crawler }) => crawler },
  ),
  column<ListedSite>("in_progress_by", null, ({ inProgressBy }) => inProgressBy),
  column<ListedSite>("subnet", null, ({ subnet }) => subnet),
  column<ListedSite>(
    "language",
    "Language",
    ({ language }) => language && html`<abbr title="${languageName(language)}">${language}</abbr>`,
  ),
  column<ListedSite>("country", null, (site) => site.country),
  column<ListedSite>("organisation", "Registered to", registeredTo, {
    value: ({ organisation }) => organisation,
  }),
  column<ListedSite>("tld", null, ({ tld }) => tld),
  column<ListedSite>("channels", null, ({ channels }) => channels),
  column<ListedSite>("pages", "Pages", ({ pages }) => pages, count("pages")),
  column<ListedSite>("urls", null, ({ urls }) => urls),
  column<ListedSite>(
    "due_urls",
    "Due URLs",
    ({ dueUrls, moreDueUrls }) => `${moreDueUrls ? "over " : ""}${countText(dueUrls)}`,
    {
      ...{ ...count("due"), value: ({ dueUrls }) => dueUrls },
    },
  ),
  column<ListedSite>("failures_7_days", "Failed, 7 days", failedLink, {
    ...{ ...count("failures"), value: ({ failures }) => failures },
    more: ({ fetches }) => fetches > 0 && `of ${countText(fetches)}`,
  }),
  column<ListedSite>("fetches_7_days", null, ({ fetches }) => fetches),
  column<ListedSite>(
    "fetched_at",
    "Fetched",
    ({ fetchedAt }) => fetchedAt && since(fetchedAt, now, "its crawler's"),
    {
      ...{ ...sorts("fetched"), value: ({ fetchedAt }) => fetchedAt },
    },
  ),
  column<ListedSite>("added_at", "Added", ({ addedAt }) => since(addedAt, now, "the coordinator's"), {
    ...{ ...sorts("added"), value: ({ addedAt }) => addedAt },
  }),
  column<ListedSite>("rtt_ms", "RTT", ({ rttMs }) => rttMs, { ...sorts("rtt"), unit: "ms" }),
  column<ListedSite>("bytes", "Bytes", ({ bytes }) => bytes, { ...sorts("bytes"), unit: "bytes" }),
];

/** Of the file with all of them, in which no time is told from now. */
export const siteFileColumns = siteColumns(new Date(0));

function hostLink({ host, name }: ListedSite) {
  return html`<a class="break" href="/sites/${encodeURIComponent(host)}"><bdi>${name}</bdi></a>`;
}

/** A name in another script has the one that is asked for beside it: it may look like another's. */
function asAsked({ host, name }: ListedSite) {
  return name !== host && html`<span class="mono break">${host}</span>`;
}

function registeredTo({ organisation, country: code, subnet }: ListedSite) {
  if (subnet === null) return null;
  const name =
    organisation === null
      ? html`<span class="mono">${subnet}</span>`
      : html`<a class="break" href="${pathWith("/sites", { organisation })}"><bdi>${organisation}</bdi></a>`;
  return html`${name} ${country(code)}`;
}

function failedLink({ host, failures, fetches }: ListedSite) {
  if (fetches === 0) return null;
  if (failures === 0) return 0;
  return html`<a href="/sites/${encodeURIComponent(host)}#failures">${countText(failures)}</a>`;
}

function since(date: Date, now: Date, whose: string) {
  const iso = date.toISOString();
  return html`<time class="ago" datetime="${iso}" title="${instantWords(iso)}">${sinceWords(date, now, whose)}</time>`;
}

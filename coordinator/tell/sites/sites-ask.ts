/** The list of hosts: /sites by page, and /sites.csv as a whole. */
import type { z } from "zod";
import { howMany, instantWords, spanWords } from "#core/format";
import { filters, member, note, onward, plain, present, table } from "../../ask/document.ts";
import { type Document, operationsOf, type Seen } from "../../ask/operation.ts";
import { small } from "../../web/components.ts";
import { country, countryName, countText, crawlerLink, instant } from "../../web/format.ts";
import { html, pathWith } from "../../web/html.ts";
import {
  countWords,
  isUnfiltered,
  type ListedSite,
  languageName,
  type SiteSort,
  type SitesAnswer,
  sinceWords,
  sites,
  sitesInput,
  sitesQuestion,
  stateNames,
  stateWords,
  usualDirection,
} from "./sites-api.ts";
import type { SitesReads } from "./sites-reads.ts";

interface SitesFound extends SitesAnswer {
  /** The choices of the form; null if there are so many that the name is typed. */
  readonly crawlers: readonly string[] | null;
}

/** With more crawlers than this, the filter takes a typed name. */
const crawlersOffered = 200;

export const sitesOperations = {
  sites: operationsOf<SitesReads>().get({
    ...{ path: "/api/sites", needs: "read" },
    navigation: { group: "Sites", order: 10, entry: "Sites" },
    alsoFound: "hosts domains",
    summary: "Hosts, filtered and sorted",
    description:
      "Hosts without a value come last in either direction. " +
      "Figures follow the crawl within seconds; what registries and delegations change, within progress.roundSeconds.",
    input: sitesInput,
    output: sites,
    command: {
      name: "site list",
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

/** The readable form of codes, however they were typed. */
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

const of = member<ListedSite>;

/** Columns without a title are for files only. */
const siteColumns = (now: Date) => [
  of("host", "Host", { ...sorts("host"), cell: hostLink, more: asAsked }),
  of("name"),
  of("state", "State", {
    cell: ({ state }) => html`<span class="state state-${state}">${stateNames[state]}</span>`,
    more: (site) => stateWords(site, now)[1],
  }),
  of("reason"),
  of("dueAt"),
  of("crawler", "Crawler", {
    cell: ({ crawler }) =>
      crawler === null ? html`<span class="soft">not assigned</span>` : crawlerLink(crawler),
  }),
  of("inProgressBy"),
  of("subnet"),
  of("language", "Language", {
    cell: ({ language }) => language && html`<abbr title="${languageName(language)}">${language}</abbr>`,
  }),
  of("country"),
  of("organisation", "Registered to", { cell: registeredTo }),
  of("tld"),
  of("channels"),
  of("pages", "Pages", count("pages")),
  of("urls"),
  of("dueUrls", "Due URLs", {
    ...count("due"),
    cell: ({ dueUrls, moreDueUrls }) => `${moreDueUrls ? "over " : ""}${countText(dueUrls)}`,
  }),
  of("failures", "Failed, 7 days", {
    ...{ ...count("failures"), key: "failures_7_days", cell: failedLink },
    more: ({ fetches }) => fetches > 0 && `of ${countText(fetches)}`,
  }),
  of("fetches", null, { key: "fetches_7_days" }),
  of("fetchedAt", "Fetched", {
    ...sorts("fetched"),
    cell: ({ fetchedAt }) => fetchedAt && since(fetchedAt, now, "its crawler's"),
  }),
  of("addedAt", "Added", {
    ...sorts("added"),
    cell: ({ addedAt }) => since(addedAt, now, "the coordinator's"),
  }),
  of("rttMs", "RTT", { ...sorts("rtt"), unit: "ms" }),
  of("bytes", "Bytes", { ...sorts("bytes"), unit: "bytes" }),
];

/** The whole file contains no relative times. */
export const siteFileColumns = siteColumns(new Date(0));

function hostLink({ host, name }: ListedSite) {
  return html`<a class="break" href="/sites/${encodeURIComponent(host)}"><bdi>${name}</bdi></a>`;
}

/** A name in another script is shown with its ASCII form, because it may imitate another name. */
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

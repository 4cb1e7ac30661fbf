/** /fleet/queue: what is due but not being fetched, and why. /fleet/in-hand: what is being fetched, and how fast. */
import { z } from "zod";
import { mayDo } from "#core/actor";
import { howMany, whenWords } from "#core/format";
import { timeRange } from "#core/time-range";
import { gateName } from "#protocol/bot-gate";
import {
  aside,
  column,
  history,
  lead,
  member,
  note,
  plain,
  present,
  recordColumns,
  section,
  snakeCase,
  table,
  tabs,
} from "../../ask/document.ts";
import { type Document, type Node, operationsOf, type Unit } from "../../ask/operation.ts";
import type { ToldOf } from "../../web/api-operation.ts";
import { rangeParameters } from "../../web/chart-history.ts";
import { small } from "../../web/components.ts";
import { ago, askAbout, countText, crawlerLink } from "../../web/format.ts";
import { type Html, html, pathWith } from "../../web/html.ts";
import type { OverviewReads } from "./overview-reads.ts";
import {
  csvFormat,
  type GatedHosts,
  type HostInHand,
  type HostsInHand,
  hostsInHand,
  type InHandSort,
  inHandSorts,
  type LeftOutUrls,
  type QueueAges,
  queueFront,
  queueView,
  type WaitingHost,
  waitReason,
} from "./queue-api.ts";
import { paceLimitWords, waitReasonWords, waitWords } from "./queue-words.ts";

const { get } = operationsOf<{ readonly reads: OverviewReads }>();

/** Maximum number of rows of a table. Programs may have more. */
export const rowsShown = ({ isCsv }: { readonly isCsv: boolean }) => (isCsv ? 1000 : 100);

/** How many of the hosts at their limits are shown. */
const leftOutShown = 10;

export const queueOperations = {
  queue: get({
    ...{ path: "/api/fleet/queue", needs: "read" },
    navigation: { group: "Crawl", order: 40, entry: "Queue", tab: "Queue" },
    alsoFound: "frontier waiting due backlog",
    summary: "What is due and not being fetched, and why",
    description: "Ages are of hosts: since their longest due URL could have been fetched.",
    input: z.object({
      reason: waitReason.optional().meta({
        description: "Only hosts that wait for this, of the 5,000 that wait longest.",
        example: "politeness",
      }),
      ...rangeParameters,
      format: csvFormat,
    }),
    output: queueView,
    faults: { 400: "It cannot be answered" },
    command: {
      ...{ name: "queue", help: "\n\nExamples:\n  nearcrawl queue --reason no-delegation" },
      says: "hosts that are due and not being fetched: how long they have waited, and for what",
    },
    run: async ({ input, ports: { reads }, now, isCsv }) => {
      const { reason = null } = input;
      const [ages, leftOut, gated, past, hosts] = await Promise.all([
        reads.queueAges(now),
        reads.leftOutUrls(leftOutShown),
        reads.gatedHosts(now),
        reads.charts("queue", timeRange(input, now)),
        reads.longestWaiting({ reason, most: rowsShown({ isCsv }) }, now),
      ]);
      return { at: now.toISOString(), reason, ages, hosts, leftOut, gated, history: past };
    },
    view: queueDocument,
  }),
  hostsInHand: get({
    ...{ path: "/api/fleet/in-hand", needs: "read" },
    navigation: { group: "Crawl", order: 41, entry: "Queue", tab: "In progress" },
    alsoFound: "in hand leases running",
    summary: "Hosts that are being crawled now, by whom and how fast",
    description: "Those of open leases. What is due and not being fetched: /api/fleet/queue.",
    input: z.object({
      sort: z.enum(inHandSorts).default("rate").meta({
        description:
          "rate: the fastest first (default); open: those with the most to do; since: the longest held.",
        example: "open",
      }),
      format: csvFormat,
    }),
    output: hostsInHand,
    faults: { 400: "The parameter is not as described" },
    command: { name: "queue in-hand", help: "\n\nExample:\n  nearcrawl queue in-hand --sort open" },
    run: async ({ input: { sort }, ports, now, isCsv }) =>
      await ports.reads.hostsInHand({ sort, most: rowsShown({ isCsv }) }, now),
    view: (value, { input, viewer }) =>
      inHandDocument(value, input.sort, mayDo(viewer.actor, "policy-write")),
  }),
};

function queueDocument(view: ToldOf<typeof queueView>): Document {
  const { ages, reason, at, gated, leftOut } = view;
  const all = reason && small(html`for ${waitReasonWords[reason].words} · <a href="/fleet/queue">all</a>`);
  return {
    title: "Queue",
    nodes: present([
      lead(html`${leadWords(ages)} <a class="small" href="/fleet/in-hand">Hosts in progress</a>`),
      note(`A host waits from the moment when its longest due URL could have been fetched until a crawler has it. It is counted
under the first thing in its way.`),
      ages.hosts > 0 && queueTable(ages),
      section(html`Longest waiting ${all}`, [
        hostTable(view),
        view.hosts.length < ages.hosts && someOf(view.hosts),
      ]),
      gated.hosts > 0 && gatedSection(gated, at),
      leftOut.urls > 0 && leftOutSection(leftOut),
      leftOut.domains.length > 0 && domainSection(leftOut),
      history(view.history),
    ]),
  };
}

const someOf = ({ length }: readonly unknown[]) =>
  aside(`The ${countText(length)} that wait longest; the CSV has more.`);

function leadWords({ hosts, isEstimate, verdict }: QueueAges): Html {
  if (hosts === 0) return html`<strong>Nothing is waiting.</strong>`;
  const limit = verdict.limitedBy !== "nothing-due" && html` The crawl is <strong>${verdict.words}</strong>.`;
  return html`<strong>${isEstimate && "About "}${howMany(hosts, "host")}</strong> ${hosts === 1 ? "is" : "are"} due and not in
progress.${isEstimate && " There are many, so this is estimated from a part of them."}${limit}`;
}

/** The number of due hosts by what they wait for. */
export function queueTable(queue: QueueAges): Node {
  const about: Unit = (hosts) => `${queue.isEstimate ? "about " : ""}${countText(hosts)}`;
  type Line = Pick<QueueAges, "hosts" | "medianSeconds" | "p95Seconds" | "oldestSeconds"> & {
    readonly reason?: WaitingHost["reason"];
  };
  return table<Line>({
    ...{ label: "Hosts that are due, by what they wait for", kind: "with-total" },
    rows: [...queue.reasons, queue],
    empty: ["No host is due.", ""],
    columns: [
      column(
        "",
        "Hosts waiting for",
        ({ reason }) => (reason ? waitReasonWords[reason].words : "all that is due"),
        {
          link: ({ reason }) => (reason ? pathWith("/fleet/queue", { reason }) : null),
        },
      ),
      column("", "Hosts", ({ hosts }) => hosts, { unit: about }),
      column("", "Median wait", ({ medianSeconds }) => medianSeconds, { unit: "seconds" }),
      column("", "95 % under", ({ p95Seconds }) => p95Seconds, { unit: "seconds" }),
      column("", "Longest", ({ oldestSeconds }) => oldestSeconds, { unit: "seconds" }),
    ],
  });
}

function hostTable({ hosts, at, reason, ages }: ToldOf<typeof queueView>): Node {
  const hint =
    reason !== null && ages.hosts > queueFront
      ? `Of the ${countText(queueFront)} hosts that wait longest, none waits for this.`
      : "URLs are added with nearcrawl urls add, and found by the crawl itself.";
  const now = new Date(at);
  return table<WaitingHost>({
    ...{ label: "Hosts waiting longest", rows: hosts },
    empty: [`No host waits${reason === null ? "" : " for this"}.`, hint],
    columns: [
      column("host", "Host", ({ host }) => askAbout(host), { kind: "break" }),
      column("due_at", "Due since", ({ dueAt }) => ago(dueAt, at), { value: ({ dueAt }) => dueAt }),
      column("waits_seconds", null, ({ dueAt }) => Math.round((now.getTime() - Date.parse(dueAt)) / 1000)),
      member("reason"),
      column("why", "Why it waits", (host) => waitWords(host, now), { kind: "wide" }),
      column("crawler", "Crawler", ({ crawler }) => crawler && crawlerLink(crawler)),
      column("subnet", "Subnet", ({ range }) => range && askAbout(range)),
      member("notBefore"),
    ],
  });
}

function gatedSection({ hosts, providers, longest }: GatedHosts, at: string): Node {
  const by = providers.map(({ provider, hosts: own }) => `${gateName(provider)} ${countText(own)}`);
  const [rest, their] = hosts === 1 ? ["rests", "its"] : ["rest", "their"];
  const words = `${howMany(hosts, "host")} ${rest}, since a gate answers in ${their} place: ${by.join(", ")}.
Pages stay as they were last read. Each host is tried again with one URL, after a day at first and every two weeks at last.`;
  return section(
    "Behind bot gates",
    [
      plain(words),
      table<GatedHosts["longest"][number]>({
        ...{ label: "Hosts behind bot gates", rows: longest },
        columns: [
          column("", "Host", ({ host }) => askAbout(host), { kind: "break" }),
          column("", "Gate", ({ provider }) => gateName(provider)),
          column("", "Since", ({ since }) => ago(since, at)),
          member("tries", "Tries", { unit: "count" }),
          column("", "Next try", ({ nextTryAt }) => nextTryAt && whenWords(nextTryAt, new Date(at))),
        ],
      }),
      longest.length < hosts &&
        aside(
          html`Those that have been for longest; <a href="/sites?state=blocked">the list of sites</a> has all.`,
        ),
    ],
    { id: "bot-gates" },
  );
}

function leftOutSection({ urls, hosts, more, most }: LeftOutUrls): Node {
  const have = more ? "hosts or more have" : hosts === 1 ? "host has" : "hosts have";
  return section("Hosts at their URL limit", [
    plain(`${countText(hosts)} ${have} reached their limit; URLs of theirs were skipped ${howMany(urls, "time")}, and
are not kept. A host that names URLs without end is most often a trap.`),
    table<LeftOutUrls["most"][number]>({
      ...{ label: "Hosts at their URL limit", rows: most },
      columns: [
        column("", "Host", ({ host }) => askAbout(host), { kind: "break" }),
        member("urls", "Skipped", { unit: "count" }),
      ],
    }),
  ]);
}

const domainSection = ({ domains }: LeftOutUrls): Node =>
  section("Domains at their limit of new hosts", [
    plain(`Links brought more new hosts of these domains, or their pages link to more, than are let in a day. What waits comes in on a later
day; what is skipped when a page that names it is fetched again. Whoever crawled the pages has no part in it.`),
    table<LeftOutUrls["domains"][number]>({
      ...{ label: "Domains with more new hosts than are let in a day", rows: domains },
      columns: [
        member("domain", "Domain", { kind: "break" }),
        member("waiting", "URLs that wait", { unit: "count" }),
        member("leftOut", "Skipped", { unit: "count" }),
      ],
    }),
  ]);

// Hosts that are being crawled now.

const sortWords: Readonly<Record<InHandSort, string>> = {
  rate: "Fastest first",
  open: "Most to do",
  since: "Longest held",
  host: "By name",
};

function inHandDocument({ hosts, shown, at }: HostsInHand, sort: InHandSort, mayCap: boolean): Document {
  const caps = html` To slow a site down: <a href="/fleet/site-caps">caps</a>.`;
  const now = html`<strong>${countText(hosts)} ${hosts === 1 ? "host is" : "hosts are"} being crawled now</strong>, each by one crawler.
What waits: <a href="/fleet/queue">queue</a>.${mayCap && caps}`;
  const orders = inHandSorts.map((one) => ({
    ...{ title: sortWords[one], isCurrent: one === sort },
    href: pathWith("/fleet/in-hand", { sort: one }),
  }));
  return {
    title: "Hosts in progress",
    nodes: present([
      hosts > 0 && lead(now),
      hosts > 0 && tabs("Order", orders),
      table<HostInHand>({
        ...{ label: "Hosts in progress", rows: shown },
        empty: ["No host is being crawled.", html`What is due and waits: <a href="/fleet/queue">queue</a>.`],
        columns: [
          column("", "Host", ({ host }) => askAbout(host), { kind: "break" }),
          column("", "Crawler", ({ crawler }) => crawlerLink(crawler)),
          member("urlsPerMinute", "URLs per minute", {
            unit: (rate) => rate.toFixed(1),
          }),
          column("", "Done", ({ urls, openUrls }) => urls - openUrls, { unit: "count" }),
          member("openUrls", "To do", { unit: "count" }),
          column("", "Held back by", heldBackBy, { kind: "wide" }),
          column("", "Since", ({ since }) => ago(since, at)),
        ],
      }),
      shown.length < hosts && aside(`${countText(shown.length)} of them; the CSV has more.`),
    ]),
    csv: {
      rows: shown,
      columns: recordColumns<HostInHand>(
        [
          ...(["host", "crawler", "since", "expiresAt", "urls", "openUrls", "urlsPerMinute"] as const),
          ...(["limit", "delayMs", "backOffUntil"] as const),
        ],
        snakeCase,
      ),
    },
  };
}

function heldBackBy({ limit, delayMs }: HostInHand): string {
  const isDelayed = delayMs !== null && (limit === "crawl-delay" || limit === "site-cap");
  return `${paceLimitWords[limit]}${isDelayed ? ` of ${delayMs / 1000} s` : ""}`;
}

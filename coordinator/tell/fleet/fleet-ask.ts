/** The list of crawlers with their state and work, and the open invitations. */
import { z } from "zod";
import { mayDo } from "#core/actor";
import { howMany } from "#core/format";
import {
  column,
  empty,
  filters,
  note,
  pager,
  picture,
  present,
  section,
  table,
  tiles,
} from "../../ask/document.ts";
import { type Document, type Node, operationsOf, type Seen } from "../../ask/operation.ts";
import { standingWords } from "../../crawl/trust/trust-api.ts";
import type { InvitationRecord } from "../../place/crawlers/identity.ts";
import { onlyOperators, small } from "../../web/components.ts";
import { ago, country, countText, crawlerLink, stateBadge } from "../../web/format.ts";
import { type Html, html, pathWith } from "../../web/html.ts";
import { crawlerOperations } from "./crawler-ask.ts";
import { crawlerDeedOperations } from "./crawler-deeds-ask.ts";
import { crawlerPastOperations } from "./crawler-past-ask.ts";
import { failureOperations, incidentOperations } from "./failures-ask.ts";
import {
  type FleetAnswer,
  type FleetEntry,
  fleet as fleetAnswer,
  fleetParameters,
  type fleetSorts,
  type fleetStates,
  fleetView,
  isTrusted,
  stateWords,
  versionOf,
} from "./fleet-api.ts";
import type { FleetPorts } from "./fleet-store.ts";
import { addPartner, invitationOperations, invitationTable } from "./invitations-ask.ts";
import { trustOperations } from "./trust-ask.ts";

const { get } = operationsOf<FleetPorts>();

/** `invitations` is null for readers who may not see them. */
type Listed = FleetAnswer & { readonly invitations: readonly InvitationRecord[] | null };

const fleet = get({
  ...{ path: "/api/fleet", needs: "read" },
  navigation: { group: "Fleet", order: 10, entry: "Crawlers", also: ["/crawlers"] },
  summary: "Every crawler: state and why, work against budget, trust",
  description: "Scope read; identities with fleet-read.",
  input: z.object(fleetParameters),
  output: fleetAnswer,
  command: {
    name: "fleet list",
    group: {
      says: "the crawlers and what each one has; invite, drain, resume or revoke one",
      help: `

Examples:
  nearcrawl fleet show athens
  nearcrawl fleet invite --name athens --capacity 50000
  nearcrawl fleet incidents --name athens --since 24h
  nearcrawl fleet budget athens --pages-per-day 50000
  nearcrawl fleet domain-sets athens .gr lang:el
  nearcrawl fleet failures --blame crawler
  nearcrawl fleet advise`,
    },
  },
  run: async ({ input, ports, actor, now, isCsv }): Promise<Listed> => {
    const isInside = mayDo(actor, "fleet-read");
    const [all, invitations] = await Promise.all([
      ports.reads.fleet(),
      isInside ? ports.invitations.list(now) : null,
    ]);
    const view = fleetView(all, input, isCsv ? Number.POSITIVE_INFINITY : undefined);
    const crawlers = view.crawlers.map((entry) => shownEntry(entry, isInside));
    return { ...view, page: input.page, crawlers, invitations };
  },
  told: ({ invitations: _, ...answer }) => answer,
  view: fleetDocument,
});

export const fleetOperations = {
  ...{ fleet, ...crawlerOperations, ...incidentOperations, ...trustOperations, ...failureOperations },
  ...{ ...crawlerPastOperations, ...crawlerDeedOperations, ...invitationOperations },
};

/** Identities, addresses and contacts are for operators. */
function shownEntry({ identity, ...entry }: FleetEntry, isInside: boolean): Entry {
  const standing = stateWords({ ...entry, identity });
  return { ...entry, standing, ...(isInside ? { identity } : {}) };
}

type Entry = FleetAnswer["crawlers"][number];

function fleetDocument(answer: Listed, { viewer, now }: Pick<Seen<unknown>, "viewer" | "now">): Document {
  const { totals, countries, versions, found, page, more, invitations } = answer;
  const named = (all: readonly string[]) => Object.fromEntries(all.map((one) => [one, one]));
  const which = (count: number, query: string, words: string) =>
    count === 0 ? "none" : html`<a class="small" href="/fleet?${query}">${words}</a>`;
  return {
    ...{ title: "Fleet", beside: addPartner(viewer) },
    nodes: present([
      tiles([
        ["Connected", countText(totals.connected), `of ${howMany(totals.crawlers, "crawler")}`],
        ["Offline", countText(totals.offline), which(totals.offline, "state=offline", "which, and why")],
        [
          "Draining",
          countText(totals.draining),
          which(totals.draining, "state=draining", "which, and progress"),
        ],
        [
          "Untrusted crawlers",
          countText(totals.distrusted),
          which(totals.distrusted, "state=distrusted", "which"),
        ],
        [
          "Pages today (UTC)",
          countText(totals.pagesToday),
          `of ${countText(totals.pagesPerDay)} allowed for those connected`,
        ],
        [
          "Incidents in 7 days",
          countText(totals.incidents),
          which(totals.incidents, "sort=incidents", "by crawler"),
        ],
      ]),
      filters({
        ...{ label: "Crawlers", names: ["q", "state", "country", "version", "sort"] },
        choices: { state: stateNames, sort: sortNames, country: named(countries), version: named(versions) },
      }),
      found > 0 && note(howMany(found, "crawler")),
      fleetTable(answer, { viewer, now }),
      pager(page, more),
      invitations && openInvitations(invitations),
      picture(onlyOperators(viewer.actor, "fleet-write", "Adding partners and controlling crawlers")),
    ]),
  };
}

const stateNames: Readonly<Record<(typeof fleetStates)[number], string>> = {
  online: "online",
  draining: "draining",
  offline: "offline",
  never: "never connected",
  revoked: "revoked",
  distrusted: "untrusted",
};

const sortNames: Readonly<Record<(typeof fleetSorts)[number], string>> = {
  name: "name",
  state: "state, offline first",
  subnets: "most subnets",
  pages: "most pages today",
  rtt: "longest RTT",
  incidents: "most incidents",
  trust: "least trusted",
  seen: "longest not seen",
};

function fleetTable(
  { totals, crawlers }: FleetAnswer,
  { viewer, now }: Pick<Seen<unknown>, "viewer" | "now">,
): Node {
  const at = now.toISOString();
  const isInside = mayDo(viewer.actor, "fleet-read");
  return table<Entry>({
    ...{ label: "Crawlers", kind: "fleet", rows: crawlers },
    empty:
      totals.crawlers > 0
        ? ["No crawler matches.", html`<a href="/fleet">Show all ${countText(totals.crawlers)}</a>`]
        : [
            "No crawlers yet.",
            mayDo(viewer.actor, "fleet-write")
              ? html`<a href="/fleet/invite">Add a partner</a>: its crawler joins with one command.`
              : html`An operator adds partners here, or with <code>nearcrawl fleet invite --name NAME</code>.`,
          ],
    columns: [
      column(
        "name",
        "Crawler",
        ({ name, place, country: of }) =>
          html`${crawlerLink(name)}${small(html`${place ?? "place not stated"} ${country(of)}`)}`,
        { value: ({ name }) => name },
      ),
      column("place", null, ({ place }) => place),
      column("country", null, ({ country: of }) => of),
      column("state", "State", (entry) => stateCell(entry, at), {
        ...{ kind: "why", value: ({ standing }) => standing.state },
      }),
      column("since", null, ({ standing }) => standing.since),
      column("why", null, ({ standing }) => standing.why),
      column("version", "Version", versionOf),
      column("subnets", "Subnets", ({ subnets }) => subnets, {
        ...{
          unit: "count",
          link: ({ name, subnets }) =>
            subnets > 0 && mayDo(viewer.actor, "read") ? pathWith("/explore", { crawler: name }) : null,
        },
      }),
      column("unmeasured", "Unmeasured", ({ unmeasured }) => unmeasured, { unit: "count" }),
      column("pages_today", "Pages today", ({ pagesToday }) => pagesToday, {
        ...{ unit: "count", more: ({ pagesPerDay }) => `of ${countText(pagesPerDay)}` },
      }),
      column("pages_per_day", null, ({ pagesPerDay }) => pagesPerDay),
      column("bytes_today", null, ({ bytesToday }) => bytesToday),
      column("bytes_per_day", null, ({ bytesPerDay }) => bytesPerDay),
      column("mean_rtt_ms", "Mean RTT", ({ meanRttMs }) => meanRttMs, { unit: "ms" }),
      column("open_leases", null, ({ openLeases }) => openLeases),
      column("incidents_7_days", "Incidents, 7 d", ({ incidents }) => incidents, {
        ...{ unit: "count" },
        link: ({ name, incidents }) =>
          isInside && incidents > 0 ? pathWith("/fleet/incidents", { crawler: name }) : null,
      }),
      column("trust", "Trust", trustCell, { value: ({ trust }) => trust }),
    ],
  });
}

/** Shows the badge, since when and why. Operators (who alone get the identity here) also see an offline crawler's last words. */
function stateCell({ standing: { state, since, why }, identity }: Entry, at: string): Html {
  const lastEnd = state === "offline" ? (identity?.lastEnd ?? null) : null;
  return html`${stateBadge(stateNames[state])}${since && html` <span class="since">${ago(since, at)}</span>`}${
    why !== null && small(why)
  }${lastEnd !== null && small(`last message: ${lastEnd.reason}`)}`;
}

function trustCell(entry: Entry): Html | string {
  const words = standingWords[entry.trust];
  return isTrusted(entry) ? words : html`<strong class="warn">${words}</strong>`;
}

function openInvitations(invitations: readonly InvitationRecord[]): Node {
  const open = invitations.filter(({ state }) => state === "open" || state === "joining");
  const all = html`<a class="small" href="/fleet/invitations">All invitations</a>`;
  return section("Open invitations", [
    open.length === 0 ? empty("No open invitations.", all) : invitationTable(open, ["None.", all]),
    open.length > 0 && note(all),
  ]);
}

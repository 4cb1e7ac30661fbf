/** The fleet: every crawler with its state and why, what it does against what it may, and open invitations. */
import { mayDo } from "#core/actor";
import { howMany } from "#core/format";
import type { InvitationRecord } from "../crawlers/identity.ts";
import { standingWords } from "../trust/trust-api.ts";
import { empty, onlyOperators, options, pager, small, tableOf, tile, titleRow } from "../web/components.ts";
import { ago, country, countText, crawlerLink, msOrDash, stateBadge } from "../web/format.ts";
import { type Html, html, nothing, pathWith } from "../web/html.ts";
import type { PageViewer } from "../web/page-frame.ts";
import { fleetSorts, fleetStates } from "./fleet-api.ts";
import { type FleetEntry, fleetColumns, stateWords } from "./fleet-entry.ts";
import { invitationTable } from "./invitations-page.ts";
import { type FleetView, isTrusted } from "./list.ts";

interface FleetPage {
  readonly view: FleetView;
  /** Null: not for this viewer. */
  readonly invitations: readonly InvitationRecord[] | null;
  readonly at: string;
}

export function fleetBody({ view, invitations, at }: FleetPage, viewer: PageViewer): Html {
  const mayInvite = mayDo(viewer.actor, "fleet-write");
  const add = mayInvite ? html`<a class="button slim" href="/fleet/invite">Add a partner</a>` : nothing;
  return html`${titleRow("Fleet", add)}
${totalTiles(view)}
${filters(view)}
${table(view, at, viewer)}
${invitations === null ? nothing : openInvitations(invitations, viewer)}
${onlyOperators(viewer.actor, "fleet-write", "Adding partners and controlling crawlers")}`;
}

function totalTiles({ totals }: FleetView): Html {
  const which = (count: number, query: string, words: string) =>
    count === 0 ? "none" : html`<a href="/fleet?${query}">${words}</a>`;
  return html`<dl class="tiles">
${tile("Connected", countText(totals.connected), `of ${howMany(totals.crawlers, "crawler")}`)}
${tile("Offline", countText(totals.offline), which(totals.offline, "state=offline", "which, and why"))}
${tile("Draining", countText(totals.draining), which(totals.draining, "state=draining", "which, and progress"))}
${tile("Untrusted crawlers", countText(totals.distrusted), which(totals.distrusted, "state=distrusted", "which"))}
${tile("Pages today (UTC)", countText(totals.pagesToday), `of ${countText(totals.pagesPerDay)} allowed for those connected`)}
${tile("Incidents in 7 days", countText(totals.incidents), which(totals.incidents, "sort=incidents", "by crawler"))}
</dl>`;
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

function filters({ query, countries, versions }: FleetView): Html {
  const choices = (values: readonly string[], names: Readonly<Record<string, string>> = {}) =>
    values.map((value) => [value, names[value] ?? value] as const);
  const select = (label: string, name: string, values: readonly (readonly [string, string])[], chosen = "") =>
    html`<label>${label} <select name="${name}">${options([["", "any"], ...values], chosen)}</select></label>`;
  return html`<form class="filter-row fleet-filters" method="get" action="/fleet" role="search" aria-label="Crawlers">
<label>Name or place <input name="q" value="${query.q}" maxlength="63" size="14"></label>
${select("State", "state", choices(fleetStates, stateNames), query.state)}
${select("Country", "country", choices(countries), query.country)}
${select("Version", "version", choices(versions), query.version)}
<label>Sorted by <select name="sort">${options(choices(fleetSorts, sortNames), query.sort)}</select></label>
<button class="slim">Show</button>
</form>`;
}

function table(view: FleetView, at: string, viewer: PageViewer): Html {
  if (view.totals.crawlers === 0) return nobodyYet(viewer);
  if (view.crawlers.length === 0)
    return empty(
      "No crawler matches.",
      html`<a href="/fleet">Show all ${countText(view.totals.crawlers)}</a>`,
    );
  const { q, state, country: of, version, sort } = view.query;
  const query = { q, state, country: of, version, sort: sort === "name" ? null : sort };
  const heads = pageColumns.map(({ page, kind }) => (kind === undefined ? (page ?? "") : `${page} .${kind}`));
  return html`<section><p class="small">${howMany(view.found, "crawler")}</p>
${tableOf("Crawlers", heads, view.crawlers, (entry) => cellsOf(entry, at, viewer), "fleet")}
${pager({ path: "/fleet", query, page: view.query.page, more: view.more })}</section>`;
}

function nobodyYet({ actor }: PageViewer): Html {
  return empty(
    "No crawlers yet.",
    mayDo(actor, "fleet-write")
      ? html`<a href="/fleet/invite">Add a partner</a>: its crawler joins with one command.`
      : html`An operator adds partners here, or with <code>nearcrawl fleet invite --name NAME</code>.`,
  );
}

const pageColumns = fleetColumns.filter(({ page }) => page !== undefined);

/** Cells that are more than their text. */
const cells: Readonly<Record<string, (entry: FleetEntry, at: string, isInside: boolean) => Html | string>> = {
  name: ({ name, place, country: code }) =>
    html`${crawlerLink(name)}${small(html`${place ?? "place not stated"} ${country(code)}`)}`,
  state: stateCell,
  subnets: ({ name, subnets }) =>
    subnets > 0 ? html`<a href="${pathWith("/explore", { crawler: name })}">${countText(subnets)}</a>` : "0",
  pages_today: ({ pagesToday, pagesPerDay }) =>
    html`${countText(pagesToday)}${small(`of ${countText(pagesPerDay)}`)}`,
  mean_rtt_ms: ({ meanRttMs }) => msOrDash(meanRttMs),
  incidents_7_days: ({ name, incidents }, _, isInside) =>
    isInside && incidents > 0
      ? html`<a href="${pathWith("/fleet/incidents", { crawler: name })}">${countText(incidents)}</a>`
      : countText(incidents),
  trust: (entry) => {
    const words = standingWords[entry.trust];
    return isTrusted(entry) ? words : html`<strong class="warn">${words}</strong>`;
  },
};

function cellsOf(entry: FleetEntry, at: string, viewer: PageViewer): (Html | string)[] {
  const isInside = mayDo(viewer.actor, "fleet-read");
  return pageColumns.map(
    ({ key, value }) => cells[key]?.(entry, at, isInside) ?? String(value(entry) ?? "–"),
  );
}

/** The badge, since when, why; last words of one that is away are for operators. */
function stateCell(entry: FleetEntry, at: string, isInside: boolean): Html {
  const { state, since, why } = stateWords(entry);
  const { lastEnd } = entry.identity;
  const isToldEnd = isInside && state === "offline" && lastEnd !== null;
  return html`${stateBadge(stateNames[state])}${since && html` <span class="since">${ago(since, at)}</span>`}${
    why !== null && small(why)
  }${isToldEnd && small(`last message: ${lastEnd.reason}`)}`;
}

function openInvitations(invitations: readonly InvitationRecord[], viewer: PageViewer): Html {
  const open = invitations.filter(({ state }) => state === "open" || state === "joining");
  return html`<section><h2>Open invitations</h2>${
    open.length === 0
      ? empty("No open invitations.", html`<a href="/fleet/invitations">All invitations</a>`)
      : html`${invitationTable(open, viewer)}<p class="small"><a href="/fleet/invitations">All invitations</a></p>`
  }</section>`;
}

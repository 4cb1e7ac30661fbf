/** The fleet's lists: crawlers, incidents, trust, failures, moves; each a page, JSON and CSV. */

import { mayDo } from "#core/actor";
import { timeRange } from "#core/time-range";
import { failuresBody } from "../overview/failures-page.ts";
import { incidentSpans, incidentsBody } from "../overview/incidents-page.ts";
import { trustBody } from "../trust/page.ts";
import type { Visit } from "../web/access.ts";
import { type AskedView, numberIn, type Shown, type Views } from "../web/views.ts";
import { movesBody } from "./crawler-history-page.ts";
import { fleetApi } from "./fleet-api.ts";
import { type FleetEntry, fleetColumns, stateWords } from "./fleet-entry.ts";
import { fleetBody } from "./fleet-page.ts";
import type { FleetPorts } from "./fleet-ports.ts";
import type { Blame } from "./fleet-view.ts";
import {
  type FleetQuery,
  type FleetSort,
  type FleetStateFilter,
  fleetSorts,
  fleetStates,
  fleetView,
} from "./list.ts";

const mostIncidents = 500;
const mostFailures = 200;
const dayMs = 86_400_000;
const hourMs = 3_600_000;

export function addFleetLists(views: Views, ports: FleetPorts): void {
  views.describe({
    ...{ path: "/fleet", operation: fleetApi.fleet },
    view: async (asked) => await fleetShown(asked, ports),
  });
  views.describe({
    ...{ path: "/fleet/incidents", operation: fleetApi.incidents },
    view: async (asked) => await incidentsShown(asked, ports),
  });
  views.describe({
    ...{ path: "/fleet/trust", operation: fleetApi.trust },
    view: async ({ query, now }) => {
      const [crawlers, history] = await Promise.all([
        ports.reads.trust(),
        ports.overview.charts("trust", timeRange(query, now, "7d")),
      ]);
      const columns = ["crawler", "standing", "agreed", "alone", "once", "score", "pages"];
      const rows = crawlers.map(
        ({ crawler, standing, comparisons: { agreed, alone, once }, score, pages }) => [
          ...[crawler, standing, agreed, alone, once, score, pages],
        ],
      );
      const body: Shown["body"] = (visit) => trustBody(crawlers, history, visit);
      return {
        status: 200,
        value: { crawlers, history },
        title: "Trust",
        body,
        csv: () => ({ columns, rows }),
      };
    },
  });
  views.describe({
    ...{ path: "/fleet/failures", operation: fleetApi.failures },
    view: async (asked) => await failuresShown(asked, ports),
  });
  views.describe({
    ...{ path: "/fleet/moves", operation: fleetApi.moves },
    view: async ({ query }) => {
      const moves = await ports.reads.moves(query("crawler") === "" ? null : query("crawler"));
      return {
        status: 200,
        value: { moves },
        title: "Moves",
        body: (visit: Visit) => movesBody(moves, visit),
      };
    },
  });
}

async function fleetShown(asked: AskedView, ports: FleetPorts) {
  const query = fleetQuery(asked);
  if (typeof query === "string") return query;
  const isInside = mayDo(asked.visit.actor, "fleet-read");
  const [fleet, invitations] = await Promise.all([
    ports.reads.fleet(),
    isInside ? ports.invitations.list(asked.now) : null,
  ]);
  const view = fleetView(fleet, query);
  const { query: _, crawlers, ...rest } = view;
  const at = asked.now.toISOString();
  return {
    status: 200,
    value: { ...rest, page: query.page, crawlers: crawlers.map((entry) => shownEntry(entry, isInside)) },
    title: "Fleet",
    body: (visit: Visit) => fleetBody({ view, invitations, at }, visit),
    csv: () => csvOf(fleetView(fleet, query, Number.POSITIVE_INFINITY).crawlers),
  };
}

/** Identities, addresses and contacts are for operators. */
function shownEntry({ identity, ...entry }: FleetEntry, isInside: boolean) {
  const standing = stateWords({ ...entry, identity });
  return { ...entry, standing, ...(isInside ? { identity } : {}) };
}

function fleetQuery({ query }: AskedView): FleetQuery | string {
  const [state, sort] = [query("state"), query("sort")];
  if (state !== "" && !isOf(fleetStates, state)) return `state: one of ${fleetStates.join(", ")}.`;
  if (sort !== "" && !isOf(fleetSorts, sort)) return `sort: one of ${fleetSorts.join(", ")}.`;
  return {
    text: query("q").slice(0, 63),
    state: state as FleetStateFilter | "",
    country: query("country").slice(0, 2),
    version: query("version").slice(0, 63),
    sort: sort === "" ? "name" : (sort as FleetSort),
    page: Math.max(1, numberIn(query("page"), 1)),
  };
}

function isOf<Value extends string>(values: readonly Value[], text: string): text is Value {
  return (values as readonly string[]).includes(text);
}

function csvOf(fleet: readonly FleetEntry[]) {
  return {
    columns: fleetColumns.map(({ key }) => key),
    rows: fleet.map((entry) => fleetColumns.map(({ value }) => value(entry))),
  };
}

const spanDays: ReadonlyMap<string, number> = new Map([
  ["24h", 1],
  ["7d", 7],
  ["30d", 30],
  ["90d", 90],
]);

async function incidentsShown({ query, now }: AskedView, ports: FleetPorts) {
  const [crawler, kind] = [query("crawler").slice(0, 63), query("kind").slice(0, 60)];
  const since = query("since") === "" ? "7d" : query("since");
  const days = spanDays.get(since);
  if (days === undefined) return `since: one of ${incidentSpans.join(", ")}.`;
  const listed = await ports.incidents.list({
    since: new Date(now.getTime() - days * dayMs),
    ...(crawler === "" ? {} : { name: crawler }),
    ...(kind === "" ? {} : { kind }),
    most: mostIncidents + 1,
  });
  const incidents = listed.slice(0, mostIncidents);
  const isCut = listed.length > mostIncidents;
  return {
    status: 200,
    value: { incidents, more: isCut },
    title: "Incidents",
    body: () => incidentsBody({ crawler, kind, since, incidents, isCut }),
    csv: () => ({
      columns: ["first", "last", "crawler", "kind", "times", "from", "words"],
      rows: incidents.map((one) => [
        ...[one.firstAt.toISOString(), one.lastAt.toISOString(), one.crawler, one.kind, one.count],
        ...[one.remoteAddress, one.words],
      ]),
    }),
  };
}

const blames = ["target", "network", "crawler", "us"] as const;

async function failuresShown({ query, now }: AskedView, ports: FleetPorts) {
  const [blame, crawler, host] = [query("blame"), query("crawler").slice(0, 63), query("host").slice(0, 253)];
  if (blame !== "" && !isOf(blames, blame)) return `blame: one of ${blames.join(", ")}.`;
  const hours: 1 | 24 = query("hours") === "1" ? 1 : 24;
  const [shares, history, found] = await Promise.all([
    ports.reads.failureShares(hours),
    ports.overview.charts("failures", timeRange(query, now)),
    ports.reads.failures({
      since: new Date(now.getTime() - hours * hourMs),
      ...(blame === "" ? {} : { blame }),
      ...(crawler === "" ? {} : { crawler }),
      ...(host === "" ? {} : { host }),
      most: mostFailures + 1,
    }),
  ]);
  const [latest, isCut] = [found.slice(0, mostFailures), found.length > mostFailures];
  const page = { blame: blame as Blame | "", crawler, host, hours, shares, latest, isCut, history } as const;
  return {
    status: 200,
    value: { hours, shares, latest, more: isCut, history },
    title: "Failed fetches",
    body: (visit: Visit) => failuresBody(page, visit),
    csv: () => ({
      columns: ["at", "crawler", "blame", "status", "url", "host", "words"],
      rows: latest.map((one) => [
        ...[one.at.toISOString(), one.crawler, one.blame, one.status, one.url, one.host, one.words],
      ]),
    }),
  };
}

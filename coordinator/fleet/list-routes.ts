/** The fleet's lists: crawlers, incidents, trust, failures, moves; each a page, JSON and CSV. */

import { mayDo } from "#core/actor";
import { timeRange } from "#core/time-range";
import { failuresBody } from "../overview/failures-page.ts";
import { incidentsBody } from "../overview/incidents-page.ts";
import { trustBody } from "../trust/page.ts";
import type { Visit } from "../web/access.ts";
import { askedOf } from "../web/asked.ts";
import type { AskedView, Shown, Views } from "../web/views.ts";
import { movesBody } from "./crawler-history-page.ts";
import { fleetApi } from "./fleet-api.ts";
import { type FleetEntry, fleetColumns, stateWords } from "./fleet-entry.ts";
import { fleetBody } from "./fleet-page.ts";
import type { FleetPorts } from "./fleet-store.ts";
import { fleetView } from "./list.ts";

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

async function fleetShown({ query: given, visit, now }: AskedView, ports: FleetPorts) {
  const query = askedOf(fleetApi.fleet.parameters.query, given);
  if (typeof query === "string") return query;
  const isInside = mayDo(visit.actor, "fleet-read");
  const [fleet, invitations] = await Promise.all([
    ports.reads.fleet(),
    isInside ? ports.invitations.list(now) : null,
  ]);
  const view = fleetView(fleet, query);
  const { query: _, crawlers, ...rest } = view;
  const at = now.toISOString();
  return {
    status: 200,
    value: { ...rest, page: query.page, crawlers: crawlers.map((entry) => shownEntry(entry, isInside)) },
    title: "Fleet",
    body: (visitor: Visit) => fleetBody({ view, invitations, at }, visitor),
    csv: () => csvOf(fleetView(fleet, query, Number.POSITIVE_INFINITY).crawlers),
  };
}

/** Identities, addresses and contacts are for operators. */
function shownEntry({ identity, ...entry }: FleetEntry, isInside: boolean) {
  const standing = stateWords({ ...entry, identity });
  return { ...entry, standing, ...(isInside ? { identity } : {}) };
}

function csvOf(fleet: readonly FleetEntry[]) {
  return {
    columns: fleetColumns.map(({ key }) => key),
    rows: fleet.map((entry) => fleetColumns.map(({ value }) => value(entry))),
  };
}

const spanDays = { "24h": 1, "7d": 7, "30d": 30, "90d": 90 } as const;

async function incidentsShown({ query, now }: AskedView, ports: FleetPorts) {
  const asked = askedOf(fleetApi.incidents.parameters.query, query);
  if (typeof asked === "string") return asked;
  const { crawler, kind, since } = asked;
  const listed = await ports.incidents.list({
    since: new Date(now.getTime() - spanDays[since] * dayMs),
    ...(crawler === undefined ? {} : { name: crawler }),
    ...(kind === undefined ? {} : { kind }),
    most: mostIncidents + 1,
  });
  const incidents = listed.slice(0, mostIncidents);
  const isCut = listed.length > mostIncidents;
  return {
    status: 200,
    value: { incidents, more: isCut },
    title: "Incidents",
    body: () => incidentsBody({ crawler: crawler ?? "", kind: kind ?? "", since, incidents, isCut }),
    csv: () => ({
      columns: ["first", "last", "crawler", "kind", "times", "from", "words"],
      rows: incidents.map((one) => [
        one.firstAt.toISOString(),
        one.lastAt.toISOString(),
        one.crawler,
        one.kind,
        one.count,
        one.remoteAddress,
        one.words,
      ]),
    }),
  };
}

async function failuresShown({ query, now }: AskedView, ports: FleetPorts) {
  const { blame, crawler, host, hours: shown } = fleetApi.failures.parameters.query;
  const asked = askedOf({ blame, crawler, host, hours: shown }, query);
  if (typeof asked === "string") return asked;
  const hours = asked.hours === "1" ? 1 : 24;
  const [shares, history, found] = await Promise.all([
    ports.reads.failureShares(hours),
    ports.overview.charts("failures", timeRange(query, now)),
    ports.reads.failures({
      ...asked,
      since: new Date(now.getTime() - hours * hourMs),
      most: mostFailures + 1,
    }),
  ]);
  const [latest, isCut] = [found.slice(0, mostFailures), found.length > mostFailures];
  const page = {
    blame: asked.blame ?? "",
    crawler: asked.crawler ?? "",
    host: asked.host ?? "",
    hours,
    shares,
    latest,
    isCut,
    history,
  } as const;
  return {
    status: 200,
    value: { hours, shares, latest, more: isCut, history } as const,
    title: "Failed fetches",
    body: (visit: Visit) => failuresBody(page, visit),
    csv: () => ({
      columns: ["at", "crawler", "blame", "status", "url", "host", "words"],
      rows: latest.map((one) => [
        one.at.toISOString(),
        one.crawler,
        one.blame,
        one.status,
        one.url,
        one.host,
        one.words,
      ]),
    }),
  };
}

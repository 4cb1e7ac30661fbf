/** Incidents: what was refused and why, by crawler, kind and hour. */
import { z } from "zod";
import { type IncidentEntry, incidentDays } from "#core/incidents";
import { aside, column, filters, lead, present, table } from "../../ask/document.ts";
import { type Column, type Node, operationsOf, type Table } from "../../ask/operation.ts";
import { record } from "../../web/api-operation.ts";
import { crawlerOr } from "../../web/components.ts";
import { countText } from "../../web/format.ts";
import { html } from "../../web/html.ts";
import { incident } from "./fleet-api.ts";
import type { FleetPorts } from "./fleet-store.ts";

const { get } = operationsOf<Pick<FleetPorts, "incidents">>();

const mostIncidents = 500;
const dayMs = 86_400_000;
const spanDays = { "24h": 1, "7d": 7, "30d": 30, "90d": incidentDays } as const;

const incidents = get({
  ...{ path: "/api/fleet/incidents", needs: "fleet-read" },
  navigation: { group: "Fleet", order: 31, entry: "Trust", tab: "Incidents" },
  summary: "What was refused and why, by crawler, kind and hour, the latest first",
  input: z.object({
    crawler: z.string().max(63).optional().meta({ title: "Crawler", description: "Of this crawler only." }),
    kind: z
      .string()
      .max(60)
      .optional()
      .meta({ title: "Kind", description: "Of this kind only, such as bad-signature." }),
    since: z
      .enum(["24h", "7d", "30d", "90d"])
      .default("7d")
      .meta({ title: "In the last", description: "How far back." }),
  }),
  output: record("Incidents", { incidents: z.array(incident), more: z.boolean() }),
  command: { name: "fleet incidents", named: { crawler: "name" } },
  run: async ({ input: { crawler, kind, since }, ports, now }) => {
    const listed = await ports.incidents.list({
      since: new Date(now.getTime() - spanDays[since] * dayMs),
      ...(crawler === undefined ? {} : { name: crawler }),
      ...(kind === undefined ? {} : { kind }),
      most: mostIncidents + 1,
    });
    return { incidents: listed.slice(0, mostIncidents), more: listed.length > mostIncidents };
  },
  view: ({ incidents: all, more }, { input: { crawler, kind } }) => ({
    title: "Incidents",
    nodes: present([
      lead(`What crawlers and unknown clients did that they should not do. The same kind by the same crawler within an hour is
one line with a count.`),
      filters({
        ...{ label: "Incidents", names: ["crawler", "kind", "since"] },
        choices: {
          since: {
            ...{ "24h": "24 hours", "7d": "7 days", "30d": "30 days" },
            "90d": `${incidentDays} days (all kept)`,
          },
        },
      }),
      incidentTable(all, [
        "No incidents.",
        crawler === undefined && kind === undefined
          ? "Nothing was rejected in this period."
          : html`<a href="/fleet/incidents">Show all</a>`,
      ]),
      more && aside(`The latest ${countText(all.length)}; filter by crawler or kind to see others.`),
    ]),
  }),
});

export const incidentOperations = { incidents };

export const incidentTable = (rows: readonly IncidentEntry[], empty: Table<unknown>["empty"]): Node =>
  table<IncidentEntry>({ label: "Incidents", columns: incidentColumns, rows, empty });

const incidentColumns: readonly Column<IncidentEntry>[] = [
  column("first", null, ({ firstAt }) => firstAt),
  column("last", "Last", ({ lastAt }) => lastAt),
  column("crawler", "Crawler", ({ crawler }) => crawlerOr(crawler, "unknown client"), {
    value: ({ crawler }) => crawler,
  }),
  column("kind", "Kind", ({ kind }) => kind),
  column("times", "Count", ({ count }) => count, { unit: "count" }),
  column("from", "From", ({ remoteAddress }) => remoteAddress),
  column(
    "words",
    "What happened",
    ({ words, file }) =>
      html`${words}${file !== null && html`<details><summary>The file</summary><pre>${file}</pre></details>`}`,
    { kind: "why", value: ({ words }) => words },
  ),
];

/** One crawler: its page, its log and absences, and what would happen if it were shut out. */
import { mayDo } from "#core/actor";
import { type AskedView, numberIn, type Shown, type Views } from "../web/views.ts";
import { crawlerLogBody } from "./crawler-log-page.ts";
import { crawlerBody } from "./crawler-page.ts";
import { type CrawlerView, crawlerView } from "./crawler-view.ts";
import { type FleetPorts, isName } from "./ports.ts";
import { type ShutOutPreview, shutOutBody } from "./shut-out-page.ts";

const section = "/fleet" as const;
/** Fifty lines each: as far back as anybody reads. */
const mostLogPages = 200;

export function addCrawlerRoutes(views: Views, ports: FleetPorts): void {
  views.add({
    ...{ path: "/crawlers/:name", api: "/api/crawlers/:name", section, needs: "read", crawlerIn: "name" },
    view: async (asked) => await crawlerShown(asked, ports),
  });
  views.add({
    path: "/crawlers/:name/log",
    api: "/api/fleet/crawlers/:name/log",
    ...{ section, needs: "fleet-read", crawlerIn: "name" },
    view: async (asked) => await logShown(asked, ports),
  });
  views.add({
    path: "/crawlers/:name/kill",
    api: "/api/fleet/crawlers/:name/kill",
    ...{ section, needs: "fleet-write" },
    view: async (asked) => await shutOutShown(asked, ports),
  });
}

async function viewOf(asked: AskedView, ports: FleetPorts): Promise<CrawlerView | null> {
  const { visit, now } = asked;
  const name = asked.param("name");
  if (!isName(name)) return null;
  const logPage = Math.min(mostLogPages, Math.max(1, numberIn(asked.query("page"), 1)));
  return await crawlerView({ name, logPage, actor: visit.actor, now }, ports);
}

async function crawlerShown(asked: AskedView, ports: FleetPorts): Promise<Shown | null> {
  const view = await viewOf(asked, ports);
  if (view === null) return null;
  const at = asked.now.toISOString();
  return {
    status: 200,
    value: view,
    title: view.crawler.name,
    body: (visit) => crawlerBody(view, at, visit),
  };
}

async function logShown(asked: AskedView, ports: FleetPorts): Promise<Shown | null> {
  const view = await viewOf(asked, ports);
  if (view === null || view.inside === null) return null;
  const { log } = view.inside;
  const { absences } = view.operation;
  const at = asked.now.toISOString();
  return {
    status: 200,
    value: { name: view.crawler.name, ...log, absences },
    title: `Log of ${view.crawler.name}`,
    body: () => crawlerLogBody(view.crawler.name, log, at),
    csv: () => ({
      columns: ["at", "kind", "words", "by"],
      rows: log.lines.map((line) => [line.at.toISOString(), line.kind, line.words, line.by]),
    }),
  };
}

async function shutOutShown(asked: AskedView, ports: FleetPorts): Promise<Shown | null> {
  const name = asked.param("name");
  if (!isName(name) || !mayDo(asked.visit.actor, "fleet-write")) return null;
  const [entry, heirs] = await Promise.all([ports.reads.crawler(name, asked.now), ports.reads.heirsOf(name)]);
  if (entry === null) return null;
  const { state, revoked, openLeases, subnets } = entry;
  const preview: ShutOutPreview = { name, state, revoked, openLeases, subnets, heirs };
  return {
    status: 200,
    value: preview,
    title: `Shut ${name} out?`,
    body: (visit) => shutOutBody(preview, visit),
  };
}

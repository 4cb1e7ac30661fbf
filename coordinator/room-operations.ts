/**
 * All operations. Commands, the API description, `find` and the runbook's reference are made from this list. A module's
 * operations are its exports whose names end in Operations or Api. The room is one of those in room-pages.ts and is the
 * default tag in the API description.
 */
import type { ApiOperation, ApiOperations } from "./web/api-operation.ts";

type Loaded = Readonly<Record<string, unknown>>;

const modules: readonly (readonly [room: string, load: () => Promise<Loaded>, tag?: string])[] = [
  ["access", () => import("./run/access/audit-ask.ts")],
  ["access", () => import("./run/access/access-ask.ts")],
  ["access", () => import("./run/access/tokens-ask.ts")],
  ["changes", () => import("./crawl/changes/changes-ask.ts")],
  ["channels", () => import("./crawl/channels/channels-ask.ts")],
  ["contact", () => import("./run/opt-outs/opt-outs-api.ts")],
  ["contact", () => import("./run/opt-outs/contact-ask.ts")],
  ["coordinators", () => import("./crawl/federation/coordinators-ask.ts")],
  ["coordinators", () => import("./crawl/federation/federation-api.ts")],
  ["explore", () => import("./tell/explore/explore-ask.ts")],
  ["find", () => import("./tell/find/find-ask.ts")],
  ["fleet", () => import("./tell/fleet/fleet-ask.ts")],
  ["fleet", () => import("./run/releases/versions-ask.ts")],
  ["fleet", () => import("./run/opt-outs/opt-outs-ask.ts")],
  ["fleet", () => import("./run/opt-outs/complaints-ask.ts")],
  ["site-caps", () => import("./crawl/site-caps/site-caps-ask.ts"), "fleet"],
  ["graph", () => import("./crawl/web-graph/graph-ask.ts")],
  ["operation", () => import("./tell/overview/overview-api.ts")],
  ["overview", () => import("./tell/overview/overview-ask.ts")],
  ["alerts", () => import("./tell/overview/alerts/alerts-ask.ts"), "overview"],
  ["policies", () => import("./run/settings/settings-ask.ts")],
  ["recrawl", () => import("./crawl/recrawl/recrawl-ask.ts")],
  ["registry", () => import("./run/registry/registry-ask.ts")],
  ["registry", () => import("./run/registry/job-ask.ts")],
  ["registry", () => import("./run/registry/plan-ask.ts")],
  ["releases", () => import("./run/releases/releases-api.ts")],
  ["reports", () => import("./tell/reports/reports-ask.ts")],
  ["search", () => import("./tell/search/search-ask.ts")],
  ["search", () => import("./tell/search/page-ask.ts")],
  ["sites", () => import("./tell/sites/sites-ask.ts")],
  ["sites", () => import("./tell/sites/site-ask.ts")],
  ["storage", () => import("./tell/storage/storage-ask.ts")],
  ["urls", () => import("./crawl/submissions/submissions-ask.ts")],
  ["who", () => import("./tell/who/who-ask.ts")],
];

interface ModuleOperations {
  /** The index of its module, by which it can be loaded alone. */
  readonly module: number;
  readonly room: string;
  readonly tag: string;
  readonly operations: ApiOperations;
}

/** Loads the modules with the indexes `only`, or all. */
export async function loadOperations(
  only: readonly number[] = [...modules.keys()],
): Promise<readonly ModuleOperations[]> {
  const load = async (module: number) => {
    const [room, loaded, tag = room] = modules[module]!;
    const exported = await loaded();
    const names = Object.keys(exported).filter((name) => /(Operations|Api)$/.test(name));
    const operations = Object.assign({}, ...names.sort().map((name) => exported[name])) as ApiOperations;
    return { module, room, tag, operations };
  };
  return await Promise.all(only.map(load));
}

export async function everyOperation(): Promise<readonly ApiOperation[]> {
  return (await loadOperations()).flatMap(({ operations }) => Object.values(operations));
}

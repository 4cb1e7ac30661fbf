/**
 * The operations of every room. This is the one list of them: commands, the API's description, what `find` finds and the runbook's
 * reference are made from it. A module's operations are what it exports by a name that ends in Operations or Api. Their room is that
 * of room-pages.ts, and their tag in the API's description is the room's name where the list has no other.
 */
import type { ApiOperation, ApiOperations } from "./web/api-operation.ts";

type Loaded = Readonly<Record<string, unknown>>;

const modules: readonly (readonly [room: string, load: () => Promise<Loaded>, tag?: string])[] = [
  ["access", () => import("./access/audit-ask.ts")],
  ["access", () => import("./access/access-ask.ts")],
  ["access", () => import("./access/tokens-ask.ts")],
  ["changes", () => import("./changes/changes-ask.ts")],
  ["channels", () => import("./channels/channels-ask.ts")],
  ["contact", () => import("./opt-outs/opt-outs-api.ts")],
  ["contact", () => import("./opt-outs/contact-ask.ts")],
  ["coordinators", () => import("./federation/coordinators-ask.ts")],
  ["coordinators", () => import("./federation/federation-api.ts")],
  ["explore", () => import("./explore/explore-ask.ts")],
  ["find", () => import("./find/find-ask.ts")],
  ["fleet", () => import("./fleet/fleet-ask.ts")],
  ["fleet", () => import("./releases/versions-ask.ts")],
  ["fleet", () => import("./opt-outs/opt-outs-ask.ts")],
  ["fleet", () => import("./opt-outs/complaints-ask.ts")],
  ["site-caps", () => import("./site-caps/site-caps-ask.ts"), "fleet"],
  ["graph", () => import("./web-graph/graph-ask.ts")],
  ["operation", () => import("./overview/overview-api.ts")],
  ["overview", () => import("./overview/overview-ask.ts")],
  ["alerts", () => import("./overview/alerts/alerts-ask.ts"), "overview"],
  ["policies", () => import("./settings/settings-ask.ts")],
  ["recrawl", () => import("./recrawl/recrawl-ask.ts")],
  ["registry", () => import("./registry/registry-ask.ts")],
  ["registry", () => import("./registry/job-ask.ts")],
  ["registry", () => import("./registry/plan-ask.ts")],
  ["releases", () => import("./releases/releases-api.ts")],
  ["reports", () => import("./reports/reports-ask.ts")],
  ["search", () => import("./search/search-ask.ts")],
  ["search", () => import("./search/page-ask.ts")],
  ["sites", () => import("./sites/sites-ask.ts")],
  ["sites", () => import("./sites/site-ask.ts")],
  ["storage", () => import("./storage/storage-ask.ts")],
  ["urls", () => import("./submissions/submissions-ask.ts")],
  ["who", () => import("./who/who-ask.ts")],
];

export interface ModuleOperations {
  /** The place of its module in the list, by which it can be loaded alone. */
  readonly module: number;
  readonly room: string;
  readonly tag: string;
  readonly operations: ApiOperations;
}

/** `only`: those of these modules. Left out: all. */
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

/** Of all rooms. */
export async function everyOperation(): Promise<readonly ApiOperation[]> {
  return (await loadOperations()).flatMap(({ operations }) => Object.values(operations));
}

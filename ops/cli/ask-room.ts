/**
 * An operation of the coordinator's API, answered in this process from the database alone: by the very view or action that a
 * coordinator has, without one that runs and without HTTP. What is changed is in the audit log as the command's.
 */
import type { FastifyRequest } from "fastify";
import type { Pool } from "pg";
import type { z } from "zod";
import type { Document } from "#coordinator/ask/operation";
import { type CoordinatorConfig, readCoordinatorConfig } from "#coordinator/config";
import { readCoordinatorPlace } from "#coordinator/crawlers/coordinator-presence-store";
import { knownPolicies } from "#coordinator/settings/change";
import { createPolicyStore } from "#coordinator/settings/settings-store";
import { anonymousVisit, openAccess, type Visit } from "#coordinator/web/access";
import type { Action, Actions, WebPart } from "#coordinator/web/actions";
import { type ApiOperation, routePath } from "#coordinator/web/api-operation";
import { csvText } from "#coordinator/web/html";
import type { ViewRoute, Views } from "#coordinator/web/views";
import { scopes } from "#core/actor";
import { UsageError } from "#core/errors";
import { silentLog } from "#core/log";
import { createNameResolver, type NameResolver } from "#core/name-resolver";
import { softwareVersion } from "#protocol/software-version";
import { commandActor, recordCommand } from "./audit-command-change.ts";
import type { CommandContext } from "./command-context.ts";

/** The outcome of a view or an action. */
export interface RoomAnswer {
  /** The API's answer; null: there is nothing of that name. */
  readonly value: unknown;
  /** A sentence about what was done or is missing; null: the value says it all. */
  readonly words: string | null;
  readonly found: boolean;
  readonly csv: string | null;
  /** What it says, of operations that answer in documents. */
  readonly document: Document | null;
}

export interface RoomQuestion {
  readonly operation: ApiOperation;
  readonly room: RoomName;
  readonly path?: Readonly<Record<string, string>>;
  readonly query?: Readonly<Record<string, string>>;
  readonly body?: unknown;
}

/** Throws a UsageError for what cannot be asked or done. */
export async function askRoom(
  pool: Pool,
  context: Pick<CommandContext, "currentRun" | "settingsFile">,
  question: RoomQuestion,
): Promise<RoomAnswer> {
  const { operation, room } = question;
  const { views, actions } = await opened(pool, context, room);
  const address = routePath(operation);
  const view = views.get(address);
  if (operation.method === "get" && view !== undefined) return await look(view, question);
  const action = actions.get(address);
  if (action === undefined) throw new TypeError(`the room ${room} has no ${operation.method} ${address}`);
  return await act(pool, action, question);
}

/** Whoever reaches the database may do everything. */
const visit = (): Visit => ({
  ...anonymousVisit,
  actor: { name: commandActor(), role: "operator", scopes, crawlers: [] },
});

async function look({ view }: ViewRoute, { path = {}, query = {} }: RoomQuestion): Promise<RoomAnswer> {
  const request = { url: "/api/", headers: { accept: "application/json" }, query, params: path };
  const shown = await view({
    request: request as unknown as FastifyRequest,
    visit: visit(),
    now: new Date(),
    param: (name) => path[name] ?? "",
    query: (name) => query[name] ?? "",
  });
  if (typeof shown === "string") throw new UsageError(shown);
  if (shown === null)
    return { value: null, words: "there is nothing of that name", found: false, csv: null, document: null };
  if ("words" in shown) {
    if (shown.status !== 404) throw new UsageError(shown.words);
    return { value: null, words: shown.words, found: false, csv: null, document: null };
  }
  const csv = query.format === "csv" && shown.csv ? csvText(shown.csv()) : null;
  const { value, status, document = null } = shown;
  return { value, words: null, found: status === 200, csv, document };
}

async function act(
  pool: Pool,
  { act, body: schema }: Action<z.ZodType>,
  { path = {}, body = {} }: RoomQuestion,
): Promise<RoomAnswer> {
  const read = schema.safeParse(body);
  if (!read.success)
    throw new UsageError(
      read.error.issues.map(({ path: at, message }) => `${at.join(".") || "it"}: ${message}`).join("; "),
    );
  const asked = {
    body: read.data,
    visit: visit(),
    actor: visit().actor,
    via: "api",
    now: new Date(),
  } as const;
  const outcome = await act({ ...asked, remoteAddress: "", param: (name) => path[name] ?? "" });
  if (outcome.type === "fault") {
    if (outcome.status !== 404) throw new UsageError(outcome.words);
    return { value: null, words: outcome.words, found: false, csv: null, document: null };
  }
  if (outcome.change !== null) await recordCommand(pool, outcome.change);
  const words = outcome.type === "done" ? outcome.said : (outcome.change?.words ?? null);
  const document = (outcome.type === "shown" ? outcome.document : null) ?? null;
  return { value: outcome.value, words, found: true, csv: null, document };
}

interface Opened {
  readonly views: ReadonlyMap<string, ViewRoute>;
  readonly actions: ReadonlyMap<string, Action<z.ZodType>>;
}

/** Every route of a room that answers the API, by its address. */
async function opened(
  pool: Pool,
  { currentRun, settingsFile }: Pick<CommandContext, "currentRun" | "settingsFile">,
  room: RoomName,
): Promise<Opened> {
  const [place, stored] = [await readCoordinatorPlace(pool), await createPolicyStore(pool).read()];
  const resolvers = currentRun?.resolvers ?? [];
  const config: CoordinatorConfig = {
    ...readCoordinatorConfig({}),
    ...knownPolicies(stored).settings,
    domainSets: place?.domainSets ?? [],
    resolvers,
  };
  const resolver = createNameResolver({ servers: resolvers });
  const parts = await rooms[room]({ pool, config, resolver, settingsFile, now: () => new Date() });
  const views = new Map<string, ViewRoute>();
  const actions = new Map<string, Action<z.ZodType>>();
  const addView = (route: ViewRoute) => void views.set(route.api, route);
  const addAction = (action: Action<z.ZodType>) => void (action.api && actions.set(action.api, action));
  const to = {
    // Streams and files, which a room adds to the server itself, cannot be asked for by a command.
    app: new Proxy({}, { get: () => () => {} }),
    access: openAccess,
    views: {
      add: addView,
      describe: ({ operation, ...route }: { operation: ApiOperation } & Omit<ViewRoute, "api" | "needs">) =>
        addView({ ...route, api: routePath(operation), needs: operation.needs }),
      addFile: () => {},
    } as unknown as Views,
    actions: {
      add: addAction,
      describe: ({ operation, ...action }: { operation: ApiOperation } & Action<z.ZodType>) =>
        addAction({
          ...action,
          api: routePath(operation),
          needs: operation.needs,
          body: operation.body!.schema,
        }),
    } as unknown as Actions,
  };
  for (const part of parts) part(to as unknown as Parameters<WebPart>[0]);
  return { views, actions };
}

interface RoomGround {
  readonly pool: Pool;
  readonly config: CoordinatorConfig;
  readonly resolver: NameResolver;
  readonly settingsFile: string | null;
  readonly now: () => Date;
}

export type RoomName = keyof typeof rooms;

const nowMs = () => performance.now();
const said = { log: silentLog, version: softwareVersion };
const reportsOf = async (pool: Pool) => (await import("#coordinator/who/reads")).createReports(pool, nowMs);

/** Each loads its own code alone. */
const rooms = {
  alerts: async ({ pool, resolver, settingsFile: file }) => {
    const { alertPart } = await import("#coordinator/alerts/start");
    const { readCoordinatorSettings, withPlaces } = await import("./setup/coordinator-settings.ts");
    // Channels are those of the coordinator's file.
    const config = withPlaces(file, () => readCoordinatorConfig(readCoordinatorSettings(file)));
    return [alertPart({ pool, config, resolver })];
  },
  access: async ({ pool, now }) =>
    (await import("#coordinator/access/start")).accessParts(pool, { ...said, access: openAccess, now }),
  changes: async ({ pool }) => [(await import("#coordinator/changes/start")).changePart({ pool, ...said })],
  channels: async (ground) => [(await import("#coordinator/channels/start")).channelPart(ground)],
  federation: async ({ pool, config }) => {
    const { coordinatorPart } = await import("#coordinator/federation/start");
    // Children talk to a coordinator, and to no command.
    const metrics = {} as Parameters<typeof coordinatorPart>[0]["metrics"];
    return [coordinatorPart({ pool, patientPool: pool, config, metrics, ...said })];
  },
  explore: async ({ pool, config }) => {
    const { Explorer } = await import("#coordinator/explore/explorer");
    const { createExploreReads } = await import("#coordinator/explore/reads");
    const { explorePages, systemClock: clock } = await import("#coordinator/explore/start");
    const state = await (await import("#coordinator/load-state")).readState({ pool });
    const reads = createExploreReads(pool);
    const recrawlDays = () => config.recrawl.intervalHours / 24;
    const explorer = new Explorer({ state, reads, clock, recrawlDays, onFault: () => {} });
    // A page says that it waits; a command waits.
    await explorer.world();
    return [explorePages({ explorer, state, reads, clock })];
  },
  find: async ({ pool }) => [(await import("#coordinator/find/start")).findPart(pool)],
  fleet: async ({ pool, now }) => [
    (await import("#coordinator/fleet/start")).fleetPart({ pool, succession: async () => [] }, now),
  ],
  graph: async ({ pool }) => [(await import("#coordinator/web-graph/start")).graphPart(pool)],
  overview: async ({ pool }) => {
    const { addOperations } = await import("#coordinator/ask/add-operations");
    const { overviewOperations } = await import("#coordinator/overview/overview-ask");
    const { coordinatorRuns } = await import("#coordinator/crawlers/coordinator-presence-store");
    const runs = async () => await coordinatorRuns(pool);
    return [addOperations(overviewOperations, { reads: await reportsOf(pool), live: () => null, runs })];
  },
  policies: async ({ pool }) => [
    (await import("#coordinator/settings/start")).policyPart({ pool, log: silentLog }),
  ],
  recrawl: async ({ pool }) => {
    const { recrawlPart } = await import("#coordinator/recrawl/start");
    return [recrawlPart(pool, async (range) => await (await reportsOf(pool)).charts("recrawl", range))];
  },
  reports: async (ground) => [(await import("#coordinator/reports/start")).reportPart(ground)],
  "site-caps": async ({ pool }) => [(await import("#coordinator/site-caps/start")).siteCapPart(pool)],
  sites: async (ground) => [(await import("#coordinator/sites/start")).sitePart(ground)],
  storage: async (ground) => [(await import("#coordinator/storage/start")).storagePart(ground)],
  who: async ({ pool, config, resolver }) => {
    const { addOperations } = await import("#coordinator/ask/add-operations");
    const { whoOperations } = await import("#coordinator/who/who-ask");
    const { frontierOrder } = await import("#coordinator/frontier/order/strategies");
    const { scope, frontier, domainSets } = config;
    const ports = { reads: await reportsOf(pool), resolver, scope, domainSets };
    const { addSearchViews } = await import("#coordinator/search/routes");
    return [
      addOperations(whoOperations, { ...ports, order: frontierOrder(frontier) }),
      ({ views }) => addSearchViews(views, ports.reads),
    ];
  },
} satisfies Record<string, (ground: RoomGround) => Promise<readonly WebPart[]>>;

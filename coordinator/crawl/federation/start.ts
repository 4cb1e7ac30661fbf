/**
 * Wires federation: asks the parent periodically, hands over what belongs to others, and limits the queues. Children
 * ask by HTTP (routes.ts).
 */
import type { Pool } from "pg";
import type { Log } from "#core/log";
import type { Timekeeper } from "#core/scheduler";
import { addOperations, type WebPart } from "../../ask/add-operations.ts";
import { readCoordinatorPlace } from "../../place/crawlers/coordinator-place-store.ts";
import { randomSecrets } from "../../web/secrets.ts";
import { NewHostBudget } from "../frontier/budgets.ts";
import type { ScopeSettings } from "../frontier/frontier-settings.ts";
import { settleClaims } from "./claim-store.ts";
import type { CoordinatorMetrics } from "./coordinator-metrics.ts";
import { coordinatorOperations } from "./coordinators-ask.ts";
import { AskParent, type CoordinatorsSettings, type ParentSettings } from "./exchange.ts";
import { countWaiting, dropWaiting, forgetTold } from "./exchange-queue-store.ts";
import { createExchangeStore, type TakingSettings } from "./exchange-store.ts";
import { HttpParentClient } from "./parent-client.ts";
import { createCoordinatorStore, stateParent } from "./related-store.ts";
import { addExchangeRoute } from "./routes.ts";

interface CoordinatorLinkPorts {
  readonly pool: Pool;
  readonly timekeeper: Pick<Timekeeper, "every" | "hurry">;
  readonly metrics: CoordinatorMetrics;
  readonly log: Log;
  readonly now: () => Date;
}

const settleMs = 5000;
const boundMs = 30_000;
const forgetMs = 3_600_000;

/** No limit applies to new hosts from the parent, which is responsible for the hosts that it sends. */
const anyNumber = 2 ** 31 - 1;

interface LinkSettings {
  readonly parent: ParentSettings | null;
  readonly coordinators: CoordinatorsSettings;
  readonly scope: ScopeSettings;
}

/** `start` records the parent and starts the periodic work. It must run before results are taken. */
export function linkCoordinators(
  ports: CoordinatorLinkPorts,
  config: LinkSettings,
): { start(): Promise<void>; stop(): Promise<void> } {
  const { pool, timekeeper, metrics, log, now } = ports;
  const { parent } = config;
  const taking = (): TakingSettings => ({ scope: config.scope, mostNewHosts: anyNumber, now: now() });
  const client = parent === null ? null : new HttpParentClient(parent);
  return {
    start: async () => {
      await stateParent(pool, parent, now());
      if (client !== null) askByTheClock(client);
      timekeeper.every("settle-claims", settleMs, async () => {
        const { handedOver: hosts, more } = await settleClaims(pool, taking());
        if (hosts > 0) log.info({ hosts }, "hosts went to the coordinators that own them");
        if (more) timekeeper.hurry("settle-claims");
      });
      timekeeper.every("bound-foreign-urls", boundMs, async () => {
        const dropped = await dropWaiting(pool, config.coordinators.mostWaitingUrls, now());
        if (dropped > 0)
          log.warn(
            { urls: dropped },
            "too many URLs wait for other coordinators; the least linked were given up",
          );
        metrics.observe(await countWaiting(pool), dropped);
      });
      timekeeper.every("forget-told-urls", forgetMs, async () => await forgetTold(pool, now()));
    },
    stop: async () => await client?.close(),
  };

  function askByTheClock(toParent: HttpParentClient): void {
    const asking = new AskParent({
      store: createExchangeStore(pool),
      client: toParent,
      taking,
      random: Math.random,
      onTaken: (taken, told) => metrics.exchanged("parent", { ...taken, told }),
      log,
      everyMs: config.coordinators.everySeconds * 1000,
    });
    timekeeper.every(
      "ask-parent",
      () => asking.nextMs(),
      async () => {
        if ((await asking.turn()) === "more") timekeeper.hurry("ask-parent");
      },
    );
  }
}

// The pages about related coordinators, and the route for children.

interface CoordinatorPartOptions {
  readonly pool: Pool;
  readonly patientPool: Pool;
  readonly metrics: { readonly coordinators: CoordinatorMetrics };
  readonly version: string;
  readonly config: Pick<LinkSettings, "scope" | "coordinators">;
  readonly now?: () => Date;
}

/** Children's messages use the coordinator's own database connections, because those for pages have short timeouts. */
export function coordinatorPart(options: CoordinatorPartOptions): WebPart {
  const { pool, patientPool, metrics, version, config, now = () => new Date() } = options;
  const coordinators = createCoordinatorStore(pool);
  const place = async () => await readCoordinatorPlace(pool);
  return (to) => {
    addExchangeRoute(to.app, {
      ...{ coordinators, version, now, hash: randomSecrets.hash },
      store: createExchangeStore(patientPool),
      scope: () => config.scope,
      newHosts: new NewHostBudget(() => config.coordinators.newHostsPerChildAndDay),
      onTaken: (taken) => metrics.coordinators.exchanged("child", taken),
    });
    addOperations(coordinatorOperations, { coordinators, secrets: randomSecrets, place })(to);
  };
}

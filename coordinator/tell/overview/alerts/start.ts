/** Alert delivery: the jobs that note and send alerts, and the actions of page and API. */

import { randomUUID } from "node:crypto";
import type { Pool } from "pg";
import { hostInUrl } from "#core/ip/url-host";
import type { Log } from "#core/log";
import type { NameResolver } from "#core/name-resolver";
import type { Timekeeper } from "#core/scheduler";
import { addOperations, type WebPart } from "../../../ask/add-operations.ts";
import type { AlertFacts } from "../alert-facts.ts";
import type { Metrics } from "../metrics.ts";
import type { OwnHealth } from "../own-health.ts";
import type { AlertsSettings } from "./alert-settings.ts";
import { createAlertStore } from "./alert-store.ts";
import { alertDeedOperations } from "./alerts-ask.ts";
import { alertChannels } from "./channel-client.ts";
import type { AlertChannelClient } from "./notices.ts";
import { noteAlerts, OwnTelling, sendMessages, type TellPorts } from "./tell-alerts.ts";

interface AlertConfig {
  readonly alerts: AlertsSettings;
  readonly publicUrl: string | null;
  readonly listen: { readonly host: string; readonly port: number };
  readonly tls: unknown;
  readonly userAgent: string;
}

interface AlertDutyPorts {
  readonly pool: Pool;
  readonly timekeeper: Pick<Timekeeper, "every" | "hurry" | "stopping">;
  readonly resolver: NameResolver;
  readonly metrics: Pick<Metrics, "alertDeliveries">;
  readonly health: Pick<OwnHealth, "alerts">;
  /** Returns the facts, including the coordinator's own. */
  readonly facts: (now: Date) => Promise<AlertFacts>;
  readonly leads: () => boolean;
  readonly log: Pick<Log, "info" | "warn">;
  readonly now: () => Date;
  readonly nowMs: () => number;
}

const noteMs = 10_000;
const sendMs = 5000;

interface AlertDuties {
  start(): void;
}

/** Throws a ConfigError if a channel's secret cannot be read. */
export function alertDuties(ports: AlertDutyPorts, config: AlertConfig): AlertDuties {
  const { timekeeper, now, log, pool } = ports;
  const channels = channelsOf(ports, config);
  const store = createAlertStore(pool);
  const onAttempt: TellPorts["onAttempt"] = (channel, outcome) => {
    ports.metrics.alertDeliveries.inc({ channel, outcome });
    if (outcome !== "delivered") log.warn({ channel, outcome }, "alerts did not reach a channel");
  };
  const tell: TellPorts = {
    ...{ store, channels, facts: ports.facts, now, onAttempt },
    ...{ newId: newMessageId, chance: Math.random },
  };
  const rule = {
    digestMs: config.alerts.digestSeconds * 1000,
    againMs: config.alerts.againMinutes * 60_000,
  };
  const own = new OwnTelling({
    ...{ store, channels, now, onAttempt, nowMs: ports.nowMs, leads: ports.leads },
    ...{ newId: newMessageId, chance: Math.random, alerts: () => ports.health.alerts() },
  });
  let isStated = false;
  return {
    start: () => {
      timekeeper.every(
        "note-alerts",
        noteMs,
        async () => {
          if (!isStated) await store.setChannels(channels);
          isStated = true;
          if (await noteAlerts(tell, rule)) timekeeper.hurry("send-alerts");
        },
        { whateverTheClock: true },
      );
      timekeeper.every("send-alerts", sendMs, async () => await sendMessages(tell, timekeeper.stopping), {
        whateverTheClock: true,
      });
      timekeeper.every(
        "tell-without-database",
        sendMs,
        async () => {
          await own.turn(rule.againMs, timekeeper.stopping);
        },
        { onEach: true, whateverTheClock: true },
      );
    },
  };
}

/** Returns a unique id that is valid in a header (Standard Webhooks). */
const newMessageId = () => `msg_${randomUUID().replaceAll("-", "")}`;

function channelsOf(
  { resolver, now }: Pick<AlertDutyPorts, "resolver" | "now">,
  config: AlertConfig,
): readonly AlertChannelClient[] {
  const { userAgent } = config;
  return alertChannels(config.alerts, { resolver, now, userAgent, pages: pagesUrl(config) });
}

/** Where people find the pages that messages name. */
function pagesUrl({ publicUrl, listen, tls }: Pick<AlertConfig, "publicUrl" | "listen" | "tls">): string {
  if (publicUrl !== null) return publicUrl.replace(/\/+$/, "");
  return `${tls === null ? "http" : "https"}://${hostInUrl(listen.host)}:${listen.port}`;
}

/** Acknowledgements and tests, for the pages and the API. */
export function alertPart({
  pool,
  config,
  resolver,
}: Pick<AlertDutyPorts, "pool" | "resolver"> & { readonly config: AlertConfig }): WebPart {
  const store = createAlertStore(pool);
  const channels = channelsOf({ resolver, now: () => new Date() }, config);
  return addOperations(alertDeedOperations, { store, channels, newId: newMessageId });
}

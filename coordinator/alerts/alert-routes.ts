/** What people do about alerts: acknowledge them, and test the channels. */
import type { Change } from "#core/audit";
import { isAlertName, noAlert } from "../overview/alert-mute-routes.ts";
import type { AskedAction, Outcome, WebPart } from "../web/actions.ts";
import type { BodyOf } from "../web/api-operation.ts";
import type { AlertStore } from "./alert-store.ts";
import { alertsApi } from "./alerts-api.ts";
import type { AlertChannelClient, Delivery } from "./message.ts";
import { sendTest } from "./tell-alerts.ts";

export interface AlertRoutePorts {
  readonly store: AlertStore;
  readonly channels: readonly AlertChannelClient[];
  readonly newId: () => string;
}

export function alertRoutes(ports: AlertRoutePorts): WebPart {
  return ({ actions }) => {
    actions.describe({
      ...{ path: "/alerts/:name/acknowledge", operation: alertsApi.acknowledgeAlert },
      fromForm: ({ note = "" }) => ({ note }),
      act: async (asked) => await acknowledge(asked, ports),
    });
    actions.describe({
      ...{ path: "/alerts/:name/reopen", operation: alertsApi.reopenAlert },
      fromForm: () => ({}),
      act: async (asked) => await reopen(asked, ports),
    });
    actions.describe({
      ...{ path: "/alerts/channels/:channel/test", operation: alertsApi.testAlertChannel },
      fromForm: () => ({}),
      act: async (asked) => await test(asked, ports),
    });
  };
}

/** For the audit log. */
export function channelTested(channel: string, delivery: Delivery): Change {
  return { action: "alert-channel-tested", target: channel, words: testWords(channel, delivery) };
}

export const testWords = (channel: string, delivery: Delivery): string =>
  delivery.type === "delivered"
    ? `A test was delivered to ${channel}.`
    : `A test did not reach ${channel}: ${delivery.words}.`;

export const testedJustNow = (channel: string) =>
  `A test was sent to ${channel} within the last half minute. Try again in a moment.`;

async function acknowledge(
  { body: { note }, param, actor, now }: AskedAction<BodyOf<typeof alertsApi.acknowledgeAlert>>,
  { store }: AlertRoutePorts,
): Promise<Outcome> {
  const name = param("name");
  if (!isAlertName(name)) return noAlert(name);
  const acknowledged = await store.acknowledge(name, { by: actor.name, at: now.toISOString(), note });
  if (acknowledged === null)
    return notKnown(`${name} does not hold now, or has begun within the last ten seconds.`);
  const words = `${name} is acknowledged${note === "" ? "" : `: ${note}`}`;
  const change = { action: "alert-acknowledged", target: name, words, after: { note } };
  return { type: "done", value: { name, ...acknowledged }, goTo: "/alerts", said: words, change };
}

async function reopen({ param }: AskedAction<unknown>, { store }: AlertRoutePorts): Promise<Outcome> {
  const name = param("name");
  if (!isAlertName(name)) return noAlert(name);
  if (!(await store.reopen(name))) return notKnown(`Nobody has acknowledged ${name}.`);
  const words = `${name} is no longer acknowledged.`;
  const change = { action: "alert-reopened", target: name, words };
  return { type: "done", value: { name }, goTo: "/alerts", said: words, change };
}

async function test(
  { param, now }: AskedAction<unknown>,
  { store, channels, newId }: AlertRoutePorts,
): Promise<Outcome> {
  const name = param("channel");
  const channel = channels.find((one) => one.name === name);
  if (channel === undefined)
    return notKnown(`The coordinator's file has no channel ${name.slice(0, 60)}; /alerts lists them.`);
  const delivery = await sendTest(channel, { store, newId, now: () => now });
  if (delivery === null)
    return { type: "fault", status: 429, title: "Not so soon", words: testedJustNow(name) };
  const change = channelTested(name, delivery);
  const value = {
    channel: name,
    delivered: delivery.type === "delivered",
    words: delivery.type === "delivered" ? "" : delivery.words,
  };
  return { type: "done", value, goTo: "/alerts#delivery", said: change.words, change };
}

const notKnown = (words: string): Outcome => ({ type: "fault", status: 404, title: "Not known", words });

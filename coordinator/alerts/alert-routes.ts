/** What people do about alerts: acknowledge them, mute them until an hour that they name, and test the channels. */
import { instantWords } from "#core/format";
import { alertNames } from "../overview/alert-rules.ts";
import type { AskedAction, Outcome, WebPart } from "../web/actions.ts";
import type { BodyOf } from "../web/api-operation.ts";
import type { AlertStore } from "./alert-store.ts";
import { alertsApi } from "./alerts-api.ts";
import type { AlertChannelClient } from "./message.ts";
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
      act: async (asked) => await ofAlert(asked, async (name) => await acknowledge(name, asked, ports)),
    });
    actions.describe({
      ...{ path: "/alerts/:name/reopen", operation: alertsApi.reopenAlert },
      fromForm: () => ({}),
      act: async (asked) =>
        await ofAlert(asked, async (name) => {
          if (!(await ports.store.reopen(name))) return notKnown(`Nobody has acknowledged ${name}.`);
          return done({ name }, "alert-reopened", name, `${name} is no longer acknowledged.`);
        }),
    });
    actions.describe({
      ...{ path: "/alerts/:name/mute", operation: alertsApi.muteAlert },
      fromForm: ({ target = "", hours = "", reason = "" }) => {
        return { target: target === "" ? null : target, hours: Number(hours), reason };
      },
      act: async (asked) => await ofAlert(asked, async (name) => await mute(name, asked, ports)),
    });
    actions.describe({
      ...{ path: "/alerts/:name/unmute", operation: alertsApi.unmuteAlert },
      fromForm: ({ target = "" }) => ({ target: target === "" ? null : target }),
      act: async (asked) =>
        await ofAlert(asked, async (name) => {
          const muted = { name, target: asked.body.target };
          const what = muteWords(muted);
          if (!(await ports.store.unmute(muted, asked.now))) return notKnown(`${what} is not muted.`);
          return done(muted, "alert-unmuted", what, `${what} is no longer muted.`);
        }),
    });
    actions.describe({
      ...{ path: "/alerts/channels/:channel/test", operation: alertsApi.testAlertChannel },
      fromForm: () => ({}),
      act: async (asked) => await test(asked, ports),
    });
  };
}

async function ofAlert(
  { param }: AskedAction<unknown>,
  act: (name: string) => Promise<Outcome>,
): Promise<Outcome> {
  const name = param("name");
  if ((alertNames as readonly string[]).includes(name)) return await act(name);
  return notKnown(`There is no alert ${name.slice(0, 60)}; known are ${alertNames.join(", ")}.`);
}

function done(value: object, action: string, target: string, words: string, after?: object): Outcome {
  const change = { action, target, words, ...(after === undefined ? {} : { after }) };
  return { type: "done", value, goTo: "/alerts", said: words, change };
}

const notKnown = (words: string): Outcome => ({ type: "fault", status: 404, title: "Not known", words });

async function acknowledge(
  name: string,
  { body: { note }, actor, now }: AskedAction<BodyOf<typeof alertsApi.acknowledgeAlert>>,
  { store }: AlertRoutePorts,
): Promise<Outcome> {
  const acknowledged = await store.acknowledge(name, { by: actor.name, at: now.toISOString(), note });
  if (acknowledged === null)
    return notKnown(`${name} does not hold now, or has begun within the last ten seconds.`);
  const words = `${name} is acknowledged${note === "" ? "" : `: ${note}`}`;
  return done({ name, ...acknowledged }, "alert-acknowledged", name, words, { note });
}

const hourMs = 3_600_000;

async function mute(
  name: string,
  { body: { target, hours, reason }, actor, now }: AskedAction<BodyOf<typeof alertsApi.muteAlert>>,
  { store }: AlertRoutePorts,
): Promise<Outcome> {
  const until = new Date(now.getTime() + hours * hourMs);
  const made = { name, target, until, reason, mutedBy: actor.name };
  await store.mute(made, now);
  const what = muteWords(made);
  const words = `${what} is muted until ${instantWords(until.toISOString())}: ${reason}`;
  return done(made, "alert-muted", what, words, { until, reason });
}

/** `crawler-offline`, `crawler-offline of athens`. */
const muteWords = ({ name, target }: { readonly name: string; readonly target: string | null }) =>
  target === null ? name : `${name} of ${target}`;

async function test(
  { param, now }: AskedAction<unknown>,
  { store, channels, newId }: AlertRoutePorts,
): Promise<Outcome> {
  const name = param("channel");
  const channel = channels.find((one) => one.name === name);
  if (channel === undefined) {
    const known = channels.length === 0 ? "" : `, but ${channels.map((one) => one.name).join(", ")}`;
    return notKnown(`The coordinator's file has no channel ${name.slice(0, 60)}${known}.`);
  }
  const delivery = await sendTest(channel, { store, newId, now: () => now });
  if (delivery === null) {
    const words = `A test was sent to ${name} within the last half minute. Try again in a moment.`;
    return { type: "fault", status: 429, title: "Not so soon", words };
  }
  const delivered = delivery.type === "delivered";
  const why = delivered ? "" : delivery.words;
  const words = delivered ? `A test was delivered to ${name}.` : `A test did not reach ${name}: ${why}.`;
  const outcome = done({ channel: name, delivered, words: why }, "alert-channel-tested", name, words);
  return { ...outcome, goTo: "/alerts#delivery" } as Outcome;
}

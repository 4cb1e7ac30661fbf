/** Alerts that nobody is to hear of: muted until an hour that is named. */
import type { Change } from "#core/audit";
import { instantWords } from "#core/format";
import type { AskedAction, Outcome, WebPart } from "../web/actions.ts";
import type { BodyOf } from "../web/api-operation.ts";
import type { AlertMute } from "./alert-facts.ts";
import type { AlertMuteStore } from "./alert-mute-store.ts";
import { type AlertName, alertNames } from "./alert-rules.ts";
import { overviewApi } from "./overview-api.ts";

const hourMs = 3_600_000;
export function alertMuteRoutes(store: AlertMuteStore): WebPart {
  return ({ actions }) => {
    actions.describe({
      ...{ path: "/alerts/:name/mute", operation: overviewApi.muteAlert },
      fromForm: ({ target = "", hours = "", reason = "" }) => ({
        target: target === "" ? null : target,
        hours: Number(hours),
        reason,
      }),
      act: async (asked) => await mute(asked, store),
    });
    actions.describe({
      ...{ path: "/alerts/:name/unmute", operation: overviewApi.unmuteAlert },
      fromForm: ({ target = "" }) => ({ target: target === "" ? null : target }),
      act: async (asked) => await unmute(asked, store),
    });
  };
}

/** `crawler-offline`, `crawler-offline of athens`. */
export const muteWords = ({ name, target }: Pick<AlertMute, "name" | "target">) =>
  target === null ? name : `${name} of ${target}`;

export const isAlertName = (name: string): name is AlertName =>
  (alertNames as readonly string[]).includes(name);

/** For the audit log. */
export function alertMuted(mute: AlertMute): Change {
  const { until, reason } = mute;
  const words = `${muteWords(mute)} is muted until ${instantWords(until.toISOString())}: ${reason}`;
  return { action: "alert-muted", target: muteWords(mute), words, after: { until, reason } };
}

export function alertUnmuted(mute: Pick<AlertMute, "name" | "target">): Change {
  return {
    action: "alert-unmuted",
    target: muteWords(mute),
    words: `${muteWords(mute)} is no longer muted.`,
  };
}

async function mute(
  { body, param, actor, now }: AskedAction<BodyOf<typeof overviewApi.muteAlert>>,
  store: AlertMuteStore,
): Promise<Outcome> {
  const name = param("name");
  if (!isAlertName(name)) return noAlert(name);
  const until = new Date(now.getTime() + body.hours * hourMs);
  const made = { name, target: body.target, until, reason: body.reason, mutedBy: actor.name };
  await store.mute({ ...made, mutedAt: now });
  const change = alertMuted(made);
  return { type: "done", value: made, goTo: "/alerts", said: change.words, change };
}

async function unmute(
  { body, param, now }: AskedAction<BodyOf<typeof overviewApi.unmuteAlert>>,
  store: AlertMuteStore,
): Promise<Outcome> {
  const name = param("name");
  if (!isAlertName(name)) return noAlert(name);
  const mute = { name, target: body.target };
  if (!(await store.unmute(mute, now)))
    return { type: "fault", status: 404, title: "Not known", words: `${muteWords(mute)} is not muted.` };
  const change = alertUnmuted(mute);
  return { type: "done", value: mute, goTo: "/alerts", said: change.words, change };
}

export function noAlert(name: string): Outcome {
  const words = `There is no alert ${name.slice(0, 60)}; known are ${alertNames.join(", ")}.`;
  return { type: "fault", status: 404, title: "Not known", words };
}

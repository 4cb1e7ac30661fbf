/**
 * Alerts reach people. The coordinator that leads looks every few seconds what the rules find, notes what people are to be
 * told (notices), and sends it: noted first, so that a restart tells nothing twice, and with an id of its own, so that a message
 * whose end was not noted is known as a repetition where it arrives a second time.
 */
import { type AlertFacts, alertSeverities } from "../overview/alert-facts.ts";
import { foundAlerts, mutedAlertsOf } from "../overview/alert-rules.ts";
import type { AlertStore, ClaimedMessage, MessageFor } from "./alert-store.ts";
import type { AlertChannelClient, AlertMessage, Delivery } from "./message.ts";
import { type Look, type NoticeRule, planNotices, type ToldAlert } from "./notices.ts";

export interface TellPorts {
  readonly store: AlertStore;
  readonly channels: readonly AlertChannelClient[];
  readonly facts: (now: Date) => Promise<AlertFacts>;
  readonly newId: () => string;
  /** 0 to 1. */
  readonly chance: () => number;
  readonly now: () => Date;
  readonly onAttempt?: (channel: string, outcome: "delivered" | "failed" | "given-up") => void;
}

/** True: there is a message to send. */
export async function noteAlerts(ports: TellPorts, rule: NoticeRule): Promise<boolean> {
  const now = ports.now();
  const facts = await ports.facts(now);
  const look = lookAt(facts, now, ports.channels);
  let messages: readonly MessageFor[] = [];
  await ports.store.note((known) => {
    const { states, told } = planNotices(known, look, rule);
    messages = messagesFor(ports.channels, told, ports);
    return { states, messages };
  });
  return messages.length > 0;
}

function lookAt(facts: AlertFacts, now: Date, channels: readonly Pick<AlertChannelClient, "least">[]): Look {
  const found = foundAlerts(facts).map(({ alert: { name, severity, words, advice }, targets }) => {
    return { name, severity, words, advice, targets };
  });
  const told = new Set(found.map(({ name }) => name));
  // Where some of its crawlers are muted, it is about the others.
  const muted = mutedAlertsOf(facts).filter(({ name }) => !told.has(name));
  const heard = alertSeverities.filter((severity) =>
    channels.some(({ least }) => isGraveEnough({ severity }, least)),
  );
  return { now, found, muted: new Set(muted.map(({ name }) => name)), heard: new Set(heard) };
}

/** To each channel what is grave enough for it; that it fails itself is for the others. */
function messagesFor(
  channels: readonly Pick<AlertChannelClient, "name" | "least">[],
  told: readonly ToldAlert[],
  { newId, now }: Pick<TellPorts, "newId" | "now">,
): readonly MessageFor[] {
  return channels.flatMap(({ name: channel, least }) => {
    const own = told.filter((alert) => isGraveEnough(alert, least) && !isAboutItself(alert, channel));
    if (own.length === 0) return [];
    return [{ channel, message: { id: newId(), madeAt: now(), told: own } }];
  });
}

export function isGraveEnough(
  { severity }: Pick<ToldAlert, "severity">,
  least: AlertChannelClient["least"],
): boolean {
  return alertSeverities.indexOf(severity) <= alertSeverities.indexOf(least);
}

const isAboutItself = ({ name, targets }: ToldAlert, channel: string) =>
  name === "alert-delivery-failing" && targets.every((target) => target === channel);

/** At once; the rest waits for the next turn. */
const mostAtOnce = 20;

/** Sends what is due; one that is broken off by `stopping` is sent after the next start. */
export async function sendMessages(ports: TellPorts, stopping: AbortSignal): Promise<void> {
  const claimed = await ports.store.claim(mostAtOnce);
  await Promise.all(claimed.map(async (message) => await sendOne(message, ports, stopping)));
}

async function sendOne(message: ClaimedMessage, ports: TellPorts, stopping: AbortSignal): Promise<void> {
  const channel = ports.channels.find(({ name }) => name === message.channel);
  // Another coordinator's file may know it.
  if (channel === undefined) {
    await ports.store.settle(message, null, 0);
    return;
  }
  const delivery = await channel.send(message, stopping);
  const isBrokenOff = delivery.type === "failed" && stopping.aborted;
  const outcome = await ports.store.settle(message, isBrokenOff ? null : delivery, ports.chance());
  if (!isBrokenOff) ports.onAttempt?.(message.channel, outcome === "waiting" ? "failed" : outcome);
}

/** One message to one channel, at once: what came of it, or null where one was sent just now. */
export async function sendTest(
  channel: AlertChannelClient,
  { store, newId, now }: Pick<TellPorts, "store" | "newId" | "now">,
): Promise<Delivery | null> {
  if (!(await store.beginTest(channel))) return null;
  const message: AlertMessage = { id: newId(), madeAt: now(), told: [] };
  const delivery = await channel.send(message, new AbortController().signal);
  await store.noteTest({ channel: channel.name, message }, delivery);
  return delivery;
}

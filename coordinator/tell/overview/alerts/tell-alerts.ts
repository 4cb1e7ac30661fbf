/**
 * Delivers alerts. The leading coordinator checks the rules every few seconds, notes what is to be reported (notices), and
 * sends it. A message is noted before it is sent, so that a restart repeats nothing, and has an id by which receivers
 * recognise a repetition.
 */
import { type AlertFacts, alertSeverities } from "../alert-facts.ts";
import { type Alert, type AlertName, foundAlerts, mutedAlertsOf } from "../alert-rules.ts";
import type { AlertStore, ClaimedMessage, MessageFor } from "./alert-store.ts";
import {
  type AlertChannelClient,
  type AlertMessage,
  type AlertState,
  beganNow,
  type Delivery,
  type Look,
  type NoticeRule,
  nextTryMs,
  planNotices,
  type ToldAlert,
  toldAlert,
} from "./notices.ts";

export interface TellPorts {
  readonly store: AlertStore;
  readonly channels: readonly AlertChannelClient[];
  readonly facts: (now: Date) => Promise<AlertFacts>;
  readonly newId: () => string;
  /** Returns a random number from 0 to 1. */
  readonly chance: () => number;
  readonly now: () => Date;
  readonly onAttempt?: (channel: string, outcome: "delivered" | "failed" | "given-up") => void;
}

/** Returns whether there is a message to send. */
export async function noteAlerts(ports: TellPorts, rule: NoticeRule): Promise<boolean> {
  const now = ports.now();
  const look = lookAt(await ports.facts(now), now, ports.channels);
  let messages: readonly MessageFor[] = [];
  await ports.store.note((known) => {
    const { states, told } = planNotices(known, look, rule);
    messages = messagesFor(ports, told);
    return { states, messages };
  });
  return messages.length > 0;
}

function lookAt(facts: AlertFacts, now: Date, channels: TellPorts["channels"]): Look {
  const found = foundAlerts(facts).map(({ alert, targets }) => seenAlert(alert, targets));
  const told = new Set(found.map(({ name }) => name));
  // A rule with only some muted targets reports the others.
  const muted = mutedAlertsOf(facts).filter(({ name }) => !told.has(name));
  const heard = alertSeverities.filter((severity) =>
    channels.some(({ least }) => isGraveEnough({ severity }, least)),
  );
  return { now, found, muted: new Set(muted.map(({ name }) => name)), heard: new Set(heard) };
}

const seenAlert = ({ name, severity, words, advice }: Alert, targets: readonly string[]) => {
  return { name, severity, words, advice, targets };
};

/** Each channel gets what is severe enough for it, except news of its own failure. */
function messagesFor(
  { channels, newId, now }: Pick<TellPorts, "channels" | "newId" | "now">,
  told: readonly ToldAlert[],
): readonly { readonly channel: AlertChannelClient; readonly message: AlertMessage }[] {
  return channels.flatMap((channel) => {
    const own = told.filter((alert) => isGraveEnough(alert, channel.least) && !isAboutItself(alert, channel));
    return own.length === 0 ? [] : [{ channel, message: { id: newId(), madeAt: now(), told: own } }];
  });
}

const isGraveEnough = ({ severity }: Pick<ToldAlert, "severity">, least: AlertChannelClient["least"]) =>
  alertSeverities.indexOf(severity) <= alertSeverities.indexOf(least);

const isAboutItself = ({ name, targets }: ToldAlert, channel: AlertChannelClient) =>
  name === "alert-delivery-failing" && targets.every((target) => target === channel.name);

/** A message that `stopping` aborts is sent after the next start. */
export async function sendMessages(ports: TellPorts, stopping: AbortSignal): Promise<void> {
  const claimed = await ports.store.claim(ports.channels.map(({ name }) => name));
  await Promise.all(claimed.map(async (message) => await sendOne(message, ports, stopping)));
}

async function sendOne(message: ClaimedMessage, ports: TellPorts, stopping: AbortSignal): Promise<void> {
  const channel = ports.channels.find(({ name }) => name === message.channel)!;
  const delivery = await channel.send(message, stopping);
  const isBrokenOff = delivery.type === "failed" && stopping.aborted;
  const outcome = await ports.store.settle(message, isBrokenOff ? null : delivery, ports.chance());
  if (!isBrokenOff) ports.onAttempt?.(message.channel, outcome === "waiting" ? "failed" : outcome);
}

/** Sends a test at once. Returns null if one was sent just now. */
export async function sendTest(
  channel: AlertChannelClient,
  { store, newId, now }: Pick<TellPorts, "store" | "newId" | "now">,
): Promise<Delivery | null> {
  if (!(await store.beginTest(channel))) return null;
  const delivery = await channel.send({ id: newId(), madeAt: now(), told: [] }, new AbortController().signal);
  await store.noteTest(channel.name, delivery);
  return delivery;
}

// While the database is gone or accepts no writes, the last leading coordinator reports that from memory. It notes this as
// soon as possible, so that the end is reported like any other alert's.

interface OwnTellPorts extends Omit<TellPorts, "store" | "facts"> {
  readonly store: Pick<AlertStore, "noteTold">;
  readonly alerts: () => readonly Alert[];
  readonly leads: () => boolean;
  /** Monotonic. */
  readonly nowMs: () => number;
}

/** While one of these is active, nothing can be noted. */
const unnotable: ReadonlySet<AlertName> = new Set([
  "data-folder-gone",
  "database-does-not-answer",
  "database-cannot-write",
]);

/** A coordinator that led within this time reports, because one that cannot write its sign of life no longer leads. */
const ledRecentlyMs = 120_000;

interface Waiting {
  readonly channel: AlertChannelClient;
  readonly message: AlertMessage;
  tries: number;
  nextMs: number;
}

export class OwnTelling {
  readonly #ports: OwnTellPorts;
  #ledMs = Number.NEGATIVE_INFINITY;
  #toldMs = Number.NEGATIVE_INFINITY;
  #told: AlertState | null = null;
  /** Messages that are not delivered yet. */
  #waiting: Waiting[] = [];

  constructor(ports: OwnTellPorts) {
    this.#ports = ports;
  }

  /** Reports at most once in `againMs`, however often the database comes and goes. */
  async turn(againMs: number, stopping: AbortSignal): Promise<void> {
    const { alerts, leads, nowMs, store } = this.#ports;
    const ms = nowMs();
    if (leads()) this.#ledMs = ms;
    const found = alerts().find(({ name }) => unnotable.has(name));
    if (found === undefined) {
      // The database is back. If noting fails, the next run tries again.
      if (this.#told !== null) await store.noteTold(this.#told);
      this.#told = null;
      this.#waiting = [];
      return;
    }
    if (this.#told === null && ms - this.#ledMs < ledRecentlyMs && ms - this.#toldMs >= againMs)
      this.#begin(found);
    await Promise.all(
      this.#waiting.filter(({ nextMs }) => nextMs <= ms).map(async (one) => await this.#send(one, stopping)),
    );
  }

  #begin(found: Alert): void {
    const { now, nowMs } = this.#ports;
    const state = { ...beganNow(seenAlert(found, []), now()), toldAt: now(), isTold: true };
    this.#toldMs = nowMs();
    this.#told = state;
    this.#waiting = messagesFor(this.#ports, [toldAlert(state)]).map((one) => ({
      ...one,
      tries: 0,
      nextMs: nowMs(),
    }));
  }

  async #send(one: Waiting, stopping: AbortSignal): Promise<void> {
    const { nowMs, chance, onAttempt } = this.#ports;
    const delivery = await one.channel.send(one.message, stopping);
    one.tries += 1;
    const againMs = delivery.type === "failed" ? nextTryMs(one.tries, chance()) : null;
    if (againMs === null) this.#waiting = this.#waiting.filter((other) => other !== one);
    else one.nextMs = nowMs() + againMs;
    const isLost = delivery.type === "failed" && againMs === null;
    onAttempt?.(one.channel.name, isLost ? "given-up" : delivery.type);
  }
}

/**
 * What is told while the database is gone, or takes nothing: that it is. The coordinator that led last does so, from
 * memory, and notes it as soon as it can; then its end is told as any other's (tell-alerts).
 */
import type { Alert, AlertName } from "../overview/alert-rules.ts";
import type { AlertStore, MessageFor } from "./alert-store.ts";
import type { AlertChannelClient, AlertMessage, Delivery } from "./message.ts";
import { type AlertState, nextTryMs } from "./notices.ts";
import { isGraveEnough } from "./tell-alerts.ts";

export interface OwnTellPorts {
  /** What the coordinator knows of itself. */
  readonly alerts: () => readonly Alert[];
  readonly leads: () => boolean;
  readonly store: Pick<AlertStore, "noteTold">;
  readonly channels: readonly AlertChannelClient[];
  readonly newId: () => string;
  readonly chance: () => number;
  readonly now: () => Date;
  /** A clock that never goes back. */
  readonly nowMs: () => number;
  readonly onAttempt?: (channel: string, outcome: "delivered" | "failed" | "given-up") => void;
}

/** While these hold, nothing can be noted. */
const unnotable: ReadonlySet<AlertName> = new Set([
  "data-folder-gone",
  "database-does-not-answer",
  "database-cannot-write",
]);

/** Who led within this time tells: a coordinator that cannot write its beats leads no longer. */
const ledRecentlyMs = 120_000;

interface Told {
  readonly state: AlertState;
  readonly messages: { readonly of: MessageFor; delivery: Delivery | null; tries: number; nextMs: number }[];
}

export class OwnTelling {
  readonly #ports: OwnTellPorts;
  #ledMs: number | null = null;
  #told: Told | null = null;
  #toldMs: number | null = null;

  constructor(ports: OwnTellPorts) {
    this.#ports = ports;
  }

  /** `againMs`: it is told once in this time, however often the database comes and goes. */
  async turn(againMs: number, stopping: AbortSignal): Promise<void> {
    const { alerts, leads, nowMs } = this.#ports;
    if (leads()) this.#ledMs = nowMs();
    const found = alerts().find(({ name }) => unnotable.has(name)) ?? null;
    if (found === null) {
      await this.#note();
      return;
    }
    if (this.#told === null && this.#mayTell(againMs)) this.#begin(found);
    await this.#send(stopping);
  }

  #mayTell(againMs: number): boolean {
    const ms = this.#ports.nowMs();
    const ledLately = this.#ledMs !== null && ms - this.#ledMs < ledRecentlyMs;
    return ledLately && (this.#toldMs === null || ms - this.#toldMs >= againMs);
  }

  #begin({ name, severity, words, advice }: Alert): void {
    const { now, nowMs, newId, channels } = this.#ports;
    const at = now();
    const seen = { name, severity, words, advice, targets: [] };
    const message = (): AlertMessage => ({
      ...{ id: newId(), madeAt: at },
      told: [{ ...seen, state: "began", since: at.toISOString(), endedAt: null }],
    });
    this.#toldMs = nowMs();
    this.#told = {
      state: {
        ...{ ...seen, beganAt: at, endedAt: null, pendingSince: null, toldAt: at, toldTargets: [] },
        ...{ isTold: true, acknowledged: null },
      },
      messages: channels
        .filter(({ least }) => isGraveEnough({ severity }, least))
        .map(({ name: channel }) => {
          return { of: { channel, message: message() }, delivery: null, tries: 0, nextMs: nowMs() };
        }),
    };
  }

  async #send(stopping: AbortSignal): Promise<void> {
    const { nowMs, channels, chance, onAttempt } = this.#ports;
    const due = (this.#told?.messages ?? []).filter(
      ({ delivery, nextMs }) => delivery?.type !== "delivered" && nowMs() >= nextMs,
    );
    await Promise.all(
      due.map(async (one) => {
        const channel = channels.find(({ name }) => name === one.of.channel)!;
        one.delivery = await channel.send(one.of.message, stopping);
        one.tries += 1;
        const isFailed = one.delivery.type === "failed";
        const againMs = isFailed ? nextTryMs(one.tries, chance()) : null;
        one.nextMs = againMs === null ? Number.POSITIVE_INFINITY : nowMs() + againMs;
        onAttempt?.(channel.name, !isFailed ? "delivered" : againMs === null ? "given-up" : "failed");
      }),
    );
  }

  /** The database is back. Where that fails, it is tried at the next turn. */
  async #note(): Promise<void> {
    const told = this.#told;
    if (told === null) return;
    await this.#ports.store.noteTold(
      told.state,
      told.messages.map(({ of, delivery }) => ({
        ...of,
        delivery: delivery ?? { type: "failed", words: "the database was back before it was sent" },
      })),
    );
    this.#told = null;
  }
}

/**
 * Whether the machine has nothing else to do, looked at every ten seconds. The crawler's own part of the load is
 * taken off first, or it would chase itself away. What a system does not tell holds nothing back, and is said.
 */

import type { LimitUsage } from "./limit-usage.ts";
import type { IdleLimits } from "./limits-config.ts";
import { type MachineSigns, readMachineSigns } from "./machine-signs.ts";

const lookEveryMs = 10_000;
/** As the kernel averages its load over the last minute. */
const averagedOverMs = 60_000;

export interface IdleSettings {
  readonly signs?: () => MachineSigns;
  readonly nowMs?: () => number;
  /** Processors that the crawler itself has used lately. */
  readonly ownLoad: () => number;
}

export class IdleWatch {
  #limits: IdleLimits | null;
  readonly #settings: Required<IdleSettings>;
  #signs: MachineSigns | null = null;
  #ownLoad = 0;
  #lookedAtMs = Number.NEGATIVE_INFINITY;

  constructor(limits: IdleLimits | null, settings: IdleSettings) {
    this.#limits = limits;
    this.#settings = {
      signs: () => readMachineSigns(),
      nowMs: () => performance.now(),
      ...settings,
    };
  }

  apply(limits: IdleLimits | null): void {
    this.#limits = limits;
    this.#lookedAtMs = Number.NEGATIVE_INFINITY;
  }

  isIdle(): boolean {
    return this.#busyWith() === "";
  }

  usage(): LimitUsage {
    return {
      ...{ limit: "onlyWhenIdle", unit: "", used: null, cap: null, resetsAt: null },
      holdingBack: this.#busyWith(),
    };
  }

  /** What was to be watched and the system does not tell, in words. */
  untold(): string[] {
    const limits = this.#limits;
    const signs = this.#look();
    if (limits === null || signs === null) return [];
    const { load, onMainsPower, usersAwayMinutes } = signs;
    const words: string[] = [];
    if (limits.loadPerProcessor !== null && load === null) words.push("how busy it is");
    if (limits.onMainsPower && onMainsPower === null) words.push("whether it runs on its battery");
    if (limits.usersAwayMinutes > 0 && usersAwayMinutes === null) words.push("whether anybody uses it");
    return words.map((what) => `this system does not tell ${what}`);
  }

  #busyWith(): string {
    const limits = this.#limits;
    const signs = this.#look();
    if (limits === null || signs === null) return "";
    const others = Math.max(0, (signs.load ?? 0) - this.#ownLoad) / signs.processors;
    if (limits.loadPerProcessor !== null && others > limits.loadPerProcessor) {
      return `the machine has other work: a load of ${others.toFixed(2)} per processor, and ${limits.loadPerProcessor} is allowed`;
    }
    if (limits.onMainsPower && signs.onMainsPower === false) return "the machine runs on its battery";
    const away = signs.usersAwayMinutes ?? Number.POSITIVE_INFINITY;
    if (limits.usersAwayMinutes > 0 && away < limits.usersAwayMinutes) {
      return `somebody uses the machine, or did ${Math.floor(away)} minutes ago; ${limits.usersAwayMinutes} are waited for`;
    }
    return "";
  }

  /** Null when nobody wants to know. */
  #look(): MachineSigns | null {
    if (this.#limits === null) return null;
    const nowMs = this.#settings.nowMs();
    const sinceMs = nowMs - this.#lookedAtMs;
    if (this.#signs !== null && sinceMs < lookEveryMs) return this.#signs;
    this.#lookedAtMs = nowMs;
    const part = this.#signs === null ? 0 : 1 - Math.exp(-sinceMs / averagedOverMs);
    this.#ownLoad += (this.#settings.ownLoad() - this.#ownLoad) * part;
    this.#signs = this.#settings.signs();
    return this.#signs;
  }
}

/**
 * Manages the running crawler's membership. It signs each hello, and writes tickets and new keys to disk before they count as
 * saved.
 */
import { randomUUID } from "node:crypto";
import type { CoordinatorWelcome } from "#protocol/coordinator-messages";
import { type ChallengedConnection, helloText } from "#protocol/identity";
import type { CrawlerHello } from "#protocol/messages";
import type { CrawlerLog } from "../core/log.ts";
import { type Membership, membershipFile, readMembership, writeMembership } from "../core/membership.ts";
import { type Identity, openIdentity } from "./identity.ts";

export class Member {
  readonly identity: Identity;
  /** Identifies this process. Another process with the same identity runs from a copy of the folder. */
  readonly instanceId = randomUUID();
  readonly #home: string;
  readonly #now: () => Date;
  #membership: Membership;

  constructor(home: string, membership: Membership, now: () => Date = () => new Date()) {
    this.#home = home;
    this.#now = now;
    this.#membership = membership;
    this.identity = openIdentity(home);
  }

  get membership(): Membership {
    return this.#membership;
  }

  sign(hello: CrawlerHello, connection: ChallengedConnection): CrawlerHello {
    const { name, key, ticket } = this.#membership;
    const { instanceId } = this;
    const text = helloText({ ...connection, name, spoolId: hello.spoolId, instanceId, ticket });
    const { publicKey } = this.identity;
    const signature = this.identity.sign(text);
    const { binding } = connection;
    const identity = { publicKey, signature, instanceId, ticket, binding };
    return { ...hello, name, key, identity, signingKeys: true };
  }

  /**
   * Saves the session's ticket and warns of a wrong clock. If the ticket cannot be saved, that is logged, and the previous one
   * remains valid for another session.
   */
  welcomed({ ticket, time }: Pick<CoordinatorWelcome, "ticket" | "time">, log: CrawlerLog): void {
    if (ticket !== undefined) this.#keep({ ticket }, log);
    const secondsAhead = time === undefined ? 0 : (this.#now().getTime() - Date.parse(time)) / 1000;
    if (Math.abs(secondsAhead) > mostClockErrorMs / 1000) {
      log.warn(
        { secondsAhead: Math.round(secondsAhead) },
        "this machine's clock is wrong: let NTP keep it, or schedules and signatures will be off",
      );
    }
  }

  /** Returns false if the disk refuses it. The coordinator must then not be told that the key is saved. */
  keepKey(key: string, log: CrawlerLog): boolean {
    const isKept = this.#keep({ key }, log);
    if (isKept) log.info({}, "the coordinator gave this crawler a new key, which is kept");
    return isKept;
  }

  #keep(change: Partial<Membership>, log: CrawlerLog): boolean {
    const next = { ...this.#membership, ...change };
    try {
      writeMembership(this.#home, next);
    } catch (error) {
      log.error({ file: membershipFile(this.#home), error }, "what the coordinator gave cannot be kept");
      return false;
    }
    this.#membership = next;
    return true;
  }
}

export function openMember(home: string): Member | null {
  const membership = readMembership(home);
  return membership === null ? null : new Member(home, membership);
}

/**
 * Somebody should correct a clock error above this. Leases use monotonic time, but schedules, signatures and certificates use
 * the wall clock.
 */
export const mostClockErrorMs = 60_000;

/**
 * What becomes of a signing key that a crawler announces (protocol/signing-key.ts): published in the fleet's key set, or
 * refused in words. A key is published from the first announcement on and may be used once copies of the key set are
 * no older; the one before it stays published until everything that it signed is out of date.
 *
 *   announced ─ keySetMaxAge ─ may be used ───────── next announced ─ oldKeySeconds ─ gone
 *   nbf                                                                                exp
 */
import { LRUCache } from "lru-cache";
import type { CrawlerId } from "#core/ids";
import type { IncidentNotes } from "#core/incidents";
import { growingTo } from "#core/small-collections";
import { isSignedBy } from "#protocol/identity";
import {
  keySetMaxAgeSeconds,
  mostClockDifferenceSeconds,
  type SigningKeyAnnouncement,
  type SigningKeyAnswer,
  signatureSeconds,
  signingKeyText,
} from "#protocol/signing-key";
import type { SigningKeyRule, SigningKeyStore } from "./signing-key-store.ts";

/**
 * The old key is used until the new one may be, its last signature is good for a while, and a copy of the key set
 * that was taken then serves who looks it up late.
 */
export const oldKeySeconds = 2 * keySetMaxAgeSeconds + signatureSeconds;

/** Of one crawler at a time: the one in use, the next, and what a crash on the way leaves. */
export const mostPublishedKeys = 4;

/** Announcements of one crawler in an hour that are looked at; each session begins with two at most. */
export const announcementsPerHour = 60;

/** Beyond its age at which another is asked for: a crawler may be away for so long, and come back with it. */
const spareDays = 7;

interface SigningKeyPorts {
  readonly signingKeys: Pick<SigningKeyStore, "identityOf" | "publish">;
  readonly incidents: IncidentNotes;
  readonly log: { info(fields: object, message: string): void };
}

const hourMs = 3_600_000;
const dayMs = 24 * hourMs;
const rememberedCrawlers = 20_000;

/** Takes announcements; one for all sessions of a coordinator. */
export class SigningKeyDesk {
  readonly #ports: SigningKeyPorts;
  readonly #counts = new LRUCache<CrawlerId, { count: number; readonly sinceMs: number }>({
    ...growingTo(rememberedCrawlers),
  });

  constructor(ports: SigningKeyPorts) {
    this.#ports = ports;
  }

  /** What to answer. */
  async take(
    crawlerId: CrawlerId,
    announced: SigningKeyAnnouncement,
    { maxAgeDays, now }: SigningKeyRule & { readonly now: Date },
  ): Promise<SigningKeyAnswer> {
    const answer = await this.#judge(crawlerId, announced, { maxAgeDays, now });
    // That a key has ended is how a crawler learns so when it comes back.
    if (answer.refusal !== null && answer.refusal !== "ended") {
      const words = `a signing key was refused: ${answer.reason}`;
      this.#ports.incidents.note({
        crawlerId,
        kind: "signing-key-refused",
        words,
        remoteAddress: null,
        at: now,
      });
    }
    return answer;
  }

  async #judge(
    crawlerId: CrawlerId,
    { publicKey, at, signature, possession }: SigningKeyAnnouncement,
    { maxAgeDays, now }: SigningKeyRule & { readonly now: Date },
  ): Promise<SigningKeyAnswer> {
    const refused = (refusal: NonNullable<SigningKeyAnswer["refusal"]>, reason: string) =>
      ({ type: "coordinator:signing-key", publicKey, published: null, refusal, reason }) as const;
    if (!this.#mayAnnounce(crawlerId, now))
      return refused("too-many", `more than ${announcementsPerHour} were announced within an hour`);
    const aheadSeconds = Math.round((Date.parse(at) - now.getTime()) / 1000);
    if (Math.abs(aheadSeconds) > mostClockDifferenceSeconds) {
      const how = `${Math.abs(aheadSeconds)} s ${aheadSeconds > 0 ? "ahead of" : "behind"}`;
      return refused("clock", `the crawler's clock is ${how} the coordinator's: let NTP keep it`);
    }
    const { signingKeys, log } = this.#ports;
    const identity = await signingKeys.identityOf(crawlerId);
    if (identity === null) return refused("bad-signature", "this crawler has no identity that may sign");
    const text = signingKeyText({ identity, publicKey, at });
    if (!isSignedBy(identity, text, signature))
      return refused("bad-signature", "the announcement is not signed with the crawler's identity");
    if (!isSignedBy(publicKey, text, possession))
      return refused("bad-signature", "the announcement is not signed with the key that it announces");
    const after = (ms: number) => new Date(now.getTime() + ms);
    const published = await signingKeys.publish({
      crawlerId,
      identity,
      publicKey,
      now,
      mostPublished: mostPublishedKeys,
      expiresAt: after((maxAgeDays + spareDays) * dayMs),
      othersEndAt: after(oldKeySeconds * 1000),
    });
    if (published.type === "taken")
      return refused("taken", "this key is another crawler's, or an identity's: make another");
    if (published.type === "too-many") {
      const until = published.nextEndsAt.toISOString();
      return refused("too-many", `${mostPublishedKeys} of this crawler are published, one until ${until}`);
    }
    const { announcedAt, expiresAt } = published.key;
    if (expiresAt <= now) return refused("ended", "this key was replaced, or its time is over: make another");
    if (published.isNew)
      log.info({ crawlerId, publicKey, expiresAt }, "a crawler's signing key is published");
    const usableAtMs = announcedAt.getTime() + keySetMaxAgeSeconds * 1000;
    const useInSeconds = Math.max(0, Math.ceil((usableAtMs - now.getTime()) / 1000));
    return {
      type: "coordinator:signing-key",
      publicKey,
      published: { useInSeconds, expiresAt: expiresAt.toISOString() },
      refusal: null,
      reason: "",
    };
  }

  #mayAnnounce(crawlerId: CrawlerId, now: Date): boolean {
    const nowMs = now.getTime();
    const before = this.#counts.get(crawlerId);
    const isFresh = before !== undefined && Math.abs(nowMs - before.sinceMs) < hourMs;
    const count = isFresh ? before.count + 1 : 1;
    this.#counts.set(crawlerId, { count, sinceMs: isFresh ? before.sinceMs : nowMs });
    return count <= announcementsPerHour;
  }
}

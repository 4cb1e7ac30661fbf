/**
 * Decides on a signing key that a crawler announces (protocol/signing-key.ts): it is published in the fleet's key set or
 * refused with a reason. A key is published from its first announcement and may be used once no copy of the key set is older.
 * Its predecessor stays published until everything it signed is out of date.
 *
 *     announced ─ keySetMaxAge ─ may be used ───────── next announced ─ oldKeySeconds ─ gone
 *     nbf                                                                                exp
 */
import { LRUCache } from "lru-cache";
import type { CrawlerId } from "#core/ids";
import type { IncidentNotes } from "#core/incidents";
import { growingTo } from "#core/small-collections";
import { isSignedBy, keySetUrlAt } from "#protocol/identity";
import {
  keySetMaxAgeSeconds,
  mostClockDifferenceSeconds,
  type SigningKeyAnnouncement,
  type SigningKeyAnswer,
  signatureSeconds,
  signingKeyText,
} from "#protocol/signing-key";
import { contactPageOf } from "#protocol/user-agent";
import type { SigningKeyRule, SigningKeyStore } from "./signing-key-store.ts";

/**
 * The old key is used until the new one may be. After that, its last signature stays valid for a while, and a verifier may
 * look it up in a cached key set.
 */
export const oldKeySeconds = 2 * keySetMaxAgeSeconds + signatureSeconds;

/** Maximum keys per crawler: the current key, the next one, and leftovers of crashes. */
export const mostPublishedKeys = 4;

/** Announcements accepted per crawler and hour. Each session begins with at most two. */
export const announcementsPerHour = 60;

/** Days beyond a key's maximum age in which an absent crawler may return with it. */
const spareDays = 7;

interface SigningKeyPorts {
  readonly signingKeys: Pick<SigningKeyStore, "identityOf" | "publish">;
  readonly incidents: IncidentNotes;
  readonly log: { info(fields: object, message: string): void };
}

const hourMs = 3_600_000;
const dayMs = 24 * hourMs;
const rememberedCrawlers = 20_000;

export class SigningKeyDesk {
  readonly #ports: SigningKeyPorts;
  readonly #counts = new LRUCache<CrawlerId, { count: number; readonly sinceMs: number }>({
    ...growingTo(rememberedCrawlers),
  });

  constructor(ports: SigningKeyPorts) {
    this.#ports = ports;
  }

  async take(
    crawlerId: CrawlerId,
    announced: SigningKeyAnnouncement,
    { maxAgeDays, now }: SigningKeyRule & { readonly now: Date },
  ): Promise<SigningKeyAnswer> {
    const answer = await this.#judge(crawlerId, announced, { maxAgeDays, now });
    // A returning crawler learns from this answer that its key has ended.
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

// Where sites find the fleet's signing keys.

/** The public URL of the key set. Null without https, which verifiers require. */
export function publishedKeySet({
  publicUrl,
  userAgent,
}: {
  readonly userAgent: string;
  readonly publicUrl: string | null;
}): string | null {
  const coordinator = publicUrl === null ? contactPageOf(userAgent) : new URL(publicUrl);
  return coordinator && keySetUrlAt(coordinator);
}

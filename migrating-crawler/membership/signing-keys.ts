/**
 * Creates the keys that sign this crawler's requests to sites, separate from its identity (#protocol/signing-key). They are
 * kept in `crawler/signing-keys.json` as carefully as the identity and never sent. Their public halves are announced at each
 * welcome, because a coordinator may have lost them with its database. A key is used once the coordinator has said that it is
 * published and when verifiers know it. Until that time the previous key is used, or none.
 *
 *   made and stored → announced → published → (caches know it) in use → replaced, announced for its last minutes → removed
 */
import { existsSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { publicKey } from "#protocol/identity";
import { type SigningKeyAnnouncement, type SigningKeyAnswer, signingKeyText } from "#protocol/signing-key";
import type { CrawlerLog } from "../core/log.ts";
import { readPrivateJson, writePrivateJson } from "../core/private-file.ts";
import { type Identity, keyPairSchema, newKeys, signerOf } from "./identity.ts";

/** Every supervisor lets the crawler write to this folder. */
export const signingKeysFolder = (home: string) => join(home, "crawler");
export const signingKeysFile = (home: string) => join(signingKeysFolder(home), "signing-keys.json");

const mostKeys = 2;

/** Maximum number of keys created per hour, so that a coordinator that accepts none is not flooded. */
const madePerHour = 6;

/** A key that was not answered, or was refused temporarily, is announced again after this time. */
const askAgainMs = 600_000;
const leastBetweenMs = 1000;
const hourMs = 3_600_000;

const keptSchema = z.object({
  /** The identity that owns the keys. A crawler with another identity discards them. */
  identity: publicKey,
  keys: z.array(keyPairSchema.extend({ madeAt: z.iso.datetime() })).max(mostKeys),
});

type KeptKey = z.infer<typeof keptSchema>["keys"][number];

/** Signs requests: takes text and returns 64 bytes in base64url. */
export interface RequestKey extends Identity {
  /** No signature may be valid for longer. Null if there is no limit. */
  readonly until: Date | null;
}

interface Held {
  readonly kept: KeptKey;
  readonly signer: Identity;
  /** What this session's coordinator says. Null if the key is not published, or not known to be. */
  published: { readonly usableAtMs: number; readonly until: Date } | null;
  announcedAtMs: number;
}

interface SigningKeySettings {
  readonly home: string;
  readonly identity: Identity;
  readonly log: CrawlerLog;
  readonly send: (announcement: SigningKeyAnnouncement) => void;
  readonly now?: () => Date;
}

export class SigningKeys {
  readonly #settings: SigningKeySettings;
  readonly #now: () => Date;
  #held: Held[];
  #isWanted = false;
  #madeAtMs: number[] = [];
  #lastRefusal = "";

  constructor(settings: SigningKeySettings) {
    this.#settings = settings;
    this.#now = settings.now ?? (() => new Date());
    this.#held = this.#read();
  }

  /** `isWanted` means that this coordinator publishes signing keys and requests must be signed. */
  onWelcome(isWanted: boolean): void {
    this.#isWanted = isWanted;
    this.#lastRefusal = "";
    for (const held of this.#held) held.published = null;
    if (!isWanted) return;
    if (this.#held.length === 0) this.#make();
    for (const held of this.#held) this.#announce(held);
  }

  onAnswer({ publicKey: answered, published, refusal, reason }: SigningKeyAnswer): void {
    const held = this.#held.find(({ kept }) => kept.publicKey === answered);
    if (held === undefined) return;
    if (published !== null) {
      const usableAtMs = this.#now().getTime() + published.useInSeconds * 1000;
      held.published = { usableAtMs, until: new Date(published.expiresAt) };
      this.#settings.log.info(
        { publicKey: answered, ...published },
        "the coordinator publishes a signing key of this crawler",
      );
      return;
    }
    held.published = null;
    if (reason !== this.#lastRefusal) {
      this.#lastRefusal = reason;
      this.#settings.log.warn(
        { publicKey: answered, reason },
        "the coordinator does not publish this signing key, and no request is signed with it",
      );
    }
    if (refusal !== "ended" && refusal !== "taken") return;
    this.#held = this.#held.filter((one) => one !== held);
    if (this.#held.length === 0) this.#makeAndAnnounce();
    else this.#write(this.#held);
  }

  /** Creates and announces another key, or announces the pending one again, at most once a second. */
  renew(): void {
    if (!this.#isWanted) return;
    const newest = this.#held.at(-1);
    if (newest === undefined || this.#isUsable(newest)) this.#makeAndAnnounce();
    else if (this.#now().getTime() - newest.announcedAtMs >= leastBetweenMs) this.#announce(newest);
  }

  review(): void {
    if (!this.#isWanted) return;
    const newest = this.#held.at(-1);
    if (newest === undefined) this.#makeAndAnnounce();
    else if (newest.published === null && this.#now().getTime() - newest.announcedAtMs >= askAgainMs)
      this.#announce(newest);
  }

  /** The key to sign with now. Null if sites could not verify any. */
  get current(): RequestKey | null {
    const held = this.#held.findLast((one) => this.#isUsable(one));
    if (held === undefined || held.published === null) return null;
    const { publicKey: name, sign } = held.signer;
    return { publicKey: name, sign, until: held.published.until };
  }

  #isUsable({ published }: Held): boolean {
    const nowMs = this.#now().getTime();
    return published !== null && published.usableAtMs <= nowMs && nowMs < published.until.getTime();
  }

  #announce(held: Held): void {
    const { identity, send } = this.#settings;
    const at = this.#now().toISOString();
    held.announcedAtMs = Date.parse(at);
    const { publicKey: announced } = held.kept;
    const text = signingKeyText({ identity: identity.publicKey, publicKey: announced, at });
    const [signature, possession] = [identity.sign(text), held.signer.sign(text)];
    send({ type: "crawler:signing-key", publicKey: announced, at, signature, possession });
  }

  #makeAndAnnounce(): void {
    const made = this.#make();
    if (made !== null) this.#announce(made);
  }

  /** Returns null if too many keys were created or the disk refuses this one, since a key that may be lost is not announced. */
  #make(): Held | null {
    const { log } = this.#settings;
    const nowMs = this.#now().getTime();
    this.#madeAtMs = this.#madeAtMs.filter((atMs) => Math.abs(nowMs - atMs) < hourMs);
    if (this.#madeAtMs.length >= madePerHour) {
      log.warn({ made: madePerHour }, "no further signing key is made within this hour");
      return null;
    }
    this.#madeAtMs.push(nowMs);
    const kept = { ...newKeys(), madeAt: new Date(nowMs).toISOString() };
    const signer = signerOf(kept)!;
    const held = { kept, signer, published: null, announcedAtMs: 0 };
    const next = [...this.#held.slice(-(mostKeys - 1)), held];
    if (!this.#write(next)) return null;
    this.#held = next;
    return held;
  }

  #write(held: readonly Held[]): boolean {
    const { home, identity, log } = this.#settings;
    try {
      if (!existsSync(signingKeysFolder(home))) mkdirSync(signingKeysFolder(home), { mode: 0o700 });
      writePrivateJson(signingKeysFile(home), {
        identity: identity.publicKey,
        keys: held.map(({ kept }) => kept),
      });
      return true;
    } catch (error) {
      log.error({ file: signingKeysFile(home), error }, "a signing key cannot be kept, so it is not used");
      return false;
    }
  }

  /** Keys that are unreadable or belong to another identity are replaced. Only their names are lost. */
  #read(): Held[] {
    const { home, identity, log } = this.#settings;
    try {
      const kept = readPrivateJson(signingKeysFile(home), keptSchema, "Another key is made in its place.");
      if (kept === null || kept.identity !== identity.publicKey) return [];
      return kept.keys.flatMap((key) => {
        const signer = signerOf(key);
        return signer === null ? [] : [{ kept: key, signer, published: null, announcedAtMs: 0 }];
      });
    } catch (error) {
      log.warn({ error }, "the signing keys in this folder cannot be used");
      return [];
    }
  }
}

/** Serves the fleet's published data (published.ts) with validators, so that daily readers get few bytes if it is unchanged. */
import { createHash, generateKeyPairSync, type KeyObject, sign } from "node:crypto";
import type { FastifyInstance, FastifyReply } from "fastify";
import { keyThumbprint } from "#protocol/identity";
import { keySetMaxAgeSeconds } from "#protocol/signing-key";
import type { FleetOutside, PublicKey } from "../../place/crawlers/public-list-reads.ts";
import { sendValidated } from "../../web/validators.ts";
import {
  jwkOf,
  type NotPublished,
  type PublishedSettings,
  prefixesOf,
  publishedPaths,
  securityTxt,
  signatureAgentCard,
  startOfDay,
} from "./published.ts";

/** Content types as the drafts name them, without parameters. Bodies are sent as bytes, so that the server adds none. */
const directoryType = "application/http-message-signatures-directory+json";
const addressListType = "application/jafar+json";
const cardType = "application/json";

/** Clients of JAFAR read at most once per hour unless told otherwise. */
const addressesMaxAge = 3600;
const dayMaxAge = 86_400;
const mayKeep = (seconds: number) => `public, max-age=${seconds}`;

const digestOf = (text: string | Buffer) => createHash("sha256").update(text).digest("base64url");

interface PublishedContext {
  readonly settings: PublishedSettings;
  readonly now: () => Date;
}

export function addPublishedRoutes(
  app: FastifyInstance,
  fleet: FleetOutside,
  { settings, now }: PublishedContext,
): void {
  const list = new AddressList();
  const { keySetUrl = null, signRequests = false } = settings;
  const signer = signRequests && keySetUrl !== null ? new DirectorySigner(new URL(keySetUrl).host) : null;

  app.get(publishedPaths.addresses, async (request, reply) => {
    const { text, token, createdAt } = list.of(await fleet.addresses(now()), now());
    return sendValidated(request, reply, {
      ...{ body: Buffer.from(text), type: addressListType },
      // Coordinators publish the same content, except for its time, so the tag is weak.
      tag: `W/"${token}"`,
      lastModified: createdAt,
      cacheControl: mayKeep(addressesMaxAge),
    });
  });

  app.get(publishedPaths.keys, async (request, reply) => {
    const at = now();
    const published = await fleet.publicKeys(at);
    const keys = [...published, ...(signer === null ? [] : [signer.key(at)])].map(jwkOf);
    const body = Buffer.from(JSON.stringify({ keys }));
    const { bodyFields = {}, ...signature } = signer?.fields(body, at) ?? {};
    // A 304 carries the signature for the copy that the client has (RFC 9111 section 3.2).
    reply.headers(signature);
    return sendValidated(request, reply, {
      ...{ body, bodyFields, type: directoryType, tag: `"${digestOf(body)}"` },
      lastModified: null,
      cacheControl: mayKeep(keySetMaxAgeSeconds),
    });
  });

  app.get(publishedPaths.card, async (request, reply) => {
    const card = signatureAgentCard(settings);
    if ("missing" in card) return sendMissing(reply, card as NotPublished);
    const body = Buffer.from(JSON.stringify(card));
    return sendValidated(request, reply, {
      ...{ body, type: cardType, tag: `"${digestOf(body)}"` },
      lastModified: null,
      cacheControl: mayKeep(dayMaxAge),
    });
  });

  app.get(publishedPaths.security, async (request, reply) => {
    const text = securityTxt(settings, now());
    if (typeof text !== "string") return sendMissing(reply, text);
    return sendValidated(request, reply, {
      ...{ body: Buffer.from(text), type: "text/plain; charset=utf-8", tag: `"${digestOf(text)}"` },
      lastModified: startOfDay(now()),
      cacheControl: mayKeep(dayMaxAge),
    });
  });
}

const sendMissing = (reply: FastifyReply, { missing }: NotPublished) =>
  reply.code(404).header("cache-control", "no-store").type("text/plain; charset=utf-8").send(`${missing}\n`);

/** The list gets a new time when a prefix changes, and otherwise daily, as JAFAR requires. */
class AddressList {
  #made: { readonly synctoken: string; readonly createdAt: Date } | null = null;

  of(addresses: readonly string[], now: Date) {
    const prefixes = prefixesOf(addresses);
    const synctoken = digestOf(JSON.stringify(prefixes));
    const day = startOfDay(now);
    const before = this.#made;
    const isSame = before?.synctoken === synctoken && before.createdAt >= day && before.createdAt <= now;
    this.#made = isSame ? before : { synctoken, createdAt: now };
    const { createdAt } = this.#made;
    const creationTime = `${createdAt.toISOString().slice(0, 19)}Z`;
    const text = JSON.stringify({ synctoken, creationTime, prefixes });
    return { text, token: digestOf(`${synctoken} ${day.toISOString()}`), createdAt };
  }
}

const label = "directory";

/** How long a copy may be used that was sent at the last moment. */
const validSeconds = 2 * keySetMaxAgeSeconds;

const keyDays = 7;
/** A certificate that ends within this many days is replaced. */
const leastLeftDays = 1;
const dayMs = 86_400_000;

/** Header fields. `bodyFields` are only for an answer that has the body. */
interface DirectorySignature {
  readonly "signature-input": string;
  readonly signature: string;
  readonly bodyFields: { readonly "content-digest": string };
}

interface DirectoryKey extends PublicKey {
  readonly from: Date;
  readonly until: Date;
  readonly privateKey: KeyObject;
}

export class DirectorySigner {
  readonly #authority: string;
  #key: DirectoryKey | null = null;
  #latest: {
    readonly fields: DirectorySignature;
    readonly digest: string;
    readonly madeAtMs: number;
  } | null = null;

  /** `authority` is the configured name. A request's Host is ignored, so nobody gets a signature for a name of their own. */
  constructor(authority: string) {
    this.#authority = authority.toLowerCase();
  }

  /** Returns the key that the signed set must contain. */
  key(now: Date): PublicKey {
    return this.#keyAt(now);
  }

  /** Returns the fields for this body, and renews them before a copy could outlive them. */
  fields(body: Buffer, now: Date): DirectorySignature {
    const digest = createHash("sha256").update(body).digest("base64");
    const ageMs = this.#latest === null ? 0 : now.getTime() - this.#latest.madeAtMs;
    const isFresh = ageMs >= 0 && ageMs < (validSeconds - keySetMaxAgeSeconds) * 1000;
    if (this.#latest?.digest !== digest || !isFresh)
      this.#latest = { fields: this.#sign(digest, now), digest, madeAtMs: now.getTime() };
    return this.#latest.fields;
  }

  #sign(digest: string, now: Date): DirectorySignature {
    const { publicKey, privateKey } = this.#keyAt(now);
    const created = Math.floor(now.getTime() / 1000);
    const contentDigest = `sha-256=:${digest}:`;
    const parameters = [
      '("@authority";req "content-digest")',
      `created=${created}`,
      `expires=${created + validSeconds}`,
      `keyid="${keyThumbprint(publicKey)}"`,
      'tag="http-message-signatures-directory"',
    ].join(";");
    const base = [
      `"@authority";req: ${this.#authority}`,
      `"content-digest": ${contentDigest}`,
      `"@signature-params": ${parameters}`,
    ].join("\n");
    const signature = sign(null, Buffer.from(base), privateKey).toString("base64");
    return {
      "signature-input": `${label}=${parameters}`,
      signature: `${label}=:${signature}:`,
      bodyFields: { "content-digest": contentDigest },
    };
  }

  #keyAt(now: Date): DirectoryKey {
    const left = (this.#key?.until.getTime() ?? 0) - now.getTime();
    if (this.#key === null || left < leastLeftDays * dayMs || left > keyDays * dayMs) {
      const { privateKey } = generateKeyPairSync("ed25519");
      const { x = "" } = privateKey.export({ format: "jwk" });
      const from = new Date(Math.floor(now.getTime() / 1000) * 1000);
      this.#key = { publicKey: x, privateKey, from, until: new Date(from.getTime() + keyDays * dayMs) };
    }
    return this.#key;
  }
}

/**
 * Who asks, while the database cannot say. A session or token that was good within the last quarter of an hour is good
 * for reading then: an operator keeps the page that says what is wrong, and Prometheus its figures. Nothing can be ended
 * or revoked meanwhile, since that needs the database as well. Everybody else is told so, at once.
 */
import type { FastifyRequest } from "fastify";
import type { Scope } from "#core/actor";
import { within } from "#core/timer-ms";
import { type Access, isRefusal, type Refusal, sessionSecretOf, type Visit } from "./access.ts";

export interface RememberingPorts {
  /** Why the database cannot be asked; null: it can. */
  readonly silence: () => string | null;
  /** The same, after a look at it, which takes a second at most. */
  readonly look: () => Promise<string | null>;
  readonly hash: (secret: string) => string;
  /** A clock that never goes back. */
  readonly nowMs: () => number;
}

const readScopes: ReadonlySet<Scope> = new Set(["read", "metrics-read", "fleet-read", "audit-read"]);

const rememberedMs = 900_000;
const mostRemembered = 1000;
/** The pages' own statements are ended by the server at that age, if it lives. */
const lookUpMs = 5000;
/** Where it takes longer, it is looked whether the database answers at all. */
const usualMs = 300;

export function rememberingAccess(access: Access, ports: RememberingPorts): Access {
  const known = new Map<string, { readonly visit: Visit; readonly atMs: number }>();

  function remember(credential: string, visit: Visit): void {
    known.delete(credential);
    known.set(credential, { visit, atMs: ports.nowMs() });
    const [oldest] = known.keys();
    if (known.size > mostRemembered && oldest !== undefined) known.delete(oldest);
  }

  function fromMemory(credential: string, why: string): Visit | Refusal {
    const found = known.get(credential);
    if (found === undefined || ports.nowMs() - found.atMs > rememberedMs) return notNow(why);
    const { actor, signedInAs } = found.visit;
    const scopes = actor.scopes.filter((scope) => readScopes.has(scope));
    return { actor: { ...actor, scopes }, signedInAs, formToken: null, said: null };
  }

  return {
    ...access,
    async identify(request) {
      const secret = credentialOf(request);
      if (secret === null) return await access.identify(request);
      const credential = ports.hash(secret);
      const silence = ports.silence();
      if (silence !== null) return fromMemory(credential, silence);
      // A look-up that fails is one that gives nobody, and so is one that is not waited for any longer.
      const looked = access.identify(request).catch(() => null);
      const visit =
        (await within(usualMs, looked)) ??
        ((await ports.look()) === null ? await within(lookUpMs, looked) : null);
      if (visit === null) return fromMemory(credential, "the database did not say");
      if (isRefusal(visit) || visit.actor.role === "anybody") known.delete(credential);
      else remember(credential, visit);
      return visit;
    },
  };
}

function credentialOf(request: FastifyRequest): string | null {
  const { authorization = "" } = request.headers;
  return /^bearer\b/i.test(authorization) ? authorization : sessionSecretOf(request);
}

const notNow = (why: string): Refusal => ({
  status: 503,
  title: "The database does not answer",
  words: `Who you are cannot be looked up: ${why}. /ready tells anybody what is the matter.`,
  headers: { "retry-after": "5" },
});

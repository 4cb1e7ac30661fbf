/**
 * Who asks, in earnest: a session by its cookie, a program by its token, or anybody. The session is looked up anew
 * for every request, so that one that was ended is ended. A form's token is a MAC of the session's secret (OWASP's
 * HMAC-based token pattern), which no other site knows; where the form was sent from is looked at as well.
 */
import { createHmac, timingSafeEqual } from "node:crypto";
import type { FastifyRequest } from "fastify";
import type { OperatorTokenStore, Session, SessionStore } from "#core/access-types";
import { type Actor, anybody, type Scope, scopesOf } from "#core/actor";
import type { Log } from "#core/log";
import { type Access, localPath, type Refusal, sessionSecretOf, type Visit } from "./access.ts";
import { type AnonymousReading, markOfOthers } from "./anonymous-reading.ts";
import { wantsJson } from "./guard.ts";
import { ConnectionLimits, isFromElsewhere, requesterOf, whenceOf } from "./limits.ts";

/** Kinds of marks that are logged, each once. */
const mostLogged = 20;

export interface SessionAccessPorts extends BearerPorts {
  readonly sessions: Pick<SessionStore, "use" | "say" | "takeSaid">;
  readonly anonymousMayRead: AnonymousReading;
  readonly log: Pick<Log, "warn">;
}

export function createSessionAccess(ports: SessionAccessPorts): Access {
  const bearer = new BearerActor(ports);
  /** The sessions of requests that were identified. */
  const known = new WeakMap<FastifyRequest, { readonly sessionId: number; readonly formToken: string }>();
  /** Why those who might read on this machine may not. */
  const marks = new WeakMap<FastifyRequest, string>();
  const logged = new Set<string>();
  async function mayRead(request: FastifyRequest): Promise<boolean> {
    if (typeof ports.anonymousMayRead === "boolean") return ports.anonymousMayRead;
    const mark = await markOfOthers(request);
    if (mark === null) return true;
    marks.set(request, mark);
    if (!logged.has(mark) && logged.size < mostLogged) {
      logged.add(mark);
      ports.log.warn({ mark }, "a request is not answered without a sign-in");
    }
    return false;
  }
  const nobodyOf = async (request: FastifyRequest): Promise<Visit> => ({
    actor: anybody(await mayRead(request)),
    ...{ signedInAs: null, formToken: null, said: null },
  });

  async function visitOfSession(request: FastifyRequest): Promise<Visit> {
    const secret = sessionSecretOf(request);
    if (secret === null) return await nobodyOf(request);
    const session = await ports.sessions.use(ports.hash(secret), whenceOf(request), ports.now());
    if (session === null) return await nobodyOf(request);
    const { sessionId, name } = session;
    const formToken = formTokenOf(secret);
    known.set(request, { sessionId, formToken });
    const isSaid = session.said !== null && asksForPage(request);
    const said = isSaid ? await ports.sessions.takeSaid(sessionId) : null;
    return { actor: actorOf(session), signedInAs: name, formToken, said, sessionId };
  }

  async function identify(request: FastifyRequest): Promise<Visit | Refusal> {
    const program = await bearer.of(request);
    if (program === null) return await visitOfSession(request);
    if ("status" in program) return program;
    return { actor: program, signedInAs: null, formToken: null, said: null };
  }
  /** A request that is asked about twice is looked up once: what was said to its session is taken out only once. */
  const identified = new WeakMap<FastifyRequest, Promise<Visit | Refusal>>();

  return {
    identify(request) {
      const visit = identified.get(request) ?? identify(request);
      identified.set(request, visit);
      return visit;
    },
    refusal: (visit, request, needs = null) => refusalOf(visit, { request, needs, mark: marks.get(request) }),
    isOwnForm(request, given) {
      const session = known.get(request);
      return session !== undefined && isSame(given, session.formToken) && !isFromElsewhere(request);
    },
    async say(request, words) {
      const session = known.get(request);
      if (session) await ports.sessions.say(session.sessionId, words);
    },
  };
}

function actorOf({ name, role, crawlers }: Session): Actor {
  return { name, role, scopes: scopesOf[role], crawlers };
}

export function formTokenOf(sessionSecret: string): string {
  return createHmac("sha256", sessionSecret).update("nearcrawl form").digest("base64url");
}

function isSame(given: string, wanted: string): boolean {
  const [one, other] = [Buffer.from(given), Buffer.from(wanted)];
  return one.length === other.length && timingSafeEqual(one, other);
}

/** What a browser shows as a page; scripts and live events ask for other things, and would swallow the words. */
function asksForPage(request: FastifyRequest): boolean {
  return request.method === "GET" && (request.headers.accept ?? "").includes("text/html");
}

function refusalOf(
  { actor }: Visit,
  { request, needs, mark }: { request: FastifyRequest; needs: Scope | null; mark: string | undefined },
): Refusal {
  switch (actor.role) {
    case "anybody":
      return mark === undefined ? nobodyRefusal(request) : markedRefusal(mark);
    case "program":
      return forbidden(`This token does not allow ${needs ?? "that"}.`);
    case "partner":
      return partnerRefusal(actor, request);
    default:
      return forbidden(
        `${actor.name} is signed in as ${actor.role}, and this is for operators (${needs ?? "another role"}). ` +
          "Ask one of them, or for a sign-in link of that role: nearcrawl sign-in.",
      );
  }
}

const forbidden = (words: string): Refusal => ({ status: 403, title: "Not allowed", words });

function nobodyRefusal(request: FastifyRequest): Refusal {
  const to = request.method === "GET" ? localPath(request.url) : null;
  return {
    status: 401,
    title: "Sign in first",
    words: wantsJson(request)
      ? "Send Authorization: Bearer TOKEN; nearcrawl operator-token create makes a token."
      : "This is for people who have signed in.",
    headers: bearerChallenge,
    goTo: to === null || to === "/" ? "/sign-in" : `/sign-in?to=${encodeURIComponent(to)}`,
  };
}

const markedRefusal = (mark: string): Refusal => ({
  status: 401,
  title: "Sign in first",
  words:
    `This request is not answered without a sign-in. ${mark}, and only whoever asks this machine directly reads ` +
    "without one: type the address yourself, or sign in with the link that nearcrawl sign-in prints (programs: " +
    "Authorization: Bearer TOKEN). If a proxy is meant to be in front, set publicUrl and behindProxy.",
  headers: bearerChallenge,
});

/** The overview is where everybody starts, and a partner's is its own crawler. */
function partnerRefusal({ name, crawlers }: Actor, request: FastifyRequest): Refusal {
  const words = `${name} is signed in as a partner, who sees the crawlers that it hosts: ${crawlers.join(", ")}.`;
  const isStart = request.method === "GET" && request.url === "/";
  return { ...forbidden(words), ...(isStart ? { goTo: homeOf("partner", crawlers) } : {}) };
}

/** Where somebody lands who has signed in. */
export function homeOf(role: Session["role"], crawlers: readonly string[]): string {
  return role === "partner" ? `/crawlers/${encodeURIComponent(crawlers[0] ?? "")}` : "/";
}

// Programs: whoever shows a good token (RFC 6750) may do what its scopes say. Failures of one address are counted,
// and beyond so many a minute its tokens are not looked at, right or not.

interface BearerPorts {
  readonly tokens: Pick<OperatorTokenStore, "use">;
  readonly hash: (secret: string) => string;
  readonly now: () => Date;
}

/** Twice what somebody may need who pastes the wrong token; a guesser of 256 bits has no use for more. */
const failuresPerMinute = 10;

/** Looked up at once, which takes a millisecond each. */
const lookUps = { connections: 32, connectionsPerAddress: 16 };

/** Longer ones are none of ours. */
const maxTokenLength = 200;

export class BearerActor {
  readonly #ports: BearerPorts;
  readonly #limits = new ConnectionLimits(
    { ...lookUps, failuresPerAddressAndMinute: failuresPerMinute },
    () => performance.now(),
  );

  constructor(ports: BearerPorts) {
    this.#ports = ports;
  }

  /** Null: it shows no token (what a proxy asks for by another scheme is the proxy's). */
  async of(request: FastifyRequest): Promise<Actor | Refusal | null> {
    const { authorization = "" } = request.headers;
    if (!/^bearer\b/i.test(authorization)) return null;
    // Behind a proxy that does not say who asks, one stranger would shut out everybody.
    const address = requesterOf(request);
    const full = address === null ? null : this.#limits.open(address);
    if (full !== null) return { ...tooMany, words: `Not now: ${full}.` };
    try {
      const actor = await this.#actorOf(authorization);
      if (actor === null && address !== null) this.#limits.countFailure(address);
      return actor ?? badToken;
    } finally {
      if (address !== null) this.#limits.close(address);
    }
  }

  async #actorOf(authorization: string): Promise<Actor | null> {
    const [, token] = /^Bearer +([A-Za-z0-9._~+/-]+=*)$/i.exec(authorization) ?? [];
    if (token === undefined || token.length > maxTokenLength) return null;
    const holder = await this.#ports.tokens.use(this.#ports.hash(token), this.#ports.now());
    if (holder === null) return null;
    return { name: `token ${holder.name}`, role: "program", scopes: holder.scopes, crawlers: [] };
  }
}

/** RFC 6750 section 3. */
const bearerChallenge = { "www-authenticate": 'Bearer realm="nearcrawl"' };

const tooMany = { status: 429, title: "Too many", headers: { "retry-after": "60" } };

const badToken: Refusal = {
  status: 401,
  title: "Invalid token",
  words: "This token is mistyped, expired or revoked. Create one with nearcrawl operator-token create.",
  headers: bearerChallenge,
};

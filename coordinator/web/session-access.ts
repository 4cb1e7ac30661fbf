/**
 * Who asks, in earnest: a session by its cookie, a program by its token, or anybody. The session is looked up anew
 * for every request, so that one that was ended is ended. A form's token is a MAC of the session's secret (OWASP's
 * HMAC-based token pattern), which no other site knows; where the form was sent from is looked at as well.
 */
import { createHmac, timingSafeEqual } from "node:crypto";
import { readFile } from "node:fs/promises";
import type { Socket } from "node:net";
import type { FastifyRequest } from "fastify";
import type { OperatorTokenStore, Session, SessionStore } from "#core/access-types";
import { type Actor, anybody, type Scope, scopesOf } from "#core/actor";
import type { Log } from "#core/log";
import { within } from "#core/timer-ms";
import { isLoopbackHost } from "#protocol/invitation";
import { type Access, isRefusal, localPath, type Refusal, sessionSecretOf, type Visit } from "./access.ts";
import { wantsJson } from "./guard.ts";
import {
  ConnectionLimits,
  isFromElsewhere,
  isThisMachine,
  proxyMarkOf,
  requesterOf,
  whenceOf,
} from "./limits.ts";

/** Kinds of marks that are logged, each once. */
const mostLogged = 20;

interface SessionAccessPorts extends BearerPorts {
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

// * Who may read without signing in: by default whoever asks this machine directly, and only while the
// coordinator is for this machine alone. A reverse proxy makes strangers look local, since its own
// connection comes from loopback and it may write Host itself (nginx does by default), so each mark of one
// ends anonymous reading for that request.  * What cannot be told from a person at this machine: a
// forwarder of bytes (ssh -R, socat) that runs under a person's account or the coordinator's own, whose
// client may write any Host.

/** True: whoever reaches the pages; `on-this-machine`: whoever asks this machine directly, by its own name. */
export type AnonymousReading = boolean | "on-this-machine";

/** What ends anonymous reading `on-this-machine` for this request, as the start of a sentence; null: nothing does. */
async function markOfOthers(request: FastifyRequest): Promise<string | null> {
  const { host = "" } = request.headers;
  if (!isLoopbackHost(host.toLowerCase().replace(/:\d*$/, ""))) return "It does not ask for localhost";
  if (!isThisMachine(request.socket.remoteAddress ?? "")) return "It does not come from this machine";
  const proxy = proxyMarkOf(request);
  if (proxy !== null) return `It came through a proxy (${proxy})`;
  if (isFromElsewhere(request)) return "Another site's page sent the browser here";
  const uid = await uidOfPeer(request.socket);
  return uid === null || isPersonal(uid)
    ? null
    : `It came from a service's account (uid ${uid}), as a proxy's do`;
}

/**
 * Package managers give services accounts below 1000 (systemd's SYS_UID_MAX), and `nobody` is 65534; people and containers' users
 * come above, and root may read everything anyway.
 */
const isPersonal = (uid: number): boolean =>
  uid === 0 || uid === process.getuid?.() || (uid >= 1000 && uid !== 65_534);

const uidsOfPeers = new WeakMap<Socket, Promise<number | null>>();

/** The account whose process holds the other end of a loopback connection; null: unknown (no Linux, or it is closed by now). */
function uidOfPeer(socket: Socket): Promise<number | null> {
  const known = uidsOfPeers.get(socket) ?? readUidOfPeer(socket);
  uidsOfPeers.set(socket, known);
  return known;
}

/**
 * From proc(5), /proc/net/tcp: local and remote address (hexadecimal, port last), …, uid in the eighth column. Loopback
 * addresses are not compared: of several connections with the same ports, one of a service counts.
 */
async function readUidOfPeer({ remotePort, localPort }: Socket): Promise<number | null> {
  if (remotePort === undefined || localPort === undefined) return null;
  const hex = (port: number) => port.toString(16).toUpperCase().padStart(4, "0");
  const ends = new RegExp(
    `^ *\\d+: \\w+:${hex(remotePort)} \\w+:${hex(localPort)} (?:\\S+ +){4}(\\d+)`,
    "gm",
  );
  const tables = await Promise.all(
    ["tcp", "tcp6"].map(async (name) => await readFile(`/proc/net/${name}`, "latin1").catch(() => "")),
  );
  const uids = [...tables.join("\n").matchAll(ends)].map(([, uid]) => Number(uid));
  return uids.find((uid) => !isPersonal(uid)) ?? uids[0] ?? null;
}

// * Who asks, while the database cannot say. A session or token that was good within the last quarter of an
// hour is good for reading then: an operator keeps the page that says what is wrong, and Prometheus its
// figures. Nothing can be ended or revoked meanwhile, since that needs the database as well. Everybody else
// is told so, at once.

interface RememberingPorts {
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

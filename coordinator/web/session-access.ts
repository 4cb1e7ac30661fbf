/**
 * Identifies sessions by cookie and programs by token. Sessions are looked up for every request, so that ending one takes
 * effect at once. A form token is a MAC of the session's secret (OWASP's HMAC-based token pattern), which no other site
 * knows. The form's origin is checked, too.
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

/** Maximum number of distinct marks that are logged, each once. */
const mostLogged = 20;

interface SessionAccessPorts extends BearerPorts {
  readonly sessions: Pick<SessionStore, "use" | "say" | "takeSaid">;
  readonly anonymousMayRead: AnonymousReading;
  readonly log: Pick<Log, "warn">;
}

export function createSessionAccess(ports: SessionAccessPorts): Access {
  const bearer = new BearerActor(ports);
  const known = new WeakMap<FastifyRequest, { readonly sessionId: number; readonly formToken: string }>();
  /** Why local readers were refused. */
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
  /** Each request is identified only once, because a session's message can be taken out only once. */
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

/** Only pages may take the session's message, because scripts and event streams would not show it. */
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

/** A partner who opens the overview is sent to its own crawler. */
function partnerRefusal({ name, crawlers }: Actor, request: FastifyRequest): Refusal {
  const words = `${name} is signed in as a partner, who sees the crawlers that it hosts: ${crawlers.join(", ")}.`;
  const isStart = request.method === "GET" && request.url === "/";
  return { ...forbidden(words), ...(isStart ? { goTo: homeOf("partner", crawlers) } : {}) };
}

/** The page after signing in. */
export function homeOf(role: Session["role"], crawlers: readonly string[]): string {
  return role === "partner" ? `/crawlers/${encodeURIComponent(crawlers[0] ?? "")}` : "/";
}

// Programs: a valid token (RFC 6750) grants its scopes. After too many failures per address and minute, tokens from that
// address are not checked at all.

interface BearerPorts {
  readonly tokens: Pick<OperatorTokenStore, "use">;
  readonly hash: (secret: string) => string;
  readonly now: () => Date;
}

/** Twice what a person with a wrong token needs. Guessing 256 bits is hopeless anyway. */
const failuresPerMinute = 10;

/** Maximum numbers of concurrent look-ups, which take about a millisecond each. */
const lookUps = { connections: 32, connectionsPerAddress: 16 };

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

  /** Returns null if there is no bearer token (other schemes may be for a proxy). */
  async of(request: FastifyRequest): Promise<Actor | Refusal | null> {
    const { authorization = "" } = request.headers;
    if (!/^bearer\b/i.test(authorization)) return null;
    // If the client's address is unknown, failures are not counted, because one stranger could lock everybody out.
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

const bearerChallenge = { "www-authenticate": 'Bearer realm="nearcrawl"' };

const tooMany = { status: 429, title: "Too many", headers: { "retry-after": "60" } };

const badToken: Refusal = {
  status: 401,
  title: "Invalid token",
  words: "This token is mistyped, expired or revoked. Create one with nearcrawl operator-token create.",
  headers: bearerChallenge,
};

// Reading without signing in is by default possible for direct requests on this machine, and only while the coordinator
// serves this machine alone. A reverse proxy makes strangers look local, because it connects from loopback and may rewrite
// Host (nginx does by default), so any sign of a proxy ends anonymous reading for that request. A byte forwarder (ssh -R,
// socat) that runs under a person's or the coordinator's account cannot be distinguished from a local person.

/** `true` means everybody, `on-this-machine` direct requests to this machine by its own name. */
export type AnonymousReading = boolean | "on-this-machine";

/** Returns why `on-this-machine` does not apply to this request, as the start of a sentence, or null. */
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
 * Whether the account is a person's. Services have accounts below 1000 (systemd's SYS_UID_MAX), and `nobody` is 65534. People
 * and container users are above 1000, and root may read everything anyway.
 */
const isPersonal = (uid: number): boolean =>
  uid === 0 || uid === process.getuid?.() || (uid >= 1000 && uid !== 65_534);

const uidsOfPeers = new WeakMap<Socket, Promise<number | null>>();

/** Returns the account at the other end of a loopback connection, or null if unknown (not Linux, or already closed). */
function uidOfPeer(socket: Socket): Promise<number | null> {
  const known = uidsOfPeers.get(socket) ?? readUidOfPeer(socket);
  uidsOfPeers.set(socket, known);
  return known;
}

/**
 * Parses /proc/net/tcp (proc(5)): local and remote address in hexadecimal with the port last, and the uid in the eighth
 * column. Loopback addresses are not compared. If several connections have the same ports, a service's account is returned.
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

// Identification while the database does not answer: a session or token that was valid within the last 15 minutes may still
// read, so that operators keep the page that explains the problem, and Prometheus its figures. Nothing can be ended or
// revoked meanwhile, since that needs the database, too. All others get 503 at once.

interface RememberingPorts {
  /** Returns why the database cannot be asked, or null. */
  readonly silence: () => string | null;
  /** Returns the same after checking the database, which takes at most a second. */
  readonly look: () => Promise<string | null>;
  readonly hash: (secret: string) => string;
  /** Monotonic. */
  readonly nowMs: () => number;
}

const readScopes: ReadonlySet<Scope> = new Set(["read", "metrics-read", "fleet-read", "audit-read"]);

const rememberedMs = 900_000;
const mostRemembered = 1000;
/** The time after which the server ends the pages' statements. */
const lookUpMs = 5000;
/** When a look-up takes longer, the database is checked. */
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
      // A failed or slow look-up identifies nobody.
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

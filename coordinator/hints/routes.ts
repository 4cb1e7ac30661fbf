/** /indexnow and the callbacks of hubs, which are for everybody; /fleet/hints, which shows what came of them. */
import type { FastifyReply, FastifyRequest } from "fastify";
import { LRUCache } from "lru-cache";
import type { Log } from "#core/log";
import { growingTo } from "#core/small-collections";
import type { WebPart } from "../web/actions.ts";
import { originOf, requesterOf } from "../web/limits.ts";
import type { HintSource, HostHints } from "./hint.ts";
import type { HintReads } from "./hint-reads.ts";
import type { HintRules, HintStore, SubmissionAnswer } from "./hint-store.ts";
import { hintsApi } from "./hints-api.ts";
import { fromQuery, isRefusal, readSubmission } from "./index-now.ts";
import { hintsBody } from "./page.ts";
import type { SubscriptionStore } from "./subscription-store.ts";
import { hubCall } from "./web-sub.ts";

export interface HintPorts {
  readonly hints: HintStore;
  readonly subscriptions: SubscriptionStore;
  readonly reads: HintReads;
  /** In force now. */
  readonly rules: () => HintRules;
  readonly count: CountHints;
  readonly log: Log;
  readonly now: () => Date;
}

/** For the metrics. */
export type CountHints = (source: HintSource, what: HintCount, many?: number) => void;

export type HintCount =
  | "received"
  | "dropped"
  | "taken"
  | "right"
  | "wrong"
  /** Of hosts that the frontier does not hold. */
  | "not-ours"
  | "refused"
  | "good-key"
  | "wrong-key"
  /** WebSub: subscriptions asked for, verified and refused, and calls that counted for nothing. */
  | "asked"
  | "verified"
  | "refused-by-hub"
  | "forged"
  | "unknown-callback";

const shownHosts = 200;

const maxSubmissionBytes = 2 * 1024 * 1024;

/** A hub sends the feed itself; of a larger one nothing is read, and nothing is lost, since it is fetched anyway. */
export const maxDeliveryBytes: number = 1024 * 1024;

export function hintRoutes(ports: HintPorts): WebPart {
  return ({ app, views }) => {
    const bounds = new SenderBounds(() => performance.now());
    app.get<{ Querystring: Record<string, string> }>("/indexnow", async (request, reply) => {
      return await submit(fromQuery(firstOfEach(request.query)), { request, reply, bounds, ports });
    });
    app.post(
      "/indexnow",
      { config: { takes: "application/json" }, bodyLimit: maxSubmissionBytes },
      async (request, reply) => await submit(request.body, { request, reply, bounds, ports }),
    );
    app.register(async (callbacks) => {
      callbacks.removeAllContentTypeParsers();
      callbacks.addContentTypeParser("*", { parseAs: "buffer" }, (_request, body, done) => done(null, body));
      addCallbacks(callbacks, ports);
    });
    views.describe({
      ...{ path: "/fleet/hints", operation: hintsApi.hints },
      view: async ({ now }) => {
        const value = await hintsAnswer(ports.reads, shownHosts, now);
        return {
          status: 200,
          value,
          title: "Hints",
          body: () => hintsBody(value),
          csv: () => ({ columns, rows: value.hosts.map((host) => columns.map((column) => host[column])) }),
        };
      },
    });
  };
}

const columns = [
  ...(["host", "source", "received", "taken", "right", "wrong", "dropped", "waiting", "trust"] as const),
  "lastAt",
] as const;

export interface HintsAnswer {
  readonly now: string;
  readonly hosts: readonly HostHints[];
  readonly feeds: Awaited<ReturnType<HintReads["feeds"]>>;
}

export async function hintsAnswer(reads: HintReads, limit: number, now: Date): Promise<HintsAnswer> {
  return { now: now.toISOString(), hosts: await reads.latest(limit), feeds: await reads.feeds() };
}

async function submit(
  given: unknown,
  at: {
    readonly request: FastifyRequest;
    readonly reply: FastifyReply;
    readonly bounds: SenderBounds;
    readonly ports: HintPorts;
  },
): Promise<FastifyReply> {
  const { request, reply, bounds, ports } = at;
  const rules = ports.rules();
  const { indexNow, perHostAndDay } = rules.policies;
  reply.header("cache-control", "no-store");
  if (!indexNow)
    return refuse(reply, { status: 403, words: "this coordinator does not accept IndexNow submissions" });
  const asked = readSubmission(given, perHostAndDay);
  const named = isRefusal(asked) ? 1 : asked.named;
  ports.count("indexnow", "received", named);
  const waitSeconds = bounds.waitSeconds(request, named);
  if (waitSeconds > 0) {
    ports.count("indexnow", "refused", named);
    const words = "your address has reached its hourly limit";
    return refuse(reply, { status: 429, words, retryAfterSeconds: waitSeconds });
  }
  if (isRefusal(asked)) {
    ports.count("indexnow", "refused");
    return refuse(reply, asked);
  }
  const answer = await ports.hints.submit(asked, rules, ports.now());
  if (answer.type === "refused") {
    ports.count("indexnow", "refused", named);
    return refuse(reply, answer);
  }
  if (answer.type === "not-ours") ports.count("indexnow", "not-ours", named);
  else ports.count("indexnow", "dropped", answer.dropped);
  return reply.code(statusOf(answer)).send(toldOf(answer, named));
}

type Taken = Exclude<SubmissionAnswer, { readonly type: "refused" }>;

/** 202 promises nothing (RFC 9110 section 15.3.3). */
const statusOf = (answer: Taken) => (answer.type === "taken" && !answer.waiting ? 200 : 202);

function toldOf(answer: Taken, named: number): object {
  if (answer.type === "not-ours")
    return { words: "this host is not crawled here, and nothing is stored", taken: 0, dropped: named };
  const { urls, dropped, waiting } = answer;
  return { words: waiting ? "accepted once the key's file has been checked" : "taken", taken: urls, dropped };
}

function refuse(
  reply: FastifyReply,
  { status, words, retryAfterSeconds }: { status: number; words: string; retryAfterSeconds?: number },
): FastifyReply {
  if (retryAfterSeconds !== undefined) reply.header("retry-after", String(retryAfterSeconds));
  return reply.code(status).send({ error: { status, message: words } });
}

/** A name that is given twice is read once. */
function firstOfEach(query: Readonly<Record<string, unknown>>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(query).map(([name, value]) => [name, String(Array.isArray(value) ? value[0] : value)]),
  );
}

/** Per address (or IPv6 /64) and hour: what a large content management system sends. */
export const senderBounds = { requests: 1000, urls: 50_000 } as const;

const hourMs = 3_600_000;
const rememberedAddresses = 20_000;

class SenderBounds {
  readonly #now: () => number;
  readonly #sent = new LRUCache<string, { requests: number; urls: number; readonly sinceMs: number }>({
    ...growingTo(rememberedAddresses),
  });

  /** `now` in ms, monotonic. */
  constructor(now: () => number) {
    this.#now = now;
  }

  /** 0: it is taken, and counted. */
  waitSeconds(request: FastifyRequest, urls: number): number {
    const origin = originOf(requesterOf(request) ?? "unknown");
    const now = this.#now();
    const before = this.#sent.get(origin);
    const sent = before && now - before.sinceMs < hourMs ? before : { requests: 0, urls: 0, sinceMs: now };
    sent.requests += 1;
    sent.urls += urls;
    this.#sent.set(origin, sent);
    if (sent.requests <= senderBounds.requests && sent.urls <= senderBounds.urls) return 0;
    return Math.max(1, Math.ceil((sent.sinceMs + hourMs - now) / 1000));
  }
}

// What hubs call: first to verify that it was us who asked, then whenever the feed has changed.

const callback = "/websub/:token";

function addCallbacks(app: Parameters<WebPart>[0]["app"], ports: HintPorts): void {
  const { subscriptions, count, log, now } = ports;
  const find = async (request: FastifyRequest) => {
    const { token } = request.params as { readonly token: string };
    const found = /^[\w-]{20,100}$/.test(token) ? await subscriptions.find(token) : null;
    if (found === null) count("websub", "unknown-callback");
    return found;
  };
  app.get<{ Querystring: Record<string, string> }>(callback, async (request, reply) => {
    reply.header("cache-control", "no-store");
    const found = await find(request);
    if (found === null) return refuse(reply, gone);
    const call = hubCall(firstOfEach(request.query), found, now());
    switch (call.type) {
      case "not-asked":
        count("websub", "forged");
        return refuse(reply, { status: 404, words: "this was not requested" });
      case "denied":
        count("websub", "refused-by-hub");
        await subscriptions.noteDenied(found, call.words, now());
        return reply.code(204).send();
      case "verified":
        await subscriptions.noteVerified(found, call.leaseSeconds, now());
        count("websub", "verified");
        log.info({ feed: found.feed, leaseSeconds: call.leaseSeconds }, "a hub tells of a feed's changes");
        return reply.type("text/plain; charset=utf-8").send(call.challenge);
    }
  });
  app.post(
    callback,
    { config: { takes: "anything" }, bodyLimit: maxDeliveryBytes },
    async (request, reply) => {
      reply.header("cache-control", "no-store");
      const found = await find(request);
      if (found === null) return refuse(reply, gone);
      const signature = request.headers["x-hub-signature"];
      const body = Buffer.isBuffer(request.body) ? request.body : Buffer.alloc(0);
      const outcome = await subscriptions.deliver(
        found,
        { signature: Array.isArray(signature) ? signature[0] : signature, body },
        now(),
      );
      if (outcome === "ended") return refuse(reply, gone);
      if (outcome === "forged") count("websub", "forged");
      else count("websub", "received");
      if (outcome === "repeated") count("websub", "dropped");
      // What is forged is answered as what is not: nobody tries out signatures here (section 7.1.2).
      return reply.code(202).send();
    },
  );
}

const gone = { status: 410, words: "this subscription no longer exists" };

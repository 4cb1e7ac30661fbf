/**
 * What operators change over HTTP, each with a token (`nearcrawl operator-token`): invitations, and crawlers that
 * are rotated, shut out or ended. JSON alone, from no other origin (a browser cannot send it across, and nothing
 * here says that it may), and whoever tries tokens is shut out for the rest of the minute.
 */
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { z } from "zod";
import { UsageError } from "#core/errors";
import { keyScopes } from "#protocol/identity";
import { crawlerName } from "#protocol/invitation";
import type { Secrets } from "../flows/admit-crawler.ts";
import type { CrawlerStore } from "../flows/crawler-ports.ts";
import type { InvitationStore } from "../flows/identity-ports.ts";
import { type InvitingCoordinator, invitationHours, issueInvitation } from "../flows/issue-invitation.ts";
import type { FleetKeys, OperatorScope, OperatorTokenStore } from "../flows/operator-ports.ts";
import type { FrontierStore } from "../flows/ports.ts";
import { killCrawler } from "../flows/shut-out-crawler.ts";
import type { Log } from "../log.ts";
import { BearerGuard, type TokenHolder } from "./bearer-guard.ts";
import { sendError } from "./http-guard.ts";

export interface OperatorApiPorts {
  readonly tokens: Pick<OperatorTokenStore, "use">;
  readonly invitations: InvitationStore;
  readonly keys: FleetKeys;
  readonly crawlers: Pick<CrawlerStore, "drain">;
  readonly frontier: Pick<FrontierStore, "returnLeasesOf">;
  /** What invitations pin. Throws a UsageError when partners could not reach the coordinator where it listens. */
  readonly coordinator: () => Promise<InvitingCoordinator>;
  readonly secrets: Secrets;
  readonly log: Log;
  readonly now: () => Date;
  readonly version: string;
  /** Failures of one address in a minute before it is not listened to; a proxy's one address stands for everybody's. */
  readonly failuresPerMinute?: number;
}

const pagesPerDay = z.int().min(0).max(1_000_000_000);
const bytesPerDay = z.int().min(0).max(1e15);

const invitationBody = z.strictObject({
  name: crawlerName,
  /** A new identity for a crawler that is there. */
  renews: z.boolean().default(false),
  scopes: z
    .array(z.enum(keyScopes))
    .min(1)
    .max(keyScopes.length)
    .default([...keyScopes]),
  pagesPerDay: pagesPerDay.nullable().default(null),
  bytesPerDay: bytesPerDay.nullable().default(null),
  expiresHours: z
    .number()
    .min(invitationHours.least)
    .max(invitationHours.most)
    .default(invitationHours.usual),
});
const rotationBody = z.strictObject({ graceHours: z.number().min(0).max(720).default(24) });
const nothingBody = z.strictObject({});

type Answer = { readonly status: number; readonly value: unknown } | { readonly fault: Fault };
interface Fault {
  readonly status: number;
  readonly title: string;
  readonly words: string;
}

export function addOperatorApi(app: FastifyInstance, ports: OperatorApiPorts): void {
  const guard = new BearerGuard(ports);
  const route = <Schema extends z.ZodType>(
    method: "GET" | "POST",
    url: string,
    work: { scope: OperatorScope; body: Schema; answer: (asked: Asked<z.infer<Schema>>) => Promise<Answer> },
  ) => {
    app.route({
      method,
      url,
      config: method === "POST" ? { takes: "application/json" } : {},
      onRequest: async (request, reply) => await guard.check(request, reply, work.scope),
      handler: async (request, reply) => {
        const body = work.body.safeParse(method === "POST" ? request.body : {});
        if (!body.success) return await refuse(request, reply, badBody(body.error), ports.version);
        const { name = "" } = request.params as { name?: string };
        const holder = guard.holderOf(request);
        const answer = await work.answer({ body: body.data, name, holder, now: ports.now() });
        if ("fault" in answer) return await refuse(request, reply, answer.fault, ports.version);
        if (method === "POST") {
          ports.log.info({ token: holder.name, url: request.url }, "an operator changed the fleet");
        }
        return await reply.code(answer.status).header("cache-control", "no-store").send(answer.value);
      },
    });
  };
  route("POST", "/api/fleet/invitations", {
    scope: "fleet-write",
    body: invitationBody,
    answer: async (asked) => await invite(asked, ports),
  });
  route("GET", "/api/fleet/invitations", {
    scope: "fleet-read",
    body: nothingBody,
    answer: async ({ now }) => ({ status: 200, value: { invitations: await ports.invitations.list(now) } }),
  });
  route("POST", "/api/fleet/crawlers/:name/revoke", {
    scope: "fleet-write",
    body: nothingBody,
    answer: async ({ name, now }) => {
      const crawlerId = await ports.keys.revoke(name, now);
      return crawlerId === null ? noCrawler(name) : { status: 200, value: { name, revoked: true } };
    },
  });
  route("POST", "/api/fleet/crawlers/:name/kill", {
    scope: "fleet-write",
    body: nothingBody,
    answer: async ({ name, now }) => {
      const returnedLeases = await killCrawler(name, ports, now);
      return returnedLeases === null
        ? noCrawler(name)
        : { status: 200, value: { name, revoked: true, returnedLeases } };
    },
  });
  route("POST", "/api/fleet/crawlers/:name/rotate", {
    scope: "fleet-write",
    body: rotationBody,
    answer: async ({ name, body, now }) => {
      const [asked] = await ports.keys.askRotation(name, { ...body, now });
      return asked ? { status: 202, value: { ...asked, ...body } } : { fault: cannotRotate(name) };
    },
  });
}

interface Asked<Body> {
  readonly body: Body;
  /** Of the crawler in the path; empty: none is. */
  readonly name: string;
  readonly holder: TokenHolder;
  readonly now: Date;
}

async function invite(
  { body, holder, now }: Asked<z.infer<typeof invitationBody>>,
  ports: OperatorApiPorts,
): Promise<Answer> {
  const coordinator = await ports.coordinator().catch(usageFault);
  if ("fault" in coordinator) return coordinator;
  const request = { ...body, createdBy: `token ${holder.name}` };
  const issued = await issueInvitation(request, { ...ports, coordinator }, now);
  if (typeof issued !== "string") return { status: 201, value: issued };
  return issued === "no-such-crawler" ? noCrawler(body.name) : { fault: nameTaken(body.name) };
}

/** The operator's to mend; anything else is ours. */
function usageFault(error: unknown): { readonly fault: Fault } {
  if (!(error instanceof UsageError)) throw error;
  return { fault: { status: 409, title: "Not from here", words: error.message } };
}

async function refuse(
  request: FastifyRequest,
  reply: FastifyReply,
  fault: Fault,
  version: string,
): Promise<FastifyReply> {
  return sendError(request, reply, fault, { version });
}

function badBody(error: z.ZodError): Fault {
  const words = error.issues
    .slice(0, 5)
    .map(({ path, message }) => `${path.join(".") || "body"}: ${message}`)
    .join("; ");
  return { status: 400, title: "That cannot be done", words };
}

const noCrawler = (name: string): { readonly fault: Fault } => ({
  fault: { status: 404, title: "Not known", words: `There is no crawler named ${name.slice(0, 63)}.` },
});
const nameTaken = (name: string): Fault => ({
  status: 409,
  title: "The name is taken",
  words: `There is a crawler named ${name} already. To give it a new identity, say "renews": true.`,
});
const cannotRotate = (name: string): Fault => ({
  status: 409,
  title: "Nothing to rotate",
  words: `${name.slice(0, 63)} is no crawler with an identity of its own that may connect: invite it (POST /api/fleet/invitations).`,
});

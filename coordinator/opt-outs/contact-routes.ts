/**
 * What sites see of us over HTTP: the contact page with its two forms, the fleet's addresses, and its public keys.
 *
 * The key set (draft-ietf-webbotauth-httpsig-protocol-01, October 2026) may be signed by every key in it, so that
 * others can pass it on. That is not done: private keys never leave the crawlers, and the coordinator has none of them.
 * Who fetches it here by TLS needs no such signature. The addresses are in the form of draft-illyes-webbotauth-jafar-00
 * (April 2026).
 */
import { createHash } from "node:crypto";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import type { Log } from "#core/log";
import { keyThumbprint } from "#protocol/identity";
import type { FleetOutside } from "../crawlers/public-list-reads.ts";
import { wantsJson } from "../web/guard.ts";
import type { Html } from "../web/html.ts";
import { type PageViewer, pageFrame } from "../web/page-frame.ts";
import type { ComplaintStore } from "./complaints.ts";
import { type ContactForms, emptyForms, formPaths, optOutTaken, reportTaken } from "./contact-forms.ts";
import { type ContactSettings, contactBody } from "./contact-page.ts";
import { FormGuard, maxFormBytes, type ReadForm } from "./form-guard.ts";
import { confirmationName, confirmationText } from "./honour.ts";
import type { OptOut, OptOutStore } from "./opt-out.ts";
import { readTarget, targetText } from "./opt-out-target.ts";

export interface ContactPorts {
  readonly optOuts: Pick<OptOutStore, "request">;
  readonly complaints: Pick<ComplaintStore, "add">;
  readonly fleet: FleetOutside;
}

/** As the drafts name them, without a parameter: sent as bytes, so that the server adds none. */
const directoryType = "application/http-message-signatures-directory+json";
const addressListType = "application/jafar+json";

interface Context {
  readonly settings: ContactSettings & { readonly version: string };
  readonly now: () => Date;
  readonly log: Log;
  /** Left out: nobody is known. */
  readonly viewerOf?: (request: FastifyRequest) => Promise<PageViewer | undefined>;
}

/** `ports` null: the page alone, without forms and lists. */
export function addContactRoutes(app: FastifyInstance, ports: ContactPorts | null, context: Context): void {
  app.get("/about-crawler", async (request, reply) => {
    const viewer = await context.viewerOf?.(request);
    return sendPage(reply, contactBody(context.settings, ports && emptyForms), { ...context, viewer });
  });
  if (ports === null) return;
  addLists(app, ports, context);
  app.register(async (forms) => {
    forms.addContentTypeParser(
      "application/x-www-form-urlencoded",
      { parseAs: "string", bodyLimit: maxFormBytes },
      (_request, body, done) => done(null, body),
    );
    addForms(forms, ports, context);
  });
}

/** One prefix for each address; the token changes when one of them does. */
function addLists(app: FastifyInstance, { fleet }: ContactPorts, { now }: Context): void {
  app.get("/about-crawler/addresses.json", async (_request, reply) => {
    const addresses = await fleet.addresses(now());
    const prefixes = addresses.map((address) =>
      address.includes(":") ? { ipv6Prefix: `${address}/128` } : { ipv4Prefix: `${address}/32` },
    );
    const synctoken = createHash("sha256").update(JSON.stringify(prefixes)).digest("base64url");
    const creationTime = `${now().toISOString().slice(0, 19)}Z`;
    reply.header("cache-control", "public, max-age=300");
    reply.header("content-type", addressListType);
    return reply.send(Buffer.from(JSON.stringify({ synctoken, creationTime, prefixes })));
  });
  app.get("/.well-known/http-message-signatures-directory", async (_request, reply) => {
    const keys = await fleet.publicKeys();
    const jwks = keys.map((x) => ({ kty: "OKP", crv: "Ed25519", kid: keyThumbprint(x), x, use: "sig" }));
    reply.header("cache-control", "public, max-age=300");
    reply.header("content-type", directoryType);
    return reply.send(Buffer.from(JSON.stringify({ keys: jwks })));
  });
}

function addForms(forms: FastifyInstance, ports: ContactPorts, context: Context): void {
  const guard = new FormGuard(() => performance.now());
  const config = { takes: "application/x-www-form-urlencoded" } as const;
  forms.post(formPaths.optOut, { config, bodyLimit: maxFormBytes }, async (request, reply) => {
    const form = guard.read(request, { site: "Name the site." });
    const target = form.fault === null ? readTarget(form.values.site ?? "", "sites-only") : null;
    if (form.fault || target === null || typeof target === "string") {
      return refuse(request, reply, { form, fault: faultOf(form, target), which: "optOut", context });
    }
    const { words = "", reply: replyTo = "" } = form.values;
    const asked = { target, words, replyTo: replyTo.trim() || null, requester: form.requester };
    const optOut = await ports.optOuts.request({ ...asked, source: "form", confirmed: false }, context.now());
    const { state } = optOut;
    context.log[state === "waiting" ? "warn" : "info"]({ site: optOut.target, state }, "a site opts out");
    if (wantsJson(request)) return reply.code(201).send(optOutAnswer(optOut));
    return sendPage(reply, optOutTaken(optOut), context);
  });
  forms.post(formPaths.report, { config, bodyLimit: maxFormBytes }, async (request, reply) => {
    const form = guard.read(request, {
      site: "Name the site or the address.",
      reply: "Tell us who you are and where we can answer.",
      words: "Tell us what happened.",
    });
    const target = form.fault === null ? readTarget(form.values.site ?? "", "networks") : null;
    if (form.fault || target === null || typeof target === "string") {
      return refuse(request, reply, { form, fault: faultOf(form, target), which: "report", context });
    }
    const { words = "", reply: reporter = "" } = form.values;
    const said = { target, targetText: targetText(target), words, reporter, requester: form.requester };
    const complaint = await ports.complaints.add({ ...said, source: "form" }, context.now());
    if (complaint === null) {
      const fault = { status: 429, words: "More reports came today than can be read. Write to us instead." };
      return refuse(request, reply, { form, fault, which: "report", context });
    }
    const { complaintId, deeds } = complaint;
    context.log.warn(
      { complaintId, target: complaint.target, requests: deeds.requests },
      "somebody complains",
    );
    if (wantsJson(request)) return reply.code(201).send({ complaintId, target: complaint.target });
    return sendPage(reply, reportTaken(complaintId, complaint.target), context);
  });
}

function faultOf(form: ReadForm, target: unknown): NonNullable<ReadForm["fault"]> {
  return form.fault ?? { status: 400, words: typeof target === "string" ? target : "That is no site." };
}

/** The page again, with what was typed and what is wrong with it. */
function refuse(
  request: FastifyRequest,
  reply: FastifyReply,
  refused: {
    readonly form: ReadForm;
    readonly fault: NonNullable<ReadForm["fault"]>;
    readonly which: keyof ContactForms;
    readonly context: Context;
  },
): FastifyReply {
  const { form, fault, which, context } = refused;
  reply.code(fault.status).header("cache-control", "no-store");
  if (wantsJson(request)) return reply.send({ error: { status: fault.status, message: fault.words } });
  const forms = { ...emptyForms, [which]: { values: form.values, fault: fault.words } };
  return sendPage(reply, contactBody(context.settings, forms), context);
}

function optOutAnswer({ target, state, token, createdAt, lapsesAt }: OptOut): object {
  return {
    site: target,
    state,
    createdAt,
    lapsesAt,
    confirmation: { type: "TXT", name: confirmationName(target), value: confirmationText(token) },
  };
}

function sendPage(
  reply: FastifyReply,
  body: Html,
  { settings, viewer }: Context & { readonly viewer?: PageViewer | undefined },
): FastifyReply {
  const { version } = settings;
  const about = { title: "About this crawler", section: "/about-crawler" } as const;
  const page = pageFrame({ ...about, body, version, ...(viewer && { viewer }) });
  if (viewer) reply.header("cache-control", "no-store").header("vary", "cookie");
  return reply.type("text/html; charset=utf-8").send(page);
}

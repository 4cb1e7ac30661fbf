/** What sites see of us over HTTP: the contact page with its two forms, and what is published of the fleet. */

import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { LRUCache } from "lru-cache";
import type { Log } from "#core/log";
import { growingTo } from "#core/small-collections";
import { formValues } from "../ask/deeds.ts";
import type { FleetOutside } from "../crawlers/public-list-reads.ts";
import { wantsJson } from "../web/guard.ts";
import type { Html } from "../web/html.ts";
import { isFromElsewhere, networkOf, originOf, requesterOf } from "../web/limits.ts";
import { type PageViewer, sendPage } from "../web/page-frame.ts";
import type { ComplaintStore } from "./complaint-store.ts";
import {
  type ContactForms,
  contactBody,
  emptyForms,
  fieldLengths,
  formPaths,
  formScopes,
  optOutTaken,
  reportTaken,
  trapField,
} from "./contact-page.ts";
import { confirmationName, confirmationText } from "./honour.ts";
import { type OptOut, readOptOut, readTarget, targetText } from "./opt-out.ts";
import { contactApi } from "./opt-outs-api.ts";
import { proofFileOf } from "./proof-file.ts";
import type { PublishedSettings } from "./published.ts";
import { addPublishedRoutes } from "./published-routes.ts";
import type { OptOutStore } from "./store.ts";

export interface ContactPorts {
  readonly optOuts: Pick<OptOutStore, "request">;
  readonly complaints: Pick<ComplaintStore, "add">;
  readonly fleet: FleetOutside;
}

interface Context {
  readonly settings: PublishedSettings & { readonly version: string };
  readonly now: () => Date;
  readonly log: Log;
  readonly viewerOf: (request: FastifyRequest) => Promise<PageViewer | undefined>;
}

export function addContactRoutes(app: FastifyInstance, ports: ContactPorts, context: Context): void {
  app.pages?.push(contactApi.fleetAddresses);
  app.get("/about-crawler", async (request, reply) => {
    const viewer = await context.viewerOf(request);
    return sendContactPage(reply, contactBody(context.settings, emptyForms), { ...context, viewer });
  });
  addPublishedRoutes(app, ports.fleet, context);
  app.register(async (forms) => {
    forms.addContentTypeParser(
      "application/x-www-form-urlencoded",
      { parseAs: "string", bodyLimit: maxFormBytes },
      (_request, body, done) => done(null, body),
    );
    addForms(forms, ports, context);
  });
}

function addForms(forms: FastifyInstance, ports: ContactPorts, context: Context): void {
  const guard = new FormGuard(() => performance.now());
  const config = { takes: "application/x-www-form-urlencoded" } as const;
  forms.post(formPaths.optOut, { config, bodyLimit: maxFormBytes }, async (request, reply) => {
    const form = guard.read(request, { site: "Name the site." });
    const { scope = "" } = form.values;
    const meant = scope === "" ? null : formScopes.find((one) => one === scope);
    const target =
      form.fault !== null
        ? null
        : meant === undefined
          ? `“${scope.slice(0, 40)}” is no scope: choose how much of the site opts out.`
          : readOptOut(form.values.site ?? "", "sites-only", meant);
    if (form.fault || target === null || typeof target === "string") {
      return refuse(request, reply, { form, fault: faultOf(form, target), which: "optOut", context });
    }
    const { words = "", reply: replyTo = "", proof = "" } = form.values;
    const hasFile = proof === "file";
    const asked = { target, words, replyTo: replyTo.trim() || null, requester: form.requester, hasFile };
    const optOut = await ports.optOuts.request({ ...asked, source: "form", confirmed: false }, context.now());
    const { state } = optOut;
    context.log[state === "waiting" ? "warn" : "info"]({ site: optOut.target, state }, "a site opts out");
    if (wantsJson(request)) return reply.code(201).send(optOutAnswer(optOut));
    return sendContactPage(reply, optOutTaken(optOut, hasFile), context);
  });
  forms.post(formPaths.report, { config, bodyLimit: maxFormBytes }, async (request, reply) => {
    const form = guard.read(request, {
      site: "Name the site or the address.",
      reply: "Tell us who you are and where we can reply.",
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
      const fault = { status: 429, words: "Too many reports came today. Write to us instead." };
      return refuse(request, reply, { form, fault, which: "report", context });
    }
    const { complaintId, deeds } = complaint;
    context.log.warn(
      { complaintId, target: complaint.target, requests: deeds.requests },
      "somebody complains",
    );
    if (wantsJson(request)) return reply.code(201).send({ complaintId, target: complaint.target });
    return sendContactPage(reply, reportTaken(complaintId, complaint.target), context);
  });
}

function faultOf(form: ReadForm, target: unknown): NonNullable<ReadForm["fault"]> {
  return form.fault ?? { status: 400, words: typeof target === "string" ? target : "That is not a site." };
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
  return sendContactPage(reply, contactBody(context.settings, forms), context);
}

function optOutAnswer({ target, scope, site, state, token, ...times }: OptOut): object {
  const { createdAt, deletesAt, lapsesAt } = times;
  return {
    site: target,
    scope,
    state,
    createdAt,
    deletesAt,
    lapsesAt,
    confirmation: {
      ...{ type: "TXT", name: confirmationName(site ?? target), value: confirmationText(token) },
      file: proofFileOf(site ?? target),
    },
  };
}

function sendContactPage(
  reply: FastifyReply,
  body: Html,
  { settings, viewer }: Context & { readonly viewer?: PageViewer | undefined },
): FastifyReply {
  const { version } = settings;
  const about = { title: "About this crawler", path: "/about-crawler" };
  if (viewer) reply.header("cache-control", "no-store").header("vary", "cookie");
  return sendPage(reply, { ...about, body, version, ...(viewer && { viewer }) });
}

// What a form for everybody is protected by. There is nothing to forge (no cookie, no account), so the danger is
// abuse: floods of one address, programs that fill in every form, other sites that make their visitors send it.

/** Forms of one address (or IPv6 /64) in an hour. */
export const formsPerHour = 10;

/** Of one /24 or /48. */
const formsPerHourOfNetwork = 50;

const hourMs = 3_600_000;
const rememberedAddresses = 20_000;

/** All fields together, encoded. */
const maxFormBytes = 16 * 1024;

interface ReadForm {
  readonly values: Readonly<Record<string, string>>;
  /** Why it is not taken, with the status to answer; null: it may be. */
  readonly fault: { readonly status: number; readonly words: string } | null;
  /** Where it came from; null: not known. */
  readonly requester: string | null;
}

class FormGuard {
  readonly #now: () => number;
  readonly #sent = new LRUCache<string, { count: number; readonly sinceMs: number }>({
    ...growingTo(rememberedAddresses),
  });

  /** `now` in ms, monotonic. */
  constructor(now: () => number) {
    this.#now = now;
  }

  /** `required`: names of fields without which the form says nothing. */
  read(request: FastifyRequest, required: Readonly<Record<string, string>>): ReadForm {
    const values = formValues(request);
    const requester = requesterOf(request);
    const fault = this.#faultOf(request, values, required, requester);
    return { values, fault, requester };
  }

  #faultOf(
    request: FastifyRequest,
    values: ReadForm["values"],
    required: Readonly<Record<string, string>>,
    requester: string | null,
  ): ReadForm["fault"] {
    if (isFromElsewhere(request))
      return { status: 403, words: "This form was sent from another site's page." };
    if ((values[trapField] ?? "") !== "")
      return { status: 400, words: "A hidden field was filled in. Leave it empty and send again." };
    for (const [name, words] of Object.entries(required)) {
      if ((values[name] ?? "").trim() === "") return { status: 400, words };
    }
    for (const [name, most] of Object.entries(fieldLengths)) {
      if ((values[name] ?? "").length > most)
        return { status: 400, words: `A text is longer than ${most} characters.` };
    }
    if (!this.#mayCome(requester)) {
      const words =
        `More than ${formsPerHour} forms came from your address, or ${formsPerHourOfNetwork} from its ` +
        "network, within an hour. Try again later, or write to us.";
      return { status: 429, words };
    }
    return null;
  }

  #mayCome(requester: string | null): boolean {
    if (requester === null) return this.#isWithin("unknown", formsPerHour);
    return (
      this.#isWithin(originOf(requester), formsPerHour) &&
      this.#isWithin(networkOf(requester), formsPerHourOfNetwork)
    );
  }

  #isWithin(origin: string, most: number): boolean {
    const before = this.#sent.get(origin);
    const isFresh = before !== undefined && this.#now() - before.sinceMs < hourMs;
    const count = isFresh ? before.count + 1 : 1;
    this.#sent.set(origin, { count, sinceMs: isFresh ? before.sinceMs : this.#now() });
    return count <= most;
  }
}

/** Opt-outs and complaints for operators: lists, and what the commands do with each. */

import { howMany } from "#core/format";
import type { ActionFault, Actions, Outcome } from "../web/actions.ts";
import { numberOrNull } from "../web/form-fields.ts";
import type { Views } from "../web/views.ts";
import type { ComplaintStore } from "./complaint-store.ts";
import { type Complaint, deedsParagraph } from "./complaints.ts";
import { changeOfErasure, erasePageOf } from "./honour.ts";
import type { OptOutMarks } from "./mark-writes.ts";
import {
  isSaidNumber,
  liftedWords,
  type OptOut,
  type OptOutPreview,
  previewWords,
  readOptOut,
  readTarget,
  scopeOf,
  targetText,
} from "./opt-out.ts";
import { type OptOutScope, optOutScopes, optOutsApi } from "./opt-outs-api.ts";
import {
  addOptOutForm,
  complaintsBody,
  confirmForm,
  optOutsAgain,
  optOutsBody,
  previewBody,
} from "./pages.ts";
import type { OptOutStore } from "./store.ts";

const mostListed = 500;
const optOutsPath = "/fleet/opt-outs";
const complaintsPath = "/fleet/complaints";

interface WishPorts {
  readonly optOuts: Pick<OptOutStore, "list" | "request" | "preview" | "confirm" | "lift">;
  readonly marks: OptOutMarks;
  readonly complaints: Pick<ComplaintStore, "add" | "list" | "close">;
}

export function addWishRoutes(views: Views, actions: Actions, ports: WishPorts): void {
  addViews(views, ports);
  addOptOutActions(actions, ports);
  addComplaintActions(actions, ports);
}

const isScope = (text: string): text is OptOutScope => optOutScopes.some((one) => one === text);

function addViews(views: Views, { optOuts, complaints }: WishPorts): void {
  views.describe({
    ...{ path: `${optOutsPath}/preview`, operation: optOutsApi.previewOptOut },
    view: async ({ query, now }) => {
      const [text, scope] = [query("target"), query("scope")];
      if (scope !== "" && !isScope(scope))
        return `scope: “${scope.slice(0, 40)}” is none of ${optOutScopes.join(", ")}`;
      const target = readOptOut(text, "networks", scope === "" ? null : scope);
      if (typeof target === "string") return `target: ${target}`;
      const preview = (await optOuts.preview(target, now))!;
      const value = { target: targetText(target), scope: scopeOf(target), ...preview };
      const body = (visit: Parameters<typeof optOutsBody>[1]) => previewBody({ ...value, text }, visit);
      return { status: 200, value, title: "Opt-out preview", body };
    },
  });
  views.describe({
    ...{ path: optOutsPath, operation: optOutsApi.fleetOptOuts },
    view: async ({ query }) => {
      const all = query("all") === "yes";
      const list = await optOuts.list({ open: !all, most: mostListed });
      const body = (visit: Parameters<typeof optOutsBody>[1]) => optOutsBody({ optOuts: list, all }, visit);
      return { status: 200, value: { optOuts: list }, title: "Opt-outs", body };
    },
  });
  views.describe({
    ...{ path: complaintsPath, operation: optOutsApi.fleetComplaints },
    view: async ({ query }) => {
      const all = query("all") === "yes";
      const list = await complaints.list({ open: !all, most: mostListed });
      const value = { complaints: list.map((one) => ({ ...one, answer: deedsParagraph(one) })) };
      const body = (visit: Parameters<typeof complaintsBody>[1]) =>
        complaintsBody({ complaints: list, all }, visit);
      return { status: 200, value, title: "Complaints", body };
    },
  });
}

function addOptOutActions(actions: Actions, { optOuts, marks }: WishPorts): void {
  actions.describe({
    ...{ path: optOutsPath, operation: optOutsApi.addOptOut },
    fromForm: ({ target, scope = "", words, removePages }) => ({
      ...{ target, words, ...typedPages(removePages) },
      ...(scope !== "" && { scope }),
    }),
    act: async ({ body, now }) => {
      const target = readOptOut(body.target, "networks", body.scope ?? null);
      if (typeof target === "string") return badTarget(target);
      const preview = (await optOuts.preview(target, now))!;
      const again = { ...body, scope: body.scope ?? "" };
      const unmeant = notMeant(preview, body.removePages, (visit, words) =>
        optOutsAgain(words, addOptOutForm(visit, { ...again, pages: preview.pages })),
      );
      if (unmeant !== null) return unmeant;
      const made = { source: "operator", replyTo: null, requester: null, confirmed: true } as const;
      const optOut = await optOuts.request({ ...made, target, words: body.words }, now);
      return optOutChanged({ ...optOut, ...preview }, "opted-out");
    },
  });
  actions.describe({
    ...{ path: `${optOutsPath}/erase`, operation: optOutsApi.erasePage },
    act: async ({ body, now }) => {
      const erased = await erasePageOf({ optOuts, marks }, body, now);
      if (typeof erased === "string") return badTarget(erased);
      const change = changeOfErasure(erased);
      return { type: "done", value: erased, goTo: optOutsPath, said: change.words, change };
    },
  });
  actions.describe({
    ...{ path: `${optOutsPath}/:number/confirm`, operation: optOutsApi.confirmOptOut },
    fromForm: ({ removePages }) => typedPages(removePages),
    act: async ({ body, param, now }) => {
      const number = numberOf(param("number"));
      const preview = await optOuts.preview(number, now);
      const unmeant =
        preview &&
        notMeant(preview, body.removePages, (visit, words) =>
          optOutsAgain(words, confirmForm(visit, { number, pages: preview.pages })),
        );
      if (unmeant) return unmeant;
      return optOutChanged(number && (await optOuts.confirm(number, "operator", now)), "opt-out-confirmed");
    },
  });
  actions.describe({
    ...{ path: `${optOutsPath}/:number/lift`, operation: optOutsApi.liftOptOut },
    act: async ({ body, param, now }) => {
      const number = numberOf(param("number"));
      return optOutChanged(number && (await optOuts.lift(number, body.words, now)), "opt-out-lifted");
    },
  });
}

const typedPages = (text: string | undefined) => {
  const value = numberOrNull(text);
  return value === null ? {} : { removePages: value };
};

/** Null: it is nothing unusual, or the number that was said is that of the pages that go. */
function notMeant(
  preview: OptOutPreview,
  said: number | undefined,
  again: NonNullable<ActionFault["again"]>,
): ActionFault | null {
  const { wide, pages } = preview;
  const isSaid = said !== undefined && isSaidNumber(said, pages);
  if (isSaid || (wide === null && said === undefined)) return null;
  const words =
    `${wide === null ? "" : `${wide}. `}This takes ${previewWords(preview)}. Nothing was changed. If that ` +
    `is meant, type how many pages go, ${pages} (API: "removePages": ${pages}).`;
  return { type: "fault", status: 422, title: "Not confirmed", words, again };
}

const optOutWords = {
  "opted-out": "is opted out permanently, and its pages are deleted from the index",
  "opt-out-confirmed": "is opted out permanently, and its pages are deleted from the index",
  "opt-out-lifted": "may be crawled again, after a quarter of an hour; its URLs come due within six hours",
} as const;

function optOutChanged(
  optOut: (OptOut & Partial<Pick<OptOutPreview, "dueUrls" | "wide" | "known">>) | null | 0,
  action: keyof typeof optOutWords,
): Outcome {
  if (!optOut) return notOpen("opt-out");
  const { dueUrls: _, wide: __, known: ___, ...value } = optOut;
  const { optOutId, target, scope, state, hosts, urls, pages } = value;
  const count =
    action === "opt-out-lifted"
      ? ` ${liftedWords(value)} The form is not believed for it again without proof.`
      : ` It covers ${howMany(hosts, "host")}, ${howMany(urls, "URL")} and ${howMany(pages, "page")}.`;
  const said = `${target} ${optOutWords[action]}.${count}`;
  const change = { action, target, words: said, after: { optOutId, scope, state, hosts, urls, pages } };
  return { type: "done", value, goTo: optOutsPath, said, change };
}

function addComplaintActions(actions: Actions, { complaints }: WishPorts): void {
  actions.describe({
    ...{ path: complaintsPath, operation: optOutsApi.addComplaint },
    act: async ({ body, now }) => {
      const target = readTarget(body.target, "networks");
      if (typeof target === "string") return badTarget(target);
      const said = { target, targetText: targetText(target), reporter: body.from, words: body.text };
      const report = { ...said, source: "operator", requester: null } as const;
      return complaintChanged(await complaints.add(report, now), "complaint-added");
    },
  });
  actions.describe({
    ...{ path: `${complaintsPath}/:number/close`, operation: optOutsApi.closeComplaint },
    act: async ({ body, param, now }) => {
      const number = numberOf(param("number"));
      const closed = number && (await complaints.close(number, body.words, now));
      return complaintChanged(closed, "complaint-closed");
    },
  });
}

function complaintChanged(
  complaint: Complaint | null | 0,
  action: "complaint-added" | "complaint-closed",
): Outcome {
  if (!complaint) return notOpen("complaint");
  const { complaintId, target, closingWords } = complaint;
  const done = action === "complaint-added" ? "is recorded, with our requests" : "is closed";
  const said = `Complaint ${complaintId} about ${target} ${done}.`;
  const change = { action, target, words: said, after: { complaintId, closingWords } };
  return { type: "done", value: complaint, goTo: complaintsPath, said, change };
}

/** Zero is no number of anything. */
const numberOf = (text: string): number => (/^\d{1,9}$/.test(text) ? Number(text) : 0);

const notOpen = (what: string): Outcome => ({
  type: "fault",
  status: 404,
  title: "Not known",
  words: `There is no open ${what} with this number.`,
});
const badTarget = (why: string): Outcome => ({
  type: "fault",
  status: 400,
  title: "That cannot be done",
  words: `target: ${why}`,
});

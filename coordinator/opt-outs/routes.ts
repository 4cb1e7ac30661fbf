/** Opt-outs and complaints for operators: lists, and what the commands do with each. */

import type { Actions, Outcome } from "../web/actions.ts";
import type { Views } from "../web/views.ts";
import type { ComplaintStore } from "./complaints.ts";
import { type Complaint, deedsParagraph } from "./complaints.ts";
import type { OptOutStore } from "./opt-out.ts";
import { type OptOut, readTarget, targetText, wideWords } from "./opt-out.ts";
import { optOutsApi } from "./opt-outs-api.ts";
import { complaintsBody, optOutsBody } from "./pages.ts";

const mostListed = 500;
const optOutsPath = "/fleet/opt-outs";
const complaintsPath = "/fleet/complaints";

interface WishPorts {
  readonly optOuts: Pick<OptOutStore, "list" | "request" | "confirm" | "lift">;
  readonly complaints: Pick<ComplaintStore, "add" | "list" | "close">;
}

export function addWishRoutes(views: Views, actions: Actions, ports: WishPorts): void {
  addViews(views, ports);
  addOptOutActions(actions, ports);
  addComplaintActions(actions, ports);
}

function addViews(views: Views, { optOuts, complaints }: WishPorts): void {
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

function addOptOutActions(actions: Actions, { optOuts }: WishPorts): void {
  actions.describe({
    ...{ path: optOutsPath, operation: optOutsApi.addOptOut },
    act: async ({ body, now }) => {
      const target = readTarget(body.target, "networks");
      if (typeof target === "string") return badTarget(target);
      const made = { source: "operator", replyTo: null, requester: null, confirmed: true } as const;
      return optOutChanged(await optOuts.request({ ...made, target, words: body.words }, now), "opted-out");
    },
  });
  actions.describe({
    ...{ path: `${optOutsPath}/:number/confirm`, operation: optOutsApi.confirmOptOut },
    fromForm: () => ({}),
    act: async ({ param, now }) => {
      const number = numberOf(param("number"));
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

const optOutWords = {
  "opted-out": "is opted out permanently, and its pages are deleted from the index",
  "opt-out-confirmed": "is opted out permanently, and its pages are deleted from the index",
  "opt-out-lifted": "may be crawled again, after a quarter of an hour",
} as const;

function optOutChanged(optOut: OptOut | null | 0, action: keyof typeof optOutWords): Outcome {
  if (!optOut) return notOpen("opt-out");
  const wide = action === "opt-out-lifted" ? null : wideWords(optOut.target);
  const said = `${optOut.target} ${optOutWords[action]}.${wide === null ? "" : ` Warning: ${wide}`}`;
  const { optOutId, state, hosts, pages } = optOut;
  const change = { action, target: optOut.target, words: said, after: { optOutId, state, hosts, pages } };
  return { type: "done", value: optOut, goTo: optOutsPath, said, change };
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

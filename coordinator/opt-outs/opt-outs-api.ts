/** The API of opt-outs and complaints: what it takes and answers. */
import { z } from "zod";
import { type ApiOperations, dateTime, errorAnswer, refusals } from "../web/api-operation.ts";
import { nothingBody } from "../web/form-fields.ts";

const fleetOptOut = z
  .strictObject({
    optOutId: z.int(),
    target: z.string(),
    kind: z.enum(["site", "network"]),
    state: z.enum(["waiting", "unconfirmed", "confirmed", "lifted", "lapsed"]),
    source: z.enum(["form", "operator"]),
    token: z.string(),
    words: z.string(),
    replyTo: z.string().nullable(),
    requester: z.string().nullable(),
    createdAt: dateTime(),
    inForceAt: dateTime().nullable(),
    lapsesAt: dateTime().nullable(),
    confirmedAt: dateTime().nullable(),
    confirmedBy: z.enum(["site", "operator"]).nullable(),
    endedAt: dateTime().nullable(),
    endingWords: z.string(),
    hosts: z.int(),
    pages: z.int(),
  })
  .meta({ id: "FleetOptOut" });

const fleetOptOuts = z.strictObject({ optOuts: z.array(fleetOptOut) }).meta({ id: "FleetOptOuts" });

const deeds = z.strictObject({
  since: dateTime(),
  hosts: z.int().describe("Hosts of the frontier that belong to it; at most 2,000 are looked at."),
  requests: z.int(),
  mostInAnHour: z
    .int()
    .describe("Requests within one hour of the clock (UTC), all hosts and crawlers together."),
  bytes: z.number(),
  firstAt: dateTime().nullable(),
  lastAt: dateTime().nullable(),
  measurements: z
    .int()
    .describe("Times that a crawler measured how far away it is: a HEAD, a TCP connect or a ping each."),
  crawlers: z
    .array(
      z.strictObject({
        name: z.string(),
        address: z.string().nullable(),
        place: z.string().nullable(),
        contact: z.string().nullable().describe("Of the partner who hosts it, as it says itself."),
        requests: z.int(),
        lastAt: dateTime(),
      }),
    )
    .describe("Who asked, the busiest first."),
  answers: z
    .array(z.strictObject({ outcome: z.string(), status: z.int().nullable(), requests: z.int() }))
    .describe("What it answered, the most frequent first."),
  robots: z.record(z.string(), z.int()).describe("Hosts by how their robots.txt was found last."),
  crawlDelayMs: z.number().nullable().describe("The longest that any of its hosts asks for."),
  backOffMs: z.number().nullable().describe("The longest after a 429 or 503."),
  atWork: z.array(z.string()).describe("Crawlers that had work on it in hand."),
});

const fleetComplaint = z
  .strictObject({
    complaintId: z.int(),
    target: z.string(),
    source: z.enum(["form", "operator"]),
    reporter: z.string(),
    words: z.string(),
    requester: z.string().nullable(),
    createdAt: dateTime(),
    deeds: deeds.describe("What we did to the target in the 24 hours before."),
    closedAt: dateTime().nullable(),
    closingWords: z.string().nullable(),
    answer: z.string().describe("A paragraph that can be sent on as it stands.").optional(),
  })
  .meta({ id: "FleetComplaint" });

const fleetComplaints = z
  .strictObject({ complaints: z.array(fleetComplaint) })
  .meta({ id: "FleetComplaints" });

const fleetOptOutExample = {
  optOutId: 17,
  target: "www.example.org",
  kind: "site",
  state: "unconfirmed",
  source: "form",
  token: "k3v9",
  words: "please stop",
  replyTo: null,
  requester: "192.0.2.9",
  createdAt: "2026-03-01T12:00:00.000Z",
  inForceAt: "2026-03-01T12:00:00.000Z",
  lapsesAt: "2026-03-31T12:00:00.000Z",
  confirmedAt: null,
  confirmedBy: null,
  endedAt: null,
  endingWords: "",
  hosts: 1,
  pages: 40,
};

const deedsExample = {
  since: "2026-02-28T12:00:00.000Z",
  hosts: 2,
  requests: 40,
  mostInAnHour: 9,
  bytes: 812000,
  firstAt: "2026-02-28T13:10:00.000Z",
  lastAt: "2026-03-01T11:40:00.000Z",
  measurements: 1,
  crawlers: [
    {
      name: "athens",
      address: "192.0.2.17",
      place: "Athens",
      contact: "noc@partner.example",
      requests: 40,
      lastAt: "2026-03-01T11:40:00.000Z",
    },
  ],
  answers: [{ outcome: "fetched", status: 200, requests: 40 }],
  robots: { rules: 2 },
  crawlDelayMs: 2000,
  backOffMs: null,
  atWork: ["athens"],
};

const fleetComplaintExample = {
  complaintId: 12,
  target: "www.example.org",
  source: "operator",
  reporter: "abuse@isp.example",
  words: "too fast",
  requester: null,
  createdAt: "2026-03-01T12:00:00.000Z",
  deeds: deedsExample,
  closedAt: null,
  closingWords: null,
};

const words = z.string().max(1000);
const target = z.string().min(1).max(253);
const optOutBody = z.strictObject({
  target: target.describe("A site with everything below it, or a network."),
  words: words.default(""),
});
const liftBody = z.strictObject({ words: words.default("") });
const closeBody = z.strictObject({ words: words.min(1) });
const complaintBody = z.strictObject({
  target,
  from: z.string().min(1).max(200),
  text: z.string().min(1).max(5000),
});

export const optOutsApi = {
  fleetOptOuts: {
    method: "get",
    path: "/api/fleet/opt-outs",
    needs: "fleet-read",
    summary: "Sites and networks that are left alone, the latest first",
    description: "Scope fleet-read.",
    parameters: {
      query: { all: z.enum(["yes"]).optional().describe("yes: also what was lifted or has lapsed.") },
    },
    answers: {
      ...refusals,
      200: {
        description: "The answer",
        schema: fleetOptOuts,
        example: {
          optOuts: [
            {
              optOutId: 17,
              target: "www.example.org",
              kind: "site",
              state: "unconfirmed",
              source: "form",
              token: "k3v9",
              words: "please stop",
              replyTo: null,
              requester: "192.0.2.9",
              createdAt: "2026-03-01T12:00:00.000Z",
              inForceAt: "2026-03-01T12:00:00.000Z",
              lapsesAt: "2026-03-31T12:00:00.000Z",
              confirmedAt: null,
              confirmedBy: null,
              endedAt: null,
              endingWords: "",
              hosts: 1,
              pages: 40,
            },
          ],
        },
      },
      429: errorAnswer("Too many failures from this address"),
    },
  },
  addOptOut: {
    method: "post",
    path: "/api/fleet/opt-outs",
    needs: "fleet-write",
    summary: "Leave a site or a network alone, for good",
    description: "Scope fleet-write.",
    body: {
      schema: optOutBody,
      example: { target: "www.example.org", words: "by letter" },
    },
    answers: {
      ...refusals,
      200: { description: "The answer", schema: fleetOptOut, example: fleetOptOutExample },
      400: errorAnswer("The body is not as described"),
      429: errorAnswer("Too many failures from this address"),
    },
  },
  fleetComplaints: {
    method: "get",
    path: "/api/fleet/complaints",
    needs: "fleet-read",
    summary: "Reports of trouble, each with what we had done",
    description: "Scope fleet-read.",
    parameters: { query: { all: z.enum(["yes"]).optional().describe("yes: also those that are closed.") } },
    answers: {
      ...refusals,
      200: {
        description: "The answer",
        schema: fleetComplaints,
        example: {
          complaints: [
            {
              complaintId: 12,
              target: "www.example.org",
              source: "operator",
              reporter: "abuse@isp.example",
              words: "too fast",
              requester: null,
              createdAt: "2026-03-01T12:00:00.000Z",
              deeds: deedsExample,
              closedAt: null,
              closingWords: null,
              answer:
                "On 2026-03-01 12:00:00 UTC a report about our crawler's requests to www.example.org reached us.",
            },
          ],
        },
      },
      429: errorAnswer("Too many failures from this address"),
    },
  },
  addComplaint: {
    method: "post",
    path: "/api/fleet/complaints",
    needs: "fleet-write",
    summary: "Write a complaint down, with what we did to the target",
    description: "Scope fleet-write.",
    body: {
      schema: complaintBody,
      example: { target: "www.example.org", from: "abuse@isp.example", text: "too fast" },
    },
    answers: {
      ...refusals,
      200: { description: "The answer", schema: fleetComplaint, example: fleetComplaintExample },
      400: errorAnswer("The body is not as described"),
      429: errorAnswer("Too many failures from this address"),
    },
  },
  confirmOptOut: {
    method: "post",
    path: "/api/fleet/opt-outs/{number}/confirm",
    needs: "fleet-write",
    summary: "It is genuine: it holds for good",
    description: "Scope fleet-write.",
    parameters: { path: { number: z.int().meta({ description: "As listed.", example: 17 }) } },
    body: { schema: nothingBody, example: {} },
    answers: {
      ...refusals,
      200: { description: "The answer", schema: fleetOptOut, example: fleetOptOutExample },
      400: errorAnswer("The body is not as described"),
      404: errorAnswer("There is no open one of this number"),
      429: errorAnswer("Too many failures from this address"),
    },
  },
  liftOptOut: {
    method: "post",
    path: "/api/fleet/opt-outs/{number}/lift",
    needs: "fleet-write",
    summary: "It holds no longer",
    description: "Scope fleet-write.",
    parameters: { path: { number: z.int().meta({ description: "As listed.", example: 17 }) } },
    body: {
      schema: liftBody,
      example: { words: "the owner knows nothing of it" },
    },
    answers: {
      ...refusals,
      200: { description: "The answer", schema: fleetOptOut, example: fleetOptOutExample },
      400: errorAnswer("The body is not as described"),
      404: errorAnswer("There is no open one of this number"),
      429: errorAnswer("Too many failures from this address"),
    },
  },
  closeComplaint: {
    method: "post",
    path: "/api/fleet/complaints/{number}/close",
    needs: "fleet-write",
    summary: "It was answered",
    description: "Scope fleet-write.",
    parameters: { path: { number: z.int().meta({ description: "As listed.", example: 17 }) } },
    body: { schema: closeBody, example: { words: "answered on 3 March" } },
    answers: {
      ...refusals,
      200: { description: "The answer", schema: fleetComplaint, example: fleetComplaintExample },
      400: errorAnswer("The body is not as described"),
      404: errorAnswer("There is no open one of this number"),
      429: errorAnswer("Too many failures from this address"),
    },
  },
} satisfies ApiOperations;

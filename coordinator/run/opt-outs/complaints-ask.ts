/** The /fleet/complaints page: complaints about our requests, each with what we sent and a reply to forward. */
import { z } from "zod";
import type { Change } from "#core/audit";
import { code, empty, folded, form, lead, list, note, picture, plain, section } from "../../ask/document.ts";
import { Fault, type Node, operationsOf } from "../../ask/operation.ts";
import { small } from "../../web/components.ts";
import { askAbout, countText, instant } from "../../web/format.ts";
import { html } from "../../web/html.ts";
import type { ComplaintStore } from "./complaint-store.ts";
import { type Complaint, deedsParagraph, partnerLines, readTarget, targetText } from "./opt-out.ts";
import { fleetComplaint, fleetComplaints as listed } from "./opt-outs-api.ts";
import { allOrFew, numberInPath } from "./opt-outs-ask.ts";

interface ComplaintPorts {
  readonly complaints: Pick<ComplaintStore, "add" | "list" | "close">;
}

const { get, post } = operationsOf<ComplaintPorts>();

const mostListed = 500;

function changed(
  { complaintId, target, closingWords }: Complaint,
  [action, done]: readonly [action: string, done: string],
): Change {
  const words = `Complaint ${complaintId} about ${target} ${done}.`;
  return { action, target, words, after: { complaintId, closingWords } };
}

const closeComplaint = post({
  ...{ path: "/api/fleet/complaints/{number}/close", needs: "fleet-write" },
  summary: "Close a complaint",
  input: z.object({
    number: numberInPath,
    words: z
      .string()
      .min(1)
      .max(1000)
      .meta({ title: "Outcome", description: "What was done, for the record." }),
  }),
  output: fleetComplaint,
  example: { words: "answered on 3 March" },
  faults: { 404: "There is no open one with this number" },
  command: { name: "complaints close" },
  run: async ({ input: { number, words }, ports, now }) => {
    const closed = await ports.complaints.close(number, words, now);
    if (closed === null) throw new Fault(404, "There is no open complaint with this number.");
    return closed;
  },
  change: (closed: Complaint) => changed(closed, ["complaint-closed", "is closed"]),
});

const addComplaint = post({
  ...{ path: "/api/fleet/complaints", needs: "fleet-write" },
  label: "Record complaint",
  summary: "Record a complaint, with our requests to the target",
  input: z.object({
    target: z.string().min(1).max(253).meta({
      title: "Site, address or range",
      description: "What our requests went to, such as www.example.org or 192.0.2.0/24.",
    }),
    from: z.string().min(1).max(200).meta({
      title: "Who complains, and where to reply",
      description: "A name or an e-mail address.",
    }),
    text: z.string().min(1).max(5000).meta({ title: "Complaint", description: "As it was received." }),
  }),
  output: fleetComplaint,
  example: { target: "www.example.org", from: "abuse@isp.example", text: "too fast" },
  command: {
    name: "complaints add",
    says: "record a complaint, with our requests to the target in the last 24 hours",
  },
  run: async ({ input, ports, now }) => {
    const target = readTarget(input.target, "networks");
    if (typeof target === "string") throw new Fault(400, `target: ${target}`);
    const said = { target, targetText: targetText(target), reporter: input.from, words: input.text };
    return await ports.complaints.add({ ...said, source: "operator", requester: null }, now);
  },
  change: (added: Complaint) => changed(added, ["complaint-added", "is recorded, with our requests"]),
  goTo: () => "/fleet/complaints",
  view: (added) => ({ title: `Complaint ${added.complaintId}`, nodes: [complaintSection(added)] }),
});

const fleetComplaints = get({
  ...{ path: "/api/fleet/complaints", needs: "fleet-read" },
  navigation: { group: "Sites", order: 61, entry: "Opt-outs", tab: "Complaints" },
  alsoFound: "abuse report record",
  summary: "Complaints, each with our requests",
  input: z.object({ all: z.enum(["yes"]).optional().describe("yes: also those that are closed.") }),
  output: listed,
  command: {
    name: "complaints list",
    says: "the complaints, the latest first",
    group: {
      says: "complaints about our requests, each with what we sent and an answer to forward: add, list, close",
      help: `

Examples:
  nearcrawl complaints add --target www.example.org --from abuse@isp.example --text 'too fast'
  nearcrawl complaints close 12 --words 'answered on 3 March'`,
    },
  },
  run: async ({ input, ports }) => {
    const found = await ports.complaints.list({ open: input.all === undefined, most: mostListed });
    return { complaints: found.map((one) => ({ ...one, answer: deedsParagraph(one) })) };
  },
  view: ({ complaints }, { input }) => ({
    title: "Complaints",
    nodes: [
      lead(
        "Reports about our requests, each with what we sent to that site in the 24 hours before, as recorded then.",
      ),
      allOrFew("/fleet/complaints", input.all !== undefined, ["Open only", "Include closed"]),
      ...(complaints.length === 0
        ? [empty("No open complaints.", html`Reports by <a href="/about-crawler">the form</a> appear here.`)]
        : complaints.map(complaintSection)),
      form({ operation: addComplaint, title: "Record a complaint" }),
    ],
  }),
});

function complaintSection(one: Complaint): Node {
  const { complaintId, target, reporter, words, requester, createdAt, closedAt, closingWords, deeds } = one;
  const partners = partnerLines(one);
  const by = requester === null ? "" : `, by the form from ${requester}`;
  const when = small(html`${instant(createdAt)}, from ${reporter}${by}`);
  return section(html`No. ${complaintId}: ${askAbout(target)} ${when}`, [
    picture(html`<blockquote class="break">${words}</blockquote>`, words),
    folded(`Our requests: ${countText(deeds.requests)} in the 24 hours before`, [
      note("To forward as is:"),
      code(deedsParagraph(one)),
      ...(partners.length === 0
        ? [plain("No crawler of the fleet had sent it a request.")]
        : [plain(small("Hosted by partners (not part of the reply):")), list(partners)]),
    ]),
    closedAt === null
      ? form({ operation: closeComplaint, path: { number: complaintId }, label: `Close no. ${complaintId}` })
      : plain(html`<strong>Closed</strong> ${instant(closedAt)}: ${closingWords}`),
  ]);
}

export const complaintOperations = { addComplaint, fleetComplaints, closeComplaint };
